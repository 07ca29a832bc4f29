# SPDX-License-Identifier: MIT
"""Predicted costs: counts of made-up programs, hand-made sums, the committed counts against the shape of tiles."""

import contextlib
import csv
import io
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from plots.draw import tables
from plots.measure import cost_counts, costs
from plots.measure.counts_ini import Costs
from plots.measure.files import COST_COLUMNS, DATA, BadData, Row

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / DATA / "costs.csv"

# A chapter's program: counters that grow with tiles and slices as those of a launch do, beside what
# it takes anyhow.
PROGRAM = """
import sys
words = sys.argv


def of(name): return words[words.index("--" + name) + 1]
tile_m, tile_n = map(int, of("tile").split("x"))
rows, columns, slices = int(of("m")) // tile_m, int(of("n")) // tile_n, int(of("k")) // 128
more = 50 if "--bias" in words else 0
assert of("format") == "mxfp8" and of("device") == "emu" and int(of("n")) % tile_n == 0
if RESULT:
    print("what went wrong")
    sys.exit(RESULT)
with open(of("counts-csv"), "w") as table:
    table.write("chapter,set,order,counter,value\\n")
    for name, tile, each in [("multiply_adds", 0, 1000), ("global_load_bytes", 70, 500), ("shared_load_bytes", 0, 400),
                             ("global_store_bytes", 900, 0), ("instructions", 600 + more, 11)]:
        value = 12345 + 3 * slices + rows * columns * (tile + slices * each)
        table.write(f"x,own,0:fair,{name},{value}\\n")
"""


def counted(slice_load, macs, d_bytes, instructions, cycles=500):
    """What cost_counts finds of a tile, and what the model says of its epilogue."""
    return {"slice": dict(multiply_adds=macs, global_load_bytes=slice_load, shared_load_bytes=slice_load,
                          global_store_bytes=0, instructions=99),
            "tile": dict(multiply_adds=0, global_load_bytes=7, shared_load_bytes=0, global_store_bytes=d_bytes,
                         instructions=instructions, epilogue_cycles=cycles)}


class CostsTest(unittest.TestCase):
    def test_rates_agree(self):
        for kind, rate in costs.MULTIPLY_ADDS.items():
            self.assertAlmostEqual(2 * rate * costs.MULTIPROCESSORS * costs.CYCLES_PER_S, 1e12 * costs.TFLOPS[kind])
        self.assertAlmostEqual(costs.MEMORY_BYTES_PER_CYCLE, 29.1, delta=0.05)

    def test_a_tile_by_hand(self):
        # 128x128 of FP8: 256 cycles of products, 264 of shared memory for 33 KB; 56 slices, and D
        # in 1,125 cycles.
        tile = costs.cost("mxfp8", "128x128", counted(33792, 128 * 128 * 128, 32768, 2000))
        self.assertEqual((tile.slices, tile.tensor, tile.shared, tile.main), (56, 256, 264, 56 * 264))
        self.assertEqual((tile.bound, tile.hidden, tile.code), ("shared memory", True, 500))
        self.assertAlmostEqual(tile.store, 32768 / 29.126, delta=1)
        self.assertAlmostEqual(tile.slack, 56 * 264 - tile.store)
        # 8 groups of 16 by 32 tiles are 28 rounds of 148.
        self.assertAlmostEqual(tile.us, 28 * 56 * 264 / costs.CYCLES_PER_S * 1e6)
        twice = costs.cost("mxfp8", "128x128", counted(33792, 128 * 128 * 128, 32768, 2000), writes=True)
        self.assertAlmostEqual(twice.us, 2 * tile.us)

    def test_a_pair_has_half_each_and_one_tile_of_sums_waits(self):
        pair = costs.cost("nvfp4", "256x256", counted(2 * 38912, 256 * 256 * 256, 2 * 65536, 6000))
        self.assertEqual((pair.tensor, pair.shared, pair.tma_bytes, pair.instructions), (512, 304, 38912, 3000))
        self.assertFalse(pair.hidden)
        # 1024 tiles by 74 pairs are 14 rounds, each of a main loop and an epilogue.
        self.assertAlmostEqual(pair.us, 14 * (28 * 512 + pair.store) / costs.CYCLES_PER_S * 1e6)

    def test_an_epilogue_that_outlasts_the_main_loop_bounds(self):
        tile = costs.cost("bf16", "128x128", counted(32768, 128 * 128 * 64, 10 ** 7, 1))
        self.assertEqual(tile.bound, "epilogue")
        self.assertLess(tile.slack, 0)
        self.assertAlmostEqual(tile.us, 28 * tile.store / costs.CYCLES_PER_S * 1e6)

    def test_products_of_a_transform_and_multiply_adds_of_a_bias(self):
        # Of 256x256 each block has 128x128 outputs of 16 products: 64 cycles at 4096 in one. A bias
        # is a multiply-add in f32 for each of 128x256 sums, and an instruction like others.
        each = counted(2 * 38912, 256 * 256 * 256, 2 * 98304, 2 * 16000, 4000)
        each["tile"]["multiply_adds"] = 256 * 128 * 16
        one = costs.cost("nvfp4", "256x256", each)
        self.assertEqual((one.transform, one.code, one.exposed), (64, 4000, 4000 / (28 * 512 + 4000)))
        each["tile"]["multiply_adds"] += 256 * 256
        self.assertEqual(costs.cost("nvfp4", "256x256", each, "--act geglu --bias").transform, 64)
        self.assertEqual(costs.cost("nvfp4", "256x256", each).transform, 72)

    def test_tensor_memory_holds_what_the_chapters_say(self):
        self.assertEqual([costs.accumulators("bf16", n) for n in (64, 128, 256)], [2, 2, 2])
        for fmt in ("mxfp8", "mxfp4", "nvfp4"):
            self.assertEqual([costs.accumulators(fmt, n) for n in (128, 256)], [2, 1], fmt)
        for chapter in ("08b_mxfp8", "08c_fp4"):
            text = (ROOT / "chapters" / chapter / "config.cuh").read_text(encoding="utf-8")
            self.assertIn("ACCUMULATORS = 2 * BN + SFA_COLUMNS + SFB_COLUMNS <= gg::ptx::TMEM_COLUMNS ? 2 : 1;", text)
        texts = {path.parent.name: path.read_text(encoding="utf-8") for path in ROOT.glob("chapters/*/config.cuh")}
        self.assertIn("ACCUMULATORS = 1;", texts["08d_two_cta"])
        for chapter, about in cost_counts.costed().items():
            self.assertEqual("ACCUMULATORS = 2, SCALE_COLUMNS" in texts[chapter], about.two_accumulators, chapter)

    def test_committed_counts_are_those_of_the_tiles_shape(self):
        found = costs.read_costs(COMMITTED)
        self.assertEqual(set(found), {(chapter, *each) for chapter, about in cost_counts.costed().items() for each in about.tiles})
        for (chapter, fmt, tile, choice), per in found.items():
            m, n = map(int, tile.split("x"))
            _, k, block = costs.ELEMENTS[fmt]
            a_and_b = 128 * (m + n)
            in_blocks = m // 128  # a tile's
            # Each block needs those of all columns.
            b_scales = n * k // block * in_blocks if block else 0
            scales = m * k // block + b_scales if block else 0
            alone = "--cluster" in choice
            # Two blocks load half of B's scales each, for both; and half of B, where each
            # multiplies by itself.
            spared = (b_scales // 2 if alone or in_blocks == 2 else 0) + (128 * n // 2 if alone else 0)
            self.assertEqual(per["slice"]["global_load_bytes"], a_and_b + scales - spared, (chapter, fmt, tile))
            self.assertEqual(per["slice"]["shared_load_bytes"], a_and_b + scales, (chapter, fmt, tile))
            self.assertEqual(per["slice"]["multiply_adds"], m * n * k)
            gated, scaled = chapter in ("09b_glu", "09c_glu_hadamard"), "--norm-const" in choice
            # C and half as many columns of D; or D and D_col of a byte with their scales; or D.
            self.assertEqual(per["tile"]["global_store_bytes"],
                             3 * m * n if gated else 2 * (m * n + m * n // 32) if scaled else 2 * m * n, (chapter, choice))
            # Each stores 16 bytes of 32 rows.
            self.assertGreater(per["tile"]["instructions"], m * n // 64)
            # Multiply-adds beside the slices: one a value for a bias, 16 an output for a transform
            # on tensor cores.
            on_tensor_cores = chapter == "09c_glu_hadamard" and "butterfly" not in choice
            self.assertEqual(per["tile"]["multiply_adds"],
                             ("--bias" in choice) * m * n + on_tensor_cores * 16 * m * n // 2, (chapter, choice))


class TableTest(unittest.TestCase):
    def table(self, *rows, transform=(), page=False):
        data = SimpleNamespace(on=lambda device: [row for row in rows if row.device == device])
        predicted = {("08b_mxfp8", "mxfp8", "128x128", ""): counted(33792, 128 ** 3, 32768, 1539),
                     ("08b_mxfp8", "mxfp8", "128x256", ""): counted(50688, 128 * 256 * 128, 65536, 2842),
                     ("08b_mxfp8", "mxfp8", "128x256", "--norm-const 1"): counted(50688, 128 * 256 * 128, 65536, 20000, 5000),
                     ("08a_tcgen05", "bf16", "128x128", ""): counted(32768, 128 * 128 * 64, 32768, 1519)}
        for products, per in zip(transform, predicted.values()):
            per["tile"]["multiply_adds"] = products
        chapter = SimpleNamespace(id="08b_mxfp8", folder=ROOT / "chapters/08b_mxfp8")
        return "\n".join(tables.costs_tables(data, chapter, predicted)) if page else \
            tables.costs_table(data, chapter, predicted)

    def row(self, us, **changed):
        some = dict(device="NVIDIA B200", chapter="08b_mxfp8", set="prefill", format="mxfp8", peer="", warm=False, ok=True,
                    us_median=us, kernel="grouped_gemm 128x128")
        return Row(**some | changed)

    def cells(self, text, start):
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
                if line.startswith(f"| {start}")]

    def test_predicted_and_nothing_measured(self):
        text = self.table()
        first, second = self.cells(text, "`mxfp8`, 128x128")
        self.assertEqual(first[1:4] + first[-1:], ["33,792", "256", "264", "shared memory"])
        self.assertEqual(second[1:3] + second[-4:], ["1,892,352", "14,784", "13,659", "223", "446", "–"])
        # A tile with no place beside it: 2,250 cycles of stores, or 5,000 of machine code, after
        # 28,672 of products.
        slices, plain, scaled = self.cells(text, "`mxfp8`, 128x256")
        self.assertEqual((slices[0], plain[-4], scaled[-4]), ("`mxfp8`, 128x256", "not hidden, 7 %", "not hidden, 15 %"))
        self.assertEqual((scaled[0], scaled[6]), ("`mxfp8`, 128x256, `--norm-const 1`", "5,000"))
        self.assertNotIn("transform", text)
        self.assertEqual(self.cells(text, "`bf16`"), [], "another chapter's")
        page = self.table(page=True)
        self.assertIn("Only the last column is measured.", page)
        self.assertIn("8,192 multiply-adds of fp8", page)

    def test_every_column(self):
        """One multiprocessor reads 128 bytes of shared memory a cycle, multiplies and adds 8192 fp8, and has 29.1 bytes of memory."""
        lines = self.cells(self.table(self.row(240.4), transform=[4096 * 64]), "")
        slices, tiles = ([row for row in lines if row[0] in (head, "`mxfp8`, 128x128")][at:at + 2] for head, at in (
            ("cycles of a slice", 0), ("cycles of a tile, µs of `prefill`", 1)))
        self.assertEqual(list(zip(*slices)), [
            ("cycles of a slice", "`mxfp8`, 128x128"), ("bytes by TMA", "33,792"), ("tensor core", "256"), ("shared memory, read", "264"),
            ("and written", "528"), ("memory", "1,160"), ("L2, bytes a cycle", "128"), ("bound by", "shared memory")])
        self.assertEqual(list(zip(*tiles)), [
            ("cycles of a tile, µs of `prefill`", "`mxfp8`, 128x128"), ("bytes by TMA", "1,892,352"), ("main loop", "14,784"),
            ("bytes stored", "32,768"), ("to memory", "1,125"), ("instructions beside slices", "1,539"), ("machine code", "500"),
            ("transform", "64"), ("slack", "13,659"), ("µs, predicted", "223"), ("if TMA's writes count", "446"), ("µs, measured", "240")])

    def test_only_a_b200_fills_the_column(self):
        text = self.table(self.row(240.4), self.row(300, kernel="grouped_gemm 128x256", warm=True),
                          self.row(250, device="NVIDIA H200"), self.row(9, peer="cublas_loop"), self.row(9, set="decode"))
        self.assertEqual(self.cells(text, "`mxfp8`, 128x128")[1][-1], "240")
        self.assertEqual(self.cells(text, "`mxfp8`, 128x256")[1][-1], "–")

    def test_a_choice_is_not_measured_by_the_chapter_without(self):
        rows = [self.row(400, kernel="grouped_gemm 128x256 1x1"),
                self.row(9, kernel="grouped_gemm 128x256 1x1 d=e4m3 sfd")]
        _, plain, scaled = self.cells(self.table(*rows), "`mxfp8`, 128x256")
        self.assertEqual((plain[-1], scaled[-1]), ("400", "–"))

    def test_products_of_a_transform_have_a_column(self):
        text = self.table(transform=[4096 * 64])
        self.assertEqual([row[7] for row in self.cells(text, "`mxfp8`, 128x")[2:]], ["64", "0", "0"])

    def test_nothing_counted(self):
        self.assertEqual(tables.costs_table(SimpleNamespace(on=lambda _: []),
                                            SimpleNamespace(id="08c_fp4", folder=ROOT / "chapters/08c_fp4"), {}),
                         "Nothing is counted yet.")


class CountTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "bin").mkdir()
        self.out = self.folder / "costs.csv"

    def count(self, *options, result=0):
        program = self.folder / "bin" / "08x"
        program.with_suffix(".py").write_text(f"RESULT = {result}\n{PROGRAM}")
        program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -B \"$0.py\" \"$@\"\n")
        program.chmod(0o755)
        out, err = io.StringIO(), io.StringIO()
        command = ["cost_counts", "--build", str(self.folder), "--out", str(self.out), *options]
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), \
                mock.patch.object(cost_counts, "epilogue_cycles", lambda *_: 77), \
                mock.patch.object(cost_counts, "costed", lambda file: {
                    "08x": Costs([("mxfp8", "128x128", ""), ("mxfp8", "256x256", "--act x --bias")])}):
            return cost_counts.main(), out.getvalue(), err.getvalue()

    def test_what_a_launch_takes_besides_cancels(self):
        self.assertEqual(self.count()[0], 0)
        for tile, choice in (("128x128", ""), ("256x256", "--act x --bias")):
            self.assertEqual(costs.read_costs(self.out)["08x", "mxfp8", tile, choice], {
                "slice": dict(multiply_adds=1000, global_load_bytes=500, shared_load_bytes=400, global_store_bytes=0,
                              instructions=11),
                "tile": dict(multiply_adds=0, global_load_bytes=70, shared_load_bytes=0, global_store_bytes=900,
                             instructions=650 if choice else 600, epilogue_cycles=77)})

    def test_compares_all_but_instructions(self):
        self.count()
        text = self.out.read_text()
        self.out.write_text(text.replace("instructions,11", "instructions,12"))
        self.assertEqual(self.count("--compare")[0], 0)
        self.out.write_text(text.replace("global_store_bytes,900", "global_store_bytes,901"))
        status, out, _ = self.count("--compare")
        self.assertEqual(status, 1)
        self.assertIn("08x mxfp8 128x128: global_store_bytes of a tile is 900, not 901", out)
        self.assertIn("901", self.out.read_text(), "nothing is written")

    def test_a_failed_run_writes_nothing(self):
        status, _, err = self.count(result=3)
        self.assertEqual((status, self.out.exists()), (1, False))
        self.assertIn("ended with 3:\nwhat went wrong", err)

    def test_bad_files_are_refused_in_one_sentence(self):
        for changed, why in [(dict(value="x"), "a count is a whole number"), (dict(format="fp3"), "nothing is known of")]:
            with open(self.out, "w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, COST_COLUMNS)
                writer.writeheader()
                writer.writerow(dict(zip(COST_COLUMNS, ("08x", "mxfp8", "128x128", "", "slice", "instructions", "1"))) | changed)
            with self.assertRaisesRegex(BadData, why):
                costs.read_costs(self.out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
