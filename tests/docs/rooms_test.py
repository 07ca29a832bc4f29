# SPDX-License-Identifier: MIT
"""Where things stand in the tree: which folder may include or import which, whose functions a header may declare, how
long a file and a function may be, and the three files of an instruction family. The rules are those of `ORDER` and of
the constants beside it."""

import ast
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The three doors of common/. A room may include itself and the rooms before it.
# What a chapter may include; main.cu includes one file of the harness too.
KERNEL = "kernel"
HARNESS_CUH = "harness/harness.cuh"
ORDER = [KERNEL, "harness/base", "harness/problem", "harness/machine", "harness/verify",
         "harness/bench", HARNESS_CUH, "harness/run", "harness/layer"]
# Every chapter includes it: it takes no more than these.
HARNESS_CUH_TAKES = [KERNEL, "harness/base", "harness/problem"]
# Wrappers of instructions take nothing but types, and each other.
PTX, PTX_TAKES = "common/kernel/ptx", ["common/kernel/types.cuh", "common/kernel/ptx"]
# The rooms of common/emu, by the same rule. A launch runs in schedule/; report/ says
# what it counted. foreign/ is last: a build may leave it out.
EMU_ORDER = ["core/text", "core/state", "core/decode", "core/units", "core/isa", "core/schedule",
             "core/report", "cudart", "tools", "foreign/units", "foreign/isa", "foreign/cudart"]
EMU_FOLDERS = ["core", "foreign"]  # those that hold rooms
EMU_TAKES = [KERNEL, "harness/base"]  # all that common/emu includes of the other doors
HARNESS_TAKES = "emu/cudart/interface.h"  # all that the harness includes of common/emu, and
HARNESS_TAKES_FROM = "harness/machine"  # the room that does

# The rooms of plots/, by the same rule: drawing reads what measuring leaves, measuring knows
# nothing of drawing.
PLOTS_ORDER = ["measure", "draw"]
WRITES_TABLES = "plots/draw/markdown.py"       # alone: CONTRIBUTING.md
PLOTS = Path("plots/__init__.py")  # is in no room, and imports nothing
SCRIPTS = "plots/measure/peers"
OTHER_PACKAGES = ["chapters", "common", "tests"]

FILE_LINES = 500
FUNCTION_LINES = 100
TEST_FILE_LINES = 700
TEST_FUNCTION_LINES = 80
OTHERS_PTX = "tests/emu/foreign/"  # what other compilers made is as long as they made it
CODE = {".h", ".cuh", ".cpp", ".cu", ".py", ".cmake"}
TEXT = CODE | {".md", ".txt", ".ptx"}

# Headers of common/kernel/ptx that utter none: they need no meaning and no probe.
NO_INSTRUCTION = {"shared"}

# Headers that declare what no room defines, and who does.
DEFINED_ELSEWHERE = {"common/harness/harness.cuh": ("run_", "run/ and layer/ define them"),
                     "common/harness/base/csv.h": ("commit", "common/CMakeLists.txt writes it when it configures"),
                     "common/harness/base/paths.h": ("configured_tree", "common/CMakeLists.txt writes it when it configures"),
                     "common/harness/bench/peer_library.h": ("gg_peer_", "each peer's library exports it")}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def listed(root):
    """Paths from the root: what is committed or would be, or, without git, all there is."""
    git = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                         capture_output=True)
    if git.returncode == 0 and (root / ".git").exists():
        names = git.stdout.decode().split("\0")
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*") if "__pycache__" not in path.parts
                 and not path.relative_to(root).parts[0].startswith((".", "build"))]
    return sorted(Path(name) for name in names if name and (root / name).is_file())


def text_of(root, path):
    return (root / path).read_text(encoding="utf-8")


# ---- includes ----

def room_of(path):
    """"kernel", "harness/verify" or "emu/core/state" of a path; None for what is no room of common/."""
    parts = Path(path).parts
    if parts[0] != "common" or len(parts) < 3:
        return None
    if parts[1] == "kernel" or "/".join(parts[1:]) == HARNESS_CUH:
        return KERNEL if parts[1] == "kernel" else HARNESS_CUH
    inside = parts[1] == "emu" and parts[2] in EMU_FOLDERS
    return "/".join(parts[1:4] if inside else parts[1:3])


def wrong_in_chapter(path, target, root):
    own = path.parts[:2]
    if "/" not in target and (root / Path(*own) / target).is_file():
        return None
    if path.suffix == ".cu" and path.name != "main.cu" and target.startswith("chapters/"):
        return None  # a chapter of several: a file for each whose launch it takes
    if target.startswith("common/kernel/") or (path.name == "main.cu" and target == f"common/{HARNESS_CUH}"):
        return None
    return f"a chapter includes only common/kernel/ and its own folder, and main.cu {HARNESS_CUH}"


def one_way(order, here, there, where):
    if here not in order or there not in order:
        return f"the rooms of {where} are {', '.join(order)}"
    fine = order.index(there) <= order.index(here)
    return None if fine else f"the rooms of {where} include one way, {' < '.join(order)}"


def wrong_in_emu(room, target):
    """The rule that an include in a room of common/emu breaks."""
    there = room_of(target) or target
    if not there.startswith("emu/"):
        return None if there in EMU_TAKES else f"common/emu includes of the rest only {' and '.join(EMU_TAKES)}"
    return one_way(EMU_ORDER, room.removeprefix("emu/"), there.removeprefix("emu/"), "common/emu")


def wrong_in_harness(path, room, target):
    """The rule that an include in common/kernel or common/harness breaks."""
    there = room_of(target) or target
    if there.startswith("emu/"):
        fine = room == HARNESS_TAKES_FROM and target == f"common/{HARNESS_TAKES}"
        return None if fine else (f"the harness includes of common/emu only {HARNESS_TAKES}, and only in "
                                  f"{HARNESS_TAKES_FROM}/")
    if path.as_posix().startswith(PTX) and not target.startswith(tuple(PTX_TAKES)):
        return f"{PTX} includes only {' and '.join(PTX_TAKES)}"
    if room == HARNESS_CUH:
        return None if there in HARNESS_CUH_TAKES else f"harness.cuh includes only {', '.join(HARNESS_CUH_TAKES)}"
    return one_way(ORDER, room, there, "common/")


def wrong(path, target, root):
    """The rule that the include of `target` in the file `path` breaks; None if there is none."""
    if path.parts[0] == "chapters":
        return wrong_in_chapter(path, target, root)
    parts = Path(target).parts
    if path.parts[0] == "plots":
        outside = parts[0] in ("chapters", "tests") or parts[:2] == ("common", "emu")
        return "plots/ includes of the tree only common/, and nothing of the emulator" if outside else None
    if parts[0] != "common":
        return "common/ includes by paths that begin with common/, and neither chapters nor tests"
    room = room_of(path)
    if path.parts[1] == "emu":
        return wrong_in_emu(room, target)
    return wrong_in_harness(path, room, target)


def include_errors(root):
    for path in listed(root):
        if path.parts[0] not in ("chapters", "common", "plots") or path.suffix not in (".h", ".cuh", ".cpp", ".cu"):
            continue
        for number, line in enumerate(text_of(root, path).splitlines(), 1):
            found = INCLUDE.match(line)
            rule = found and wrong(path, found[1], root)
            if rule:
                yield f'{path}:{number}: includes "{found[1]}"; {rule}'


# ---- the rooms of plots/ ----

def imported(text):
    """(line, module) of every import of a Python text; a relative one begins with a dot. What is imported from `plots`
    alone is a module of it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "plots":
            yield from ((node.lineno, f"plots.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


def wrong_in_plots(room, module, known):
    """The rule that the import of a module in plots/ROOM breaks, `known` being the names of all files of plots/."""
    first, _, rest = module.partition(".")
    if room not in PLOTS_ORDER:
        return f"the rooms of plots/ are {' and '.join(PLOTS_ORDER)}"
    if first in OTHER_PACKAGES:
        return "plots/ imports of the tree only itself"
    if first != "plots":
        return "imports of plots/ begin with plots and their room" if first in known or not first else None
    there = rest.split(".")[0]
    if there not in PLOTS_ORDER:
        return f"the rooms of plots/ are {' and '.join(PLOTS_ORDER)}"
    one_way = PLOTS_ORDER.index(there) <= PLOTS_ORDER.index(room)
    return None if one_way else f"the rooms of plots/ import one way, {' < '.join(PLOTS_ORDER)}"


def plots_errors(root):
    paths = [path for path in listed(root) if path.parts[0] == "plots" and path.suffix == ".py" and path != PLOTS]
    known = {*PLOTS_ORDER, *(path.stem for path in paths)} - {"__init__"}
    for path in paths:
        text = text_of(root, path)
        # Programs that another Python runs import their neighbours: they are in no package.
        scripts = {each.stem for each in paths if each.parent == path.parent} if path.is_relative_to(SCRIPTS) else set()
        for number, module in imported(text):
            rule = wrong_in_plots(path.parts[1], module, known - scripts)
            if rule:
                yield f"{path}:{number}: imports {module}; {rule}"
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(r"---:|\| ?---", line) and str(path) != WRITES_TABLES:
                yield f"{path}:{number}: writes a table by hand; {WRITES_TABLES} writes them all"


# ---- functions ----

# What of C++ is no code: comments, strings (raw ones too), characters. A ' between digits is
# none of these.
SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'',
                     re.S)
NO_FUNCTION = re.compile(r"^(?:template\s*<.*>\s*)?(?:inline\s+)?"
                         r"(?:namespace|class|struct|union|enum|extern|INSTANTIATE_TEST_SUITE_P)\b|[=,(]$", re.S)


def code_of(text):
    """A C++ text with blanks in place of what is no code, and of directives."""
    blank = SKIPPED.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m[0]), blank, flags=re.M)


def cpp_functions(text):
    """(first line, last line, head) of every function of a C++ text. Other blocks inside one are told of too:
    none is longer than what it stands in."""
    blank = code_of(text)
    opened, begin, line = [], 0, 1
    for at, c in enumerate(blank):
        if c == "\n":
            line += 1
        elif c == "{":
            head = blank[begin:at].strip()
            opened.append((line - head.count("\n"), head))
            begin = at + 1
        elif c == "}" and opened:
            first, head = opened.pop()
            begin = at + 1
            if head and not NO_FUNCTION.search(head):
                yield first, line, " ".join(head.split())
        elif c == ";":
            begin = at + 1


# ---- declarations ----

KEYWORDS = {"if", "for", "while", "switch", "return", "decltype", "sizeof", "alignas", "static_assert", "void", "int",
            "bool", "noexcept", "__attribute__", "catch", "consteval"}
NO_DECLARATION = re.compile(r"^(?:template|using|typedef|friend|static_assert|enum|namespace)\b")
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b(?:\s+(?:class|struct)\b)?\s*([A-Za-z_]\w*)?")
ACCESS = re.compile(r"^(?:(?:public|private|protected)\s*:\s*)+")
NAME = re.compile(r"(?:(\w+)\s*::\s*)?(~?[A-Za-z_]\w*|operator\s*[^\s\w(]+|operator\s+[\w:*& ]+?)\s*\((?!\s*\*)")


def function_name(head):
    """"find" of `const T* Class::find(int)`, as ("Class", "find"); None if the text declares no function."""
    head = re.sub(r"\[\[.*?\]\]", "", head)
    while True:  # template arguments may have brackets of their own
        plain = re.sub(r"<[^<>;{}]*>", "", head)
        if plain == head:
            break
        head = plain
    found = NAME.search(head)
    if not found or "=" in head[:found.start()] or found[2] in KEYWORDS:
        return None
    return found[1], found[2].replace(" ", "")


def declared_functions(text):
    """(line, class or None, name) of every function that a header declares without a body. Templates are left
    out, and what stands inside a body."""
    blank = code_of(text)
    # A scope is "" for a namespace, the name of a class, None for all else.
    scopes, begin, line = [], 0, 1
    for at, c in enumerate(blank):
        if c == "\n":
            line += 1
        elif c == "{":
            head = " ".join(blank[begin:at].split())
            kind = SCOPE.search(ACCESS.sub("", head)) if "(" not in head else None
            outside = all(scope is not None for scope in scopes)
            if kind and outside and kind[1] in ("namespace", "extern"):
                scopes.append("")
            elif kind and outside and kind[1] in ("class", "struct", "union") and not head.startswith("template"):
                scopes.append(kind[2] or "")
            else:
                scopes.append(None)
            begin = at + 1
        elif c == "}":
            if scopes:
                scopes.pop()
            begin = at + 1
        elif c == ";":
            head = ACCESS.sub("", " ".join(blank[begin:at].split()))
            begin = at + 1
            if NO_DECLARATION.match(head) or re.search(r"=\s*(?:0|default|delete)$", head):
                continue
            if any(scope is None for scope in scopes):
                continue
            found = function_name(head)
            if found:
                yield line, (scopes[-1] if scopes else "") or None, found[1]


def declaration_errors(root):
    defined = {}  # room -> names of functions that have a body there
    headers = []
    for path in listed(root):
        room = room_of(path)
        if room is None or path.suffix not in (".h", ".cuh", ".cpp", ".cu"):
            continue
        text = text_of(root, path)
        names = defined.setdefault(room, set())
        heads = [head for _, _, head in cpp_functions(text)]
        heads += re.findall(r"^\w+::~?\w+\([^;{}]*\)(?= *(?:noexcept *)?= default;)", text, re.M)
        names.update(filter(None, map(function_name, heads)))
        if path.suffix in (".h", ".cuh"):
            headers.append((path, room, text))
    for path, room, text in headers:
        for line, owner, name in declared_functions(text):
            elsewhere = DEFINED_ELSEWHERE.get(str(path))
            if (owner, name) not in defined[room] and not (elsewhere and name.startswith(elsewhere[0])):
                full = f"{owner}::{name}" if owner else name
                yield (f"{path}:{line}: declares {full}(), which no file of {room}/ defines; a header declares only "
                       "what its own room defines")


# ---- lengths ----

def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno, node.name


def limits_of(path):
    """(lines of the file, lines of a function) that are allowed; None if it may have as many as it likes."""
    if path.parts[0] == "tests":
        is_ptx_of_others = path.suffix == ".ptx" and str(path).startswith(OTHERS_PTX)
        is_text = path.suffix in TEXT or path.name == "CMakeLists.txt"
        return (TEST_FILE_LINES, TEST_FUNCTION_LINES) if is_text and not is_ptx_of_others else None
    is_code = path.suffix in CODE or path.name == "CMakeLists.txt"
    return (FILE_LINES, FUNCTION_LINES) if path.parts[0] in ("common", "plots") and is_code else None


def length_errors(root):
    for path in listed(root):
        limits = limits_of(path)
        if not limits:
            continue
        file_lines, function_lines = limits
        text = text_of(root, path)
        lines = text.count("\n")
        if lines > file_lines:
            yield f"{path}:{lines}: the file has {lines} lines; at most {file_lines} are allowed"
        functions = ()
        if path.suffix == ".py":
            functions = python_functions(text)
        elif path.suffix in (".h", ".cuh", ".cpp", ".cu"):
            functions = cpp_functions(text)
        for first, last, name in functions:
            if last - first + 1 > function_lines:
                yield (f"{path}:{first}: `{name}` has {last - first + 1} lines; at most {function_lines} are "
                       "allowed in a function")


# ---- names ----

def name_errors(root):
    """Two sources of one name in different folders of common/. A family of instructions has its wrapper
    and its meaning in files of one name, but of different endings."""
    known = {}
    for path in listed(root):
        if path.parts[0] == "common" and path.suffix in (".h", ".cuh", ".cpp", ".cu"):
            known.setdefault(path.name, []).append(path)
    for paths in known.values():
        for path in paths[1:]:
            yield f"{path}:1: has the name of {paths[0]}; one name for one thing"


# ---- families ----

def family_errors(root):
    paths = set(listed(root))
    for path in sorted(paths):
        if path.parent != Path("common/kernel/ptx") or path.suffix != ".cuh" or path.stem in NO_INSTRUCTION:
            continue
        for other, what in ((f"common/emu/core/isa/{path.stem}.cpp", "meaning on the emulator"),
                            (f"tests/isa/{path.stem}_test.cu", "probe")):
            if Path(other) not in paths:
                yield f"{path}:1: has no {what}; a family has three files of one name, and {other} is missing"


# ---- pages ----

# The folders of pages, each with the header that lists them; the source beside it has the table.
PAGES = {Path("common/emu/core/isa"): "forms", Path("common/emu/foreign/isa"): "foreign_forms"}


def table_errors(root, folder, name):
    header, table = root / folder / f"{name}.h", root / folder / f"{name}.cpp"
    if not table.is_file():
        return
    for page in re.findall(r"^std::vector<Form> (\w+)\(\);", header.read_text(encoding="utf-8"), re.M):
        if not re.search(rf"\b{page}\(\)", table.read_text(encoding="utf-8")):
            yield f"{folder}/{name}.cpp:1: the table lacks {page}(), which {name}.h lists"


def page_errors(root):
    for folder, name in PAGES.items():
        yield from table_errors(root, folder, name)
    for path in listed(root):
        if path.parent not in PAGES or path.stem == PAGES[path.parent]:
            continue
        if path.suffix != ".cpp":
            yield f"{path}:1: is no page of instructions; what several pages share stands in units/"
        elif "PTX ISA" not in re.sub(r"\n// *", " ", text_of(root, path)).split("\n", 1)[0]:
            yield f"{path}:1: does not begin with a section of the PTX ISA, as a page does"


# ---- tests ----

class TreeTest(unittest.TestCase):
    def check_that_none(self, errors):
        errors = list(errors)
        self.assertFalse(errors, "\n" + "\n".join(errors))

    def test_includes_go_one_way(self):
        self.check_that_none(include_errors(ROOT))

    def test_measuring_imports_nothing_of_drawing(self):
        self.check_that_none(plots_errors(ROOT))

    def test_headers_declare_what_their_room_defines(self):
        self.check_that_none(declaration_errors(ROOT))

    def test_one_name_is_one_file(self):
        self.check_that_none(name_errors(ROOT))

    def test_files_and_functions_are_short(self):
        self.check_that_none(length_errors(ROOT))

    def test_exceptions_are_needed(self):
        for name, (function, _) in DEFINED_ELSEWHERE.items():
            self.assertRegex(text_of(ROOT, Path(name)), rf"\b{function}\w*\(", name)
        for name in NO_INSTRUCTION:
            self.assertNotIn("asm", text_of(ROOT, Path(f"common/kernel/ptx/{name}.cuh")))

    def test_pages_begin_with_their_section(self):
        self.check_that_none(page_errors(ROOT))

    def test_families_have_three_files(self):
        self.check_that_none(family_errors(ROOT))


class PlantedTest(unittest.TestCase):
    """One offender in a tree of its own: it must be named, and nothing else."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def plant(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def includes(self, path, target, line=1):
        self.plant(path, "\n" * (line - 1) + f'#include "{target}"\n')
        return list(include_errors(self.root))

    def expect_refused(self, path, target, rule):
        errors = self.includes(path, target, line=3)
        self.assertEqual(len(errors), 1, (path, target, errors))
        self.assertTrue(errors[0].startswith(f'{path}:3: includes "{target}"; '), errors)
        self.assertIn(rule, errors[0])
        (self.root / path).unlink()

    def test_includes(self):
        for path, target, rule in [
                ("chapters/01_naive/kernel.cuh", "common/harness/run/run.h", "a chapter includes only"),
                ("chapters/01_naive/kernel.cuh", "common/emu/core/state/grid.h", "a chapter includes only"),
                ("chapters/01_naive/kernel.cuh", "common/harness/harness.cuh", "a chapter includes only"),
                ("chapters/01_naive/kernel.cuh", "chapters/02_tiled/kernel.cuh", "a chapter includes only"),
                ("chapters/01_naive/kernel.cuh", "missing.cuh", "a chapter includes only"),
                ("common/harness/run/run_chapter.cpp", "chapters/01_naive/kernel.cuh", "neither chapters nor tests"),
                ("common/emu/core/isa/mma.cpp", "tests/emu/report_says.h", "neither chapters nor tests"),
                ("common/harness/base/npy.h", "common/harness/verify/verify.h", "kernel < harness/base"),
                ("common/harness/machine/gpu.cu", "common/harness/bench/timer.h", "machine < harness/verify"),
                ("common/harness/machine/gpu.cu", "common/harness/harness.cuh", "bench < harness/harness.cuh"),
                ("common/kernel/check.h", "common/harness/base/npy.h", "kernel < harness/base"),
                ("common/kernel/ptx/mma.cuh", "common/kernel/formats.h", "common/kernel/ptx includes only"),
                ("common/harness/harness.cuh", "common/harness/run/run.h", "harness.cuh includes only"),
                ("common/harness/verify/new.cpp", "common/unknown/x.h", "the rooms of common/ are"),
                ("common/unknown/new.cpp", "common/harness/base/npy.h", "the rooms of common/ are"),
                ("common/harness/run/run_chapter.cpp", "common/emu/cudart/interface.h", "only in harness/machine/"),
                ("common/harness/machine/emulator.h", "common/emu/cudart/runtime.h", "only emu/cudart/interface.h"),
                ("common/emu/core/state/access.h", "common/emu/core/decode/decode.h", "core/state < core/decode"),
                ("common/emu/core/units/fused_sum.cpp", "common/emu/core/isa/forms.h", "core/units < core/isa"),
                ("common/emu/core/decode/decode.cpp", "common/emu/core/units/alu.h", "core/decode < core/units"),
                ("common/emu/core/isa/mma.cpp", "common/emu/core/schedule/schedule.h", "core/isa < core/schedule"),
                ("common/emu/cudart/launch_kernel.cpp", "common/harness/verify/verify.h", "only kernel and harness/base"),
                ("common/emu/cudart/runtime.h", "common/emu/foreign/cudart/context.h", "cudart < tools < foreign/units"),
                ("common/emu/core/isa/forms.cpp", "common/emu/foreign/isa/more.h", "cudart < tools < foreign/units"),
                ("common/emu/foreign/isa/wmma.cpp", "common/emu/foreign/cudart/context.h", "foreign/isa < foreign/cudart"),
                ("plots/measure/roof.cu", "chapters/01_naive/kernel.cuh", "plots/ includes"),
                ("plots/measure/roof.cu", "common/emu/core/report/count_report.h", "plots/ includes"),
                ("common/emu/new/x.cpp", "common/emu/core/state/grid.h", "the rooms of common/emu are")]:
            with self.subTest(path=path, target=target):
                self.expect_refused(path, target, rule)

    def test_includes_that_are_fine(self):
        self.plant("chapters/01_naive/parts.cuh", "")
        for path, target in [("chapters/01_naive/kernel.cuh", "parts.cuh"),
                             ("chapters/01_naive/main.cu", "common/harness/harness.cuh"),
                             ("chapters/01_naive/kernel.cuh", "common/kernel/tensor_map.h"),
                             ("chapters/01_naive/kernel.cuh", "common/kernel/ptx/mma.cuh"),
                             ("common/harness/run/run_chapter.cpp", "common/harness/harness.cuh"),
                             ("common/harness/harness.cuh", "common/harness/problem/problem.h"),
                             ("common/harness/machine/emulator.h", "common/emu/cudart/interface.h"),
                             ("common/emu/core/isa/mma.cpp", "common/emu/core/state/access.h"),
                             ("common/emu/tools/gg-ptx.cpp", "common/kernel/check.h"),
                             ("common/emu/foreign/cudart/context.h", "common/emu/cudart/runtime.h"),
                             ("plots/measure/roof.cu", "common/harness/run/device.h"),
                             ("plots/measure/peers/deepgemm.cu", "cutlass/cutlass.h"),
                             ("tests/emu/x_test.cpp", "common/emu/core/state/grid.h")]:
            self.assertEqual(self.includes(path, target), [], (path, target))

    def test_rooms_of_plots(self):
        self.plant("plots/draw/canvas.py", "")
        self.plant("plots/measure/files.py", "")
        for path, text, rule in [
                ("plots/measure/recount.py", "from plots.draw.canvas import three", "plots.draw.canvas; the rooms of plots/ import one"),
                ("plots/measure/peers/build.py", "import plots.draw.canvas", "plots.draw.canvas; the rooms of plots/ import one way"),
                ("plots/measure/recount.py", "from plots import draw", "plots.draw; the rooms of plots/ import one way"),
                ("plots/measure/recount.py", "def late():\n    from plots.draw import canvas", "import one way, measure < draw"),
                ("plots/measure/recount.py", "import canvas", "canvas; imports of plots/ begin with plots"),
                ("plots/measure/recount.py", "from measure import files", "measure; imports of plots/ begin with plots"),
                ("plots/measure/recount.py", "from tests.docs import plots_case", "tests.docs; plots/ imports of the tree only itself"),
                ("plots/measure/recount.py", "from plots import canvas", "plots.canvas; the rooms of plots/ are"),
                ("plots/draw/plot.py", "from files import COLUMNS", "files; imports of plots/ begin with plots"),
                ("plots/draw/plot.py", "from . import canvas", "imports of plots/ begin with plots"),
                ("plots/plot.py", "import csv", "csv; the rooms of plots/ are measure and draw"),
                ("plots/draw/tables.py", "text = '| --- | ---: |'", "writes a table by hand")]:
            with self.subTest(path=path, text=text):
                self.plant(path, f"\n{text}\n")
                errors = list(plots_errors(self.root))
                self.assertEqual(len(errors), 1, errors)
                self.assertTrue(errors[0].startswith(f"{path}:{1 + len(text.splitlines())}: "), errors)
                self.assertIn(rule, errors[0])
                (self.root / path).unlink()
        for path, text in [("plots/draw/plot.py", "from plots.draw import canvas\nfrom plots.measure.files import COLUMNS"),
                           ("plots/measure/recount.py", "import csv\nfrom plots.measure import files"),
                           ("plots/__init__.py", ""),
                           ("plots/measure/peers/other.py", "import build"),
                           ("plots/measure/peers/build.py", ""),
                           ("plots/draw/markdown.py", "rule = '---:'")]:
            self.plant(path, text)
        self.assertEqual(list(plots_errors(self.root)), [])

    def test_declarations(self):
        self.plant("common/emu/core/state/grid.h", """#pragma once
namespace gg::emu {
struct Grid;
template <class T>
T made(T from);
inline int twice(int x) { return undeclared(2 * x); }
struct Block {
  int threads() const;
  std::function<void(int)> hook;
  void (*call)(int each);
  Block(const Block&) = delete;
 private:
  void helper(int x = 1);
};
int known(const std::vector<std::function<void()>>& all);
int64_t decode(const Grid& grid,
               int level = 0);
}  // namespace gg::emu
""")
        self.plant("common/emu/core/state/grid.cpp", """namespace gg::emu {
int Block::threads() const { return 1; }
int known(const std::vector<std::function<void()>>& all) { return int(all.size()); }
void Other::helper(int x) {}
}
""")
        self.plant("common/emu/core/decode/decode.cpp",
                   "namespace gg::emu {\nint64_t decode(const Grid& grid, int level) { return level; }\n}\n")
        errors = list(declaration_errors(self.root))
        self.assertEqual(len(errors), 2, errors)
        self.assertTrue(errors[0].startswith("common/emu/core/state/grid.h:13: declares Block::helper(), "), errors)
        self.assertTrue(errors[1].startswith("common/emu/core/state/grid.h:17: declares decode(), which no file of "
                                             "emu/core/state/ defines"), errors)

    def test_files(self):
        self.plant("common/harness/run/long.cpp", "\n" * 501)
        self.plant("common/harness/run/short.cpp", "\n" * 500)
        self.plant("plots/long.py", "\n" * 501)
        self.plant("plots/measure/data.csv", "\n" * 501)
        self.plant("tests/emu/short.cpp", "\n" * 700)
        self.plant("tests/emu/long.cpp", "\n" * 701)
        self.plant("tests/emu/long.ptx", "\n" * 701)
        self.plant("tests/emu/foreign/clang/long.ptx", "\n" * 701)
        self.plant("tests/emu/golden/data.npy", "\n" * 701)
        self.assertEqual([error.split(":")[0] for error in length_errors(self.root)],
                         ["common/harness/run/long.cpp", "plots/long.py", "tests/emu/long.cpp", "tests/emu/long.ptx"])

    def test_functions(self):
        fill = "\n".join(f"  f({i}, '{{', \"{{\", 1'000);  // {{" for i in range(98))
        strings = '\nstatic const char* kText = R"(' + "{\n" * 120 + ')";\n'
        table = "\nconst int kTable[] = {\n" + "  1,\n" * 120 + "};\n"
        self.plant("common/harness/run/a.cpp", strings + table + "namespace x {\nvoid fits(int,\n          int) {\n"
                   + fill.split("\n", 1)[1] + "\n}\nstruct S {\n  template <class T>\n  int late() {\n" + fill
                   + "\n  }\n};\n}\n")
        errors = list(length_errors(self.root))
        self.assertEqual(len(errors), 1, errors)
        self.assertRegex(errors[0], r"common/harness/run/a\.cpp:\d+: `template <class T> int late\(\)` has 101 lines")
        line = int(errors[0].split(":")[1])
        self.assertIn("template <class T>", (self.root / "common/harness/run/a.cpp").read_text().splitlines()[line - 1])

    def test_python_functions(self):
        self.plant("plots/a.py", "def fits():\n" + "    x = 1\n" * 99 + "def late():\n" + "    x = 1\n" * 100)
        errors = list(length_errors(self.root))
        self.assertEqual(len(errors), 1, errors)
        self.assertTrue(errors[0].startswith("plots/a.py:101: `late` has 101 lines"), errors)

    def test_functions_of_tests(self):
        body = "  f();\n"
        self.plant("tests/emu/a.cpp", "TEST(A, Fits) {\n" + body * 78 + "}\nTEST(A, Late) {\n" + body * 79 + "}\n"
                   "INSTANTIATE_TEST_SUITE_P(A, B, ValuesIn(std::vector<C>{\n" + "  1,\n" * 90 + "}));\n")
        errors = list(length_errors(self.root))
        self.assertEqual(len(errors), 1, errors)
        self.assertTrue(errors[0].startswith("tests/emu/a.cpp:81: `TEST(A, Late)` has 81 lines"), errors)

    def test_names(self):
        for path in ("common/harness/run/a.cpp", "common/harness/run/b.h", "common/emu/core/isa/mma.cpp",
                     "common/kernel/ptx/mma.cuh", "tests/emu/a.cpp"):
            self.plant(path, "")
        self.assertEqual(list(name_errors(self.root)), [])
        self.plant("common/kernel/b.h", "")
        self.assertEqual([error.partition(";")[0] for error in name_errors(self.root)],
                         ["common/kernel/b.h:1: has the name of common/harness/run/b.h"])

    def test_families(self):
        self.plant("common/kernel/ptx/wgmma.cuh", "")
        self.plant("common/kernel/ptx/shared.cuh", "")
        self.plant("common/emu/core/isa/wgmma.cpp", "")
        errors = list(family_errors(self.root))
        self.assertEqual(len(errors), 1, errors)
        self.assertTrue(errors[0].startswith("common/kernel/ptx/wgmma.cuh:1: "), errors)
        self.assertIn("tests/isa/wgmma_test.cu is missing", errors[0])
        self.plant("tests/isa/wgmma_test.cu", "")
        self.assertEqual(list(family_errors(self.root)), [])

    def test_pages(self):
        start = "// SPDX-License-Identifier: MIT\n//\n// Loads. "
        self.plant("common/emu/core/isa/ldst.cpp", start + 'PTX\n// ISA: "ld".\n\nint x;\n')
        self.plant("common/emu/core/isa/st.cpp", start + '\n\nint x;  // PTX ISA: "st"\n')
        self.plant("common/emu/core/isa/shared.h", start + 'PTX ISA: "ld".\n')
        self.plant("common/emu/core/isa/forms.h", "std::vector<Form> ldst_forms();\nstd::vector<Form> st_forms();  // st\n")
        self.plant("common/emu/core/isa/forms.cpp", "  table({ldst_forms()});\n")
        self.plant("common/emu/foreign/isa/foreign_forms.h", "std::vector<Form> vadd_forms();\n")
        self.plant("common/emu/foreign/isa/foreign_forms.cpp", "  table({});\n")
        self.plant("common/emu/foreign/isa/vadd.cpp", start + "\n\nint x;\n")
        self.assertEqual([error.split(",")[0].split(";")[0] for error in page_errors(self.root)],
                         ["common/emu/core/isa/forms.cpp:1: the table lacks st_forms()",
                          "common/emu/foreign/isa/foreign_forms.cpp:1: the table lacks vadd_forms()",
                          "common/emu/core/isa/shared.h:1: is no page of instructions",
                          "common/emu/core/isa/st.cpp:1: does not begin with a section of the PTX ISA",
                          "common/emu/foreign/isa/vadd.cpp:1: does not begin with a section of the PTX ISA"])


if __name__ == "__main__":
    unittest.main()
