# SPDX-License-Identifier: MIT
"""The peer triton_glu: a grouped GEMM of ours in Triton whose epilogue is a gated linear unit, for gg-fused.

    python3 triton_glu.py OUT.so        wants Triton 3.6 and nvcc, but no GPU and no torch

It is built as triton_tma.py builds its product. B has 32 gates, then their 32 ups, then the next gates. A thread of wgmma
has 8 columns in turn of all N of the instruction, so it has each gate and its up, and Triton splits the sums without
shared memory. Where the kernel computes d^T = b a^T, columns of B are rows of sums, and 32 of them are of two warps. Such a
kernel gets a copy of B that has 8 gates before their 8 ups. A map of five dimensions, as chapter 07m's, would do without
the copy, but Triton then loads b into registers for each product. Kernels with specialised warps get a copy that has all
gates of a group before its ups, for Triton specialises no warps where sums are reshaped.
"""


import triton
import triton.language as tl
import triton.language.extra.cuda as cuda

import triton_tma


@triton.jit
def approximate(ASM: tl.constexpr, x):
    return tl.inline_asm_elementwise(ASM, "=f,f", [x], tl.float32, is_pure=True, pack=1)


@triton.jit
def swiglu(gate, up, alpha, prob):
    gate = gate * alpha
    up = up * alpha
    power = approximate("ex2.approx.ftz.f32 $0, $1;", gate * -1.4426950408889634)
    return gate * approximate("rcp.approx.ftz.f32 $0, $1;", 1 + power) * up * prob


@triton.jit
def grouped_glu(a, b, d, d_ptr, alphas, probs, offsets, table, rows, groups, n, k, band, BM: tl.constexpr,
                BN: tl.constexpr, BK: tl.constexpr, GROUPS: tl.constexpr, SWAP: tl.constexpr, FLATTEN: tl.constexpr,
                SPECIALIZE: tl.constexpr):
    """d[rows of g, n / 2] = swiglu of a[rows of g, k] b[g, n, k]^T for each group g. Tiles are those of triton_tma.py's
    product, BN of the n columns each.
    """
    cuda.gdc_launch_dependents()
    cuda.gdc_wait()
    tiles_n = tl.cdiv(n, BN)
    # Triton specialises no warps where a tensor is reduced: the table has the answers.
    if SPECIALIZE:
        d_map = tl.make_tensor_descriptor(d_ptr, [rows, n // 2], [n // 2, 1], [BM, BN // 2])
        tile_rows = tl.load(table)
    else:
        g = tl.arange(0, GROUPS)
        begins = tl.load(offsets + g, mask=g < groups, other=0)
        ends = tl.load(offsets + g + 1, mask=g < groups, other=0)
        last_rows = tl.cumsum(tl.cdiv(ends - begins, BM), 0)
        tile_rows = tl.max(last_rows, 0)
    for tile in tl.range(tl.program_id(0), tile_rows * tiles_n, tl.num_programs(0), flatten=FLATTEN,
                         warp_specialize=SPECIALIZE):
        band_begin = tile // (band * tiles_n) * band
        band_rows = tl.minimum(tile_rows - band_begin, band)
        in_band = tile % (band * tiles_n)
        tile_row = band_begin + in_band % band_rows
        col = in_band // band_rows * BN
        if SPECIALIZE:
            row = tl.load(table + 1 + 3 * tile_row)
            end = tl.load(table + 2 + 3 * tile_row)
            group = tl.load(table + 3 + 3 * tile_row)
        else:
            before = last_rows <= tile_row
            group = tl.sum(before.to(tl.int32), 0)
            row = tl.load(offsets + group) + (tile_row - tl.max(tl.where(before, last_rows, 0), 0)) * BM
            end = tl.load(offsets + group + 1)
        b_row = group * n + col
        alpha = tl.load(alphas + group)

        # Triton specialises no warps where sums are reshaped: gates and ups have their own.
        if SPECIALIZE:
            ups_row = group * n + n // 2 + col // 2
            gates_row = ups_row - n // 2
            if SWAP:
                gates = tl.zeros((BN // 2, BM), tl.float32)
                ups = tl.zeros((BN // 2, BM), tl.float32)
                for k0 in range(0, k, BK):
                    tokens = a.load([row, k0]).T
                    gates = tl.dot(b.load([gates_row, k0]), tokens, gates)
                    ups = tl.dot(b.load([ups_row, k0]), tokens, ups)
            else:
                gates = tl.zeros((BM, BN // 2), tl.float32)
                ups = tl.zeros((BM, BN // 2), tl.float32)
                for k0 in range(0, k, BK):
                    tokens = a.load([row, k0])
                    gates = tl.dot(tokens, b.load([gates_row, k0]).T, gates)
                    ups = tl.dot(tokens, b.load([ups_row, k0]).T, ups)
        elif SWAP:
            sums = tl.zeros((BN, BM), tl.float32)
            for k0 in range(0, k, BK):
                sums = tl.dot(b.load([b_row, k0]), a.load([row, k0]).T, sums)
            gates, ups = tl.permute(tl.reshape(sums, (BN // 16, 2, 8, BM)), (0, 2, 3, 1)).split()
            gates = gates.reshape(BN // 2, BM)
            ups = ups.reshape(BN // 2, BM)
        else:
            sums = tl.zeros((BM, BN), tl.float32)
            for k0 in range(0, k, BK):
                sums = tl.dot(a.load([row, k0]), b.load([b_row, k0]).T, sums)
            gates, ups = tl.permute(tl.reshape(sums, (BM, BN // 64, 2, 32)), (0, 1, 3, 2)).split()
            gates = gates.reshape(BM, BN // 2)
            ups = ups.reshape(BM, BN // 2)
        r = row + tl.arange(0, BM)
        prob = tl.load(probs + r, mask=r < end, other=0)
        if SWAP:
            out = swiglu(gates, ups, alpha, prob[None, :]).to(tl.bfloat16).T
        else:
            out = swiglu(gates, ups, alpha, prob[:, None]).to(tl.bfloat16)

        if SPECIALIZE:  # two conditions, for Triton specialises no warps where there is an `else`
            if row + BM <= end:
                d_map.store([row, col // 2], out)
            if row + BM > end:
                d_edge = tl.make_tensor_descriptor(d_ptr, [end, n // 2], [n // 2, 1], [BM, BN // 2])
                d_edge.store([row, col // 2], out)
        else:
            stop = tl.minimum(row + BM, end)  # make_maps says how this map ends at row `stop`
            d.store([stop, BM - (stop - row), col // 2], out.reshape(1, BM, BN // 2))


# ---- compiling ----

# BM, BN, BK, warps, stages, and where the kernel is not in its plain form. All must fit the 227 KiB
# of shared memory that Hopper gives a block.
CONFIGURATIONS = [
    (128, 256, 64, 8, 3, {}),
    (128, 256, 64, 8, 4, {}),
    (128, 256, 64, 8, 4, {"FLATTEN": True}),
    (128, 256, 64, 8, 4, {"SWAP": True}),
    (256, 128, 64, 8, 4, {}),
    (256, 128, 64, 8, 4, {"FLATTEN": True}),
    (256, 128, 64, 8, 4, {"SWAP": True}),
    (128, 128, 64, 4, 4, {}),
    (128, 128, 64, 4, 5, {"FLATTEN": True}),
    (128, 128, 64, 8, 4, {}),
    (128, 128, 64, 8, 5, {"FLATTEN": True}),
    (128, 128, 64, 8, 5, {"SWAP": True}),
    (128, 128, 128, 8, 3, {}),
    (64, 256, 64, 4, 4, {}),
    (64, 256, 64, 4, 4, {"FLATTEN": True}),
    (64, 256, 64, 8, 4, {"SWAP": True}),
    (128, 64, 64, 4, 4, {}),
    (128, 64, 128, 4, 4, {}),
    (64, 128, 64, 4, 4, {}),
    (64, 128, 64, 4, 6, {"SWAP": True}),
    (64, 128, 128, 4, 4, {}),
    (64, 64, 64, 4, 4, {}),
    (64, 64, 64, 4, 4, {"FLATTEN": True}),
    (64, 64, 128, 4, 3, {}),
    (32, 128, 64, 4, 5, {"SWAP": True}),
    (32, 128, 64, 4, 5, {"SWAP": True, "FLATTEN": True}),
    (32, 128, 128, 4, 5, {"SWAP": True}),
    (32, 128, 128, 4, 5, {"SWAP": True, "FLATTEN": True}),
    (32, 256, 64, 8, 5, {"SWAP": True}),
    (32, 64, 128, 4, 4, {"SWAP": True}),
    (128, 256, 64, 4, 3, {"SPECIALIZE": True}),
    (256, 128, 64, 4, 3, {"SPECIALIZE": True}),
    (128, 128, 64, 4, 4, {"SPECIALIZE": True}),
    (128, 128, 64, 4, 5, {"SPECIALIZE": True}),
    (128, 256, 64, 4, 3, {"SPECIALIZE": True, "SWAP": True}),
    (64, 256, 64, 4, 4, {"SPECIALIZE": True, "SWAP": True}),
    (32, 256, 64, 4, 5, {"SPECIALIZE": True, "SWAP": True}),
]


def compile_product(configuration, groups):
    BM, BN, BK, warps, stages, forms = configuration
    constants = {"BM": BM, "BN": BN, "BK": BK, "GROUPS": groups}
    constants |= {"SWAP": False, "FLATTEN": False, "SPECIALIZE": False} | forms
    maps = {"a": [BM, BK], "b": [BN // 2 if constants["SPECIALIZE"] else BN, BK], "d": [1, BM, BN // 2]}
    types = triton_tma.map_types(maps) | {"d_ptr": "*bf16", "alphas": "*fp32", "probs": "*fp32"}
    types |= {"offsets": "*i32", "table": "*i32"} | dict.fromkeys(("rows", "groups", "n", "k", "band"), "i32")
    return triton_tma.compiled_with_maps(grouped_glu, types, constants, {"num_warps": warps, "num_stages": stages}, maps)


if __name__ == "__main__":
    triton_tma.main(__doc__, CONFIGURATIONS, compile_product, "grouped_glu", ["-DTRITON_GLU"])
