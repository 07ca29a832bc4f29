# SPDX-License-Identifier: MIT
"""The table of a layer's training step and the figure of finite differences, of made-up data."""

from types import SimpleNamespace

from plots.draw import layer
from plots.draw.canvas import NoData
from plots.measure.files import LAYER_COLUMNS, BadData, Difference
from tests.docs.plots_case import PlotsCase, main, save, with_matplotlib


def time(launch, us, tflops="", **more):
    about = dict(layer="small", launches=1, us_p10=us - 1, us_p90=us + 1, bytes="", clock_mhz="1500", device="NVIDIA H200",
                 commit="0123456789", date="2026-01-02", version="")
    return {**about, "launch": launch, "us_median": us, "tflops": tflops} | more


class LayerTest(PlotsCase):
    def measured(self, *more):
        times = [time("gather x", 20, bytes="3e6"), time("c = x W1", 500, "300"), time("dW2 = dy^T unit", 300, "200"),
                 time("update W1", 70), time("update W2", 30), time("forward", 600, "310"), time("backward", 500, "290"),
                 time("forward and backward", 1000, "305.5", launches=11), time("step", 1100, "280"),
                 time("PyTorch eager: forward and backward", 1500, "200", version="PyTorch 2.9", commit="", clock_mhz=""), *more]
        save(self.data / "10c_layer.csv", times, LAYER_COLUMNS)
        return layer.times(self.repo)

    def test_the_summary(self):
        self.assertEqual(layer.summary(self.measured()).splitlines(), [
            "|  | `small` |", "| --- | ---: |",
            "| forward and backward | **1.00 ms**, 11 kernels |",
            "| rate | 306 TFLOP/s |",
            "| its six products, each timed alone | 0.800 ms |",
            "| the update | 0.100 ms |",
            "| PyTorch as it comes | 1.50 ms, 1.50× |",
            "| PyTorch with `torch.compile` | – |",
            "", "NVIDIA H200 at 1500 to 1500 MHz, 2026-01-02, commit 0123456789; PyTorch 2.9."])

    def test_the_newest_time_counts(self):
        found = self.measured(time("gather x", 40, date="2026-01-03"), time("c = x W1", 400, "375", date="2026-01-01"))
        self.assertEqual([found["small"][name].us_median for name in ("gather x", "c = x W1")], [40, 500])

    def test_every_launch_is_in_the_results(self):
        self.measured()
        page = layer.results_page(self.repo)
        self.assertIn("| gather x | 20.0 | 19.0 to 21.0 | – | 3.00 | 150 | 1 |", page)
        self.assertIn("| c = x W1 | 500 | 499 to 501 | 300 | – | – | 1 |", page)

    def test_nothing_timed_and_nothing_readable(self):
        self.assertEqual(layer.summary(layer.times(self.repo)), "Nothing is timed yet.")
        with self.assertRaisesRegex(BadData, "us_median is 'many', a number is wanted"):
            self.measured(time("step", 3) | {"us_median": "many"})

    @with_matplotlib
    def test_the_figure_has_each_gradient_and_a_line_of_second_degree(self):
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        steps = [2.0 ** -power for power in range(2, 31)]
        rows = [Difference(name, h, 0.5 * h * h if name == "dW1" else 1e-9) for name in layer.LINES for h in steps]
        fig, _ = layer.differences(plt, SimpleNamespace(differences=rows))
        self.addCleanup(plt.close, fig)
        *gradients, slope = fig.axes[0].lines
        self.assertEqual(len(gradients), 5)
        self.assertEqual(list(gradients[0].get_ydata()), [0.5 * h * h for h in sorted(steps)])
        (x0, *_, x1), (y0, *_, y1) = slope.get_xdata(), slope.get_ydata()
        self.assertAlmostEqual(y1 / y0, (x1 / x0) ** 2)
        self.assertEqual({text.get_text() for text in fig.axes[0].texts}, {*layer.LINES, "h²"})
        with self.assertRaises(NoData):
            layer.differences(plt, SimpleNamespace(differences=[]))


if __name__ == "__main__":
    main()
