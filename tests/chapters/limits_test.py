# SPDX-License-Identifier: MIT
#
# Does --describe say which problems a chapter takes? Random sizes and options; what its JSON
# predicts must be what the program does: exit code 2 for what it refuses. A small one that is taken
# also runs on the emulator, where a launch refuses too.

import itertools
import json
import math
import os
import random
import subprocess
import sys

PROGRAMS, CHAPTER = sys.argv[1], sys.argv[2]
DRAWN, LAUNCHED = 60, 1
REFUSED, NO_DEVICE = 2, 77


def run(*words, device="gpu"):
    """Exit code and stderr. It starts on the emulator, so what is accepted on a GPU ends with 77 before anything is done."""
    environment = dict(os.environ, LD_LIBRARY_PATH=os.path.join(PROGRAMS, "../lib/emu"), GG_EMU_RESTARTED="")
    done = subprocess.run([os.path.join(PROGRAMS, CHAPTER), "--check", "--device", device, *words],
                          capture_output=True, text=True, env=environment)
    return done.returncode, done.stderr.strip()


def drawn_problem(about, draw):
    """Words, and whether the JSON says that they are taken."""
    limits, options = about["limits"], about["options"]
    words, taken = [], True
    kind = draw.choice(about["formats"])
    words += ["--format" if "format" in options else "--in-dtype", kind["in"], "--d-dtype", kind["d"]]
    layout = draw.choice(about["b_layouts"] or ["kn"])
    if "b-layout" in options:
        words += ["--b-layout", layout]
    taken &= layout in kind["n_multiple"]
    k_step, n_step = kind["k_multiple"], kind["n_multiple"].get(layout, 8)
    for own in about["numbers"]:
        if draw.random() < 0.5:
            number = draw.choice(own["values"])
            words += [f"--{own['name']}", str(number)]
            if own["divides_k"]:
                k_step = math.lcm(k_step, number)
    if "tile" in options and about["tile_clusters"] and draw.random() < 0.5:
        tile, cluster = draw.choice(about["tiles"]), draw.choice(about["clusters"] or ["1x1"])
        words += ["--tile", tile] + (["--cluster", cluster] if about["clusters"] else [])
        taken &= f"{tile} with {cluster}" in about["tile_clusters"]
        is_first = kind == about["formats"][0] and layout == (about["b_layouts"] or ["kn"])[0]
        is_default = tile == about["tiles"][0] and not about["clusters"]
        taken &= is_first or is_default or not about["one_tile_for_others"]
    taken &= drawn_epilogue(about, kind, draw, words)
    n, k = (draw.choice([1, 2, 4, 8, 16, 32, 64]) * draw.randint(1, 9) for _ in range(2))
    if draw.random() < 0.6:
        n, k = (-(-value // step) * step for value, step in ((n, n_step), (k, k_step)))
    m, rows_taken = drawn_rows(limits, draw)
    taken &= rows_taken and n % n_step == 0 and k % k_step == 0
    sizes = ["--m", ",".join(map(str, m)), "--n", str(n), "--k", str(k)]
    return words + sizes, taken


def drawn_epilogue(about, kind, draw, words):
    """Adds options of an epilogue; are they taken together?"""
    taken, options = True, about["options"]
    bias = None
    if "bias" in options and draw.random() < 0.4:
        bias = draw.choice(about["epilogue"]["bias"])
        words += ["--bias", "--bias-dtype", bias]
    if "weights" in options and draw.random() < 0.4:
        words += ["--weights", "discrete"]
        taken &= bias is None or bias in about["epilogue"]["bias_with_discrete_weights"]
    if "norm-const" in options and draw.random() < 0.4:
        words += ["--norm-const", "0.5"]
        taken &= kind["norm_const"]
    return taken


def drawn_rows(limits, draw):
    step, groups = limits["m_multiple"], draw.randint(1, 4)
    if draw.random() < 0.05:
        groups = limits["groups"] + draw.randint(0, 1)
        return [0] * groups, groups <= limits["groups"]
    m = [draw.randint(0, 3) * step for _ in range(groups)]
    if limits["equal_groups"] and draw.random() < 0.6:
        m = m[:1] * groups
    if draw.random() < 0.2:
        m[-1] += draw.randint(1, step)
    return m, all(each % step == 0 for each in m) and (not limits["equal_groups"] or len(set(m)) == 1)


def beyond_most(about):
    """Sizes just inside and just outside of each limit that has a number, with what is expected."""
    limits = about["limits"]
    kind = about["formats"][0]
    n_step, k_step = next(iter(kind["n_multiple"].values())), kind["k_multiple"]
    step = limits["m_multiple"]

    def sizes(m, n=n_step, k=k_step):
        return ["--m", m, "--n", str(n), "--k", str(k)]

    yield sizes(",".join(["0"] * limits["groups"])), True
    yield sizes(",".join(["0"] * (limits["groups"] + 1))), False
    if limits["n"] < 2**31 - 1:
        yield sizes("0", limits["n"] // n_step * n_step), True
        yield sizes("0", (limits["n"] // n_step + 1) * n_step), False
    most = limits["rows_of_a_group"] // step * step
    yield sizes(str(most)), True
    if most + step < 2**31:
        yield sizes(str(most + step)), False
    if not limits["equal_groups"]:
        yield sizes(f"{most},{step}"), False
    if limits["groups_times_k"] < 2**31 * limits["groups"]:
        k = limits["groups_times_k"] // limits["groups"] // k_step * k_step
        for factor, taken in ((1, True), (2, False)):
            yield sizes(",".join(["0"] * limits["groups"]), k=k * factor), taken


def is_small(words):
    """Few rows of A, and weights that are quickly made: the greatest number of groups may be among them."""
    m, n, k = (words[words.index(name) + 1] for name in ("--m", "--n", "--k"))
    rows = [int(each) for each in m.split(",")]
    return sum(rows) < 800 and len(rows) * int(n) * int(k) < 2**22


def main():
    about = json.loads(subprocess.run([os.path.join(PROGRAMS, CHAPTER), "--describe"], capture_output=True,
                                      text=True, check=True).stdout)
    draw = random.Random("limits of " + CHAPTER)
    problems = [drawn_problem(about, draw) for _ in range(DRAWN)]
    said = {True: 0, False: 0}
    wrong = []
    for words, taken in itertools.chain(problems, beyond_most(about)):
        code, error = run(*words)
        said[code != REFUSED] += 1
        if code not in (REFUSED, NO_DEVICE) or (code != REFUSED) != taken:
            wrong.append(f"{' '.join(words)[:200]}: {'taken' if taken else 'refused'} by --describe, exit code {code}: {error}")
    small = [words for words, taken in problems if taken and is_small(words)]
    for words in small[:LAUNCHED]:
        code, error = run(*words, device="emu")
        if code != 0:
            wrong.append(f"{' '.join(words)}: taken, but on the emulator exit code {code}: {error}")
    if not said[True] or not said[False] or len(small) < LAUNCHED:
        wrong.append(f"the draws say little: {said}, {len(small)} small ones")
    print(f"{CHAPTER}: {said[True]} taken and {said[False]} refused, {LAUNCHED} launched")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
