"""Every candidate of a kernel, whether or not it could be the fastest by its prediction: what tuning tries, one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from time import perf_counter

from tile_eg.chips import Chip
from tile_eg.cost_models import rank_model, roles
from tile_eg.errors import InternalError, TileError
from tile_eg.ir.kernel import Kernel
from tile_eg.ops.records import record
from tile_eg.search.candidates import Candidate
from tile_eg.search.driver import as_written, lowered_of, moves_from
from tile_eg.search.form import Form, Setting
from tile_eg.search.options import SearchOptions
from tile_eg.search.queue import Queue
from tile_eg.search.result import Lowered


@record
class Found:
    """A candidate, the form that it is of, and a digest of its program, by which it is found again."""

    candidate: Candidate
    form: Form

    @property
    def digest(self) -> str:
        return digest_of(str(self.candidate.planned.program))


_PLACE = re.compile(r"  # \S+:\d+$", re.MULTILINE)
"""Where in the source a line of a program comes from."""


def digest_of(program: str) -> str:
    """A digest of a program's text, wherever the words of its source stand."""
    return sha256(_PLACE.sub("", program).encode()).hexdigest()[:16]


class Everything(Queue):
    """A queue in which nothing is dropped for its bound: what is measured may differ from what is predicted."""

    @property
    def best(self) -> float:
        return float("inf")


class Every:
    """The candidates of a kernel at its sizes, each program once, in an order that follows from the input alone."""

    def __init__(self, kernel: Kernel, chip: Chip, options: SearchOptions) -> None:
        self.start, self.kernel = perf_counter(), kernel
        model = rank_model(roles(options.cost_model, chip).rank, chip)
        self.setting = Setting(chip, options, model, kernel.source)
        self.queue = Everything(self.setting, moves_from, (TileError, InternalError))
        self.seen: set[str] = set()

    def __iter__(self) -> Iterator[Found]:
        """TileError where the kernel has a mistake."""
        self.queue.add(as_written(self.kernel, self.setting))
        yield from self._fresh()
        level = self.setting.options.level
        for effort in range(min(1, level), level + 1):
            for _ in self.queue.steps(effort):
                yield from self._fresh()

    @property
    def faults(self) -> list[str]:
        """What tile_eg could not make of the kernel for a fault of its own."""
        errors = [e for form in self.queue.forms for e in (form.problem, *(why for _, why in form.dropped))]
        told = [t.why for t in self.queue.tried if t.why.startswith("internal error")]
        return list(dict.fromkeys([*told, *(str(e) for e in errors if isinstance(e, InternalError))]))

    def _fresh(self) -> Iterator[Found]:
        for form in self.queue.forms:
            for candidate in form.launchable:
                found = Found(candidate, form)
                if found.digest not in self.seen:
                    self.seen.add(found.digest)
                    yield found

    def chosen(self, found: Found) -> Lowered:
        """The kernel with this candidate first."""
        others = (c for c in found.form.launchable if c is not found.candidate)
        return lowered_of(self.queue, found.form, (found.candidate, *others), self.start)
