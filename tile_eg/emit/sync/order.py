"""Happens-before: which instructions are known to have finished when another one starts.

Vector clocks over the pipes of both cores. Order on one pipe is not completion: an instruction knows that an earlier one of its
own pipe has finished only through a barrier, or through a flag that came back. Clauses 1, 2, 5, 7, 9 and 10 of `docs/machine.md`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, islice
from typing import Any, NamedTuple

from tile_eg.emit.sync.clock import BITS, MOST, Clock, count, guards, merged

CROSS_LIMIT = 15
Needed = Mapping[int, Clock]
"""Instance -> what has to be known when it starts: the clock that is the least."""


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

    Of each flag, the clock of its first set and the number (on its pipe) of its last wait; `doubled` are those that are or may be
    set again before a wait. `early` is an instance that started before what it needs was known. `ended`: no core is left waiting.
    """

    starts: dict[int, Clock] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    first_set: dict[tuple, Clock] = field(default_factory=dict)
    last_wait: dict[tuple, int] = field(default_factory=dict)
    doubled: set[tuple] = field(default_factory=set)
    early: int | None = None
    ended: bool = False


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
        self.found: Verdict | None = None

    def _step(self, o: Op) -> tuple[str, int, int, Any, Op]:
        """Its kind, the place of its pipe, its owner's number, what it runs or the flag that it means, and itself."""
        owner = 0 if o.owner is None else self.owners.setdefault(o.owner, len(self.owners) + 1)
        return o.kind, self.index.get((o.core, o.pipe), -1), owner, o.instance if o.kind == "run" else o.flag, o

    def replay(self) -> Verdict:
        """Runs every step, once for as long as none is left out."""
        self.found = self.found or _Replay(self, State.begin(self)).run()
        return self.found

    def drop(self, owners: Iterable[tuple]) -> None:
        """Leaves the steps of these owners out for good."""
        numbers = {self.owners[o] for o in owners if o in self.owners}
        self.streams = {core: [s for s in steps if s[2] not in numbers] for core, steps in self.streams.items()}
        self.found = None

    def knows(self, clock: Clock, pipe: tuple[str, str], number: int) -> bool:
        """Whether at this clock instruction `number` of a pipe is known to have finished."""
        return count(clock, self.index[pipe]) >= number


@dataclass
class State:
    """How far a replay is: the next step of each core, what pipes know (`know` and `done` are indexed by a pipe's place in the
    clock, `done` is the part of a clock that tells of the pipe itself), and what is set and waited for."""

    at: dict[str, int]
    know: list[Clock]
    done: list[Clock]
    cross_waits: dict[str, int]
    flags: dict[tuple, Clock]
    last_wait: dict[tuple, tuple[int, int]]
    queues: dict[tuple, list[Clock]]
    taken: dict[tuple, list[int]]
    outside: dict[str, list[list[Clock]]]

    @staticmethod
    def begin(order: Order) -> State:
        at, waits = dict.fromkeys(order.streams, 0), dict.fromkeys(order.streams, 0)
        return State(at, [0] * order.size, [0] * order.size, waits, {}, {}, {}, {}, {core: [] for core in order.streams})

    def copy(self) -> State:
        lists = ({key: list(held) for key, held in of.items()} for of in (self.queues, self.taken, self.outside))
        plain = dict(self.at), list(self.know), list(self.done), dict(self.cross_waits), dict(self.flags), dict(self.last_wait)
        return State(*plain, *lists)  # type: ignore[arg-type]


SOON = 400
"""Steps of a core within which one who is needed is nearly always missed."""


class Spared:
    """Which owners' steps an order can do without, so that each instance still knows what is `needed` when it starts, and
    (`faultless`) flags take turns.

    Who is tried is left out from their first step on, as what comes before it is known. The fewer steps there are, the less is
    known: who is needed stays so when others are left out, and of those who can be left out together each one can.
    """

    def __init__(self, order: Order, needed: Needed, asked: Iterable[tuple], faultless: bool = True) -> None:
        """`asked` are the owners who may be tried."""
        self.order, self.needed, self.faultless = order, needed, faultless
        self.left_out = [False] * (len(order.owners) + 1)
        self.marks: dict[int, State] = {}
        self.found: dict[int, State] = {}
        self.sound = self._holds(State.begin(order), self.left_out, {order.owners.get(owner) for owner in asked})
        self.marks = self.found

    def soon_missed(self, owner: tuple, others: Iterable[tuple] = ()) -> bool:
        """Whether a few steps show that this owner cannot be left out where these others are, too.

        They begin with what is known while the others are there, so that what is missed then surely is.
        """
        known = self._numbers([owner])
        if not known:
            return False
        state, left_out = self.marks[known[0]].copy(), self._and([*known, *self._numbers(others)])
        return _Replay(self.order, state, left_out, self.needed, self.faultless).fails_within(SOON)

    def without(self, owners: Iterable[tuple]) -> bool:
        """Whether these owners, too, can be left out together."""
        known = self._numbers(owners)
        if not self.sound:
            return self._holds(State.begin(self.order), self._and(known), ())
        return not known or self._holds(self.marks[known[0]].copy(), self._and(known), self._from(known[0]))

    def drop(self, owners: Iterable[tuple]) -> None:
        """Leaves out the owners who were tried last."""
        if known := self._numbers(owners):
            later = self._from(known[0])
            self.marks = {n: mark for n, mark in self.marks.items() if n not in later} | self.found
        self.left_out = self._and(known)

    def _numbers(self, owners: Iterable[tuple]) -> list[int]:
        """Those of the owners who have steps, the one with the first step first."""
        asked = {self.order.owners[owner] for owner in owners if owner in self.order.owners}
        return [n for n in self.marks if n in asked] if self.sound else sorted(asked)

    def _from(self, number: int) -> list[int]:
        return list(dropwhile(lambda n: n != number, self.marks))

    def _and(self, known: list[int]) -> list[bool]:
        """Who is left out with these, too."""
        out = list(self.left_out)
        for number in known:
            out[number] = True
        return out

    def _holds(self, state: State, left_out: list[bool], marked: Collection[int | None]) -> bool:
        """Whether a replay from a state on succeeds; the states before the first steps of some owners are `found` in it."""
        passed = [n not in marked for n in range(len(left_out))]
        replay = _Replay(self.order, state, left_out, self.needed, self.faultless, passed)
        verdict, self.found = replay.run(), replay.marks
        return verdict.early is None and verdict.ended and not (self.faultless and bool(verdict.faults))


def spared_of(orders: Sequence[Spared], owners: Sequence[tuple]) -> list[tuple]:
    """The owners whom all orders can do without: each in turn, once those before are left out.

    Where an order does not hold as it is, leaving one out may mend it, and each is tried by itself.
    """
    if not all(of.sound for of in orders):
        return [owner for owner in owners if _together(orders, [owner])]
    dropped, asked = list[tuple](), list(owners)
    likely = set[tuple]()  # not missed soon where more are left out than now
    while True:
        likely = set(guessed := _guessed(orders, asked, likely))
        if _together(orders, guessed):
            return [*dropped, *guessed]
        fine, wrong = 0, len(guessed)
        while wrong - fine > 1:
            middle = (fine + wrong) // 2
            fine, wrong = (middle, wrong) if _together(orders, guessed[fine:middle]) else (fine, middle)
        dropped += guessed[:fine]
        asked = asked[asked.index(guessed[fine]) + 1 :]


def _guessed(orders: Sequence[Spared], owners: Iterable[tuple], likely: Collection[tuple]) -> list[tuple]:
    """Who can be left out as far as a few steps show: each in turn, once those before are. The `likely` are not looked at."""
    found = list[tuple]()
    for owner in owners:
        if owner in likely or not any(of.soon_missed(owner, found) for of in orders):
            found.append(owner)
    return found


def _together(orders: Sequence[Spared], owners: Sequence[tuple]) -> bool:
    """Leaves these owners out of all orders if they can be left out together."""
    if found := all(of.without(owners) for of in orders):
        for of in orders:
            of.drop(owners)
    return found


class _Replay:
    """Goes on from a state, without the steps of owners whose numbers are `left_out`.

    With `needed`, it stops at the first instance that starts too early, or, where it has to be `faultless`, at the first fault.
    `marks` get the state before the first step of each owner who is not `passed` yet.
    """

    def __init__(
        self, order: Order, state: State, left_out: Sequence[bool] = (), needed: Needed | None = None, faultless: bool = False,
        passed: list[bool] | None = None,
    ) -> None:  # fmt: skip
        self.order, self.state, self.verdict = order, state, Verdict()
        self.left_out = left_out or [False] * (len(order.owners) + 1)
        self.passed = passed or [True] * (len(order.owners) + 1)
        self.needed, self.faultless = needed or {}, faultless
        self.marks: dict[int, State] = {}
        self.guard = guards(order.size)
        self.one = [1 << BITS * at for at in range(order.size)]
        self.others = [~(((1 << 2 * BITS) - 1) << BITS * at) for at in range(order.size)]
        self.know, self.done, self.flags, self.last_wait = state.know, state.done, state.flags, state.last_wait
        self.queues, self.taken, self.cross_waits, self.outside = state.queues, state.taken, state.cross_waits, state.outside

    def run(self) -> Verdict:
        blocked = self.blocked()
        if self.stopped():
            return self.verdict
        self.fault(*(f"deadlock: {o.core} waits for cross-core flag {o.flag} that nobody sets" for o in blocked))
        self.verdict.ended = not blocked
        self.verdict.last_wait = {flag: number for flag, (_, number) in self.last_wait.items()}
        self.fault(*(f"flag {f} is set and never waited for" for f in self.flags))
        self.fault(*(f"cross-core flag {f} is set {len(q)} times too often" for f, q in self.queues.items() if q and not blocked))
        return self.verdict

    def blocked(self, most: int | None = None) -> list[Op]:
        """Runs all cores, or the most that is to be done of the steps of each, as far as it goes; where they wait then."""
        walks = {core: self.core(core, most) for core in self.order.streams}
        while walks:
            before = self.progress(len(walks))
            waiting = {core: op for core, walk in walks.items() if (op := next(walk, None))}
            walks = {core: walks[core] for core in waiting}
            if self.stopped() or (walks and before == self.progress(len(walks))):
                return list(waiting.values())
        return []

    def fails_within(self, most: int) -> bool:
        """Whether it has to stop before a core has gone on by so many steps."""
        self.blocked(most)
        return self.stopped()

    def mark(self, core: str, at: int, owner: int) -> None:
        """Keeps the state before a step of an owner who has had none."""
        self.state.at[core] = at
        self.passed[owner] = True
        self.marks[owner] = self.state.copy()

    def stopped(self) -> bool:
        return self.verdict.early is not None or (self.faultless and bool(self.verdict.faults))

    def progress(self, running: int) -> tuple[int, int, int]:
        return running, sum(map(len, self.queues.values())), sum(self.cross_waits.values())

    def fault(self, *texts: str) -> None:
        self.verdict.faults += texts

    def core(self, core: str, most: int | None = None) -> Iterator[Op]:
        """Runs one core, or the most that is to be done of its steps; yields where it is blocked by a cross-core wait."""
        know, done, one, starts = self.know, self.done, self.one, self.verdict.starts
        needed, left_out, others, flags, waits = self.needed, self.left_out, self.others, self.flags, self.last_wait
        passed, steps, first, guard = self.passed, self.order.streams[core], self.state.at[core], self.guard
        for at, (kind, pipe, owner, what, op) in enumerate(islice(steps, first, most and first + most), first):
            if left_out[owner]:
                continue
            if not passed[owner]:
                self.mark(core, at, owner)
            if kind == "run":
                done[pipe] += one[pipe]
                clock = starts[what] = know[pipe]
                if (least := needed.get(what)) and ((clock | guard) - least) & guard != guard:
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
                know[pipe] = merged(know[pipe], brought, guard)
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
                    self.state.at[core] = at
                    yield op
                self.cross_wait(core, op)
        self.state.at[core] = len(steps)

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
        self.verdict.doubled.add(flag)
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
