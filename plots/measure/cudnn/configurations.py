# SPDX-License-Identifier: MIT
"""The configurations of NVIDIA's two grouped GEMM operators that are compared, and the options of our chapters that ask
for the same."""

from dataclasses import dataclass

BLOCK = {"mxfp8": 32, "nvfp4": 16, "mxfp4": 32}  # elements to a scale


@dataclass(frozen=True)
class Configuration:
    name: str
    format: str = "mxfp8"
    tile: tuple = (256, 256)  # of 256 rows: two blocks
    # The act of the operator with GLU and Hadamard transform; without one it is
    # the quantising operator.
    act: str = ""
    scaled: bool = False  # D and D_col in e4m3 with their scales
    bias: bool = False
    discrete: bool = False
    dynamic_schedule: bool = False
    dynamic_sizes: bool = False  # N and K are arguments of their kernel, not compiled in
    packed: bool = False  # their epilogue computes two floats in one instruction

    @property
    def pair(self) -> bool:
        return self.tile[0] == 256

    @property
    def chapter(self) -> str:
        return "09c_glu_hadamard" if self.act else "09a_quantized"

    @property
    def options(self) -> list[str]:
        """Words of the chapter's command line."""
        tile = max(self.tile[0], 128), 256  # ours has no tile of 128 columns
        words = ["--format", self.format, "--tile", "{}x{}".format(*tile)]
        if not self.act:
            words += ["--cluster", "2x1" if self.pair else "1x1"]
        if self.scaled:
            words += ["--d-dtype", "e4m3", "--norm-const", "0.01"]
        if self.act:
            words += ["--act", self.act]
        if self.bias:
            words += ["--bias"]
        if self.discrete:
            words += ["--weights", "discrete"]
        if self.dynamic_schedule:
            words += ["--schedule", "dynamic"]
        return words


def all_configurations() -> list[Configuration]:
    one = (128, 256)
    return [
        Configuration("fp8 -> bf16"),
        Configuration("fp8 -> bf16, sizes as arguments", dynamic_sizes=True),
        Configuration("fp8 -> bf16, bias", bias=True),
        Configuration("fp8 -> fp8 with scales", scaled=True),
        Configuration("nvfp4 -> bf16", "nvfp4"),
        Configuration("nvfp4 -> bf16, discrete, bias", "nvfp4", discrete=True, bias=True),
        Configuration("fp8 -> bf16, one block", tile=one),
        Configuration("fp8 -> bf16, one block, sizes as arguments", tile=one, dynamic_sizes=True),
        Configuration("fp8 -> bf16, one block, bias", tile=one, bias=True),
        Configuration("fp8 -> bf16, one block, packed", tile=one, packed=True),
        Configuration("fp8 -> bf16, one block, 128x128", tile=(128, 128)),
        Configuration("fp8 -> bf16, one block, discrete", tile=one, discrete=True),
        Configuration("fp8 -> bf16, one block, counter", tile=one, dynamic_schedule=True),
        Configuration("fp8 -> fp8 with scales, one block", tile=one, scaled=True),
        Configuration("fp8 -> fp8 with scales, one block, sizes as arguments, bias", tile=one, scaled=True, bias=True,
                      dynamic_sizes=True),
        Configuration("nvfp4 -> bf16, one block", "nvfp4", tile=one),
        Configuration("mxfp4 -> bf16, one block", "mxfp4", tile=one),
        Configuration("nvfp4 swiglu, Hadamard", "nvfp4", act="swiglu"),
        Configuration("nvfp4 swiglu, Hadamard, bias", "nvfp4", act="swiglu", bias=True),
        Configuration("nvfp4 geglu, Hadamard", "nvfp4", act="geglu"),
        Configuration("nvfp4 geglu, Hadamard, packed", "nvfp4", act="geglu", packed=True),
        Configuration("nvfp4 swiglu, Hadamard, sizes as arguments", "nvfp4", act="swiglu", dynamic_sizes=True),
        Configuration("mxfp4 swiglu, Hadamard", "mxfp4", act="swiglu"),
    ]
