# SPDX-License-Identifier: MIT
"""Small kernels in Triton and Gluon for sm_80, sm_90a and sm_100a; triton_ptx.py compiles them, triton_test.cpp and
triton_blackwell_test.cpp run them."""

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    cluster,
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from triton_ptx import build

# ---- matrix products ----


MATMUL = "d:*fp32 m:i32 n:i32 k:i32"
ALIGNED = MATMUL + "%16"


@build("matmul_bf16_80", 80, "a:*bf16 b:*bf16 " + ALIGNED, BM=64, BN=64, BK=32)
@build("matmul_f16_80", 80, "a:*fp16 b:*fp16 " + MATMUL, {"num_stages": 1}, BM=32, BN=64, BK=32)
@build("matmul_tf32_80", 80, "a:*fp32 b:*fp32 " + ALIGNED, BM=32, BN=32, BK=32)
@build("matmul_e5m2_80", 80, "a:*fp8e5 b:*fp8e5 " + ALIGNED, BM=32, BN=32, BK=64)
@build("matmul_bf16_90a", 90, "a:*bf16 b:*bf16 " + ALIGNED, BM=64, BN=64, BK=64)
@build("matmul_f16_90a", 90, "a:*fp16 b:*fp16 " + ALIGNED, {"num_warps": 8}, BM=128, BN=64, BK=32)
@build("matmul_e4m3_90a", 90, "a:*fp8e4nv b:*fp8e4nv " + ALIGNED, BM=64, BN=32, BK=128)
@build("matmul_tf32_90a", 90, "a:*fp32 b:*fp32 " + ALIGNED, BM=64, BN=32, BK=32)
@build("matmul_bf16_100a", 100, "a:*bf16 b:*bf16 " + ALIGNED, BM=128, BN=64, BK=64)
@build("matmul_f16_100a", 100, "a:*fp16 b:*fp16 " + ALIGNED, {"num_warps": 8}, BM=128, BN=64, BK=32)
@build("matmul_e4m3_100a", 100, "a:*fp8e4nv b:*fp8e4nv " + ALIGNED, BM=64, BN=32, BK=128)
@build("matmul_tf32_100a", 100, "a:*fp32 b:*fp32 " + ALIGNED, BM=128, BN=32, BK=32)
@triton.jit
def matmul(a, b, d, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """d[m,n] = a[m,k] b[n,k]^T."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    sums = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, k, BK):
        ks = k0 + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * k + ks[None, :], (rows[:, None] < m) & (ks[None, :] < k), 0.0)
        y = tl.load(b + cols[None, :] * k + ks[:, None], (cols[None, :] < n) & (ks[:, None] < k), 0.0)
        sums = tl.dot(x, y, sums)
    tl.store(d + rows[:, None] * n + cols[None, :], sums, (rows[:, None] < m) & (cols[None, :] < n))


@build("matmul_split_80", 80, "a:*bf16 b:*bf16 d:*fp32 m:i32 n:i32 k:i32%16", {"num_stages": 4}, BM=32, BN=32, BK=32)
@triton.jit
def matmul_split(a, b, d, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """d += a[m,k] b[k,n], every block a part of k; m, n and k are multiples of the tiles."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    sums = tl.zeros((BM, BN), tl.float32)
    for k0 in range(tl.program_id(2) * BK, k, tl.num_programs(2) * BK):
        ks = k0 + tl.arange(0, BK)
        sums = tl.dot(tl.load(a + rows[:, None] * k + ks[None, :]), tl.load(b + ks[:, None] * n + cols[None, :]), sums)
    tl.atomic_add(d + rows[:, None] * n + cols[None, :], sums, sem="relaxed")


DESCRIPTORS = "a:*bf16 b:*bf16 d:*bf16 m:i32 n:i32 k:i32"


@build("matmul_descriptor_90a", 90, DESCRIPTORS, BM=64, BN=64, BK=64)
@build("matmul_cluster_90a", 90, DESCRIPTORS, {"num_ctas": 2}, BM=128, BN=64, BK=64)
@build("matmul_descriptor_100a", 100, DESCRIPTORS, BM=128, BN=64, BK=64)
@build("matmul_cluster_100a", 100, DESCRIPTORS, {"num_ctas": 2}, BM=256, BN=64, BK=64)
@triton.jit
def matmul_persistent(a, b, d, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Tiles of d[m,n] = a[m,k] b[n,k]^T, one after the other in each block, moved by tensor maps made on the device."""
    a_map = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BM, BK])
    b_map = tl.make_tensor_descriptor(b, [n, k], [k, 1], [BN, BK])
    d_map = tl.make_tensor_descriptor(d, [m, n], [n, 1], [BM, BN])
    tiles_n = tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, BM) * tiles_n, tl.num_programs(0), flatten=True):
        row = tile // tiles_n * BM
        col = tile % tiles_n * BN
        sums = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, k, BK):
            sums = tl.dot(a_map.load([row, k0]), b_map.load([col, k0]).T, sums)
        d_map.store([row, col], sums.to(tl.bfloat16))


@build("matmul_maps_90a", 90, "a:tensordesc<bf16[64,64]> b:tensordesc<bf16[64,64]> d:tensordesc<fp16[64,64]> k:i32")
@triton.jit
def matmul_maps(a, b, d, k):
    """d = a b of whole tiles, by tensor maps that the host made."""
    row = tl.program_id(0) * 64
    col = tl.program_id(1) * 64
    sums = tl.zeros((64, 64), tl.float32)
    for k0 in range(0, k, 64):
        sums = tl.dot(a.load([row, k0]), b.load([k0, col]), sums)
    d.store([row, col], sums.to(tl.float16))


@gluon.jit
def copy_tiles(a, b, d, a_tiles, b_tiles, full, empty, row, col, k, STAGES: gl.constexpr):
    for i in range(k // 64):
        stage = i % STAGES
        mbarrier.wait(empty.index(stage), (i // STAGES + 1) & 1)
        mbarrier.expect(full.index(stage), a.block_type.nbytes + b.block_type.nbytes)
        tma.async_load(a, [row, i * 64], full.index(stage), a_tiles.index(stage))
        tma.async_load(b, [col, i * 64], full.index(stage), b_tiles.index(stage))


@gluon.jit
def multiply_tiles(a, b, d, a_tiles, b_tiles, full, empty, row, col, k, STAGES: gl.constexpr):
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16])
    sums = gl.zeros((64, 64), gl.float32, layout)
    for i in range(k // 64):
        stage = i % STAGES
        mbarrier.wait(full.index(stage), i // STAGES & 1)
        sums = warpgroup_mma(a_tiles.index(stage), b_tiles.index(stage).permute((1, 0)), sums, is_async=True)
        sums = warpgroup_mma_wait(num_outstanding=0, deps=(sums,))
        mbarrier.arrive(empty.index(stage), count=1)
    out = gl.allocate_shared_memory(d.dtype, d.block_type.shape, d.layout)
    out.store(sums.to(d.dtype))
    fence_async_shared()
    tma.async_store(d, [row, col], out)
    tma.store_wait(0)


TILE = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
TILE_MAP = "tensordesc<bf16[64,64]," + str(TILE) + ">"


@build("matmul_specialized_90a", 90, {"a": TILE_MAP, "b": TILE_MAP, "d": TILE_MAP, "k": "i32"}, STAGES=3)
@gluon.jit
def matmul_specialized(a, b, d, k, STAGES: gl.constexpr):
    """d = a b^T of whole tiles: one warp copies, a warpgroup multiplies."""
    a_tiles = gl.allocate_shared_memory(a.dtype, [STAGES] + a.block_type.shape, a.layout)
    b_tiles = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_type.shape, b.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    row = gl.program_id(0) * 64
    col = gl.program_id(1) * 64
    arguments = (a, b, d, a_tiles, b_tiles, full, empty, row, col, k, STAGES)
    gl.warp_specialize([(multiply_tiles, arguments), (copy_tiles, arguments)], [1], [24])


@build("attention_80", 80, "q:*fp16 k:*fp16 v:*fp16 o:*fp16 n:i32 scale:fp32", BM=64, BN=32, D=32)
@build("attention_90a", 90, "q:*fp16 k:*fp16 v:*fp16 o:*fp16 n:i32 scale:fp32", BM=64, BN=64, D=64)
@triton.jit
def attention(q, k, v, o, n, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """One head of softmax(q k^T scale) v, rows causal, n a multiple of the tiles."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + ds[None, :])
    most = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    sums = tl.zeros((BM, D), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM, BN):
        cols = start + tl.arange(0, BN)
        y = tl.load(k + cols[None, :] * D + ds[:, None])
        s = tl.where(rows[:, None] >= cols[None, :], tl.dot(x, y) * scale, -float("inf"))
        new = tl.maximum(most, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        old = tl.exp(most - new)
        total = total * old + tl.sum(p, 1)
        sums = sums * old[:, None] + tl.dot(p.to(tl.float16), tl.load(v + cols[:, None] * D + ds[None, :]))
        most = new
    tl.store(o + rows[:, None] * D + ds[None, :], (sums / total[:, None]).to(tl.float16))


# ---- rows ----


@build("softmax_90a", 90, "x:*fp32 y:*fp32 n:i32", {"num_warps": 8}, N=1024)
@triton.jit
def softmax(x, y, n, N: tl.constexpr):
    cols = tl.arange(0, N)
    row = tl.program_id(0)
    v = tl.load(x + row * n + cols, cols < n, -float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + cols, e / tl.sum(e, 0), cols < n)


@build("statistics_90a", 90, "x:*fp32 out:*fp32 which:*i32 n:i32", N=512)
@triton.jit
def statistics(x, out, which, n, N: tl.constexpr):
    """Mean, variance, product of signs; positions of the least and the greatest; the exclusive or of the bits."""
    cols = tl.arange(0, N)
    row = tl.program_id(0)
    v = tl.load(x + row * n + cols, cols < n, 0.0)
    mean = tl.sum(v, 0) / n
    away = tl.where(cols < n, v - mean, 0.0)
    tl.store(out + row * 2, mean)
    tl.store(out + row * 2 + 1, tl.sqrt(tl.sum(away * away, 0) / n))
    tl.store(which + row * 3, tl.argmax(tl.where(cols < n, v, -float("inf")), 0))
    tl.store(which + row * 3 + 1, tl.argmin(tl.where(cols < n, v, float("inf")), 0))
    tl.store(which + row * 3 + 2, tl.xor_sum(v.to(tl.int32, bitcast=True), 0))


@build("cluster_sums_90a", 90, "x:*fp32 y:*fp32", {"num_ctas": 4}, M=64, N=128)
@triton.jit
def cluster_sums(x, y, M: tl.constexpr, N: tl.constexpr):
    """Sums of columns, maxima of rows and the sum of all of a tile that lies in four blocks of a cluster."""
    rows = tl.arange(0, M)
    cols = tl.arange(0, N)
    tile = tl.load(x + rows[:, None] * N + cols[None, :])
    tl.store(y + cols, tl.sum(tile, 0))
    tl.store(y + N + rows, tl.max(tile, 1))
    tl.store(y + N + M, tl.sum(tile))


@triton.jit
def linear(a, b, c, d):
    """x -> a x + b, then x -> c x + d."""
    return a * c, b * c + d


@build("scan_90a", 90, "x:*i32 y:*i32 z:*i32 w:*fp32", {"num_warps": 8}, N=1024)
@triton.jit
def scan(x, y, z, w, N: tl.constexpr):
    """Prefix sums; sums from the end; a recurrence w[i] = x[i] % 3 * w[i-1] + 1 of small numbers."""
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y + i, tl.cumsum(v, 0))
    tl.store(z + i, tl.cumsum(v, 0, reverse=True))
    factor = ((v & 3) - 1).to(tl.float32) * 0.5
    product, value = tl.associative_scan((factor, tl.full((N,), 1.0, tl.float32)), 0, linear)
    tl.store(w + i, value + product * 0)


@build("sort_80", 80, "x:*fp32 y:*fp32 z:*i16", N=256)
@build("sort_90a", 90, "x:*fp32 y:*fp32 z:*i16", N=256)
@triton.jit
def sort(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y + i, tl.sort(v, descending=True))
    tl.store(z + i, tl.flip(tl.sort((v * 100).to(tl.int16)), 0))


# ---- addresses and atomics ----


@build("histogram_90a", 90, "x:*i32 counts:*i32 sums:*fp32 most:*i32 halves:*fp16 n:i32", N=256, BINS=64)
@triton.jit
def histogram(x, counts, sums, most, halves, n, N: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + i, i < n, 0)
    part = tl.histogram(v, BINS, mask=i < n)
    tl.atomic_add(counts + tl.arange(0, BINS), part, sem="relaxed")
    tl.atomic_add(sums + v, 0.5, i < n)
    tl.atomic_max(most + v % 8, i, i < n)
    tl.atomic_add(halves + v, tl.full((N,), 1.0, tl.float16), i < n)


@build("spin_lock_80", 80, "lock:*i32 total:*i32 trace:*i32", N=128)
@triton.jit
def spin_lock(lock, total, trace, N: tl.constexpr):
    """Every block adds to the same row, one at a time, with plain loads and stores."""
    i = tl.arange(0, N)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total + i, tl.load(total + i) + i + tl.program_id(0))
    turn = tl.load(trace)
    tl.store(trace, turn + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@build("gather_80", 80, "x:*fp32 index:*i32 y:*fp32 z:*fp32", M=16, N=64)
@triton.jit
def gather(x, index, y, z, M: tl.constexpr, N: tl.constexpr):
    """By pointers, and within a tile along its rows."""
    rows = tl.arange(0, M)[:, None]
    cols = tl.arange(0, N)[None, :]
    at = tl.load(index + rows * N + cols)
    tile = tl.load(x + rows * N + cols)
    tl.store(y + rows * N + cols, tl.load(x + at))
    tl.store(z + rows * N + cols, tl.gather(tile, at % M, 0))


# ---- elements ----


@build("transpose_90a", 90, "x:*i16 y:*i16", N=64)
@triton.jit
def transpose(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tile = tl.load(x + i[:, None] * N + i[None, :])
    tl.store(y + i[:, None] * N + i[None, :], tl.trans(tile))


@build("functions_80", 80, "x:*fp32 y:*fp32 n:i32", N=128)
@triton.jit
def functions(x, y, n, N: tl.constexpr):
    """Twelve functions of x, one row each."""
    i = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + i, i < n)
    tl.store(y + i, tl.exp(v), i < n)
    tl.store(y + n + i, tl.log(tl.abs(v) + 1), i < n)
    tl.store(y + 2 * n + i, tl.sin(v), i < n)
    tl.store(y + 3 * n + i, tl.cos(v), i < n)
    tl.store(y + 4 * n + i, tl.erf(v), i < n)
    tl.store(y + 5 * n + i, tl.rsqrt(tl.abs(v) + 1), i < n)
    tl.store(y + 6 * n + i, tl.sqrt_rn(tl.abs(v)), i < n)
    tl.store(y + 7 * n + i, tl.div_rn(v, 3.0), i < n)
    tl.store(y + 8 * n + i, tl.floor(v), i < n)
    tl.store(y + 9 * n + i, tl.ceil(v), i < n)
    tl.store(y + 10 * n + i, tl.exp2(v), i < n)
    tl.store(y + 11 * n + i, tl.fma(v, v, 1.0), i < n)


@build("formats_80", 80, "x:*fp32 half:*fp16 brain:*bf16 narrow:*fp8e5 wide:*fp64 back:*fp32 byte:*i8 n:i32", N=128)
@build("formats_90a", 90, "x:*fp32 half:*fp16 brain:*bf16 narrow:*fp8e4nv wide:*fp64 back:*fp32 byte:*i8 n:i32", N=128)
@triton.jit
def formats(x, half, brain, narrow, wide, back, byte, n, N: tl.constexpr):
    """To narrower formats, and back from 8 bits; n elements of each."""
    i = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + i, i < n)
    tl.store(half + i, v.to(tl.float16), i < n)
    tl.store(brain + i, v.to(tl.bfloat16), i < n)
    small = v.to(narrow.dtype.element_ty)
    tl.store(narrow + i, small, i < n)
    tl.store(wide + i, v.to(tl.float64) / 3, i < n)
    tl.store(back + i, small.to(tl.float32), i < n)
    tl.store(byte + i, v.to(tl.int8), i < n)


@build("integers_80", 80, "x:*i64 y:*i64 z:*i32 n:i32 divisor:i64", N=128)
@triton.jit
def integers(x, y, z, n, divisor, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + i, i < n, 1)
    tl.store(y + i, v // divisor, i < n)
    tl.store(y + n + i, v % divisor, i < n)
    tl.store(y + 2 * n + i, (v * 31) ^ (v >> 7), i < n)
    low = v.to(tl.uint32, bitcast=False)
    tl.store(z + i, tl.umulhi(low, low).to(tl.int32, bitcast=True), i < n)
    tl.store(z + n + i, tl.randint(1234, i).to(tl.int32, bitcast=True), i < n)


@triton.jit(noinline=True)
def collatz(start):
    steps = 0
    while start != 1:
        start = tl.where(start % 2 == 0, start // 2, start * 3 + 1)
        steps += 1
    return steps


@build("calls_80", 80, "x:*i32 y:*i32")
@triton.jit
def calls(x, y):
    """A function that is not expanded where it is called, and loops that no mask tames."""
    row = tl.program_id(0)
    tl.store(y + row, collatz(tl.load(x + row)) + 1000 * collatz(row + 1))


@build("prints_80", 80, "x:*i32 n:i32", {"debug": True}, N=32)
@triton.jit
def prints(x, n, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i, i < n, 0)
    tl.device_print("value", v)
    tl.device_assert(v < 100, "a value is too large")


@build("inline_90a", 90, "x:*i32 y:*i32", {"num_warps": 1}, N=64)
@triton.jit
def inline(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    v = tl.inline_asm_elementwise("{ .reg .b32 t; prmt.b32 t, $1, 0, 0x0123; lop3.b32 $0, t, $1, 0x55, 0x96; }", "=r,r", [v],
                                  tl.int32, True, 1)
    tl.store(y + i, v)


@build("descriptors_90a", 90, "x:*fp32 y:*fp32 z:*fp32 m:i32 n:i32", BM=16, BN=32)
@triton.jit
def descriptors(x, y, z, m, n, BM: tl.constexpr, BN: tl.constexpr):
    """Loads, stores and reductions over the edge of a matrix, with tensor maps that the kernel makes."""
    from_map = tl.make_tensor_descriptor(x, [m, n], [n, 1], [BM, BN])
    to_map = tl.make_tensor_descriptor(y, [m, n], [n, 1], [BM, BN])
    sum_map = tl.make_tensor_descriptor(z, [m, n], [n, 1], [BM, BN])
    row = tl.program_id(0) * BM
    col = tl.program_id(1) * BN
    tile = from_map.load([row, col])
    to_map.store([row, col], tile * 2)
    sum_map.atomic_add([row, col], tile)
    sum_map.atomic_add([row // 2, col], tile)
