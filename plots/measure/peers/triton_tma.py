# SPDX-License-Identifier: MIT
"""The peer triton_tma: a grouped GEMM of ours in Triton for Hopper, compiled ahead of time into a shared library.

    python3 triton_tma.py OUT.so        wants Triton 3.6 and nvcc, but no GPU and no torch

The kernel is persistent, and A, B and D go through tensor maps. The library holds it in each of CONFIGURATIONS;
triton_launch.cpp picks the fastest for a problem and launches it. Both kernels are ready for programmatic dependent
launch: the next one may start at once, and waits before it touches global memory. Launched without, that does nothing.
"""

import concurrent.futures
import pathlib
import shutil
import subprocess
import sys
import tempfile
import typing

import triton
import triton.language as tl
import triton.language.extra.cuda as cuda
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def number_tile_rows(offsets, table, groups, BM: tl.constexpr, GROUPS: tl.constexpr):
    """One program to a group. The table says how many tile rows of BM rows there are, then for each of them its first
    row, the end of its group, and the group.
    """
    cuda.gdc_launch_dependents()
    cuda.gdc_wait()  # the launch before reads the same table, and may have written the offsets
    group = tl.program_id(0)
    g = tl.arange(0, GROUPS)
    begins = tl.load(offsets + g, mask=g < groups, other=0)
    ends = tl.load(offsets + g + 1, mask=g < groups, other=0)
    counts = tl.cdiv(ends - begins, BM)
    first = tl.sum(tl.where(g < group, counts, 0), 0)
    begin = tl.load(offsets + group)
    end = tl.load(offsets + group + 1)
    for i in range(tl.cdiv(end - begin, BM)):
        entry = table + 1 + 3 * (first + i)
        tl.store(entry, begin + i * BM)
        tl.store(entry + 1, end)
        tl.store(entry + 2, group)
    if group == 0:
        tl.store(table, tl.sum(counts, 0))


@triton.jit
def grouped_gemm(a, b, d, d_ptr, offsets, table, rows, groups, n, k, band, BM: tl.constexpr, BN: tl.constexpr,
                 BK: tl.constexpr, GROUPS: tl.constexpr, PARTS: tl.constexpr, SWAP: tl.constexpr, FLATTEN: tl.constexpr,
                 SPECIALIZE: tl.constexpr):
    """d[rows of g, n] = a[rows of g, k] b[g, n, k]^T for each group g; the map of b is of one matrix [groups * n, k].

    Tile rows of all groups have one numbering. Tiles are taken in bands of `band` tile rows, so that tiles at work
    together share rows of A and of B in the L2.
    """
    cuda.gdc_launch_dependents()
    cuda.gdc_wait()
    tiles_n = tl.cdiv(n, BN)
    # Triton specialises no warps where a tensor is reduced: the table has the answers.
    if SPECIALIZE:
        d_map = tl.make_tensor_descriptor(d_ptr, [rows, n], [n, 1], [BM, BN])
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

        if SWAP:  # wgmma wants 64 rows or more: where a tile has fewer, d^T = b a^T has them
            sums = tl.zeros((BN, BM), tl.float32)
            for k0 in range(0, k, BK):
                sums = tl.dot(b.load([b_row, k0]), a.load([row, k0]).T, sums)
            sums = sums.T
        else:
            sums = tl.zeros((BM, BN), tl.float32)
            for k0 in range(0, k, BK):
                sums = tl.dot(a.load([row, k0]), b.load([b_row, k0]).T, sums)
        out = sums.to(tl.bfloat16)

        if SPECIALIZE:  # two conditions, for Triton specialises no warps where there is an `else`
            if row + BM <= end:
                d_map.store([row, col], out)
            if row + BM > end:
                d_edge = tl.make_tensor_descriptor(d_ptr, [end, n], [n, 1], [BM, BN])
                d_edge.store([row, col], out)
        else:
            # triton_launch.cpp, make_maps, says how this map ends at row `stop`.
            stop = tl.minimum(row + BM, end)
            if PARTS == 1:
                d.store([stop, BM - (stop - row), col], out.reshape(1, BM, BN))
            else:  # in halves: a smaller buffer on the way out, and more stages for the loop
                left, right = tl.permute(tl.reshape(out, (1, BM, 2, BN // 2)), (0, 1, 3, 2)).split()
                d.store([stop, BM - (stop - row), col], left)
                d.store([stop, BM - (stop - row), col + BN // 2], right)


# ---- compiling ----

# BM, BN, BK, warps, stages, and where the kernel is not in its plain form. All must fit the 227 KiB
# of shared memory that Hopper gives a block; those of half of it or less run two blocks to an SM.
CONFIGURATIONS = [
    (128, 256, 64, 8, 3, {}),
    (128, 256, 64, 8, 4, {"PARTS": 2}),
    (128, 256, 64, 8, 4, {"PARTS": 2, "FLATTEN": True}),
    (256, 128, 64, 8, 4, {"PARTS": 2}),
    (256, 128, 64, 8, 4, {"PARTS": 2, "FLATTEN": True}),
    (128, 128, 64, 4, 4, {}),
    (128, 128, 64, 4, 3, {"PARTS": 2}),
    (128, 128, 64, 4, 5, {"FLATTEN": True}),
    (128, 128, 64, 8, 4, {}),
    (128, 128, 64, 8, 5, {"FLATTEN": True}),
    (128, 128, 128, 8, 3, {"PARTS": 2}),
    (64, 256, 64, 4, 4, {}),
    (64, 256, 64, 4, 4, {"PARTS": 2, "FLATTEN": True}),
    (128, 64, 64, 4, 4, {}),
    (128, 64, 128, 4, 4, {}),
    (64, 128, 64, 4, 4, {}),
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
    (128, 128, 128, 4, 2, {"SPECIALIZE": True}),
    (64, 128, 64, 4, 6, {"SPECIALIZE": True, "SWAP": True}),
    (32, 128, 64, 4, 8, {"SPECIALIZE": True, "SWAP": True}),
    (32, 128, 128, 4, 4, {"SPECIALIZE": True, "SWAP": True}),
    (32, 256, 64, 4, 5, {"SPECIALIZE": True, "SWAP": True}),
]
GROUPS = (32, 128)  # at most, of which a tile's group is found
MOST_SHARED_BYTES = 227 * 1024


class Made(typing.NamedTuple):
    cubin: bytes
    ptx: bytes
    threads: int
    shared_bytes: int
    scratch_bytes: int
    maps: list


def compiled(kernel, types, constants, options, multiples_of_16=("n",)):
    """Arrays start at multiples of 16 bytes."""
    aligned = [name for name, of in types.items() if of.startswith("*") or name in multiples_of_16]
    attrs = {(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in aligned}
    source = ASTSource(kernel, types | dict.fromkeys(constants, "constexpr"), constants, attrs)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    needs = made.metadata
    assert needs.shared <= MOST_SHARED_BYTES, f"{constants}: {needs.shared} bytes of shared memory"
    maps = [(each["swizzle"], each["block_size"]) for each in needs.tensordesc_meta or []]
    return Made(made.asm["cubin"], made.asm["ptx"].encode(), needs.num_warps * 32, needs.shared, needs.global_scratch_size, maps)


def map_types(maps):
    return {name: f"tensordesc<bf16{box}>".replace(" ", "") for name, box in maps.items()}


def compiled_with_maps(kernel, types, constants, options, maps):
    """As compiled(); the boxes are as triton_launch.cpp takes them for granted: 64 columns and the swizzle 128B, or 32
    columns and 64B."""
    made = compiled(kernel, types, constants, options)
    boxes = [(3, [*box[:-1], 64]) if box[-1] >= 64 else (2, box) for box in maps.values()]
    assert made.maps == boxes, f"{constants}: boxes are {made.maps}"
    return made


def compile_product(configuration, groups):
    BM, BN, BK, warps, stages, forms = configuration
    constants = {"BM": BM, "BN": BN, "BK": BK, "GROUPS": groups, "PARTS": 1}
    constants |= {"SWAP": False, "FLATTEN": False, "SPECIALIZE": False} | forms
    maps = {"a": [BM, BK], "b": [BN, BK], "d": [1, BM, BN // constants["PARTS"]]}
    types = map_types(maps) | {"d_ptr": "*bf16", "offsets": "*i32", "table": "*i32"}
    types |= dict.fromkeys(("rows", "groups", "n", "k", "band"), "i32")
    return compiled_with_maps(grouped_gemm, types, constants, {"num_warps": warps, "num_stages": stages}, maps)


def compile_numbering(BM):
    types = {"offsets": "*i32", "table": "*i32", "groups": "i32"}
    return compiled(number_tile_rows, types, {"BM": BM, "GROUPS": GROUPS[-1]}, {"num_warps": 4})


def kernel_row(configuration, groups, made, numberings):
    """The numbers of a Kernel in triton_launch.cpp, and its name."""
    BM, BN, BK, warps, stages, forms = configuration
    specialize = "SPECIALIZE" in forms
    words = [f"{BM}x{BN}x{BK}, {warps} warps, {stages} stages"]
    words += [f"{value} parts" if name == "PARTS" else name.lower() for name, value in forms.items()]
    least = 0 if specialize else max((0, *(each + 1 for each in GROUPS if each < groups)))
    numbering = numberings.index(BM) if specialize else -1
    # Where 4 warps are specialised, Triton shares a tile between two groups of warps that multiply:
    # each has its own half of the left operand.
    halved = specialize and warps == 4
    a_box_rows, b_box_rows = (box[0] for _, box in made.maps[:2])
    if halved and "SWAP" in forms:
        b_box_rows //= 2
    elif halved:
        a_box_rows //= 2
    numbers = (made.threads, made.shared_bytes, made.scratch_bytes, BM, BN, a_box_rows, b_box_rows, int("SWAP" in forms), int(specialize),
               least, groups, numbering)
    return f'"{", ".join(words)}"', ", ".join(map(str, numbers))


def code(folder, name, made):
    """C++ that puts a kernel into the library as the array `name`: its machine code, and the PTX that our emulator runs."""
    path = folder / f"{name}.fatbin"
    images = []
    for kind, suffix, image in (("elf", "cubin", made.cubin), ("ptx", "ptx", made.ptx)):
        file = folder / f"{name}.{suffix}"
        file.write_bytes(image)
        images.append(f"--image3=kind={kind},sm=90a,file={file}")
    subprocess.run(["fatbinary", "-64", f"--create={path}", *images], check=True)
    return rf"""extern "C" const unsigned char {name}[];
asm(".section .rodata; .balign 64; .local {name}; {name}: .incbin \"{path}\"; .previous");
"""


def write_kernels(folder, configurations, compile_product, kernel):
    products = [(each, groups) for each in configurations for groups in GROUPS if "SPECIALIZE" not in each[-1]]
    products += [(each, GROUPS[-1]) for each in configurations if "SPECIALIZE" in each[-1]]
    numberings = sorted({each[0] for each in configurations if "SPECIALIZE" in each[-1]})
    with concurrent.futures.ProcessPoolExecutor() as pool:
        numbered = pool.map(compile_numbering, numberings)
        multiplied = pool.map(compile_product, *zip(*products))
        numbered, multiplied = list(numbered), list(multiplied)

    arrays, rows, numbering_rows = [], [], []
    for i, ((configuration, groups), made) in enumerate(zip(products, multiplied)):
        arrays.append(code(folder, f"product_{i}", made))
        name, numbers = kernel_row(configuration, groups, made, numberings)
        rows.append(f"  {{{name}, product_{i}, {numbers}}},\n")
    for BM, made in zip(numberings, numbered):
        arrays.append(code(folder, f"numbering_{BM}", made))
        numbering_rows.append(f"  {{numbering_{BM}, {made.threads}, {made.shared_bytes}, {BM}}},\n")
    (folder / "triton_kernels.inc").write_text(f"""#define TRITON_VERSION "{triton.__version__}"
constexpr int kMostGroups = {GROUPS[-1]};
constexpr char kProduct[] = "{kernel}";
{"".join(arrays)}
const Kernel kKernels[] = {{
{"".join(rows)}}};
const Numbering kNumberings[] = {{
{"".join(numbering_rows)}}};
""")
    return len(configurations)


def build(usage, write, source, options=()):
    """`write` puts triton_kernels.inc into a folder and returns how many configurations it has; nvcc compiles `source`
    with it, and is told `options` besides.
    """
    if len(sys.argv) != 2:
        sys.exit(usage)
    if not shutil.which("nvcc"):
        sys.exit(f"{sys.argv[1]} is not built: nvcc is not on PATH")
    here = pathlib.Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as folder:
        configurations = write(pathlib.Path(folder))
        words = ["nvcc", "-std=c++20", "-O2", "-shared", "-cudart", "shared", "-Xcompiler", "-fPIC,-Wall", *options]
        words += [f"-I{folder}", f"-I{here.parents[2]}", here / source, "-o", sys.argv[1]]
        subprocess.run(words, check=True)
    print(f"{sys.argv[1]}: {configurations} configurations by Triton {triton.__version__}")


def main(usage, configurations, compile_product, kernel, options=()):
    def write(folder):
        return write_kernels(folder, configurations, compile_product, kernel)

    build(usage, write, "triton_launch.cpp", options)


if __name__ == "__main__":
    main(__doc__, CONFIGURATIONS, compile_product, "grouped_gemm")
