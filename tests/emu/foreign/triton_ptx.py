# SPDX-License-Identifier: MIT
"""The PTX that Triton makes, without a GPU, of the kernels in triton_kernels.py and triton_blackwell.py.

    python triton_ptx.py DIRECTORY [NAME...]    writes DIRECTORY/NAME.ptx

The second and third line of each file say where it comes from and what a launch needs: bytes of dynamic shared
memory, and of scratch memory for each block. Without names ../examples/triton_twice.ptx is made anew too.
"""

import importlib
import pathlib
import re
import subprocess
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource

EXAMPLE = pathlib.Path(__file__).resolve().parents[1] / "examples" / "triton_twice.py"
KERNELS = []  # (name of the file, kernel, arch, signature, constants, options)


def build(name, arch, signature, options=None, **constants):
    """Notes that the kernel is to be compiled: signature as "a:*bf16 n:i32 k:i32%16", %16 for multiples of 16."""

    def note(kernel):
        KERNELS.append((name, kernel, arch, signature, constants, options or {}))
        return kernel

    return note


def compiled(kernel, arch, signature, constants, options):
    gluon_kernel = isinstance(signature, dict)
    types = dict(signature) if gluon_kernel else dict(each.split(":") for each in signature.split())
    multiples = [name for name, of in types.items() if of[0] == "*" or of.endswith("%16")]
    types = {name: of.removesuffix("%16") for name, of in types.items()} | dict.fromkeys(constants, "constexpr")
    attrs = {(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in multiples}
    source = (GluonASTSource if gluon_kernel else ASTSource)(kernel, types, constants, attrs)
    if arch >= 100:
        options = {"ptx_version": 90} | options  # CUDA 13.0's ptxas reads that
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)


def without_folder(array):
    """The text of a failed assertion holds the path of this file: its name is left."""
    name, text = array.group(1), bytes(int(each) for each in array.group(2).split(",")).decode()
    codes = [*text.rsplit("/", 1)[-1].encode(), 0]
    return f".b8 {name}[{len(codes)}] = {{{', '.join(map(str, codes))}}}"


def without_paths(ptx):
    """Without debug information, which names folders."""
    ptx = re.sub(r"\n\t\.section[^{]*\{[^}]*\}", "", ptx)
    ptx = re.sub(r"\n[ \t]*\.(loc|file)[ \t][^\n]*", "", ptx)
    ptx = re.sub(r"[ \t]*//[^\n]*", "", ptx)
    ptx = re.sub(r"\.b8 (assertFile_\d+)\[\d+\] = \{([\d, ]+)\}", without_folder, ptx)
    return re.sub(r"\n\s*\n+", "\n", ptx).replace(", debug", "").strip() + "\n"


def write_example():
    printed = subprocess.run([sys.executable, "-B", EXAMPLE], check=True, stdout=subprocess.PIPE, text=True).stdout
    head = f"// SPDX-License-Identifier: MIT\n// {EXAMPLE.name}, compiled by Triton {triton.__version__}\n"
    EXAMPLE.with_suffix(".ptx").write_text(head + without_paths(printed))


def main():
    sys.modules["triton_ptx"] = sys.modules["__main__"]  # kernels note themselves in this module
    importlib.import_module("triton_kernels")
    importlib.import_module("triton_blackwell")
    folder = pathlib.Path(sys.argv[1])
    for name, kernel, arch, signature, constants, options in KERNELS:
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        made = compiled(kernel, arch, signature, constants, options)
        needs = made.metadata
        head = "// SPDX-License-Identifier: MIT\n"
        source = pathlib.Path(kernel.fn.__code__.co_filename).name
        head += f"// {kernel.fn.__name__} of {source}, compiled by Triton {triton.__version__}\n"
        head += f"// shared {needs.shared} scratch {needs.global_scratch_size}\n"
        (folder / f"{name}.ptx").write_text(head + without_paths(made.asm["ptx"]))
        print(name, getattr(needs, "tensordesc_meta", None) or "")
    if not sys.argv[2:]:
        write_example()


if __name__ == "__main__":
    main()
