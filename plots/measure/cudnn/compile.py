# SPDX-License-Identifier: MIT
"""Compiles NVIDIA's grouped GEMM kernels to PTX on a machine without a GPU, and notes how they would be launched.

  python -m plots.measure.cudnn.compile OUT M N K GROUPS

It runs in a Python that has the two packages which compare.py fetches. A kernel of cudnn-frontend is a class written in
CuTe DSL. It is compiled with tensors that have a shape and no memory. The DSL writes PTX on its way, and gives the
lowered module to a hook, which stops it before it asks for a driver. The module's host part is then run with functions
of ours in place of CUDA's: what it would launch, with all bytes of the arguments, is what they are called with.

OUT gets N.ptx and N.json, N the place of the configuration: the launches in order with grid, block, cluster, dynamic
shared memory, the argument bytes, and where in them stands the address of which tensor; and the tensors' sizes in bytes.
"""

import contextlib
import ctypes
import importlib
import json
import os
import re
import sys
import sysconfig
import tempfile
import types
from pathlib import Path

from plots.measure.cudnn.configurations import BLOCK, all_configurations

CLUSTERS = 2  # that are resident: compiled into the kernel
ROOM = 1 << 36  # between the addresses of two tensors: a made-up address tells whose it is
PACKAGE = "cudnn.grouped_gemm"
KERNELS = {"quant": ("grouped_gemm_quant.grouped_gemm_quant", "BlockScaledMoEGroupedGemmQuantKernel"),
           "glu": ("grouped_gemm_glu_hadamard.moe_blockscaled_grouped_gemm_glu_hadamard",
                   "BlockScaledMoEGroupedGemmGluHadamardKernel")}


def import_kernels():
    """Makes modules of cudnn-frontend importable without their packages' own code, which wants torch and cuDNN."""
    root = Path(sysconfig.get_paths()["purelib"], "cudnn")
    for name in ("", ".grouped_gemm", ".grouped_gemm.grouped_gemm_quant", ".grouped_gemm.grouped_gemm_glu_hadamard"):
        package = sys.modules["cudnn" + name] = types.ModuleType("cudnn" + name)
        package.__path__ = [str(root.joinpath(*name.split(".")))]
    sys.modules["torch"] = types.SimpleNamespace(Tensor=object)  # named in annotations only


class Arguments:
    """The launcher's arguments in the order of its parameters: for the compiler, and as values for the launch."""

    def __init__(self, sizes_are_arguments):
        self.sizes_are_arguments = sizes_are_arguments
        self.all, self.bytes, self.symbols = [], {}, {}  # (name, address or None, numbers)

    def tensor(self, name, dtype, shape, stride):
        """A number, or (key, number, divisor) where it is an argument in kernels that take sizes as arguments."""
        from cutlass import cute
        from cutlass.cute.runtime import make_fake_tensor
        numbers = []

        def for_compiler(size):
            if not isinstance(size, tuple):
                return size
            key, number, divisor = size
            if not self.sizes_are_arguments:
                return number
            numbers.append(number)
            make = cute.sym_int64 if key.startswith("stride") else cute.sym_int
            if key not in self.symbols:
                self.symbols[key] = make(divisibility=divisor)
            return self.symbols[key]

        fake = make_fake_tensor(dtype, tuple(map(for_compiler, shape)), tuple(map(for_compiler, stride)),
                                assumed_align=16)
        self.add(name, numbers)
        plain = [[size[1] if isinstance(size, tuple) else size for size in sizes] for sizes in (shape, stride)]
        elements = 1 + sum((size - 1) * step for size, step in zip(*plain))
        self.bytes[name] = -(-elements * dtype.width // 8)
        return fake

    def matrix(self, name, dtype, rows, width):
        """[rows, width], each of them a number or (key, number, divisor)."""
        across = ("stride" + width[0], *width[1:]) if isinstance(width, tuple) else width
        number = width[1] if isinstance(width, tuple) else width
        return self.tensor(name, dtype, (rows, width, 1), (across, 1, ("stride" + name, rows[1] * number, 256)))

    def scales(self, name, dtype, block, high, wide, count=1, along_open=True, high_open=True):
        """Of `count` matrices [high, wide], in atoms of 32 x 4 x 4 bytes; open: a size along the rows, of their count, is an
        argument."""
        tall, long = -(-high // 128), -(-wide // (4 * block))

        def one_of(key, number, step, is_open):
            return (key + name, number, step) if is_open else number
        return self.tensor(name, dtype, (32, 4, one_of("tall", tall, 1, high_open), 4, one_of("long", long, 1, along_open), count),
                           (16, 4, one_of("stride_tall", 512 * long, 512, along_open), 1, 512,
                            one_of("stride_all", 512 * long * tall, 512, high_open)))

    def pointer(self, name, dtype, alignment):
        from cutlass.cute.runtime import nullptr
        from cutlass.cute.typing import AddressSpace
        self.add(name, [])
        return nullptr(dtype, AddressSpace.gmem, assumed_align=alignment)

    def add(self, name, numbers):
        self.all.append((name, ROOM * (1 + len(self.all)), numbers))

    def scalar(self, value):
        self.all.append(("", None, [value.value]))
        return value

    def stream(self):
        from cutlass.cute.runtime import make_fake_stream
        self.all.append(("", 0, []))
        return make_fake_stream(use_tvm_ffi_env_stream=False)


def kernel_of(one, m, n, k, groups):
    """The kernel object, its arguments by keyword, and what was noted of them."""
    import cutlass
    from cutlass.cute.nvgpu.tcgen05 import OperandMajorMode
    block, fp4 = BLOCK[one.format], one.format != "mxfp8"
    element = cutlass.Float4E2M1FN if fp4 else cutlass.Float8E4M3FN
    scale = cutlass.Float8E4M3FN if one.format == "nvfp4" else cutlass.Float8E8M0FNU
    d_type = cutlass.Float8E4M3FN if one.scaled else cutlass.BFloat16
    args, given = Arguments(one.dynamic_sizes), {}
    # What their interface leaves open. Keys are as free as it leaves them: equal ones are
    # the same symbol.
    open_all = not one.act and not one.discrete
    k_step, d_step = 32 if fp4 else 16, 16 if one.scaled else 8
    rows = ("m", m, 256)

    def columns(key, number, step, is_open=True):
        return (key, number, step) if is_open else number

    def weights():
        if one.discrete:
            return args.pointer("b_ptrs", cutlass.Int64, 8)
        if open_all:
            return args.tensor("b", element, (("nb", n, 1), ("kb", k, k_step), ("l", groups, 1)),
                               (("stride_kb", k, k_step), 1, ("stride_nk", n * k, k_step)))
        return args.tensor("b", element, (n, k, groups), (k, 1, n * k))

    def weights_scales():
        if one.discrete:
            return args.pointer("sfb_ptrs", cutlass.Int64, 8)
        return args.scales("sfb", scale, block, n, k, ("l", groups, 1) if open_all else groups, open_all, open_all)

    def sizes():
        given["n"] = args.scalar(cutlass.Int32(n if one.discrete else 0))
        given["k"] = args.scalar(cutlass.Int32(k if one.discrete else 0))
        given["b_stride_size"] = args.scalar(cutlass.Int64(k if one.discrete else 0))
        given["b_major_mode"] = OperandMajorMode.K
        given["workspace_ptr"] = args.pointer("workspace", cutlass.Uint8, 128)

    def vector(name, count, dtype=cutlass.Float32):
        return args.tensor(name, dtype, (count,), (1,))

    def bias():
        width = columns("nbias", n, 8, open_all)
        count = ("l", groups, 1) if open_all else groups
        return args.tensor("bias", cutlass.BFloat16, (width, count), (1, width)) if one.bias else None

    def amax():
        return args.tensor("amax", cutlass.Float32, (groups, 1), (1, 1))

    def prob():
        return args.tensor("prob", cutlass.Float32, (rows, 1, 1), (1, 1, 1))

    modes = importlib.import_module(PACKAGE + ".moe_utils").MoEWeightMode
    module, name = KERNELS["glu" if one.act else "quant"]
    common = dict(sf_vec_size=block, acc_dtype=cutlass.Float32, use_2cta_instrs=one.pair, mma_tiler_mn=one.tile,
                  cluster_shape_mn=(2, 1) if one.pair else (1, 1), vectorized_f32=one.packed, expert_cnt=groups,
                  weight_mode=modes.DISCRETE if one.discrete else modes.DENSE, use_dynamic_sched=one.dynamic_schedule,
                  enable_bias=one.bias)
    make = getattr(importlib.import_module(f"{PACKAGE}.{module}"), name)
    given["a"] = args.matrix("a", element, rows, columns("k", k, k_step, open_all or bool(one.act)))
    given["b"] = weights()
    if one.act:  # the order of the arguments is that of the launcher's parameters
        kernel = make(act_func=one.act, **common)
        given["sfa"] = args.scales("sfa", scale, block, m, k, 1, False)
        given["sfb"] = weights_scales()
        sizes()
        given["c"] = args.matrix("c", cutlass.BFloat16, rows, columns("nc", n, 8))
        given["d"] = args.matrix("d", d_type, rows, columns("nd", n // 2, d_step))
        given["amax_tensor"] = amax()
        given["padded_offsets"], given["alpha"] = vector("offsets", groups, cutlass.Int32), vector("alpha", groups)
        given["prob"] = prob()
        given["hadamard_tensor"] = args.tensor("hadamard", cutlass.BFloat16, (16, 16), (16, 1))
        given["bias"] = bias()
    else:
        kernel = make(generate_sfd=one.scaled, discrete_col_sfd=False, **common)
        given["sfb"] = weights_scales()
        sizes()
        for key, symbol in ("d", "nd"), ("d_col", "ndc"):
            given[key] = args.matrix(key, d_type, rows, columns(symbol, n, d_step, open_all))
        given["sfa"] = args.scales("sfa", scale, block, m, k, 1, open_all)
        given["sfd_row_tensor"] = args.scales("sfd_row", scale, block, m, n) if one.scaled else None
        given["sfd_col_tensor"] = args.scales("sfd_col", scale, block, n, m) if one.scaled else None
        given["amax_tensor"] = None if one.scaled else amax()
        given["norm_const_tensor"] = vector("norm_const", 1) if one.scaled else None
        given["padded_offsets"], given["alpha"] = vector("offsets", groups, cutlass.Int32), vector("alpha", groups)
        given["bias"] = bias()
        given["prob"] = prob()
    given.update(max_active_clusters=CLUSTERS, stream=args.stream())
    if one.act:
        given["linear_offset"] = args.scalar(cutlass.Float32(1.0 if one.act == "geglu" else 0.0))
    args.bytes["workspace"] = kernel.get_workspace_bytes()
    return kernel, given, args


class Compiled(Exception):
    """The module is there, and nothing else is wanted of the DSL."""


def compiled(kernel, given, folder):
    """PTX, and the lowered module."""
    from cutlass import cute
    from cutlass.cutlass_dsl import CuTeDSL
    modules = []

    def stop(module):
        modules.append(module)
        raise Compiled
    compiler = CuTeDSL._get_dsl().compiler_provider
    compiler._post_compile_hook = stop
    for old in Path(folder).iterdir():
        old.unlink()
    try:
        cute.compile(kernel, **given)
    except Exception:
        if not modules:
            raise
    finally:
        compiler._post_compile_hook = None
    (ptx,) = Path(folder).glob("*.ptx")
    return ptx.read_bytes().rstrip(b"\0").decode(), modules[0]


# ---- what the host part would launch ----

WIDTH = re.compile(r"ptr(?:<\d+>)?|[if](\d+)")


def fields_of(text):
    """Offset and kind of every scalar in a type of LLVM, and its size: "!llvm.struct<(ptr, i32)>"."""
    found = []

    def place(at, offset):
        """The type that begins at a place of the text, put at an offset: where it ends in both, its alignment."""
        if not text.startswith("struct<(", at):
            kind = WIDTH.match(text, at)
            size = max(1, int(kind[1] or 64) // 8)
            offset = -(-offset // size) * size
            found.append((offset, kind[0]))
            return kind.end(), offset + size, size
        alignment = alignment_of(at)
        at, offset = at + len("struct<("), -(-offset // alignment) * alignment
        while text[at] != ")":
            at, offset, _ = place(at, offset)
            at += 2 if text.startswith(", ", at) else 0
        return at + len(")>"), -(-offset // alignment) * alignment, alignment

    def alignment_of(at):
        most, depth = 1, 0
        while True:
            if text.startswith("struct<(", at):
                depth, at = depth + 1, at + len("struct<(")
            elif text[at] == ")":
                depth, at = depth - 1, at + len(")>")
            elif text.startswith(", ", at):
                at += 2
            else:
                kind = WIDTH.match(text, at)
                most, at = max(most, int(kind[1] or 64) // 8), kind.end()
            if depth == 0:
                return most

    text = text.strip().removeprefix("!llvm.")
    return found, max(place(0, 0)[1], 1)


def parameters(ptx):
    """entry -> offset and size of each parameter in its block of arguments."""
    found = {}
    for entry, text in re.findall(r"(?s)\.entry (\w+)\s*\((.*?)\)", ptx):
        offset, places = 0, []
        for declared in text.split(",\n"):  # .ptr .align is of what a pointer points to
            size = int(re.search(r"\.[busf](\d+)\b", declared)[1]) // 8
            array, aligned = re.search(r"\[(\d+)\]", declared), re.search(r"\.param \.align (\d+)", declared)
            alignment, size = int(aligned[1]) if aligned else size, int(array[1]) if array else size
            offset = -(-offset // alignment) * alignment
            places.append((offset, size))
            offset += size
        found[entry] = places
    return found


def value_of(kind, address, numbers):
    if kind.startswith("ptr"):
        return ctypes.c_uint64(address)
    if kind == "f32":
        return ctypes.c_float(numbers.pop(0))
    return (ctypes.c_int64 if kind == "i64" else ctypes.c_int32)(numbers.pop(0))


def launches_of(module, ptx, args):
    """What the module's host part launches: it runs, with functions of ours as CUDA's."""
    from cutlass._mlir import execution_engine
    text = module.operation.get_asm(large_elements_limit=16, enable_debug_info=False)
    name, signature = re.search(r"llvm\.func @((?!_mlir_ciface)\S*?__call__\S*?)\((%arg0.*?)\) -> i32", text).groups()
    blocks = []
    for kinds, (_, address, numbers) in zip(re.findall(r"%arg\d+: (.*?)(?: \{[^}]*\})?(?=, %arg|$)", signature), args.all,
                                            strict=True):
        fields, size = fields_of(kinds)
        block, left = ctypes.create_string_buffer(size + 8), list(numbers)
        for offset, kind in fields:
            value = value_of(kind, address, left)
            ctypes.memmove(ctypes.addressof(block) + offset, ctypes.byref(value), ctypes.sizeof(value))
        if left:
            raise RuntimeError(f"the launcher takes {kinds}, and not {numbers}")
        blocks.append(block)
    of_entry, launches, failed = parameters(ptx), [], []
    entries = re.findall(r"llvm\.mlir\.addressof @kernels_(\S+) : ", text[text.index("@" + name):])

    def words(address, count):
        return list((ctypes.c_uint32 * count).from_address(address))

    def on_launch(configuration, _, arguments):  # of cudaLaunchKernelEx
        try:
            entry = entries[len(launches)]
            places, attributes = of_entry[entry], {}
            # 72 bytes each: its number, 8 bytes on its value.
            for i in range(words(configuration + 48, 1)[0]):
                at = ctypes.c_uint64.from_address(configuration + 40).value + 72 * i
                attributes[words(at, 1)[0]] = words(at + 8, 3)
            pointers = (ctypes.c_uint64 * len(places)).from_address(arguments)
            raw = bytearray(sum(places[-1]))
            for pointer, (offset, size) in zip(pointers, places):
                raw[offset:offset + size] = ctypes.string_at(pointer, size)
            launches.append(dict(entry=entry, grid=words(configuration, 3), block=words(configuration + 12, 3),
                                 cluster=attributes.get(4, [1, 1, 1]), smem=words(configuration + 24, 1)[0],
                                 arguments=raw.hex(), patches=patches(raw, args)))
            return 0
        except Exception as error:  # would be lost in the code that calls
            failed.append(repr(error))
            return 1

    engine = execution_engine.ExecutionEngine(module, opt_level=2, shared_libs=[])
    launch = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3)(on_launch)
    nothing = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)
    for function in set(re.findall(r"llvm\.func @(_cu\w+)", text)):
        mine = launch if function == "_cudaLaunchKernelEx" else nothing
        engine.raw_register_runtime(function, ctypes.cast(mine, ctypes.c_void_p))
    status = ctypes.create_string_buffer(8)
    packed = (ctypes.c_void_p * (len(blocks) + 1))(*map(ctypes.addressof, [*blocks, status]))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.raw_lookup(name))(ctypes.addressof(packed))
    if failed or len(launches) != len(entries) or not launches:
        raise RuntimeError(f"{len(launches)} of {len(entries)} kernels were launched: {failed}")
    return launches


def patches(raw, args):
    """Offset and tensor of each made-up address in a block of arguments, tensor maps among them."""
    names = {address: name for name, address, _ in args.all if address}
    found = []
    for offset in range(0, len(raw) - 7, 4):
        name = names.get(int.from_bytes(raw[offset:offset + 8], "little"))
        if name:
            found.append((offset, name))
    return found


def main():
    out, (m, n, k, groups) = Path(sys.argv[1]), map(int, sys.argv[2:6])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(CUTE_DSL_ARCH="sm_100a", CUTE_DSL_KEEP_PTX="1", CUTE_DSL_DUMP_DIR=folder,
                          CUTE_DSL_DISABLE_FILE_CACHING="1")
        import_kernels()
        for place, one in enumerate(all_configurations()):
            kernel, given, args = kernel_of(one, m, n, k, groups)
            with contextlib.redirect_stdout(sys.stderr):
                ptx, module = compiled(kernel, given, folder)
            launches = launches_of(module, ptx, args)
            # The version that ptxas of CUDA 13.0 takes.
            ptx = re.sub(r"(?m)^\.version .*", ".version 9.0", ptx, count=1)
            for i, entry in enumerate(parameters(ptx)):
                ptx = re.sub(rf"\b{entry}(?=_param_|\b)", f"kernel{i}", ptx)
                for launch in launches:
                    launch["entry"] = f"kernel{i}" if launch["entry"] == entry else launch["entry"]
            (out / f"{place}.ptx").write_text(ptx)
            (out / f"{place}.json").write_text(json.dumps(dict(name=one.name, launches=launches, bytes=args.bytes)))


if __name__ == "__main__":
    main()
