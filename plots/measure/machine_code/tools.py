# SPDX-License-Identifier: MIT
"""NVIDIA's cuobjdump and nvdisasm: the ones on the path, or from PyPI's wheels in the build tree, on request."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

WHEELS = {"cuobjdump": "nvidia-cuda-cuobjdump==13.5.37", "nvdisasm": "nvidia-cuda-nvdisasm==13.5.37"}


class NoTool(Exception):
    """A program that is not there."""


def find(name: str, build: Path) -> str:
    """The path of a tool; the build tree's own comes first."""
    for own in (build / "machine-code-tools").glob(f"nvidia/*/bin/{name}"):
        return str(own)
    found = shutil.which(name)
    if not found:
        raise NoTool(f"{name} is not here: --fetch gets it from PyPI into {build / 'machine-code-tools'}")
    return found


def pip_environment() -> dict[str, str]:
    """The user's pip says where packages are, and not where they go."""
    return os.environ | {"PIP_USER": "0", "PIP_PREFIX": "", "PIP_ROOT": ""}


def fetch(build: Path) -> None:
    """Both tools into the build tree."""
    target = build / "machine-code-tools"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
               "--no-deps", "--target", str(target), "--upgrade", *WHEELS.values()]
    done = subprocess.run(command, capture_output=True, text=True, env=pip_environment())
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise NoTool(f"{' and '.join(WHEELS.values())} could not be fetched from PyPI: {last}")
    for own in target.glob("nvidia/*/bin/*"):
        own.chmod(own.stat().st_mode | 0o111)


def cubins(cuobjdump: str, program: Path | str, folder: Path | str) -> list[Path]:
    """The machine code in a program, a file for each architecture and source."""
    subprocess.run([cuobjdump, "-xelf", "all", str(Path(program).resolve())], cwd=folder, capture_output=True, check=True)
    return sorted(Path(folder).glob("*.cubin"))
