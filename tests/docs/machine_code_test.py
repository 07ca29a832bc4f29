# SPDX-License-Identifier: MIT
"""Cycles from machine code: a made-up listing whose control bits, loops, ways and cycles are known."""

import unittest
from pathlib import Path
from unittest import mock

from plots.measure.machine_code import clocked, listing, model

ROOT = Path(__file__).resolve().parents[2]


def row(address, line, text, stall=1, sets=7, frees=7, waits=0):
    """An instruction as nvdisasm prints it, with its control bits in the upper eight bytes."""
    upper = (stall | sets << 5 | frees << 8 | waits << 11) << 41
    return (f'\t//## File ".nv_debug_ptx_txt", line {line}\n'
            f"        /*{address:04x}*/    {text} ;    /* 0x{0:016x} */\n"
            f"                                     /* 0x{upper:016x} */\n")


def functions(*rows):
    return listing.read_functions(".text.kernel:\n" + "".join(rows))["kernel"]


# A loop of 4 around a loop of 10, with a branch that is seldom taken, and a wait at a barrier moved
# behind the end.
NESTED = (
    row(0x00, 1, "MOV R0, RZ"), ".L_x_0:\n",
    row(0x10, 2, "LDG.E R1, desc[UR4][R2.64]", stall=2, sets=0), ".L_x_1:\n",
    row(0x20, 3, "FADD R3, R3, R1", stall=4, waits=1), row(0x30, 4, "@P1 BRA `(.L_x_3)", stall=5), ".L_x_2:\n",
    row(0x40, 5, "@P0 BRA `(.L_x_1)", stall=6), row(0x50, 6, "BRA.U UP0, `(.L_x_0)", stall=3), row(0x60, 7, "EXIT"),
    ".L_x_3:\n", row(0x70, 8, "MUFU.EX2 R3, R3", stall=9), row(0x80, 8, "BRA `(.L_x_2)"))
TIMES = {1: 1, 2: 4, 3: 40, 4: 40, 5: 40, 6: 4, 7: 1, 8: 2}


class Listing(unittest.TestCase):
    def test_reads_control_bits_labels_and_lines(self):
        one = functions(row(0x10, 77, "@!P3 LDG.E.128 R4, desc[UR4][R2.64+0x10]", 13, 2, 4, 0b100101)).instructions[0]
        self.assertEqual((one.address, one.guard, one.op, one.name), (0x10, "@!P3", "LDG.E.128", "LDG"))
        self.assertEqual((one.stall, one.sets, one.frees, one.waits, one.ptx_line), (13, 2, 4, 0b100101, 77))

    def test_refuses_text_without_code(self):
        with self.assertRaisesRegex(listing.BadListing, "no code of a function"):
            listing.read_functions("nvdisasm fatal: not an ELF file\n")

    def test_a_branch_with_its_condition_among_its_operands_may_fall_through(self):
        blocks = listing.blocks_of(functions(*NESTED))
        self.assertEqual([block.follows for block in blocks], [[1], [2], [3, 6], [4, 2], [5, 1], [], [3]])

    def test_finds_nested_loops(self):
        loops = listing.loops_of(listing.blocks_of(functions(*NESTED)))
        self.assertEqual({header: sorted(body) for header, body in loops.items()}, {1: [1, 2, 3, 4, 6], 2: [2, 3, 6]})


class Model(unittest.TestCase):
    def setUp(self):
        self.kernel = model.Kernel(functions(*NESTED), {line: (times, 0) for line, times in TIMES.items()})
        (self.outer,) = self.kernel.top.values()
        (self.inner,) = self.outer.inner.values()

    def test_goes_the_usual_way_and_counts_trips(self):
        self.kernel.cost(self.outer)
        self.assertEqual(self.inner.trips, 10)
        # FADD, the branch not taken, the branch back: nothing of the way that 2 of 40 go.
        self.assertEqual((self.inner.cost.instructions, self.inner.cost.cycles), (3, 4 + 5 + 6))
        self.assertEqual(self.outer.cost.instructions, 2 + 10 * 3)
        self.assertEqual(self.outer.cost.cycles, 2 + 10 * 15 + 3)

    def test_waits_for_a_scoreboard_as_long_as_assumed(self):
        code = functions(row(0, 1, "SHFL.IDX PT, R1, R0, RZ, 0x1f", stall=2, sets=3), row(16, 1, "FADD R2, R1, R1", waits=1 << 3))
        machine = model.Machine({})
        for one in code.instructions:
            machine.issue(one)
        self.assertEqual(machine.now, model.LATENCY["SHFL"] + 1)
        self.assertEqual(machine.why["scoreboard"], model.LATENCY["SHFL"] - 2)

    def test_a_pipe_that_is_taken_holds_the_next(self):
        code = functions(row(0, 1, "MUFU.EX2 R0, R0"), row(16, 1, "MUFU.EX2 R1, R1"))
        machine = model.Machine({})
        for one in code.instructions:
            machine.issue(one)
        self.assertEqual(machine.now, model.PIPES["MUFU"][1] + 1)

    def test_stores_hold_the_memory_for_each_sector_and_warp(self):
        code = functions(*(row(16 * i, 5, "STG.E.128 desc[UR4][R2.64], R4") for i in range(2)))
        machine = model.Machine({5: 32}, sharing=4)
        for one in code.instructions:
            machine.issue(one)
        self.assertEqual(machine.now, 32 * 4 * model.SECTOR_CYCLES + 1)

    def test_the_lines_that_every_round_has_tell_how_many_there_are(self):
        # The header stands at a line of what came before, executed twice; half of the body ran
        # again for late lanes.
        code = functions(".L_x_0:\n", row(0x00, 1, "MOV R0, RZ"), row(0x10, 2, "@P0 BRA `(.L_x_1)"),
                         row(0x20, 3, "FADD R3, R3, R1"), row(0x30, 3, "FADD R3, R3, R1"), ".L_x_1:\n",
                         row(0x40, 4, "FADD R3, R3, R1"), row(0x50, 4, "FADD R3, R3, R1"), row(0x60, 5, "FADD R3, R3, R1"),
                         row(0x70, 5, "@P1 BRA `(.L_x_0)"), row(0x80, 6, "EXIT"))
        kernel = model.Kernel(code, {1: (2, 0), 2: (20, 0), 3: (3, 0), 4: (40, 0), 5: (20, 0), 6: (2, 0)})
        self.assertEqual(kernel.top[0].weight, 20)

    def test_code_for_lanes_that_never_part_is_left_out(self):
        code = functions(row(0x00, 1, "MOV R0, RZ"), row(0x10, 1, "BRA.DIV UR4, `(.L_x_1)"), ".L_x_0:\n",
                         row(0x20, 2, "SHFL.IDX PT, R1, R2, 0x1, 0x1f"), row(0x30, 3, "EXIT"), ".L_x_1:\n",
                         row(0x40, 2, "WARPSYNC.COLLECTIVE R0, `(.L_x_0)"), row(0x50, 2, "BRA `(.L_x_0)"))
        kernel = model.Kernel(code, {1: (8, 0), 2: (8, 0), 3: (8, 0)})
        self.assertEqual(kernel.weights, [8, 8, 0])

    def test_two_warps_of_a_scheduler_share_its_slots(self):
        cost = model.Cost(100, 40, busy={"alu": 30, "mufu": 64})
        self.assertEqual((cost.least, model.Cost(100, 70, busy={"mufu": 64}).least), (64, 70))

    def test_a_loop_that_asks_a_barrier_counts_once(self):
        code = functions(".L_x_0:\n", row(0, 1, "MOV R1, R1"), ".L_x_1:\n", row(16, 2, "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R1], R2"),
                         row(32, 3, "@!P0 BRA `(.L_x_1)"), row(48, 4, "@P1 BRA `(.L_x_0)"), row(64, 5, "EXIT"))
        kernel = model.Kernel(code, {1: (7, 0), 2: (7000, 0), 3: (7000, 0), 4: (7, 0), 5: (1, 0)})
        (outer,) = kernel.top.values()
        self.assertEqual(kernel.cost(outer).instructions, 4)

    def test_cycles_between_two_readings_of_the_clock(self):
        code = functions(row(0, 1, "CS2R.32 R0, SR_CLOCKLO", stall=3), row(16, 2, "FADD R1, R1, R1", stall=4),
                         row(32, 3, "CS2R.32 R2, SR_CLOCKLO", stall=9), row(48, 4, "EXIT"))
        self.assertEqual(model.Kernel(code, {1: (1, 0), 2: (1, 0), 3: (1, 0)}).between_clocks().cycles, 7)


class Clocked(unittest.TestCase):
    def test_each_place_is_there_once_in_todays_chapters(self):
        for chapter, (begin, end) in clocked.PLACES.items():
            text = (ROOT / "chapters" / chapter / "multiply.cuh").read_text()
            with_clock = clocked.with_clock(text, begin, end)
            self.assertLess(with_clock.index(clocked.BEGIN), with_clock.index(clocked.END), chapter)
            clocked.with_report((ROOT / "chapters" / chapter / "main.cu").read_text())

    def test_refuses_a_kernel_without_the_place(self):
        with self.assertRaisesRegex(clocked.Failed, "has 0 places"):
            clocked.with_clock("namespace chapter {}", "begin", "end")

    def test_names_the_chapters_that_it_knows(self):
        with self.assertRaisesRegex(clocked.Failed, "07a_warp_specialized"), mock.patch("shutil.copytree"):
            clocked.build_copy(ROOT, "01_naive", ROOT)


if __name__ == "__main__":
    unittest.main()
