# SPDX-License-Identifier: MIT
"""What a tour on a GPU that is not here would fill."""

import contextlib
import io
import re
import shutil
import sys
from unittest import mock

from plots.draw import preview
from plots.measure.chapters import read_chapters
from plots.measure.files import DATA, read_rows
from tests.docs.plots_case import HAVE_MATPLOTLIB, ROOT, PlotsCase, main


class LikeTest(PlotsCase):
    def test_like_a_gpu_that_is_not_here(self):
        self.measure()
        self.blackwell("08a_bf16", "03_tensor_cores", "bf16")
        self.blackwell("08b_fp4", "08a_bf16", "mxfp4", limits={"m_multiple": 256, "equal_groups": False})
        before = sorted(self.repo.rglob("*"))
        out, err, folder = io.StringIO(), io.StringIO(), self.repo.parent / (self.repo.name + "-like")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        with mock.patch.object(sys, "argv", ["like", "b200", "--repo", str(self.repo), "--out", str(folder)]), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = preview.main()
        self.assertEqual(status, 0 if HAVE_MATPLOTLIB else 1, err.getvalue())
        self.assertEqual(sorted(self.repo.rglob("*")), before, "nothing is published")
        text = (folder / "tables.md").read_text()
        for line in text.splitlines():
            if line.startswith(("| [", "| `", "|  |")):
                cells = line.strip("| ").split(" | ")
                # A part of the ladder without a number has three columns.
                numbers = cells[2:5] if line.startswith("| [") and len(cells) > 3 else cells[-6:] if len(cells) > 3 else ["–"]
                self.assertEqual(set(numbers), {"–"}, line)
        self.assertIn("| `prefill`: G=8, M=16384 (≤ 2048), N=4096, K=7168 | 08a_bf16 |", text)
        self.assertIn("| `decode` mxfp4: G=32, M=6656 (≤ 256), N=4096, K=7168 | 08b_fp4 |", text)
        self.assertIn("Nothing here is measured", text)
        for link in re.findall(r"\]\(([^)]+)\)", text):
            self.assertTrue((folder / link).exists(), link)
        for number in ("40.0", "30.0", "1980 MHz"):
            self.assertNotIn(number, text, "of another device")
        if HAVE_MATPLOTLIB:
            for name in ("ladder", "step_08a_bf16", "step_08b_fp4"):
                self.assertIn("as a run on an NVIDIA B200 would fill it; nothing is measured",
                              re.sub(r"<!-- (.*?) -->", r"\1", (folder / "figures" / f"{name}.svg").read_text()), name)

    def test_rows_that_chapters_with_block_scales_have(self):
        self.assertEqual([preview.shape_of([m] * 8, 4096, 7168, pads=True)[:3] for m in (1, 256, 300)],
                         [(8, 2048, 256), (8, 2048, 256), (8, 4096, 512)])
        self.assertEqual(preview.shape_of([143, 0, 16, 1], 4096, 7168, pads=True), (4, 3 * 256, 256, 4096, 7168))
        self.assertEqual(preview.shape_of([143, 0, 16, 1], 4096, 7168, pads=False), (4, 160, 143, 4096, 7168))

    def test_like_takes_what_is_committed(self):
        for gpu in preview.DEVICES:
            data = preview.preview_data(gpu, read_chapters(ROOT), ROOT / DATA)
            text = preview.tables_page(data, preview.read_costs(ROOT / DATA / "costs.csv"))
            for chapter in data.chapters:
                self.assertEqual(f"## {chapter.id}\n" in text, chapter.id in data.measured_on, gpu)

    def test_like_shows_what_was_measured_elsewhere(self):
        known = {(row.set, row.shape) for row in read_rows(ROOT / DATA / "h200") if row.chapter == "07a_warp_specialized"}
        shown = {(row.set, row.shape) for row in preview.rows_of(read_chapters(ROOT), "NVIDIA H200", {"sm_90a"})
                 if row.chapter == "07a_warp_specialized"}
        self.assertTrue(shown and shown <= known, shown - known)


if __name__ == "__main__":
    main()
