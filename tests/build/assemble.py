# SPDX-License-Identifier: MIT
"""Has ptxas assemble a program's PTX for the GPUs that it is meant for, as nvcc does where there is one: registers that are spilled
and wgmma that is serialized are errors. python3 -B -m tests.build.assemble PTXAS PROGRAM ARCH [ARCH ..]"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path


def modules(program: str) -> list[bytes]:
    """The PTX texts in a program, which are not compressed and end with a zero byte."""
    return re.findall(rb"(?<=\0)\n*\.version \d[^\0]*", Path(program).read_bytes())


def complaints(ptxas: str, text: bytes, arch: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernels.ptx")
        source.write_bytes(text)
        done = subprocess.run([ptxas, f"--gpu-name=sm_{arch}", "--generate-line-info", "--warn-on-spills", source, "-o",
                               Path(folder, "kernels.cubin")], capture_output=True, text=True)
    said = done.stdout + done.stderr
    wrong = done.returncode != 0 or "Registers are spilled" in said or re.search("wgmma.*serialized", said)
    return said if wrong else ""


def main(ptxas: str, program: str, *archs: str) -> None:
    ours = [text for text in modules(program) if b"7chapter" in text]
    if not ours:
        sys.exit(f"{program}: it holds no PTX of a chapter")
    said = [complaints(ptxas, text, arch) for text in ours for arch in archs]
    sys.exit("".join(said) or 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
