# SPDX-License-Identifier: MIT
"""Every name of std:: that a source uses comes with its header, included there or in a header of ours that is. Standard
libraries include each other's parts, and each version others: what compiles here may not with a newer compiler."""

import re
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("common", "chapters", "tests", "plots")

# Names by header, those that other headers bring along in one library and not in another.
NAMES = {
    "algorithm": "all_of any_of none_of count count_if copy copy_n copy_if fill fill_n find find_if sort stable_sort min max "
                 "minmax max_element min_element mismatch equal reverse rotate unique remove_if transform generate clamp "
                 "lower_bound upper_bound shuffle for_each search merge",
    "array": "array",
    "atomic": "atomic",
    "bit": "bit_cast popcount countr_zero countl_zero has_single_bit bit_width bit_ceil",
    "cctype": "isdigit isspace isalpha isalnum tolower toupper isxdigit",
    "chrono": "chrono",
    "cmath": "fabs sqrt pow exp log ldexp frexp isnan isinf isfinite floor ceil round nearbyint fma tanh exp2 log2 copysign "
             "signbit nextafter trunc fmod ilogb",
    "cstdio": "printf fprintf fputs fopen fclose snprintf fflush rename remove FILE tmpfile rewind fread fwrite",
    "cstdlib": "abs getenv exit strtod abort strtoll",
    "cstring": "memcpy memset memcmp strlen strcmp memmove",
    "deque": "deque",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream",
    "functional": "function plus less greater",
    "limits": "numeric_limits",
    "map": "map multimap",
    "memory": "unique_ptr shared_ptr make_unique make_shared weak_ptr make_unique_for_overwrite",
    "mutex": "mutex lock_guard unique_lock call_once",
    "numeric": "accumulate iota gcd lcm",
    "optional": "optional nullopt",
    "random": "mt19937 mt19937_64 uniform_int_distribution",
    "regex": "regex smatch sregex_iterator",
    "set": "set multiset",
    "span": "span",
    "sstream": "ostringstream istringstream stringstream",
    "stdexcept": "runtime_error logic_error",
    "thread": "thread this_thread",
    "tuple": "tuple tie make_tuple",
    "type_traits": "is_same_v is_integral_v conditional_t",
    "unordered_map": "unordered_map",
    "variant": "variant get_if holds_alternative",
    "vector": "vector",
}
HEADER_OF = {name: header for header, names in NAMES.items() for name in names.split()}
TOLD_ELSEWHERE = {"abs": "cmath"}  # has it too, of floating numbers

# Comments and strings. A raw string may hold a program of its own.
SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.S)


def included(root, path, known):
    """The standard headers that a file of ours has, by itself or by others of ours."""
    if path not in known:
        known[path] = set()  # a circle ends here
        text = path.read_text(encoding="utf-8")
        found = set(re.findall(r"#include <([\w./]+)>", text))
        for name in re.findall(r'#include "([^"]+)"', text):
            ours = next((each for each in (root / name, path.parent / name) if each.is_file()), None)
            if ours:
                found |= included(root, ours.resolve(), known)
        known[path] = found
    return known[path]


def header_errors(root):
    known = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cuh", ".cpp", ".cu") or "build" in path.parts:
                continue
            has = included(root, path.resolve(), known)
            code = re.sub(r"#include[^\n]*", "", path.read_text(encoding="utf-8"))
            code = SKIPPED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), code)
            for number, line in enumerate(code.splitlines(), 1):
                for name in re.findall(r"\bstd::(?:ranges::)?(\w+)", line):
                    header = HEADER_OF.get(name)
                    if header and not {header, TOLD_ELSEWHERE.get(name)} & has:
                        yield f"{path.relative_to(root)}:{number}: std::{name} wants #include <{header}>"


class HeadersTest(unittest.TestCase):
    def test_names_come_with_their_headers(self):
        errors = list(header_errors(ROOT))
        self.assertFalse(errors, "\n" + "\n".join(errors))

    def test_a_missing_header_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in (("common/a.h", "#include <vector>\n"),
                               ("common/b.cpp", '#include "common/a.h"\nstd::vector<int> x;\n// std::sort\n'
                                                'int y = std::count(x.begin(), x.end(), 1);\n'),
                               ("tests/c.cpp", '#include <algorithm>\nint z = std::max(1, 2);\nchar t[] = "std::min";\n')):
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(text)
            self.assertEqual(list(header_errors(root)), ["common/b.cpp:4: std::count wants #include <algorithm>"])


if __name__ == "__main__":
    unittest.main()
