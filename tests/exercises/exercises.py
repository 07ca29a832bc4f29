# SPDX-License-Identifier: MIT
"""Does each Break exercise still do what its lesson says?

  python3 -B -m tests.exercises.exercises BUILD_DIR [--chapter ID] [--sample N] [--jobs N] [--list]

checks/break_1.patch in a chapter's folder is the first edit that the exercise asks for, break_1.txt what must be printed
then. The edit is made in a copy of the chapter. Its program alone is compiled, to PTX and without machine code, linked
with the harness of the build tree and run by the emulator. A patch that does not apply, an edit that does not compile
and a report that differs are errors.

apart_<word>.patch makes the chapter that its lesson times beside the chapter as it is: its results must be right.

What extend.txt wants must not hold of the tree as it is. extend.patch, where there is one, is a solution of the Extend
exercise: with it all of that must hold. --sample 3 tries three edits of smaller programs, others whenever chapters or common change.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.exercises import grade, statements
from tests.mutants import mutants

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def checks(pattern: str) -> Iterator[Path]:
    """The files of this name in all chapters' checks/."""
    return ROOT.glob(f"chapters/*/checks/{pattern}")


def apply(patch: Path, tree: Path, *options: str) -> str:
    """Applies a patch to a tree; what git says against it, or nothing."""
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    done = subprocess.run(["git", "-C", tree, "apply", *options, patch], env=environment, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""


def copied(chapter: str, patch: Path, tree: Path) -> str:
    """A copy of the chapter and of common with the edit; what git says against it, or nothing. Common is a link unless
    the patch changes it."""
    shutil.copytree(ROOT / "chapters" / chapter, tree / "chapters" / chapter)
    if re.search(r"^\+\+\+ b/common/", patch.read_text(encoding="utf-8"), re.M):
        shutil.copytree(ROOT / "common", tree / "common")
    else:
        (tree / "common").symlink_to(ROOT / "common")
    return apply(patch, tree)


class Compiler:
    """Compiles and links a chapter as the build tree does, but to PTX alone."""

    def __init__(self, build: Path) -> None:
        self.build = build.resolve()
        entries = json.loads((self.build / "compile_commands.json").read_text(encoding="utf-8"))
        self.commands = {Path(entry["file"]).parent.name: entry["command"] for entry in entries
                         if re.search(r"/chapters/\w+/main\.cu$", entry["file"])}
        cache = (self.build / "CMakeCache.txt").read_text(encoding="utf-8")
        self.cached = dict(re.findall(r"^(\w+):\w+=(.*)$", cache, re.M))

    def words(self, chapter: str, tree: Path) -> list[str]:
        """The compiler's command for the copy in `tree`, which writes main.o there. Host code is not optimised."""
        words = shlex.split(self.commands[chapter])
        words[words.index("-o") + 1] = str(tree / "main.o")
        source = str(ROOT / "chapters" / chapter / "main.cu")
        kept = []
        for word in words:
            word = re.sub(r"code=\[(compute_\w+)(,.*)?\]", r"code=\1", word).replace(",-Werror", "")
            if word == source:
                word = str(tree / "chapters" / chapter / "main.cu")
            elif word == f"-I{ROOT}":
                word = f"-I{tree}"
            elif re.fullmatch(r"-O\d|-Werror=.*", word):
                continue
            kept.append(word)
        return [*kept, "-O0"]

    def program(self, chapter: str, tree: Path) -> str:
        """Makes tree/build/bin/<chapter>; what the compiler says against it, or nothing."""
        program = tree / "build" / "bin" / chapter
        program.parent.mkdir(parents=True)
        # A program looks for the emulator there.
        (tree / "build" / "lib").symlink_to(self.build / "lib")
        libraries = [self.build / "common" / f"libgg_{name}.a" for name in ("harness", "base")]
        runtime = self.cached["CUDA_CUDART"]
        # A chapter of several has a file for each: no patch changes these.
        others = [path for path in sorted((self.build / f"chapters/CMakeFiles/{chapter}.dir/{chapter}").glob("*.cu.o"))
                  if path.name != "main.cu.o"]
        link = [self.cached["CMAKE_CXX_COMPILER"], tree / "main.o", *others, "-o", program, "-Wl,--enable-new-dtags",
                f"-Wl,-rpath,{Path(runtime).parent}", *libraries, runtime, "-ldl", "-lpthread"]
        for command in (self.words(chapter, tree), link):
            done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
            if done.returncode:
                return (done.stdout + done.stderr).strip()
        return ""


def chapter_of(path: Path) -> str:
    """The chapter whose checks/ holds a file."""
    return path.parents[1].name


def unmet_as_it_is(compiler: Compiler, path: Path) -> list[str]:
    """What is wrong with an Extend exercise whose solution nobody wrote: it is one already, or nothing."""
    return ["the tree as it is meets it"] if grade.graded(path, compiler.build / "bin")[0] == grade.MET else []


def tried(compiler: Compiler, patch: Path) -> list[str]:
    """What is wrong with an exercise: sentences. `patch` may be an extend.txt without a solution."""
    if patch.suffix == ".txt":
        return unmet_as_it_is(compiler, patch)
    chapter = chapter_of(patch)
    right = statements.Command(f"build/bin/{chapter} --check --device emu", [("exit", "0")])
    wanted = statements.Statements([right]) if patch.stem.startswith("apart_") else statements.parse(patch.with_suffix(".txt"))
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve()
        said = copied(chapter, patch, tree)
        if said:
            return [f"does not apply: {said}"]
        said = compiler.program(chapter, tree)
        if said:
            return [f"does not compile: {said[:2000]}"]
        patched, others = tree / "build" / "bin", compiler.build / "bin"

        def programs(name):
            return (patched if (patched / name).exists() else others) / name

        found = [f"{command.line}: {each}" for command in wanted.commands for each in statements.unmet(command, programs)]
        return found if found or patch.stem != "extend" else unmet_as_it_is(compiler, patch.with_suffix(".txt"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--chapter", default="", help="chapters whose name starts so")
    parser.add_argument("--only", default="", help="patches whose name starts so")
    parser.add_argument("--sample", type=int, default=0, help="so many edits, as `check` runs it; 0: all")
    parser.add_argument("--list", action="store_true", help="name the patches and try none")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1)))
    options = parser.parse_args()
    compiler = Compiler(options.build)
    unsolved = [path for path in checks("extend.txt") if not path.with_suffix(".patch").exists()]
    patches = [patch for patch in sorted([*checks("*.patch"), *unsolved]) if chapter_of(patch) in compiler.commands
               and chapter_of(patch).startswith(options.chapter) and patch.name.startswith(options.only)]
    if options.sample:
        edits = [patch for patch in patches if patch.stem != "extend"]
        size = {patch: (options.build / "bin" / chapter_of(patch)).stat().st_size for patch in edits}
        # A large program compiles for long
        quick = [patch for patch in edits if size[patch] <= statistics.median(size.values())]
        patches = mutants.sampled(quick, options.sample)[: options.sample]
    if not patches:
        sys.exit("exercises.py: there is no such exercise")
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = pool.map(lambda patch: [] if options.list else tried(compiler, patch), patches)
        bad = 0
        for patch, found in zip(patches, outcomes):
            bad += bool(found)
            print(f"{chapter_of(patch)}/{patch.name}:", "; ".join(found) or ("listed" if options.list else "as its lesson says"),
                  flush=True)
    if not options.list:
        print(f"exercises: {len(patches) - bad} of {len(patches)} as their lessons say")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
