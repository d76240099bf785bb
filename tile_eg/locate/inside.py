"""Values inside a kernel: what a watched run computed against what the terms of the kernel mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tile_eg.ir.reference_bounds import Expected
from tile_eg.ir.reference_terms import Meaning, Trips
from tile_eg.ir.values import Term
from tile_eg.locate.decoding import Window, held_in, window_of
from tile_eg.locate.watches import Watched
from tile_eg.ops.records import record
from tile_eg.report.compare import wrong_elements
from tile_eg.simulator.watch import Record, Watch

Key = tuple[Term, Trips]


@record
class Wrong:
    """The `number`th record of a run, which holds something else than its term in these trips; `mask` are the elements of the
    window that are wrong."""

    number: int
    watched: Watched
    record: Record
    trips: Trips
    window: Window
    got: np.ndarray
    want: Expected
    mask: np.ndarray

    @property
    def first(self) -> tuple[int, int]:
        """The first wrong element of the window."""
        row, col = np.unravel_index(int(np.argmax(self.mask)), self.mask.shape)
        return int(row), int(col)


class Comparer:
    """Compares the values of a tile of the grid, as their meaning is computed, with the records of a run.

    Where an instruction runs again for the same trips (the steps of a product, a value that is made anew) its last record counts.
    """

    def __init__(self, watch: Watch, watched: Sequence[Watched], records: Iterable[Record], meaning: Meaning, tile: int) -> None:
        self.watch, self.watched, self.right, self.wrong = watch, watched, list[int](), list[Wrong]()
        known: set[Term] = set(meaning.terms)
        latest: dict[Any, tuple[Key, int, Record]] = {}
        for number, seen in enumerate(records):
            where = watched[seen.id]
            term = where.held.term
            if term is None or term not in known or seen.values[0] != tile or not seen.bytes:
                continue
            trips, loops = where.trips(where.values(seen)), meaning.loops_of(term)
            if all(name in trips for name in loops):
                key = term, tuple((name, trips[name]) for name in loops)
                latest[key, seen.id, seen.core, where.begins(seen)] = key, number, seen
        self.records: dict[Key, list[tuple[int, Record]]] = {}
        for key, number, seen in latest.values():
            self.records.setdefault(key, []).append((number, seen))

    def __call__(self, term: Term, trips: Trips, expected: Expected) -> None:
        for number, seen in self.records.get((term, trips), ()):
            self._compare(number, seen, trips, expected)

    def _compare(self, number: int, record: Record, trips: Trips, expected: Expected) -> None:
        watched = self.watched[record.id]
        values = watched.values(record)
        rows, cols = expected.value.shape
        window = window_of(watched, values, (rows, cols))
        got = held_in(watched, self.watch.data(record), window, values) if window.rows > 0 < window.cols else None
        if got is None:
            return
        part = slice(window.row, window.row + window.rows), slice(window.col, window.col + window.cols)
        want = Expected(expected.value[part], expected.allowed[part])
        mask = wrong_elements(got, want)
        if mask.any():
            self.wrong.append(Wrong(number, watched, record, trips, window, got, want, mask))
        else:
            self.right.append(number)

    @property
    def first(self) -> Wrong | None:
        return min(self.wrong, key=lambda w: w.number, default=None)

    @property
    def before(self) -> int:
        """How many values came before the first wrong one and were right."""
        first = self.first
        return len(self.right) if first is None else sum(n < first.number for n in self.right)
