#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the peers of this folder whose libraries are on this machine, for the option --peer of a chapter.
Those whose names end in glu are for gg-fused.

  python3 plots/measure/peers/build.py [--cutlass DIR] [--deepgemm DIR] [--cublas DIR] [NAME ...]

Says for each what was found and built, or what is missing. PyTorch and Triton are those of the Python that runs this;
--cutlass and --deepgemm are clones of the two repositories, of which headers are taken; --cublas is the folder of a
recent libcublasLt.so.13, which the peer loads from there. Nothing is fetched. Exit code 1: a compiler failed.
"""

import argparse
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # a reader's clone stays clean
HERE = Path(__file__).resolve().parent
REPO = HERE.parents[2]
BUILD = REPO / "build"
# Not -arch=sm_90a, which also builds for sm_90: that has no wgmma. The warning is
# of CUTLASS's headers.
HOPPER = ["--generate-code=arch=compute_90a,code=[compute_90a,sm_90a]", "--expt-relaxed-constexpr",
          "-diag-suppress=20012"]


class Missing(Exception):
    """Why a peer cannot be built here; the message is one sentence."""


def text_of(file, option=""):
    """What a file says that a peer is built from; `option` names the folder that it should be in."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Missing(f"{option}{file} cannot be read ({why})") from None


def nvcc():
    """The nvcc in the PATH, or the one that the build tree was configured with."""
    cache = BUILD / "CMakeCache.txt"
    text = text_of(cache) if cache.exists() else ""
    configured = re.search(r"(?m)^CMAKE_CUDA_COMPILER:\w+=(.+)$", text)
    for path in (shutil.which("nvcc"), configured and configured[1]):
        if path and Path(path).exists():
            return path
    raise Missing("there is no nvcc in the PATH, and build/ is not configured")


def compiled(source, *options):
    """The command that makes a shared library of a source, but for its name; the CUDA runtime is the program's."""
    return [nvcc(), "-std=c++20", "-O3", "-shared", "-cudart", "shared", "-Xcompiler", "-fPIC", f"-I{REPO}", *options,
            str(HERE / source), "-o"]


def of_python(module):
    """The folder and the version of a module of this Python, which is not imported."""
    found = importlib.util.find_spec(module)
    if not found or not found.origin:
        raise Missing(f"this Python has no {module}: run this with one that does")
    try:
        version = importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        raise Missing(f"the {module} in {Path(found.origin).parent} was not installed by pip, which would say its "
                      "version") from None
    return Path(found.origin).parent, f"{module} {version}"


def headers(name, option, folder, header):
    """The include folder that holds a header, in a clone of its repository."""
    if not folder:
        raise Missing(f"its headers are wanted: --{option} DIR, a clone of {name}")
    for include in (folder / "include", folder / "deep_gemm" / "include"):
        if (include / header).exists():
            return include
    raise Missing(f"--{option} {folder}: {header} is not there")


def torch_grouped_mm(_):
    torch, found = of_python("torch")
    if not (torch / "lib" / "libtorch_cuda.so").exists():
        raise Missing(f"{found} is built without CUDA")
    includes = [torch / "include", torch / "include" / "torch" / "csrc" / "api" / "include"]
    return found, compiled("torch_grouped_mm.cpp", *(f"-isystem={path}" for path in includes), f"-L{torch / 'lib'}",
                           "-ltorch_cuda", "-ltorch_cpu", "-lc10_cuda", "-lc10", "-Xlinker",
                           f"-rpath={torch / 'lib'}")


def triton_tma(_):
    _, found = of_python("triton")
    return found, [sys.executable, "-B", str(HERE / "triton_tma.py")]


def triton_glu(_):
    _, found = of_python("triton")
    return found, [sys.executable, "-B", str(HERE / "triton_glu.py")]


def triton_wgrad(_):
    _, found = of_python("triton")
    return found, [sys.executable, "-B", str(HERE / "triton_wgrad.py")]


def cutlass_grouped(args):
    cutlass = headers("CUTLASS", "cutlass", args.cutlass, "cutlass/cutlass.h")
    return f"CUTLASS in {args.cutlass}", compiled("cutlass_grouped.cu", *HOPPER, f"-isystem={cutlass}")


def cutlass_wgrad(args):
    cutlass = headers("CUTLASS", "cutlass", args.cutlass, "cutlass/cutlass.h")
    return f"CUTLASS in {args.cutlass}", compiled("cutlass_wgrad.cu", *HOPPER, f"-isystem={cutlass}")


def cutlass_glu(args):
    cutlass = headers("CUTLASS", "cutlass", args.cutlass, "cutlass/cutlass.h")
    example = cutlass.parent / "examples" / "113_hopper_gemm_activation_fusion"
    if not (example / "gated_builder.hpp").exists():
        raise Missing(f"--cutlass {args.cutlass} has no {example.name} of CUTLASS 4.7")
    return f"CUTLASS in {args.cutlass}", compiled("cutlass_glu.cu", *HOPPER, f"-isystem={cutlass}",
                                                  f"-isystem={example}")


def of_deepgemm(source, args):
    cutlass = headers("CUTLASS", "cutlass", args.cutlass, "cutlass/cutlass.h")
    deep = headers("DeepGEMM", "deepgemm", args.deepgemm, "deep_gemm/impls/sm90_bf16_gemm.cuh")
    about = text_of(args.deepgemm / "deep_gemm" / "__init__.py", f"--deepgemm {args.deepgemm}: ")
    version = re.search(r"(?m)^__version__ = ['\"](.*)['\"]", about)
    options = [f'-DDEEPGEMM_VERSION="{version[1]}"'] if version else []
    options += ["-Xptxas", "--register-usage-level=10"]  # as DeepGEMM compiles its kernels
    return f"DeepGEMM in {args.deepgemm}", compiled(source, *HOPPER, *options, f"-isystem={deep}",
                                                    f"-isystem={cutlass}")


def deepgemm(args):
    return of_deepgemm("deepgemm.cu", args)


def deepgemm_wgrad(args):
    return of_deepgemm("deepgemm_wgrad.cu", args)


def cublaslt_grouped(args):
    if not args.cublas:
        raise Missing("a recent cublasLt is wanted: --cublas DIR, the folder of its libcublasLt.so.13")
    library = args.cublas.resolve() / "libcublasLt.so.13"
    if not library.exists():
        raise Missing(f"--cublas {args.cublas}: libcublasLt.so.13 is not there")
    return f"{library}", compiled("cublaslt_grouped.cpp", f'-DCUBLASLT_FILE="{library}"', "-ldl")


PEERS = {peer.__name__: peer for peer in (torch_grouped_mm, triton_tma, cutlass_grouped, deepgemm, cublaslt_grouped,
                                             triton_glu, cutlass_glu, triton_wgrad, cutlass_wgrad, deepgemm_wgrad)}


def build(name, args):
    """Builds beside and renames, so that what fails leaves an earlier library whole; returns whether it did fail."""
    library = args.out / f"libgg_peer_{name}.so"
    beside = args.out / "new" / library.name
    try:
        if not list(HERE.glob(f"{name}.*")):
            raise Missing("its source is not in this tree")
        found, command = PEERS[name](args)
        # triton_tma.py looks for nvcc there.
        path = f"{Path(nvcc()).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    except Missing as why:
        print(f"{name}: not built, {why}")
        return False
    print(f"{name}: {found} found, building", flush=True)
    try:
        beside.parent.mkdir(parents=True, exist_ok=True)
        code = subprocess.run([*command, str(beside)], env=os.environ | {"PATH": path}).returncode
        if not code:
            os.replace(beside, library)
    except OSError as error:
        print(f"{name}: not built, {error.filename}: {error.strerror}")
        return True
    if code:
        print(f"{name}: not built, {Path(command[0]).name} ended with {code}")
        return True
    print(f"{name}: built {library}")
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PEERS)}; default: all")
    parser.add_argument("--cutlass", type=Path, metavar="DIR", help="a clone of CUTLASS")
    parser.add_argument("--deepgemm", type=Path, metavar="DIR", help="a clone of DeepGEMM")
    parser.add_argument("--cublas", type=Path, metavar="DIR", help="the folder of a recent libcublasLt.so.13")
    parser.add_argument("--out", type=Path, metavar="DIR", default=BUILD / "lib" / "peers",
                        help="default: build/lib/peers")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in PEERS]
    if unknown:
        parser.error(f"{unknown[0]}: {', '.join(PEERS)} are known")
    failed = [build(name, args) for name in args.names or PEERS]
    return 1 if any(failed) else 0


if __name__ == "__main__":
    sys.exit(main())
