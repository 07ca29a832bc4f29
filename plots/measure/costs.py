# SPDX-License-Identifier: MIT
"""What the tiles of the chapters for Blackwell should cost on a B200: the emulator's counts over published rates, and
the cycles of an epilogue by a model of its machine code. Nothing here is measured. cost_counts.py counts, publish.py
puts the table into the READMEs."""

from dataclasses import dataclass
from math import ceil
from pathlib import Path

from plots.measure.files import COST_COLUMNS, BadData, read_csv
from plots.measure.sets import problems

# By chapter, format, tile and words of other options: what a slice and a tile take, by counter.
TileCounts = dict[tuple[str, str, str, str], dict[str, dict[str, int]]]
DEVICE = "NVIDIA B200"
# Dense TFLOP/s and bytes/s of one GPU: NVIDIA Blackwell Architecture Technical Brief, the table
# of HGX B200.
TFLOPS = {"bf16": 2250, "fp8": 4500, "fp4": 9000}
MEMORY_BYTES_PER_S = 8e12
MULTIPROCESSORS = 148  # cudaDevAttrMultiProcessorCount of a B200
# Multiply-adds of one multiprocessor in a cycle. Hopper makes 2048 of bf16 and 4096 of
# FP8 (NVIDIA H100 Tensor Core GPU Architecture, 1024 FP16 FMA for each of 4 tensor cores
# with sparsity); tcgen05.mma makes twice these, and four times those of FP8 with FP4
# (CUTLASS, media/docs/cpp/blackwell_functionality.md, "Throughput").
MULTIPLY_ADDS = {"bf16": 4096, "fp8": 8192, "fp4": 16384}
# The frequency at which so many multiply-adds make those TFLOP/s.
CYCLES_PER_S = TFLOPS["bf16"] * 1e12 / (2 * MULTIPLY_ADDS["bf16"] * MULTIPROCESSORS)
# CUDA C++ Programming Guide, "Compute Capabilities": shared memory has 32 banks of 32 bits a cycle.
SHARED_BYTES_PER_CYCLE = 32 * 4
MEMORY_BYTES_PER_CYCLE = MEMORY_BYTES_PER_S / CYCLES_PER_S / MULTIPROCESSORS
TMEM_COLUMNS = 512  # PTX ISA, "Tensor Memory": of 128 lanes by 32 bits

ELEMENTS = {"bf16": ("bf16", 64, 0), "mxfp8": ("fp8", 128, 32), "mxfp8_e5m2": ("fp8", 128, 32),
            "mxfp4": ("fp4", 256, 32), "nvfp4": ("fp4", 256, 16), "fp4_ue8m0_16": ("fp4", 256, 16)}


def read_costs(path: Path) -> TileCounts:
    """The counts of each chapter, format, tile and choice (words of its options): per slice and per tile a dictionary of
    counters."""
    found = {}
    for row in read_csv(path, COST_COLUMNS) if path.exists() else []:
        if not row["value"].lstrip("-").isdigit():
            raise BadData(f"{path}: {row['counter']} is {row['value']!r}, a count is a whole number")
        if row["format"] not in ELEMENTS:
            raise BadData(f"{path}: nothing is known of the format {row['format']!r}")
        key = row["chapter"], row["format"], row["tile"], row["choice"]
        found.setdefault(key, {"slice": {}, "tile": {}})[row["per"]][row["counter"]] = int(row["value"])
    return found


def slice_k(fmt: str) -> int:
    """Columns of A and B in a slice."""
    return ELEMENTS[fmt][1]


def accumulators(fmt: str, tile_n: int) -> int:
    """How many tiles of sums fit into tensor memory beside the scales of a slice: two, or one. A column holds four
    scales of 32 rows (PTX ISA, "Scale Factor A/B layout"); A has 128 rows and B tile_n in each block."""
    _, k, block = ELEMENTS[fmt]
    columns = ceil(k / block / 4) * (128 + tile_n) // 32 if block else 0
    return 2 if 2 * tile_n + columns <= TMEM_COLUMNS else 1


@dataclass(frozen=True)
class Cost:
    """What a slice and a tile take of one multiprocessor: cycles, unless the name says bytes."""
    slices: int            # of a tile
    tma_bytes: float       # of a slice
    tensor: float          # of a slice: its products
    shared: float          # of a slice: what tensor cores read, and TMA writes if asked
    memory: float          # of a slice, at this multiprocessor's part of the bandwidth
    l2: float              # bytes a cycle that the slices need of it
    main: float            # of a tile: the main loop
    d_bytes: float         # of a tile
    store: float           # of a tile: D to memory
    instructions: float    # of a tile
    code: float            # of a tile: the epilogue's machine code in one warp
    transform: float       # of a tile: the products of a Hadamard transform
    hidden: bool           # the epilogue runs during the next tile's main loop
    slack: float           # what the main loop is longer than the epilogue
    exposed: float         # the epilogue's part of both, where nothing hides it
    us: float              # of the whole problem
    bound: str


def cost(fmt: str, tile: str, counted: dict[str, dict[str, int]], choice: str = "", writes: bool = False,
         overlaps: bool = False) -> Cost:
    """Cycles of one multiprocessor for its part of a tile of `prefill`, and what bounds it. `tile` as MxN; a tile of 256 rows is
    two multiprocessors'. The counts are of whole tiles, of all blocks that share one. choice: words of other options that
    they were taken with. writes: what TMA writes to shared memory takes cycles there as what the tensor core reads does;
    nothing published says whether. overlaps: there are two accumulators whatever fits side by side."""
    rows, n, k = problems()["prefill"][0]
    tile_m, tile_n = map(int, tile.split("x"))
    blocks = tile_m // 128
    slices = ceil(k / slice_k(fmt))
    per_slice, per_tile = ({name: value / blocks for name, value in counted[each].items()} for each in ("slice", "tile"))
    tma_bytes, d_bytes = per_slice["global_load_bytes"], per_tile["global_store_bytes"]
    tensor = per_slice["multiply_adds"] / MULTIPLY_ADDS[ELEMENTS[fmt][0]]
    # TMA writes what is read once.
    shared = (1 + writes) * per_slice["shared_load_bytes"] / SHARED_BYTES_PER_CYCLE
    # `code` is of a warp: all store at once.
    store, code = d_bytes / MEMORY_BYTES_PER_CYCLE, counted["tile"]["epilogue_cycles"]
    # Multiply-adds in f32, which are instructions.
    with_bias = 128 * tile_n if "--bias" in choice.split() else 0
    # Multiply-adds of tensor cores, with X in bf16.
    transform = (per_tile["multiply_adds"] - with_bias) / MULTIPLY_ADDS["bf16"]
    main, epilogue = slices * max(tensor, shared), max(store, code, transform)
    hidden = overlaps or accumulators(fmt, tile_n) == 2
    cycles = max(main, epilogue) if hidden else main + epilogue
    tiles = sum(ceil(m / tile_m) for m in rows) * ceil(n / tile_n)
    us = ceil(tiles / (MULTIPROCESSORS // blocks)) * cycles / CYCLES_PER_S * 1e6
    bound = "epilogue" if hidden and epilogue > main else "tensor core, shared memory" if tensor == shared else \
        "tensor core" if tensor > shared else "shared memory"
    return Cost(slices=slices, tma_bytes=tma_bytes, tensor=tensor, shared=shared, memory=tma_bytes / MEMORY_BYTES_PER_CYCLE,
                l2=tma_bytes / max(tensor, shared), main=main, d_bytes=d_bytes, store=store,
                instructions=per_tile["instructions"], code=code, transform=transform, hidden=hidden, slack=main - epilogue,
                exposed=epilogue / (main + epilogue), us=us, bound=bound)
