# SPDX-License-Identifier: MIT
"""Which Extend exercises does this tree meet?

  python3 -B -m tests.exercises.grade BUILD_DIR CHAPTER...

checks/extend.txt in a chapter's folder says what must hold of the built program when the exercise is done. Each chapter
gets one line, with the first thing that does not hold. What wants a GPU, or an answer in words, is named and not judged.
The exit code is 0 whatever was found: it is information.
"""

import sys
from pathlib import Path

from tests.exercises import statements

HERE = Path(__file__).resolve().parent
CHAPTERS = HERE.parents[1] / "chapters"
MET, NOT_MET, NOT_GRADED = "met", "not met", "not graded"


def graded(path: Path, programs: Path) -> tuple[str, str]:
    """(verdict, sentence) for one extend.txt. A program that was not built is not judged."""
    wanted = statements.parse(path)
    rest = "; ".join(f"left to you: {each}" for each in (wanted.gpu and f"needs {wanted.gpu}", wanted.open) if each)
    if not wanted.commands:
        return NOT_GRADED, rest
    for command in wanted.commands:
        lines = [command.line, *(line for kind, line in command.wanted if kind == "same")]
        missing = [name for _, name, _ in map(statements.words_of, lines) if not (programs / name).exists()]
        if missing:
            return NOT_GRADED, f"there is no build/bin/{missing[0]}, which it runs"
        found = statements.unmet(command, programs.joinpath)
        if found:
            return NOT_MET, f"{command.line}: {found[0]}"
    return MET, rest


def main() -> int:
    build, chapters = Path(sys.argv[1]), sys.argv[2:]
    verdicts = []
    for chapter in chapters:
        path = CHAPTERS / chapter / "checks" / "extend.txt"
        try:
            verdict, why = graded(path, build / "bin") if path.exists() else (NOT_GRADED, "nobody has said how")
        except ValueError as error:  # the others are graded all the same
            verdict, why = NOT_GRADED, str(error)
        verdicts.append(verdict)
        print(f"{chapter:22} {verdict:10}  {why}".rstrip(), flush=True)
    print(f"grade: {verdicts.count(MET)} of {len(verdicts)} Extend exercises met, {verdicts.count(NOT_GRADED)} not graded")
    return 0


if __name__ == "__main__":
    sys.exit(main())
