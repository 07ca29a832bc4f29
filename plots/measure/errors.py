# SPDX-License-Identifier: MIT
"""How far a product is off in bf16, MXFP8 and NVFP4, on the emulator: what the figure `error` shows.

  python3 -B -m plots.measure.errors BUILD [--out FILE]

Writes plots/measure/data/errors.csv; wants NumPy and the chapters 07l, 08b and 08c.

Draws A and B from a normal distribution in f32, quantises both to each format, and has the format's chapter multiply
them. Each element of D has an error against two products in f64: of the quantised numbers, which is what a check judges,
and of the numbers as they were drawn. Both are divided by the check's limit, one ulp of D in bf16 plus 2^-19 of the sum
of |a*b|, and counted by powers of two: FIRST says where the first of the classes begins.

Scales as the formats' makers choose them: MXFP8 takes the power of two that brings a block's largest exponent to that of
E4M3's largest number (OCP Microscaling Formats 1.0, section 6.3), NVFP4 the E4M3 number next to the largest over 6.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from plots.measure.files import DATA, ERROR_COLUMNS, write_csv

REPO = Path(__file__).resolve().parents[2]
M, N, K, SEED = 256, 256, 2048, 1  # one group
# Classes: four to a power of two, from 2^-12 to 2^16 of the limit.
PER_POWER, FIRST, LAST = 4, -12, 16


def values_of(exponent_bits: int, mantissa_bits: int, bias: int, codes: int) -> np.ndarray:
    """The non-negative numbers of a small float format, by code."""
    found = []
    for code in range(codes):
        exponent, mantissa = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
        fraction = mantissa / (1 << mantissa_bits) + (exponent > 0)
        found.append(fraction * 2.0 ** (max(exponent, 1) - bias))
    assert exponent_bits + mantissa_bits <= 7
    return np.array(found)


E4M3 = values_of(4, 3, 7, 127)  # code 127 is NaN
E2M1 = values_of(2, 1, 1, 8)


def nearest(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The codes of the numbers next to |x|, of two the even one; larger than the largest is the largest."""
    size = np.abs(x)
    above = np.clip(np.searchsorted(values, size), 1, len(values) - 1)
    low, high = values[above - 1], values[above]
    up = (size - low > high - size) | ((size - low == high - size) & (above % 2 == 0))
    return above - 1 + up


def bf16(x: np.ndarray) -> np.ndarray:
    """Codes of f32 numbers rounded to nearest even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(codes: np.ndarray) -> np.ndarray:
    return (codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def atoms(scales: np.ndarray) -> np.ndarray:
    """Scales [rows, blocks] in the layout of 128 x 4 that tensor memory wants: [rows/128, blocks/4, 32, 4, 4]."""
    rows, blocks = scales.shape
    return np.ascontiguousarray(scales.reshape(rows // 128, 4, 32, blocks // 4, 4).transpose(0, 3, 2, 1, 4))


def as_bf16(x: np.ndarray) -> tuple[np.ndarray, None, np.ndarray]:
    codes = bf16(x)
    return codes, None, from_bf16(codes)


def as_mxfp8(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    blocks = x.reshape(len(x), -1, 32).astype(np.float64)
    exponent = np.floor(np.log2(np.abs(blocks).max(-1))) - 8  # 448 is 1.75 * 2^8
    scaled = blocks / 2.0 ** exponent[..., None]
    codes = nearest(E4M3, scaled)
    values = np.copysign(E4M3[codes], scaled) * 2.0 ** exponent[..., None]
    codes = (codes | 128 * np.signbit(scaled)).astype(np.uint8)
    return codes.reshape(x.shape), (exponent + 127).astype(np.uint8), values.reshape(x.shape)


def as_nvfp4(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    blocks = x.reshape(len(x), -1, 16).astype(np.float64)
    scale = nearest(E4M3, np.abs(blocks).max(-1) / 6)
    scaled = blocks / E4M3[scale][..., None]
    codes = nearest(E2M1, scaled)
    values = np.copysign(E2M1[codes], scaled) * E4M3[scale][..., None]
    codes = (codes | 8 * np.signbit(scaled)).astype(np.uint8).reshape(x.shape)
    return codes[:, 0::2] | codes[:, 1::2] << 4, scale.astype(np.uint8), values.reshape(x.shape)


CHAPTERS = [("07l_peak_hopper", "bf16", as_bf16), ("08b_mxfp8", "mxfp8", as_mxfp8), ("08c_fp4", "nvfp4", as_nvfp4)]


def multiplied(program: Path, form: str, a: np.ndarray, b: np.ndarray, sfa: np.ndarray | None,
               sfb: np.ndarray | None) -> np.ndarray:
    """D of the chapter, in f64, on the emulator; its check has passed."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "in", Path(folder) / "out"
        given.mkdir()
        made.mkdir()
        np.save(given / "a.npy", a)
        np.save(given / "b.npy", b[None])
        np.save(given / "offsets.npy", np.array([0, M] if sfa is None else [M], np.int32))
        if sfa is not None:
            np.save(given / "sfa.npy", atoms(sfa))
            np.save(given / "sfb.npy", atoms(sfb)[None])
        subprocess.run([program, "--device", "emu", "--check", *(["--format", form] if sfa is not None else []),
                        "--in", given, "--out", made], check=True)
        return from_bf16(np.load(made / "d.npy"))


def classes(error: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """How many ratios lie in each class; those below the first one are in it, those above the last one in that."""
    at = np.floor(PER_POWER * (np.log2(np.maximum(error, 1e-300) / limit) - FIRST))
    return np.bincount(np.clip(at, 0, PER_POWER * (LAST - FIRST) - 1).astype(int).ravel(), minlength=PER_POWER * (LAST - FIRST))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, help="the build folder")
    parser.add_argument("--out", type=Path, default=REPO / DATA / "errors.csv")
    args = parser.parse_args()
    random = np.random.default_rng(SEED)
    a, b = (random.standard_normal((rows, K)).astype(np.float32) for rows in (M, N))
    drawn = a.astype(np.float64) @ b.astype(np.float64).T
    rows = []
    for chapter, form, quantise in CHAPTERS:
        (a_codes, sfa, a_values), (b_codes, sfb, b_values) = quantise(a), quantise(b)
        d = multiplied((args.build / "bin" / chapter).resolve(), form, a_codes, b_codes, sfa, sfb)
        product = a_values @ b_values.T
        ulp = 2.0 ** (np.floor(np.log2(np.abs(product))) - 7)
        limit = ulp + 2.0**-19 * (np.abs(a_values) @ np.abs(b_values).T)
        for against, right in (("quantised", product), ("drawn", drawn)):
            rows += [dict(zip(ERROR_COLUMNS, (chapter, form, against, M, N, K, FIRST + i / PER_POWER, count)))
                     for i, count in enumerate(classes(np.abs(d - right), limit)) if count]
    write_csv(args.out, ERROR_COLUMNS, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
