# SPDX-License-Identifier: MIT
#
# Is what --out stores right? D is computed anew from the stored operands, by formulas written here:
# nothing of the harness, of NumPy or of a kernel. Every row is looked at, in some columns, so rows
# out of place are seen.

import ast
import itertools
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

PROGRAMS, CHAPTER = sys.argv[1], sys.argv[2]
COLUMNS = 4  # of D that are looked at in each row; of a transform, one block of 16
# Half a step of D, for a number of size 1.
ULP = {"<u2": 2.0**-8, "<f2": 2.0**-11, "<f4": 2.0**-23, "e4m3": 2.0**-4, "e5m2": 2.0**-3}
# The step of subnormal numbers.
LEAST = {"<u2": 2.0**-133, "<f2": 2.0**-24, "<f4": 2.0**-149, "e4m3": 2.0**-9, "e5m2": 2.0**-16}
SUM = 2.0**-19  # of sum |a * b|: what adding up in fp32 may lose


def read(folder, name):
    """Shape, type and raw values of a file; FP4 as its bytes."""
    with open(os.path.join(folder, name + ".npy"), "rb") as file:
        content = file.read()
    length = struct.unpack("<H", content[8:10])[0]
    header = ast.literal_eval(content[10:10 + length].decode())
    assert not header["fortran_order"]
    code = {"<u2": "H", "|u1": "B", "<f2": "e", "<f4": "f", "<i4": "i", "<i8": "q"}[header["descr"]]
    data = content[10 + length:]
    values = struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)
    assert len(values) == math.prod(header["shape"])
    return list(header["shape"]), header["descr"], values


def bf16(code):
    return struct.unpack("<f", struct.pack("<I", code << 16))[0]


def small_float(exponent_bits, mantissa_bits, bias):
    """Values of all codes of a float of few bits, sign first; NaN and infinity are not asked for."""
    table = []
    for code in range(1 << (1 + exponent_bits + mantissa_bits)):
        mantissa = code & ((1 << mantissa_bits) - 1)
        exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1)
        size = mantissa * 2.0**(1 - bias - mantissa_bits)
        if exponent:
            size = (1 + mantissa * 2.0**-mantissa_bits) * 2.0**(exponent - bias)
        table.append(-size if code >> (exponent_bits + mantissa_bits) else size)
    return table


ELEMENTS = {"e4m3": small_float(4, 3, 7), "e5m2": small_float(5, 2, 15), "e2m1": small_float(2, 1, 1)}
SCALES = {"ue8m0": [2.0**(code - 127) for code in range(256)], "ue4m3": small_float(4, 3, 7)}


def decoded(type_name, values):
    return [bf16(each) for each in values] if type_name == "<u2" else list(values)


def scale_at(scales, atoms_along_k, row, block):
    """The place of a scale in [row atoms, block atoms, 32, 4, 4]."""
    atom = row // 128 * atoms_along_k + block // 4
    return scales[atom * 512 + row % 32 * 16 + row % 128 // 32 * 4 + block % 4]


class Operands:
    """Elements of A and B by their places in the product, scaled."""

    def __init__(self, folder, about, kind):
        self.block = kind.get("block")
        self.is_nk = bool(about["b_layouts"]) and about["b_layouts"][0] == "nk"
        self.folder, self.kind = folder, kind

    def rows(self, name, scales=None):
        """All rows of a matrix as lists of numbers, one matrix after the other."""
        shape, type_name, values = read(self.folder, name)
        if self.block:
            table = ELEMENTS[self.kind["element"]]
            if self.kind["element"] == "e2m1":
                values = list(itertools.chain.from_iterable((byte & 15, byte >> 4) for byte in values))
                shape[-1] *= 2
            numbers = [table[code] for code in values]
        else:
            numbers = decoded(type_name, values)
        width = shape[-1]
        rows = [numbers[at:at + width] for at in range(0, len(numbers), width)]
        if scales:
            self.scale(rows, shape, *read(self.folder, scales)[::2])
        return shape, rows

    def scale(self, rows, shape, scale_shape, codes):
        table, per_matrix, atoms_along_k = SCALES[self.kind["scale"]], shape[-2], scale_shape[-4]
        bytes_each = math.prod(scale_shape[-5:])
        for index, row in enumerate(rows):
            matrix, inside = divmod(index, per_matrix)
            own = codes[matrix * bytes_each:(matrix + 1) * bytes_each]
            for block in range(-(-len(row) // self.block)):
                factor = table[scale_at(own, atoms_along_k, inside, block)]
                for at in range(block * self.block, min(len(row), (block + 1) * self.block)):
                    row[at] *= factor


def product(a_row, column):
    terms = [x * y for x, y in zip(a_row, column)]
    return math.fsum(terms), math.fsum(map(abs, terms))


def sigma(x):
    return 1 / (1 + math.exp(-x))


def gated(value, col, prob):
    """SwiGLU of gate and up, 32 columns apart; and how far it may be off."""
    (gate, gate_off), (up, up_off) = value(col // 32 * 64 + col % 32), value(col // 32 * 64 + 32 + col % 32)
    return gate * sigma(gate) * up * prob, (abs(gate_off * up) * 1.2 + abs(gate * up_off) + abs(gate * up) * 2.0**-20) * abs(prob)


class Problem:
    """One group after the other: rows of A, columns of B, what --out says of D, and what it should be."""

    def __init__(self, folder, about, kind):
        self.operator = about.get("epilogue", {}).get("operator", "gemm")
        self.folder, operands = folder, Operands(folder, about, kind)
        self.is_scaled = operands.block is not None
        self.wrong, self.checked = [], 0
        if os.path.exists(os.path.join(folder, "a_00000.npy")):
            for group in range(3):
                self.own(operands, group)
            return
        a = operands.rows("a", "sfa" if self.is_scaled else None)[1]
        b_shape, b = operands.rows("b", "sfb" if self.is_scaled else None)
        _, _, offsets = read(folder, "offsets")
        bounds = [0, *offsets] if self.is_scaled else list(offsets)
        d_shape, d_type, d = read(folder, "d")
        if d_type == "|u1":
            d_type = kind["d"]
            d = self.unscaled(d, d_shape[1], d_type)
        else:
            d = [(number, LEAST[d_type]) for number in decoded(d_type, d)]
        alpha, prob = ([1.0] * len(bounds), [1.0] * len(a))
        if self.operator != "gemm":
            alpha, prob = read(folder, "alpha")[2], read(folder, "prob")[2]
        if self.operator == "glu_hadamard":
            self.matrix = decoded(*read(folder, "hadamard")[1:])
        if about.get("product") == "weight_gradient":
            self.gradient(a, b, bounds, d_shape, d, d_type)
            return
        if self.operator == "glu_gradient":
            self.glu_gradient(a, list(zip(*[iter(b)] * b_shape[1])), bounds, alpha, prob, d_shape[1], d, d_type)
            return
        for group in range(len(bounds) - 1):
            matrix = b[group * b_shape[1]:(group + 1) * b_shape[1]]
            columns = matrix if operands.is_nk else list(zip(*matrix))
            for row in range(bounds[group], bounds[group + 1]):
                self.look(a[row], columns, d[row * d_shape[1]:(row + 1) * d_shape[1]], d_type, alpha[group],
                          prob[row], f"group {group} row {row - bounds[group]}")

    def unscaled(self, codes, width, element):
        """Numbers of D in blocks of 32 along its rows, each with the step of subnormal ones there."""
        norm, (scale_shape, _, scales) = read(self.folder, "norm_const")[2][0], read(self.folder, "sfd_row")
        numbers = []
        for at, code in enumerate(codes):
            scale = SCALES["ue8m0"][scale_at(scales, scale_shape[1], at // width, at % width // 32)] / norm
            numbers.append((ELEMENTS[element][code] * scale, LEAST[element] * scale))
        return numbers

    def gradient(self, a, b, bounds, d_shape, d, d_type):
        """D [G,K,N]: the sum over a group's rows, none of which leaves 0."""
        _, k, n = d_shape
        for group, (begin, end) in enumerate(itertools.pairwise(bounds)):
            columns = [[row[col] for row in b[begin:end]] for col in range(n)]
            for i in range(k):
                at = (group * k + i) * n
                self.look([row[i] for row in a[begin:end]], columns, d[at:at + n], d_type, 1, 1, f"group {group} row {i}")

    def glu_gradient(self, a, b, bounds, alpha, prob, width, d, d_type):
        """D [M,2N] of each row in some columns of the product, dprob of each row, dbias of each group in some columns."""
        c = decoded(*read(self.folder, "c")[1:])
        dprob, dbias = read(self.folder, "dprob")[2], read(self.folder, "dbias")[2]
        for group, (begin, end) in enumerate(itertools.pairwise(bounds)):
            columns = list(zip(*b[group]))
            looked = random.Random(group).sample(range(width // 2), COLUMNS)
            sums = [[(0.0, 0.0)] * 2 for _ in looked]
            for row in range(begin, end):
                parts = []
                for col in range(width // 2):
                    total, size = product(a[row], columns[col])
                    y, y_off = alpha[group] * total, abs(alpha[group]) * size * SUM
                    at = row * width + col // 32 * 64 + col % 32
                    gate, up = c[at], c[at + 32]
                    s = sigma(gate)
                    slope = s + gate * s * (1 - s)
                    both = (at, y * prob[row] * up * slope), (at + 32, y * prob[row] * gate * s)
                    parts.append((y * gate * s * up, (y_off + abs(y) * 2.0**-20) * abs(gate * s * up)))
                    if col not in looked:
                        continue
                    for which, (place, number) in enumerate(both):
                        off = (y_off / abs(y) if y else 1) * abs(number) + abs(y * prob[row] * up) * 2.0**-20
                        got, least = d[place]
                        self.expect(got, number, off + abs(number) * 2 * ULP[d_type] + least, f"row {row} column {place % width}")
                        so_far = sums[looked.index(col)]
                        so_far[which] = so_far[which][0] + number, so_far[which][1] + off + abs(number) * SUM
                self.expect(dprob[row], math.fsum(each for each, _ in parts),
                            sum(off + abs(each) * SUM for each, off in parts), f"dprob of row {row}")
            for col, both in zip(looked, sums):
                for which, (number, off) in enumerate(both):
                    at = col // 32 * 64 + col % 32 + 32 * which
                    self.expect(dbias[group * width + at], number, off + 2.0**-126, f"dbias of group {group} column {at}")

    def expect(self, got, number, off, where):
        self.checked += 1
        if not abs(got - number) <= off:
            self.wrong.append(f"{where}: {got}, not {number}")

    def own(self, operands, group):
        a, b = operands.rows(f"a_{group:05}")[1], operands.rows(f"b_{group:05}")[1]
        d_shape, d_type, d = read(self.folder, f"d_{group:05}")
        d = [(number, LEAST[d_type]) for number in decoded(d_type, d)]
        columns = b if operands.is_nk else list(zip(*b))
        for row, a_row in enumerate(a):
            self.look(a_row, columns, d[row * d_shape[1]:(row + 1) * d_shape[1]], d_type, 1, 1,
                      f"group {group} row {row}")

    def look(self, a_row, columns, d_row, d_type, alpha, prob, where):
        draw = random.Random(where)

        def value(col):
            total, size = product(a_row, columns[col])
            return alpha * total, abs(alpha) * size * SUM

        if self.operator == "glu_hadamard":
            first = draw.randrange(len(d_row) // 16) * 16
            x = [gated(value, first + i, prob) for i in range(16)]
            expected = [(first + j, math.fsum(x[i][0] * self.matrix[16 * j + i] for i in range(16)),
                         sum(off + abs(each) * 2.0**-8 for each, off in x)) for j in range(16)]
        else:
            expected = []
            for col in draw.sample(range(len(d_row)), COLUMNS):
                number, off = gated(value, col, prob) if self.operator == "glu" else value(col)
                factor = prob if self.operator == "quant" else 1
                expected.append((col, number * factor, off * abs(factor)))
        for col, number, off in expected:
            self.checked += 1
            got, least = d_row[col]
            if not abs(got - number) <= off + abs(number) * 2 * ULP[d_type] + least:
                self.wrong.append(f"{where} column {col}: {got}, not {number}")


def problems(about):
    if about["limits"]["equal_groups"]:
        return [["--m", "64,64,64", "--n", "72", "--k", "48"]]
    n = -(-72 // about["limits"]["n_multiple"]) * about["limits"]["n_multiple"]
    if about["limits"]["m_multiple"] > 1:
        return [["--m", "256,0,512", "--n", str(n), "--k", "96"]]
    return [["--m", "5,0,33", "--n", str(n), "--k", "40"]]


def main():
    program = os.path.join(PROGRAMS, CHAPTER)
    about = json.loads(subprocess.run([program, "--describe"], capture_output=True, text=True, check=True).stdout)
    failed = 0
    for kind, words in itertools.product(about["formats"][:1] + about["formats"][-1:], problems(about)):
        chosen = ["--format" if "format" in about["options"] else "--in-dtype", kind["in"]]
        always_scaled = any(tensor["name"] == "sfd_row" and tensor["when"].startswith("always") for tensor in about["tensors"])
        # D without scales is checked by type alone.
        if kind["d"] in ("e4m3", "e5m2") and not always_scaled:
            kind = dict(kind, d="bf16")
        chosen += ["--d-dtype", kind["d"]]
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([program, "--device", "emu", "--check", "--out", folder, *words, *chosen],
                           stdout=subprocess.DEVNULL, check=True)
            found = Problem(folder, about, kind)
        print(f"{CHAPTER} {' '.join(words + chosen)}: {found.checked} elements, {len(found.wrong)} wrong")
        print("\n".join(found.wrong[:5]))
        failed += bool(found.wrong) or not found.checked
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
