# SPDX-License-Identifier: MIT
"""Machine code as nvdisasm prints it, read into instructions with their control bits, blocks and loops.

Facts only: what is assumed about how long an instruction takes is in model.py. The control bits of an instruction are
those that Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking" (2018), section 2.1,
found; sm_90a and sm_100a still have them: bits 41 on of the upper eight bytes are 4 of stall cycles, 1 of yield, 3 each
of the scoreboard that is set when the result is there and when the operands have been read, 6 of scoreboards to wait for.
"""

import collections
import re
import subprocess
from dataclasses import dataclass, field

NO_BOARD = 7


class BadListing(Exception):
    """Text that is no disassembly, or of a form that nobody has seen."""


@dataclass
class Instruction:
    address: int
    guard: str  # "@!P0", or nothing
    op: str  # "LDG.E.128"
    text: str  # op and operands
    target: str  # a label that it branches to, or nothing
    ptx_line: int  # of the program's PTX; 0: not known
    source: tuple = ("", 0)  # file and line
    stall: int = 0  # cycles before the warp's next instruction, at least
    sets: int = NO_BOARD  # scoreboard: its result is there
    frees: int = NO_BOARD  # scoreboard: its operands have been read
    waits: int = 0  # bit mask of scoreboards

    @property
    def name(self) -> str:
        """"LDG" of "LDG.E.128"."""
        return self.op.split(".")[0]

    @property
    def ends_block(self) -> bool:
        return bool(self.target) or self.name in ("BRA", "EXIT", "RET", "BRX", "JMP", "CALL", "WARPSYNC.COLLECTIVE")


@dataclass
class Block:
    number: int
    instructions: list
    # Numbers of the blocks behind it: the next one in memory first.
    follows: list = field(default_factory=list)
    reached: bool = False  # by warps whose lanes come together


@dataclass
class Function:
    name: str
    instructions: list = field(default_factory=list)
    labels: dict = field(default_factory=dict)  # name -> index of an instruction


SECTION = re.compile(r"\.text\.(\S+):$")
LABEL = re.compile(r"\s*(\.L_\w+):$")
LINE = re.compile(r'\s*//## File "([^"]*)", line (\d+)')
CODE = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P[T\d]+)\s+)?(\S+?)(\s.*?)?\s*;\s+/\* 0x([0-9a-f]{16}) \*/")
UPPER = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/")
JUMP = re.compile(r"`\((\.L_\w+)\)")


def control(instruction: Instruction, upper: int) -> None:
    bits = upper >> 41
    instruction.stall = bits & 15
    instruction.sets, instruction.frees = bits >> 5 & 7, bits >> 8 & 7
    instruction.waits = bits >> 11 & 63


def read_functions(text: str) -> dict[str, Function]:
    """name -> Function, of `nvdisasm -c -hex` with line numbers of PTX or of the source between the instructions."""
    functions, now, line = {}, None, ("", 0)
    for row in text.splitlines():
        if found := SECTION.match(row):
            now, line = functions.setdefault(found[1], Function(found[1])), ("", 0)
        elif now is None:
            continue
        elif found := LABEL.match(row):
            now.labels[found[1]] = len(now.instructions)
        elif found := LINE.match(row):
            line = found[1], int(found[2])
        elif found := CODE.match(row):
            operands = (found[4] or "").strip()
            jump = JUMP.search(operands) if found[3].split(".")[0] in ("BRA", "CALL", "BRX") else None
            ptx = line[1] if line[0].endswith("ptx_txt") else 0
            now.instructions.append(Instruction(int(found[1], 16), found[2] or "", found[3], f"{found[3]} {operands}",
                                                jump[1] if jump else "", ptx, line))
        elif (found := UPPER.match(row)) and now.instructions:
            control(now.instructions[-1], int(found[1], 16))
    if not functions:
        raise BadListing("no code of a function in what nvdisasm printed")
    return functions


def disassemble(nvdisasm: str, cubin: str) -> dict[str, Function]:
    """name -> Function of a cubin, each instruction with its lines in PTX and in the source."""
    def run(*options):
        return subprocess.run([nvdisasm, "-c", "-hex", *options, cubin], capture_output=True, text=True, check=True).stdout
    functions, sources = read_functions(run("-gp")), read_functions(run("-g"))
    for name, function in functions.items():
        for instruction, same in zip(function.instructions, sources[name].instructions):
            instruction.source = same.source
    return functions


def always_leaves(last: Instruction) -> bool:
    """Whether the next instruction in memory never follows. A branch may have its condition among its operands."""
    if last.guard:
        return False
    return last.name in ("EXIT", "RET") or bool(re.match(r"BRA(\.\w+)* `", last.text))


def blocks_of(function: Function) -> list[Block]:
    """Basic blocks in the order of memory, with the blocks that may follow each. A BRA.DIV goes to code for lanes that do
    not come together where an instruction wants them all; here they always do."""
    code = function.instructions
    starts = {0} | set(function.labels.values()) | {i + 1 for i, one in enumerate(code) if one.ends_block}
    starts = sorted(s for s in starts if s < len(code))
    number = {start: i for i, start in enumerate(starts)}
    blocks = []
    for i, start in enumerate(starts):
        end = starts[i + 1] if i + 1 < len(starts) else len(code)
        block, last = Block(i, code[start:end]), code[end - 1]
        if end in number and not always_leaves(last):
            block.follows.append(number[end])
        jumps = last.target and last.op != "BRA.DIV" and last.name != "CALL"
        if jumps and function.labels.get(last.target) in number:
            block.follows.append(number[function.labels[last.target]])
        blocks.append(block)
    ask = [0]
    while ask:
        block = blocks[ask.pop()]
        if not block.reached:
            block.reached = True
            ask += block.follows
    for block in blocks:
        block.follows = block.follows if block.reached else []
    return blocks


def dominators(blocks: list[Block]) -> list[set[int]]:
    """For each block, the blocks that every way to it goes through."""
    before = collections.defaultdict(list)
    for block in blocks:
        for other in block.follows:
            before[other].append(block.number)
    everything = set(range(len(blocks)))
    found = [everything.copy() for _ in blocks]
    found[0] = {0}
    changed = True
    while changed:
        changed = False
        for block in blocks[1:]:
            ways = [found[p] for p in before[block.number]]
            new = {block.number} | (set.intersection(*ways) if ways else set())
            if new != found[block.number]:
                found[block.number], changed = new, True
    return found


def loops_of(blocks: list[Block]) -> dict[int, set[int]]:
    """header -> the numbers of the loop's blocks, for each natural loop."""
    over, before, loops = dominators(blocks), collections.defaultdict(list), {}
    for block in blocks:
        for other in block.follows:
            before[other].append(block.number)
    for block in blocks:
        for header in block.follows:
            if header not in over[block.number]:
                continue
            body, ask = {header}, [block.number]
            while ask:
                one = ask.pop()
                if one not in body:
                    body.add(one)
                    ask.extend(before[one])
            loops[header] = loops.get(header, set()) | body
    return loops
