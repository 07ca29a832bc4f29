# SPDX-License-Identifier: MIT
"""Makes triton/ and clang/ anew: the target foreign_ptx.

    python make_ptx.py FOLDER    Triton goes to a virtual environment in FOLDER, from PyPI

Clang with the NVPTX target is used if it is there; without it clang/ stays as it is.
"""

import os
import pathlib
import shutil
import subprocess
import sys

TRITON = "triton==3.9.0"
HERE = pathlib.Path(__file__).resolve().parent
CLANG = ["-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_80", "-nocudainc", "-nocudalib", "-std=c++17", "-S"]
CLANG += ["-Xclang", "-target-feature", "-Xclang", "+ptx70", "-Wno-unknown-cuda-version"]

# LLVM IR of an earlier clang, compiled by the LLVM inside Triton: jump tables, for one, are younger than clang 14.
TRANSLATE = """
import sys
from triton._C.libtriton import llvm
llvm.init_targets()
text = llvm.translate_to_asm(sys.stdin.read(), "nvptx64-nvidia-cuda", "sm_90a", "+ptx86", [], True, False, False)
print(text)
"""


def run(words, **keywords):
    return subprocess.run([str(each) for each in words], check=True, text=True, **keywords)


def python_with_triton(folder):
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        run([sys.executable, "-m", "venv", folder / "venv"])
    run([python, "-m", "pip", "install", "--quiet", TRITON])
    return python


def write(name, how, ptx):
    head = f"// SPDX-License-Identifier: MIT\n// c_kernels.cu, {how}\n"
    lines = [line.split("//")[0].rstrip() for line in ptx.splitlines()]
    (HERE / "clang" / name).write_text(head + "\n".join(line for line in lines if line) + "\n")


def clang_files(python):
    clang = shutil.which("clang++")
    if not clang or "nvptx64" not in run([clang, "--print-targets"], capture_output=True).stdout:
        print("clang/ stays as it is: there is no clang++ with the target nvptx64")
        return
    version = run([clang, "-dumpversion"], capture_output=True).stdout.strip()
    compile_to = [clang, *CLANG, HERE / "c_kernels.cu", "-o", "-"]
    for level in ("-O0", "-O2"):
        ptx = run([*compile_to, level], capture_output=True).stdout
        write(f"clang_{level[1:]}.ptx", f"compiled by clang {version} {level}", ptx)
    ir = run([*compile_to, "-O2", "-emit-llvm", "-Xclang", "-opaque-pointers"], capture_output=True).stdout
    ptx = run([python, "-c", TRANSLATE], input=ir, stdout=subprocess.PIPE).stdout
    write("llvm_O2.ptx", f"compiled by clang {version} -O2 and the LLVM of {TRITON}", ptx)


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    python = python_with_triton(folder)
    environment = os.environ | {"TRITON_CACHE_DIR": str(folder / "cache"), "TRITON_DEFAULT_FP_FUSION": "1"}
    run([python, "-B", HERE / "triton_ptx.py", HERE / "triton"], env=environment)
    clang_files(python)


if __name__ == "__main__":
    main()
