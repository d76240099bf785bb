"""Tuning one kernel: candidates compiled, checked and timed until the budget is spent, the best of them kept as it is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice

from tile_eg.errors import TileError
from tile_eg.ir.arrays import signature
from tile_eg.ir.exact import exact_text
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel
from tile_eg.ops.records import record
from tile_eg.search import SearchOptions, tuned
from tile_eg.search.compiler import lower
from tile_eg.search.result import Lowered
from tile_eg.search.tuned_file import NPU, TIMELINE, Entry, keep, path_of, read
from tile_eg.spread import Crew, Outcome, crew
from tile_eg.tuning.journal import Journal, Record
from tile_eg.tuning.result import Tuning
from tile_eg.tuning.space import Compiled, Space, candidates, choice_of, spaces
from tile_eg.tuning.trial import BLOCKS, Trial, check_numbers, checked, timed

RESOURCE = "npu"
DEVICES = {"npu": NPU, "simulator": TIMELINE, "timeline": TIMELINE}
"""What `--device` may say, and by what it then tells time."""
HOPELESS = 3
"""Candidates that an NPU may refuse one after the other before the reason is told as an error."""


@record
class Asked:
    """How a kernel is tuned: `budget` in candidates, `device` (None: an NPU where there is one), processes of this machine or the
    address of a Dask cluster, `blocks` of the grid that are compared (0: all), launches that are timed on an NPU."""

    budget: int = 200
    device: str | None = None
    workers: int = 1
    dask: str | None = None
    resume: bool = False
    blocks: int = BLOCKS
    seed: int = 0
    launches: int = 100
    warmup: int = 10

    def check(self) -> None:
        """TileError for what cannot be."""
        if self.budget < 1:
            raise TileError(f"a budget of {self.budget}: at least one candidate has to be tried")
        if self.device is not None and self.device not in DEVICES:
            raise TileError(f"there is no device '{self.device}' to tune on", help=f"one of {', '.join(DEVICES)}")
        check_numbers(self.blocks, self.launches, self.warmup)


@dataclass
class Watch:
    """Who is told while tuning goes on: lines for people; and after each candidate, what was found so far."""

    tell: Callable[[str], None] = lambda text: None
    seen: Callable[[Tuning], None] = lambda tuning: None


def tune(kernel: object, chip: str, search: SearchOptions, asked: Asked, watch: Watch) -> Tuning:
    """Tries candidates of a kernel, and keeps the fastest in the file beside the kernel's.

    TileError for a kernel that has no other schedules, a file that cannot be written, and what `asked` cannot be. A
    KeyboardInterrupt ends it with what was found so far.
    """
    asked.check()
    own = tunable(kernel)
    read(path_of(own.file))  # what is broken is told before the work
    plain = replace(search, tuned=None, untuned=True)
    chosen = lower(own, chip, search=plain)
    with crew(asked.workers, asked.dask, watch.tell) as them:
        by = _clock(asked, them)
        journal = Journal(own.file, _task(own, chosen.chip.name, plain, asked, by), asked.resume)
        found = Tuning(own, chosen.chip.name, by, path_of(own.file), choice_of(chosen).digest, asked.budget, asked.blocks)
        session = Session(own, chosen, plain, asked, them, journal, found, watch)
        try:
            session.run()
        except KeyboardInterrupt:
            found.interrupted = True
        finally:
            journal.close()
        session.close()
    return found


def tunable(kernel: object) -> Kernel:
    """The kernel, where there is something to choose in it and a file to keep that beside. TileError where there is not."""
    if isinstance(kernel, KeptKernel):
        help = "--schedule search (in Python schedule=\"search\") lets the search find its order"
        raise TileError(f"{kernel.name} is kept as it is written: there is nothing to tune", help=help)
    if not isinstance(kernel, Kernel):
        raise TileError("a program is one schedule: there is nothing to tune", help="tune the kernel that it is of")
    if not kernel.file or kernel.file.startswith("<"):
        what = f"{kernel.name} stands in no file, and what tuning finds is kept beside the kernel's file"
        raise TileError(what, help="write the kernel to a file")
    return kernel


def _clock(asked: Asked, them: Crew) -> str:
    """By what time is told. TileError where an NPU is asked for and there is none."""
    from tile_eg.npu.cann import find_cann, installed

    if asked.device is not None and DEVICES[asked.device] == TIMELINE:
        return TIMELINE
    if them.has(RESOURCE):
        return NPU
    if asked.device is None:
        return NPU if installed() else TIMELINE
    find_cann()
    return NPU


def _task(kernel: Kernel, chip: str, search: SearchOptions, asked: Asked, by: str) -> str:
    """A digest of all that a record follows from."""
    launches = (asked.launches, asked.warmup) if by == NPU else ()
    own = tuned.meaning_of(kernel), chip, tuned.options_of(search), tuned.rules_of(search), tuned.made_with()
    return sha256(exact_text((*own, by, asked.blocks, asked.seed, launches)).encode()).hexdigest()[:16]


@dataclass
class Session:
    """One kernel that is being tuned."""

    kernel: Kernel
    chosen: Lowered
    search: SearchOptions
    asked: Asked
    them: Crew
    journal: Journal
    found: Tuning
    watch: Watch
    refused: list[str] = field(default_factory=list)
    told: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Tries what the search chooses by itself, and then goes through the spaces, as many at once as there are workers, until
        the budget is spent."""
        self._try([choice_of(self.chosen)])
        left = spaces(self.kernel, self.chosen, self.asked.budget, self.search)
        while self.found.tried < self.asked.budget:
            batch = list(islice(left, self.them.count))
            if not batch:
                self.found.exhausted = True
                return
            self._try(list(self._compiled(batch)))

    def _compiled(self, batch: Sequence[Space]) -> Iterator[Compiled]:
        """The candidates of some spaces, in their order, as many as the budget leaves."""
        seen = {r.program for r in self.found.records}
        room = self.asked.budget - len(seen)
        for outcome in sorted(self.them.each(candidates, batch), key=lambda o: o.item):
            if outcome.error:
                self._note(outcome.error)
                continue
            for fault in outcome.value.faults:
                self._note(fault)
            for c in outcome.value.found:
                if c.digest not in seen and room:
                    seen, room = seen | {c.digest}, room - 1
                    yield c

    def _note(self, text: str) -> None:
        """Tells what could not be made, once."""
        line = text.splitlines()[0]
        if line not in self.told:
            self.told.add(line)
            self.watch.tell(f"note: left out: {line}")

    def _try(self, batch: Sequence[Compiled]) -> None:
        """Checks and times candidates; what is known of them already is not done again. They are recorded as they end, and stand
        in their own order afterwards."""
        before = self.found.tried
        for c in batch:
            if c.digest in self.journal.known:
                self._record(replace(self.journal.known[c.digest], sizes=c.sizes), kept=True)
        trials = [self._trial(c) for c in batch if c.digest not in self.journal.known]
        right: list[Trial] = []
        for outcome in self.them.each(checked, trials):
            trial = trials[outcome.item]
            wrong = outcome.error or outcome.value.wrong
            if not outcome.error:
                self.found.checked(outcome.value)
            if wrong:
                self._wrong(trial, wrong, outcome)
            elif self.found.by == NPU:
                right.append(trial)
            else:
                self._record(_record(trial.candidate, trial.candidate.predicted))
        self._measure(right)
        order = {c.digest: n for n, c in enumerate(batch)}
        self.found.records[before:] = sorted(self.found.records[before:], key=lambda r: order[r.program])

    def _measure(self, trials: Sequence[Trial]) -> None:
        """Times candidates that are right on NPUs: those of the cluster, where it has some, else this machine's."""
        remote = self.them.has(RESOURCE)
        outcomes = self.them.each(timed, trials, RESOURCE) if remote else (_here(n, t) for n, t in enumerate(trials))
        for outcome in outcomes:
            trial = trials[outcome.item]
            wrong = outcome.error or outcome.value.wrong
            if wrong:
                self._wrong(trial, wrong, outcome)
                self._check_hope(outcome)
            else:
                self._record(_record(trial.candidate, outcome.value.median))

    def _check_hope(self, outcome: Outcome) -> None:
        """TileError where the NPU has refused everything so far, always for the same reason."""
        self.refused.append(outcome.error)
        if outcome.error and len(self.refused) == HOPELESS and len(set(self.refused)) == 1 and self.found.best is None:
            raise TileError(f"no candidate can be measured: {outcome.error.removeprefix('error: ')}")

    def _wrong(self, trial: Trial, why: str, outcome: Outcome) -> None:
        self._note(why)
        record = _record(trial.candidate, None, why.splitlines()[0])
        self._record(record, kept=outcome.fault)  # a fault of a worker is no fact about the candidate

    def _trial(self, c: Compiled) -> Trial:
        return Trial(c, self.asked.blocks, self.asked.seed, self.asked.launches, self.asked.warmup)

    def _record(self, record: Record, kept: bool = False) -> None:
        """Adds a record; the file beside the kernel has the best at any time."""
        before = self.found.best
        if not kept:
            self.journal.add(record)
        self.found.records.append(record)
        if self.found.best is not before:
            keep(self.found.path, self._entry())
        self.watch.seen(self.found)

    def close(self) -> None:
        """Writes the best with all that is known at the end."""
        if self.found.best is not None:
            keep(self.found.path, self._entry())

    def _entry(self) -> Entry:
        best, kernel = self.found.best, self.kernel
        assert best is not None and best.microseconds is not None
        return Entry(
            kernel=kernel.name,
            chip=self.found.chip,
            tensors=signature(kernel.tensors),
            open=tuned.open_of(kernel),
            source=tuned.source_of(kernel),
            meaning=tuned.meaning_of(kernel),
            rules=tuned.rules_of(self.search),
            options=tuned.options_of(self.search),
            made_with=tuned.made_with(),
            sizes=best.sizes,
            program=best.program,
            microseconds=round(best.microseconds, 4),
            by=self.found.by,
            untuned_microseconds=self.found.untuned,
            tried=self.found.tried,
            what=best.what,
        )


def _record(c: Compiled, microseconds: float | None, wrong: str = "") -> Record:
    return Record(c.digest, c.sizes, c.what, c.predicted, microseconds, wrong, c.interval, c.on_cores)


def _here(position: int, trial: Trial) -> Outcome:
    from tile_eg.spread.outcome import done

    return done(timed, trial, position)
