"""Happens-before: which instructions are known to have finished when another one starts.

Vector clocks over the pipes of both cores. Order on one pipe is not completion: an instruction knows that an earlier one of its
own pipe has finished only through a barrier, or through a flag that came back. Clauses 1, 2, 5, 7, 9 and 10 of `docs/machine.md`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tile_eg.emit.sync.clock import BITS, MOST, Clock, count, guards, merged

CROSS_LIMIT = 15
Needed = Mapping[int, Sequence[tuple[int, int]]]
"""Instance -> what has to be known when it starts: (place in its clock, least value there)."""


class Op(NamedTuple):
    """One step of a core: kind is run, set, wait, barrier, cross_set, cross_wait, or enter or leave a guard that may not hold.

    `pipe` is where it acts (set: the producer's, wait: the consumer's), `flag` which flag it means, `owner` who put it there, so
    that it can be left out; None: always there. `instance` is what runs; `stepped`, with a barrier between steps of its own.
    """

    kind: str
    core: str
    pipe: str = ""
    flag: tuple = ()
    owner: tuple | None = None
    instance: int = -1
    stepped: bool = False


@dataclass
class Verdict:
    """What a replay found: the clock at which each instance started, and everything wrong with the flags.

    Of each flag, the clock of its first set and the number (on its pipe) of its last wait. `early` is an instance that started
    before what it needs was known.
    """

    starts: dict[int, Clock] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    first_set: dict[tuple, Clock] = field(default_factory=dict)
    last_wait: dict[tuple, int] = field(default_factory=dict)
    early: int | None = None


class Order:
    """Replays of one program's steps with some of its flags left out.

    A clock has two entries for each pipe (instructions known to be finished, waits known to be over) and one for each core
    (cross-core waits known to be over).
    """

    def __init__(self, streams: Mapping[str, Sequence[Op]]) -> None:
        different = {id(o): o for ops in streams.values() for o in ops}
        self.owners: dict[tuple, int] = {}
        pipes = sorted({(o.core, o.pipe) for o in different.values() if o.pipe})
        self.index = {p: 2 * i for i, p in enumerate(pipes)}
        self.cores = {c: 2 * len(pipes) + i for i, c in enumerate(sorted(streams))}
        self.pipes_of = {c: [at for (core, _), at in self.index.items() if core == c] for c in streams}
        self.size = 2 * len(pipes) + len(self.cores)
        steps = {n: self._step(o) for n, o in different.items()}
        self.streams = {c: [steps[id(o)] for o in ops] for c, ops in streams.items()}

    def _step(self, o: Op) -> tuple[str, int, int, Any, Op]:
        """Its kind, the place of its pipe, its owner's number, what it runs or the flag that it means, and itself."""
        owner = 0 if o.owner is None else self.owners.setdefault(o.owner, len(self.owners) + 1)
        return o.kind, self.index.get((o.core, o.pipe), -1), owner, o.instance if o.kind == "run" else o.flag, o

    def replay(self, without: tuple | None = None) -> Verdict:
        """Runs every step, but those that `without` owns."""
        return _Replay(self, without).run()

    def drop(self, owner: tuple) -> None:
        """Leaves the steps of an owner out for good."""
        number = self.owners.get(owner)
        self.streams = {core: [s for s in steps if s[2] != number] for core, steps in self.streams.items()}

    def holds(self, without: tuple, needed: Needed, faultless: bool = True) -> bool:
        """Whether, without the steps of one owner, every instance knows what it `needed` when it starts, and flags take turns."""
        verdict = _Replay(self, without, needed, faultless).run()
        return verdict.early is None and needed.keys() <= verdict.starts.keys() and not (faultless and verdict.faults)

    def knows(self, clock: Clock, pipe: tuple[str, str], number: int) -> bool:
        """Whether at this clock instruction `number` of a pipe is known to have finished."""
        return count(clock, self.index[pipe]) >= number


class _Replay:
    """`know` and `done` are indexed by a pipe's place in the clock. `done` is the part of a clock that tells of the pipe itself.

    With `needed`, it stops at the first instance that starts too early, or, where it has to be `faultless`, at the first fault.
    """

    def __init__(self, order: Order, without: tuple | None, needed: Needed | None = None, faultless: bool = False) -> None:
        self.order, self.verdict = order, Verdict()
        self.without = None if without is None else order.owners.get(without)
        self.needed, self.faultless = needed or {}, faultless
        self.guard = guards(order.size)
        self.know: list[Clock] = [0] * order.size
        self.done: list[Clock] = [0] * order.size
        self.one = [1 << BITS * at for at in range(order.size)]
        self.others = [~(((1 << 2 * BITS) - 1) << BITS * at) for at in range(order.size)]
        self.flags: dict[tuple, Clock] = {}
        self.last_wait: dict[tuple, tuple[int, int]] = {}
        self.queues: dict[tuple, list[Clock]] = {}
        self.taken: dict[tuple, list[int]] = {}
        self.cross_waits = dict.fromkeys(order.streams, 0)
        self.outside: dict[str, list[list[Clock]]] = {core: [] for core in order.streams}

    def run(self) -> Verdict:
        walks = {core: self.core(core) for core in self.order.streams}
        blocked: dict[str, Op] = {}
        while walks:
            before = self.progress(len(walks))
            blocked = {core: op for core, walk in walks.items() if (op := next(walk, None))}
            if self.stopped():
                return self.verdict
            walks = {core: walks[core] for core in blocked}
            if walks and before == self.progress(len(walks)):
                self.fault(*(f"deadlock: {o.core} waits for cross-core flag {o.flag} that nobody sets" for o in blocked.values()))
                break
        self.verdict.last_wait = {flag: number for flag, (_, number) in self.last_wait.items()}
        self.fault(*(f"flag {f} is set and never waited for" for f in self.flags))
        self.fault(*(f"cross-core flag {f} is set {len(q)} times too often" for f, q in self.queues.items() if q and not blocked))
        return self.verdict

    def stopped(self) -> bool:
        return self.verdict.early is not None or (self.faultless and bool(self.verdict.faults))

    def progress(self, running: int) -> tuple[int, int, int]:
        return running, sum(map(len, self.queues.values())), sum(self.cross_waits.values())

    def fault(self, *texts: str) -> None:
        self.verdict.faults += texts

    def core(self, core: str) -> Iterator[Op]:
        """Runs one core; yields where it is blocked by a cross-core wait."""
        know, done, one, starts = self.know, self.done, self.one, self.verdict.starts
        needed, without, others, flags, waits = self.needed, self.without, self.others, self.flags, self.last_wait
        for kind, pipe, owner, what, op in self.order.streams[core]:
            if owner == without:
                continue
            if kind == "run":
                done[pipe] += one[pipe]
                clock = starts[what] = know[pipe]
                for at, least in needed.get(what, ()):
                    if clock >> BITS * at & MOST < least:
                        self.verdict.early = what
                        return
                if op.stepped:
                    know[pipe] = self.now(pipe) - one[pipe]
            elif kind == "set":
                clock = know[pipe] & others[pipe] | done[pipe]
                if (last := waits.get(what)) is None:
                    self.verdict.first_set.setdefault(what, clock)
                if what in flags or (last and clock >> last[0] & MOST < last[1]):
                    self.doubled(what)
                    if self.faultless:
                        return
                flags[what] = clock
            elif kind == "wait":
                brought = flags.pop(what, None)
                if brought is None:
                    self.fault(f"flag {what} is waited for before it is set")
                    continue
                know[pipe] = merged(know[pipe], brought, self.guard)
                done[pipe] += one[pipe + 1]
                waits[what] = BITS * (pipe + 1), done[pipe] >> BITS * (pipe + 1) & MOST
            elif kind == "barrier":
                know[pipe] = self.now(pipe)
            elif kind == "cross_set":
                self.cross_set(pipe, op)
            elif kind == "enter":
                self.outside[core].append([know[at] for at in self.order.pipes_of[core]])
            elif kind == "leave":
                self.leave(core)
            else:
                while not self.queues.get(op.flag):
                    yield op
                self.cross_wait(core, op)

    def leave(self, core: str) -> None:
        """What was learnt under a guard that may not hold is not known behind it."""
        for at, clock in zip(self.order.pipes_of[core], self.outside[core].pop(), strict=True):
            self.know[at] = clock

    def now(self, pipe: int) -> Clock:
        """What is known once everything that a pipe was given so far has finished."""
        return self.know[pipe] & self.others[pipe] | self.done[pipe]

    def doubled(self, flag: tuple) -> None:
        """A flag is set while it is, or may be, still set."""
        again = "is set twice without a wait between" if flag in self.flags else "may be set again before its wait is over"
        self.fault(f"flag {flag} {again}")

    def cross_set(self, pipe: int, op: Op) -> None:
        clock = self.now(pipe)
        over = self.taken.get(op.flag, [])
        other = [at for core, at in self.order.cores.items() if core != op.core]
        seen = count(clock, other[0]) if other else 0
        sets = len(self.queues.setdefault(op.flag, [])) + len(over) + 1
        if sets - bisect_right(over, seen) > CROSS_LIMIT:
            self.fault(f"cross-core flag {op.flag} may count beyond {CROSS_LIMIT}")
        self.queues[op.flag].append(clock)

    def cross_wait(self, core: str, op: Op) -> None:
        """It stops the whole core, so every pipe learns what it brings."""
        clock = self.queues[op.flag].pop(0)
        self.cross_waits[core] += 1
        self.taken.setdefault(op.flag, []).append(self.cross_waits[core])
        at = self.order.cores[core]
        clock = clock & ~(MOST << BITS * at) | self.cross_waits[core] << BITS * at
        for pipe in self.order.pipes_of[core]:
            self.know[pipe] = merged(self.know[pipe], clock, self.guard)
