# SPDX-License-Identifier: MIT
"""The rows of each group in the shape sets that are timed, as common/problem/shapes.cpp and moe.cpp make them."""

import re
from functools import cache
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
WORD = 2**64 - 1
FALLING = [25, 20, 15, 12, 10, 9, 6, 3]  # per cent


def hashed(seed, stream, index):
    """gg::hash of common/base/random.h."""
    x = index + (seed * 8 + stream + 1) * 0x9E3779B97F4A7C15 & WORD
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & WORD
    return x ^ (x >> 31)


def split_rows(rows, shares):
    m = [int(rows * (share / sum(shares))) for share in shares]
    rest, g = rows - sum(m), 0
    while rest:
        if shares[g] > 0:
            m[g], rest = m[g] + 1, rest - 1
        g = (g + 1) % len(m)
    return m


def shuffled(shares):
    for i in range(len(shares) - 1, 0, -1):
        other = hashed(2026, 0, i) % (i + 1)
        shares[i], shares[other] = shares[other], shares[i]
    return shares


def skewed(rows):
    return split_rows(rows, shuffled([0.0 if i % 5 == 4 else 1 / (i + 1) for i in range(32)]))


def moe():
    """The drawn rows, as they stand in the source."""
    text = (REPO / "common/problem/moe.cpp").read_text(encoding="utf-8")
    text = re.sub(r"//[^\n]*", "", text)
    found = re.findall(r"\{\{([\d,\s]+)\},\s*\{(\d+)\},\s*\{(\d+)\}\}", text)
    return [([int(m) for m in rows.split(",")], int(n), int(k)) for rows, n, k in found]


def ragged():
    """As common/problem/shapes.cpp draws them."""
    found, drawn = [], iter(range(2**16))

    def below(bound):
        return hashed(2026, 1, next(drawn)) % bound

    while len(found) < 12:
        groups, mean, n, k = 4 + below(29), 32 << below(5), 512 + 128 * below(29), 512 + 128 * below(29)
        m = [mean // 4 + below(mean * 3 // 2 + 1) for _ in range(groups)]
        if len(found) % 4 == 3:
            m = [m[0]] * groups
        if groups * n * k <= 2**24:
            found.append((m, n, k))
    return found


@cache
def problems():
    """Each set's problems in its order: rows of the groups, N, K."""
    found = {"prefill": [([2048] * 8, 4096, 7168)], "skewed": [(skewed(16384), 4096, 7168)],
             "decode": [(skewed(512), 4096, 7168)], "few_tiles": [([64, 64], 512, 16384)],
             "step": [([2**e] * 8, 4096, 4096) for e in range(14)],
             "many": [([hashed(11, 0, g) % 4 for g in range(1000)], 256, 128)],
             "helion": [([64, 128, 192, 256], 128, 256), (split_rows(16384, FALLING), 14336, 4096)], "moe": moe(),
             "ragged": ragged()}
    found["skew"] = [(split_rows(16384, [ratio if g == 3 else (8 - ratio) / 7 for g in range(8)]), 4096, 4096)
                     for ratio in (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)]
    equal = [(8, 512, 64, 512), (8, 2048, 64, 2048), (4, 512, 512, 512), (4, 1024, 1024, 1024), (8, 4096, 6144, 7168),
             (8, 4096, 7168, 3072), (8, 4096, 4096, 2048)]
    uneven = [(split_rows(65536, shuffled([1 / (i + 3) for i in range(128)])), 1536, 2048),
              (split_rows(16384, FALLING), 14336, 4096)]
    found["peers"] = [([m] * groups, n, k) for groups, m, n, k in equal] + uneven + \
        [([20] * 32, 6144, 7168)]
    return found


def rows_of(name, shape):
    """The rows of a set's problem of this shape, as groups, rows in all, the most of a group, N and K; None: the set has
    no such problem. Sizes of one's own are those of equal groups."""
    groups, m_total, m_max, n, k = shape
    if name == "own":
        return [m_max] * groups if groups * m_max == m_total else None
    return next((rows for rows, *sizes in problems().get(name, [])
                 if (len(rows), sum(rows), max(rows), *sizes) == shape), None)
