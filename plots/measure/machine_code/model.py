# SPDX-License-Identifier: MIT
"""How many cycles a warp that has its scheduler to itself takes for one iteration of a loop of machine code.

Facts come from the machine code (listing.py): the order, the stall cycles, the scoreboards. The emulator's counts of
each line of PTX say which path a warp takes and how often. Assumed are two tables: LATENCY, after how many cycles an
instruction without a fixed latency has its result, and PIPES, for how many cycles one instruction of a warp holds a
pipe of its scheduler. Not modelled: other warps, how long a barrier is closed, memory that is behind, and the
instruction cache.
"""

import collections
from collections.abc import Iterator
from dataclasses import dataclass, field

from plots.measure.machine_code.listing import Block, Function, Instruction, blocks_of, dominators, loops_of

LATENCY = {  # cycles; what waits for longer is told by the scoreboard
    "MUFU": 20, "LDTM": 60, "STTM": 30, "SHFL": 25, "REDUX": 30, "CREDUX": 30, "LDS": 30, "LDC": 40, "LDCU": 30,
    "LDG": 300, "S2R": 25, "S2UR": 25, "R2UR": 12, "STS": 12, "STG": 20, "STSM": 20, "LDSM": 33, "BAR": 25, "F2FP": 6,
    "SYNCS": 25, "I2F": 20, "F2I": 20, "F2F": 20, "ELECT": 15, "MEMBAR": 20, "FENCE": 20, "DEPBAR": 0, "UTMASTG": 20,
}
# Instructions of a block that is long enough to trust the lines at which they are noted.
TELLING = 5
OTHER_LATENCY = 20  # of an instruction that sets a scoreboard and is not in LATENCY
OPERANDS_READ = 15  # cycles until a scoreboard says that the operands have been read, at most
PIPES = {}  # name -> pipe and cycles
for names, pipe, cycles in (
        ("MUFU", "mufu", 8), ("FMUL FADD FFMA", "fma", 1), ("IMAD FMUL2 FADD2 FFMA2", "fma", 2),
        ("F2FP F2F F2I I2F", "convert", 2), ("SHFL", "shuffle", 4), ("REDUX CREDUX", "redux", 8),
        ("STG LDG", "memory", 4), ("STS LDS STSM LDSM", "memory", 4),
        ("LOP3 ISETP VIMNMX VIMNMX3 FMNMX FMNMX3 FSETP FSEL SEL IADD3 VIADD LEA SHF PRMT PLOP3 P2R R2P MOV "
         "VIADDMNMX IABS FLO POPC", "alu", 2)):
    PIPES.update((name, (pipe, cycles)) for name in names.split())
# Cycles of a multiprocessor, for each 32-byte sector that a store touches: stores.cu on an H100.
SECTOR_CYCLES = 2.0
ROUNDS = 3  # of a loop, the last of which is measured: what it begins with has been left behind


@dataclass
class Cost:
    """Cycles of one pass, and by what they went."""
    cycles: float = 0
    instructions: float = 0
    why: collections.Counter = field(default_factory=collections.Counter)
    # Pipe -> cycles that it is held.
    busy: collections.Counter = field(default_factory=collections.Counter)

    @property
    def least(self) -> float:
        """Cycles that no other warp of the scheduler can use: its issue slots, or those of the busiest pipe."""
        return max([self.instructions, *self.busy.values()])


@dataclass
class Loop:
    header: int
    body: set
    weight: float = 0  # times that warps began an iteration
    inner: dict = field(default_factory=dict)  # header -> Loop
    trips: float = 1  # in one iteration of the loop around it
    cost: Cost = None


class Machine:
    """One warp on its scheduler: when its next instruction issues."""

    def __init__(self, sectors: dict[int, float], sharing: int = 1) -> None:
        """`sectors`: of each line of PTX that stores, for one warp; `sharing`: warps that store at the same time."""
        self.sectors, self.sharing, self.now = sectors, sharing, 0
        self.boards, self.until, self.why = [0] * 6, {}, collections.Counter()
        self.busy = collections.Counter()

    def issue(self, instruction: Instruction) -> None:
        ready = max([self.now] + [self.boards[b] for b in range(6) if instruction.waits >> b & 1])
        pipe, cycles = PIPES.get(instruction.name, ("", 0))
        if instruction.name == "STG":
            cycles = max(cycles, self.sectors.get(instruction.ptx_line, 0) * SECTOR_CYCLES * self.sharing)
        begin = max(ready, self.until.get(pipe, 0))
        self.why["scoreboard"] += ready - self.now
        self.why["pipe"] += begin - ready
        if pipe:
            self.until[pipe] = begin + cycles
            self.busy[pipe] += cycles
        took = LATENCY.get(instruction.name, OTHER_LATENCY)
        for board, cycles in (instruction.sets, took), (instruction.frees, min(took, OPERANDS_READ)):
            if board < 6:
                self.boards[board] = max(self.boards[board], begin + cycles)
        stall = max(instruction.stall, 1)
        self.why["issue"] += 1
        self.why["stall"] += stall - 1
        self.now = begin + stall

    def skip(self, cost: Cost, times: float) -> None:
        """Goes so many times round a loop."""
        self.now += cost.cycles * times
        for total, each in (self.why, cost.why), (self.busy, cost.busy):
            total.update({key: value * times for key, value in each.items()})


class Kernel:
    """A function with the weights of its blocks, its loops nested. line_counts: line of PTX -> times, sectors."""

    def __init__(self, function: Function, line_counts: dict[int, tuple[int, int]], sharing: int = 1) -> None:
        self.sharing = sharing
        self.sectors = {line: sectors / times for line, (times, sectors) in line_counts.items() if sectors}
        self.blocks = blocks_of(function)
        self.weights = [weight(block, line_counts) if block.reached else 0 for block in self.blocks]
        self.top = nest({header: Loop(header, body) for header, body in loops_of(self.blocks).items()})
        dominators_of = dominators(self.blocks)
        for loop in self.loops():
            loop.weight = self.iterations(loop, dominators_of, line_counts)

    def loops(self) -> Iterator[Loop]:
        """All loops, the outer ones first."""
        ask = list(self.top.values())
        while ask:
            loop = ask.pop(0)
            yield loop
            ask = list(loop.inner.values()) + ask

    def iterations(self, loop: Loop, dominators_of: list[set[int]], line_counts: dict[int, tuple[int, int]]) -> int:
        """Of a loop: what most instructions say that every iteration has, and that no inner loop has."""
        own = loop.body.difference(*(inner.body for inner in loop.inner.values()))
        ends = [number for number in loop.body if loop.header in self.blocks[number].follows]
        always = [one for number in own if all(number in dominators_of[end] for end in ends)
                  for one in self.blocks[number].instructions]
        return most_counts(always, line_counts)

    def cost(self, loop: Loop) -> Cost:
        """Of one iteration on the most usual path, inner loops as often as they are gone round."""
        for inner in loop.inner.values():
            inner.trips = 1 if is_wait(self.blocks, inner) else self.trips(inner, loop)
            inner.cost = self.cost(inner)
        path, machine, begins = self.usual_path(loop), Machine(self.sectors, self.sharing), []
        for _ in range(ROUNDS):
            begins.append((machine.now, machine.why.copy(), machine.busy.copy()))
            instructions = 0
            for step in path:
                if isinstance(step, Loop):
                    machine.skip(step.cost, step.trips)
                    instructions += step.cost.instructions * step.trips
                else:
                    machine.issue(step)
                    instructions += 1
        cycles, why, busy = begins[-1]
        loop.cost = Cost(machine.now - cycles, instructions, difference(machine.why, why),
                         difference(machine.busy, busy))
        return loop.cost

    def between_clocks(self) -> Cost:
        """Of the most usual path from one reading of the clock to the next one; None where there are not two."""
        def readings(block):
            return [i for i, one in enumerate(block.instructions) if "SR_CLOCKLO" in one.text]
        first = max((b for b in self.blocks if readings(b)), default=None, key=lambda b: (self.weights[b.number], -b.number))
        if first is None:
            return None
        path, at, begin, seen = [], first, readings(first)[0], set()
        while at.number not in seen:
            seen.add(at.number)
            ends = [i for i in readings(at) if at is not first or i > begin]
            path += at.instructions[begin if at is first else 0:ends[0] + 1 if ends else None]
            if ends:
                machine = Machine(self.sectors, self.sharing)
                for one in path:
                    machine.issue(one)
                last = max(path[-1].stall, 1)  # behind the reading
                return Cost(machine.now - last, len(path), machine.why, machine.busy)
            follows = [f for f in at.follows if f not in seen]
            if not follows:
                return None
            at = self.blocks[max(follows, key=lambda number: self.weights[number])]
        return None

    def trips(self, inner: Loop, outer: Loop) -> float:
        """Iterations of the inner loop in one of the outer: the back edges are counted with the header."""
        return inner.weight / outer.weight if outer.weight else 0

    def usual_path(self, loop: Loop) -> list[Instruction | Loop]:
        """The instructions of one iteration in order, and the loops inside, where a warp goes most often."""
        steps, at, seen = [], loop.header, set()
        while at not in seen and at in loop.body:
            seen.add(at)
            if at in loop.inner and at != loop.header:
                inner = loop.inner[at]
                steps.append(inner)
                seen |= inner.body
                follows = [f for number in inner.body for f in self.blocks[number].follows if f not in inner.body]
            else:
                steps.extend(self.blocks[at].instructions)
                follows = self.blocks[at].follows
            follows = [f for f in follows if f in loop.body and (f not in seen or f == loop.header)]
            if not follows:
                break
            # Among equals the next one in memory.
            at = max(follows, key=self.times_taken(at, follows, loop).__getitem__)
        return steps

    def times_taken(self, at: int, follows: list[int], loop: Loop) -> dict[int, float]:
        """How often a warp goes from a block, or from a loop, to each of these. ptxas notes short blocks at the line of whatever
        stood before them, so the longer ones tell: those that only one of the paths has. A path without any is where the others
        meet, and gets what is left."""
        reached = {number: self.reached(number, loop) for number in follows}
        known = {}
        for number in follows:
            own = reached[number].difference(*(reached[other] for other in follows if other != number))
            longer = [self.weights[each] for each in own if len(self.blocks[each].instructions) >= TELLING]
            if longer:
                known[number] = max(longer)
        left = max(0, self.weights[at] - sum(known.values()))
        return collections.defaultdict(int, {number: known.get(number, left) for number in follows})

    def reached(self, begin: int, loop: Loop) -> set[int]:
        """Blocks that can come in the same iteration from this one on."""
        found, ask = set(), [begin]
        while ask:
            number = ask.pop()
            if number in loop.body and number != loop.header and number not in found:
                found.add(number)
                ask += self.blocks[number].follows
        return found


def difference(after: collections.Counter, before: collections.Counter) -> collections.Counter:
    return collections.Counter({key: value - before[key] for key, value in after.items()})


def weight(block: Block, line_counts: dict[int, tuple[int, int]]) -> int:
    """How often warps began a block."""
    return most_counts(block.instructions, line_counts)


def most_counts(instructions: list[Instruction], line_counts: dict[int, tuple[int, int]]) -> int:
    """The number of times that these instructions were executed, by the lines that they are noted at: the smallest of those
    that many lines have. Lanes that have not come together execute a line more than once on the emulator."""
    found = collections.Counter(line_counts.get(one.ptx_line, (0, 0))[0] for one in instructions)
    many = [count for count in found if found[count] >= len(instructions) / 3]
    return min(many or found, default=0)


def nest(loops: dict[int, Loop]) -> dict[int, Loop]:
    """The outermost of these loops, each with those inside."""
    top = {}
    for loop in sorted(loops.values(), key=lambda one: len(one.body)):
        around = [other for other in loops.values() if other is not loop and loop.header in other.body
                  and loop.body <= other.body]
        siblings = min(around, key=lambda one: len(one.body)).inner if around else top
        siblings[loop.header] = loop
    return top


def is_wait(blocks: list[Block], loop: Loop) -> bool:
    """Whether the loop asks a barrier again and again: how often depends on others."""
    names = {one.name for number in loop.body for one in blocks[number].instructions}
    return "SYNCS" in names and sum(len(blocks[number].instructions) for number in loop.body) < 12
