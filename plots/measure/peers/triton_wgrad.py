# SPDX-License-Identifier: MIT
"""The peer triton_wgrad: a weight gradient of ours in Triton for Hopper, D_g = A_g^T B_g for each group g,
compiled ahead of time.

    python3 triton_wgrad.py OUT.so        wants Triton 3.6 and nvcc, but no GPU and no torch

It is built as triton_tma.py builds its product; triton_wgrad.cpp picks the fastest configuration and
launches it. The sum runs over a group's rows. The rows after its last one are the next group's, or
nobody's, and may hold NaN. One of three methods, FOREIGN, keeps them out of both operands:

  box    A tensor map with one dimension more ends a box at any row: TMA fills the rest with zeros.
         See `load_rows`.
  map    A block makes two tensor maps for each tile, which end with its group: TMA fills the rest with zeros.
  mask   If a group's last slice is not whole, it is multiplied after the loop, with zeros that were
         selected in registers.

Warps are not specialised: where Triton 3.6 shares a tile between two groups of warps, it shifts the second
one's box along the wrong dimension of `box`'s maps, and D is wrong.
"""

import concurrent.futures

import triton
import triton.language as tl
import triton.language.extra.cuda as cuda

import triton_tma


@triton.jit
def place(tile, n, k, band, BM: tl.constexpr, BN: tl.constexpr):
    """A tile's group, and the row and the column of D_g where it begins.

    Tiles of a group are taken in bands of `band` tile rows, so that tiles at work together share columns of A
    and of B in the L2.
    """
    tiles_k = tl.cdiv(k, BM)
    tiles_n = tl.cdiv(n, BN)
    group = tile // (tiles_k * tiles_n)
    in_group = tile % (tiles_k * tiles_n)
    band_begin = in_group // (band * tiles_n) * band
    band_rows = tl.minimum(tiles_k - band_begin, band)
    in_band = in_group % (band * tiles_n)
    return group, (band_begin + in_band % band_rows) * BM, in_band // band_rows * BN


@triton.jit
def load_rows(matrix, token, end, col, BK: tl.constexpr, COLS: tl.constexpr):
    """BK rows of A or B from row `token` on; those from `end` on are 0.

    Element [s, r, c] of the map is row s + r - BK of the matrix, and r < BK. A box at [stop, BK - count]
    begins with row stop - count. After `count` rows it lies beyond the map's last r: TMA fills it with zeros.
    """
    stop = tl.minimum(token + BK, end)
    return matrix.load([stop, BK - (stop - token), col]).reshape(BK, COLS)


@triton.jit
def halves(sums, ROWS: tl.constexpr, COLS: tl.constexpr):
    return tl.permute(tl.reshape(sums, (ROWS, 2, COLS // 2)), (0, 2, 1)).split()


@triton.jit
def store_part(d, group, row, col, sums, BM: tl.constexpr, COLS: tl.constexpr, ADD: tl.constexpr):
    box = sums.to(d.dtype).reshape(1, BM, COLS)
    if ADD:
        d.atomic_add([group, row, col], box)
    else:
        d.store([group, row, col], box)


@triton.jit
def store_sums(d, group, row, col, sums, BM: tl.constexpr, BN: tl.constexpr, PARTS: tl.constexpr,
               ADD: tl.constexpr):
    """In parts: a smaller buffer on the way out, and more stages for the loop."""
    if PARTS == 1:
        store_part(d, group, row, col, sums, BM, BN, ADD)
    elif PARTS == 2:
        left, right = halves(sums, BM, BN)
        store_part(d, group, row, col, left, BM, BN // 2, ADD)
        store_part(d, group, row, col + BN // 2, right, BM, BN // 2, ADD)
    else:
        left, right = halves(sums, BM, BN)
        store_sums(d, group, row, col, left, BM, BN // 2, PARTS // 2, ADD)
        store_sums(d, group, row, col + BN // 2, right, BM, BN // 2, PARTS // 2, ADD)


@triton.jit
def multiply_flat(a, b, d, offsets, groups, n, k, band, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                  PARTS: tl.constexpr, ADD: tl.constexpr, GROUPS: tl.constexpr):
    """One loop over all slices of all tiles of this program: the next tile's are loaded while this one is
    stored. Triton's own `flatten` wants equally many in each tile. A group without rows has one, of zeros.
    """
    first = tl.program_id(0)
    programs = tl.num_programs(0)
    tiles = tl.cdiv(k, BM) * tl.cdiv(n, BN)
    g = tl.arange(0, GROUPS)
    begins = tl.load(offsets + g, mask=g < groups, other=0)
    ends = tl.load(offsets + g + 1, mask=g < groups, other=0)
    # Of the tiles before tile t the program has (t - first + programs - 1) / programs.
    before = (tl.minimum(g, groups) * tiles - first + programs - 1) // programs
    after = (tl.minimum(g + 1, groups) * tiles - first + programs - 1) // programs
    slices = tl.sum((after - before) * tl.maximum(tl.cdiv(ends - begins, BK), 1), 0)

    tile = first - programs
    group, row, col, begin, token, end = 0, 0, 0, 0, 0, 0
    sums = tl.zeros((BM, BN), tl.float32)
    for _ in range(slices):
        if token >= end:
            tile += programs
            group, row, col = place(tile, n, k, band, BM, BN)
            begin = tl.load(offsets + group)
            end = tl.load(offsets + group + 1)
            token = begin
        sums = tl.dot(load_rows(a, token, end, row, BK, BM).T, load_rows(b, token, end, col, BK, BN), sums)
        token += BK
        is_last = token >= end
        if ADD:
            is_last = is_last & (begin < end)  # the sums of a group without rows are 0 as they are
        if is_last:
            store_sums(d, group, row, col, sums, BM, BN, PARTS, ADD)
            sums = tl.zeros((BM, BN), tl.float32)


@triton.jit
def grouped_gradient(a, b, d, a_ptr, b_ptr, offsets, rows, groups, n, k, band, BM: tl.constexpr,
                     BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr, ADD: tl.constexpr,
                     FOREIGN: tl.constexpr, FLATTEN: tl.constexpr, GROUPS: tl.constexpr):
    """d[g, k, n] = a[rows of g, k]^T b[rows of g, n] for each group g; ADD: added to what is there."""
    cuda.gdc_launch_dependents()
    cuda.gdc_wait()
    if FLATTEN:
        multiply_flat(a, b, d, offsets, groups, n, k, band, BM, BN, BK, PARTS, ADD, GROUPS)
    else:
        if FOREIGN == "mask":
            a_all = tl.make_tensor_descriptor(a_ptr, [rows, k], [k, 1], [BK, BM])
            b_all = tl.make_tensor_descriptor(b_ptr, [rows, n], [n, 1], [BK, BN])
        tiles = groups * tl.cdiv(k, BM) * tl.cdiv(n, BN)
        for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
            group, row, col = place(tile, n, k, band, BM, BN)
            begin = tl.load(offsets + group)
            end = tl.load(offsets + group + 1)
            sums = tl.zeros((BM, BN), tl.float32)
            if FOREIGN == "box":
                for token in range(begin, end, BK):
                    of_a = load_rows(a, token, end, row, BK, BM)
                    sums = tl.dot(of_a.T, load_rows(b, token, end, col, BK, BN), sums)
            elif FOREIGN == "map":
                a_own = tl.make_tensor_descriptor(a_ptr, [end, k], [k, 1], [BK, BM])
                b_own = tl.make_tensor_descriptor(b_ptr, [end, n], [n, 1], [BK, BN])
                for token in range(begin, end, BK):
                    sums = tl.dot(a_own.load([token, row]).T, b_own.load([token, col]), sums)
            else:
                rest = begin + (end - begin) // BK * BK
                for token in range(begin, rest, BK):
                    sums = tl.dot(a_all.load([token, row]).T, b_all.load([token, col]), sums)
                if rest < end:
                    own = (rest + tl.arange(0, BK) < end)[:, None]
                    of_a = tl.where(own, a_all.load([rest, row]), 0)
                    sums = tl.dot(of_a.T, tl.where(own, b_all.load([rest, col]), 0), sums)

            if not ADD or begin < end:
                store_sums(d, group, row, col, sums, BM, BN, PARTS, ADD)


# ---- compiling ----

# BM, BN, BK, warps, stages, and where the kernel is not in its plain form. PARTS are those of f32:
# D of bf16 has half as many. All must fit the 227 KiB of shared memory that Hopper gives a block.
# Those of 64 KiB run three blocks to an SM, those of up to 112 KiB two: one multiplies while
# another one stores.
CONFIGURATIONS = [
    (128, 256, 64, 8, 4, {"PARTS": 4}),
    (128, 256, 64, 8, 4, {"PARTS": 4, "FLATTEN": True}),
    (128, 256, 64, 8, 3, {"PARTS": 2, "FLATTEN": True}),
    (128, 256, 64, 8, 4, {"PARTS": 4, "FOREIGN": "map"}),
    (128, 256, 64, 8, 4, {"PARTS": 4, "FOREIGN": "mask"}),
    (256, 128, 64, 8, 4, {"PARTS": 4}),
    (256, 128, 64, 8, 4, {"PARTS": 4, "FLATTEN": True}),
    (128, 128, 64, 4, 3, {"PARTS": 4}),
    (128, 128, 64, 4, 3, {"PARTS": 4, "FLATTEN": True}),
    (128, 128, 64, 8, 3, {"PARTS": 4}),
    (128, 128, 64, 8, 3, {"PARTS": 4, "FLATTEN": True}),
    (128, 128, 128, 8, 3, {"PARTS": 4, "FLATTEN": True}),
    (128, 128, 32, 4, 3, {"PARTS": 4}),
    (64, 256, 32, 4, 4, {"PARTS": 4}),
    (64, 256, 64, 4, 4, {"PARTS": 2, "FLATTEN": True}),
]
RESULTS = [("fp32", False), ("fp32", True), ("bf16", False)]  # D's type, and whether it is added to
GROUPS = 128  # at most, whose slices a loop over all tiles counts
BOX_BYTES = 128  # of a row of a box: the longest swizzle


def constants_of(configuration, of_d, add):
    BM, BN, BK, _, _, forms = configuration
    constants = {"BM": BM, "BN": BN, "BK": BK, "PARTS": 1, "ADD": add, "FOREIGN": "box"}
    constants |= {"FLATTEN": False, "GROUPS": GROUPS} | forms
    if of_d == "bf16":
        constants["PARTS"] = max(constants["PARTS"] // 2, 1)
    return constants


def compile_product(configuration, of_d, add):
    """The boxes are as triton_wgrad.cpp takes them for granted: all have 128 bytes in a row."""
    constants = constants_of(configuration, of_d, add)
    BM, BN, BK, warps, stages, _ = configuration
    types = {"a": f"tensordesc<bf16[1,{BK},{BM}]>", "b": f"tensordesc<bf16[1,{BK},{BN}]>",
             "d": f"tensordesc<{of_d}[1,{BM},{BN // constants['PARTS']}]>",
             "a_ptr": "*bf16", "b_ptr": "*bf16", "offsets": "*i32"}
    types |= dict.fromkeys(("rows", "groups", "n", "k", "band"), "i32")
    options = {"num_warps": warps, "num_stages": stages}
    made = triton_tma.compiled(grouped_gradient, types, constants, options, multiples_of_16=())
    d_columns = BOX_BYTES // (4 if of_d == "fp32" else 2)
    boxes = [(3, [1, BK, 64]), (3, [1, BK, 64]), (3, [1, BM, d_columns])]
    assert made.maps == boxes, f"{constants}: boxes are {made.maps}"
    return made


def kernel_row(configuration, of_d, add, made):
    """The numbers of a Kernel in triton_wgrad.cpp, after its name."""
    BM, BN, BK, warps, stages, _ = configuration
    constants = constants_of(configuration, of_d, add)
    words = [f"{BM}x{BN}x{BK}, {warps} warps, {stages} stages"]
    words += [f"{constants['PARTS']} parts"] if constants["PARTS"] > 1 else []
    words += [constants["FOREIGN"]] if constants["FOREIGN"] != "box" else []
    words += ["flatten"] if constants["FLATTEN"] else []
    numbers = (made.threads, made.shared_bytes, made.scratch_bytes, BM, BN, BK, int(of_d == "fp32"), int(add),
               int(constants["FLATTEN"]))
    return f'"{", ".join(words)}"', ", ".join(map(str, numbers))


def write_kernels(folder):
    products = [(each, of_d, add) for of_d, add in RESULTS for each in CONFIGURATIONS]
    with concurrent.futures.ProcessPoolExecutor() as pool:
        all_made = list(pool.map(compile_product, *zip(*products)))
    arrays, rows = [], []
    for i, (product, made) in enumerate(zip(products, all_made)):
        arrays.append(triton_tma.code(folder, f"product_{i}", made))
        name, numbers = kernel_row(*product, made)
        rows.append(f"  {{{name}, product_{i}, {numbers}}},\n")
    (folder / "triton_kernels.inc").write_text(f"""#define TRITON_VERSION "{triton.__version__}"
constexpr int kMostFlatGroups = {GROUPS};
{"".join(arrays)}
const Kernel kKernels[] = {{
{"".join(rows)}}};
""")
    return len(products)


if __name__ == "__main__":
    triton_tma.build(__doc__, write_kernels, "triton_wgrad.cpp")
