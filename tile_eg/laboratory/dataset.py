"""Datasets of schedules: many distinct legal ones of each kernel with their features and times; made in pieces.

A piece is a number of draws that depends on its kernel, its number and the seed alone. So which worker makes it does not matter,
and a dataset that was cut short goes on with the pieces that are not there yet.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from random import Random

from tile_eg.chips import load_chip
from tile_eg.errors import InternalError, PlanError, TileError
from tile_eg.extract import Schedule
from tile_eg.extract.schedule import IN_TURN
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.sharing import sharing
from tile_eg.laboratory.card import card
from tile_eg.laboratory.drawing import WAYS, Draws
from tile_eg.laboratory.rows import Row, row_of
from tile_eg.laboratory.stored import CARD, FORMATS, PARTS, SETTINGS, check_format, read_rows, write_rows
from tile_eg.ops.records import record
from tile_eg.search import SearchOptions
from tile_eg.search.collector import rare_collections
from tile_eg.search.compiler import Lowered, Planned, lower, plan_schedule
from tile_eg.spread import Crew, crew

DRAWS = 24
"""Draws of one piece."""
LATELY, MORE = 10, 1.1
"""Over how many pieces it is seen how many new schedules one has; how many more are asked for than that says."""
BARREN = 4
"""Pieces of a kernel, one after the other, without a new schedule: then there are no others that draws find."""


@record
class Case:
    """A kernel at its sizes on a chip; `name` tells it from the others of its dataset."""

    name: str
    kernel: Kernel
    chip: str
    options: SearchOptions


@record
class Piece:
    """The `number`-th draws of a case. `timed_by`: "timeline", or "npu" for a device."""

    case: Case
    number: int
    seed: int
    timed_by: str = "timeline"


@record
class Wanted:
    """What a dataset is to be: `schedules` of all cases together, by this seed, in this format."""

    cases: tuple[Case, ...]
    schedules: int
    seed: int = 0
    timed_by: str = "timeline"
    format: str = "parquet"

    @property
    def settings(self) -> dict[str, object]:
        """What the rows follow from: a folder that holds others is not gone on with."""
        from tile_eg.version import __version__

        cases = {c.name: _digest(c) for c in self.cases}
        return {"cases": cases, "seed": self.seed, "timed_by": self.timed_by, "tile_eg": __version__}


def _digest(case: Case) -> str:
    """Of all that the rows of a case follow from; of a chip its numbers."""
    chip = load_chip(case.chip)
    numbers = {name: getattr(chip, name) for name in chip.__dataclass_fields__}
    return hashlib.sha256(repr((case.kernel, case.options, numbers)).encode()).hexdigest()[:16]


@dataclass
class _Growing:
    """The rows of one case so far, and the pieces that were taken into it."""

    case: Case
    wanted: int
    rows: dict[str, Row] = field(default_factory=dict)
    pieces: int = 0
    barren: int = 0
    fresh: float = DRAWS
    """New schedules in a piece, of late."""

    @property
    def done(self) -> bool:
        return len(self.rows) >= self.wanted or self.barren >= BARREN

    def next_pieces(self) -> range:
        """The pieces that its rows are likely to need, and a few more, as draws find less and less that is new."""
        each = max(0.2 * DRAWS, self.fresh)
        return range(self.pieces, self.pieces + max(1, round(MORE * (self.wanted - len(self.rows)) / each)))

    def take(self, rows: Sequence[Row]) -> None:
        before = len(self.rows)
        for row in rows:
            if len(self.rows) < self.wanted:
                self.rows.setdefault(row.key, row)
        self.pieces += 1
        new = len(self.rows) - before
        self.barren = 0 if new else self.barren + 1
        self.fresh += (new - self.fresh) / LATELY


Told = Callable[[int], None]


def make_dataset(
    wanted: Wanted, folder: Path, workers: int = 1, dask: str | None = None, told: Told = lambda rows: None,
    tell: Callable[[str], None] = lambda text: None,
) -> list[Row]:  # fmt: skip
    """Makes the dataset in the folder, or goes on with it, and returns its rows.

    Written are the rows, a card, and the pieces, from which one that was cut short, or is to be larger, goes on.
    `told` hears how many rows there are, about; `tell` gets a line for each worker that is lost.
    TileError where the folder holds another dataset, cannot be written, or a kernel cannot be compiled.
    """
    check_format(wanted.format)
    _check_names(wanted.cases)
    wanted = replace(wanted, cases=tuple(map(at_its_sizes, wanted.cases)))
    _begin(wanted, folder)
    share = -(-wanted.schedules // len(wanted.cases))
    growing = [_Growing(c, min(share, wanted.schedules - i * share)) for i, c in enumerate(wanted.cases)]
    with crew(1 if dask else workers, dask, tell) as them:
        while left := [g for g in growing if not g.done]:
            have = sum(len(g.rows) for g in growing)
            pieces = [(g, n) for g in left for n in g.next_pieces()]
            asked = [Piece(g.case, n, wanted.seed, wanted.timed_by) for g, n in pieces]
            found = _rows(them, asked, folder, partial(_told_more, told, have, wanted.schedules))
            for (g, _), rows in zip(pieces, found, strict=True):
                g.take(rows)
            told(sum(len(g.rows) for g in growing))
    rows = [replace(row, number=n) for g in growing for n, row in enumerate(g.rows.values(), 1)]
    write_rows(rows, folder / FORMATS[wanted.format])
    try:
        (folder / CARD).write_text(card(rows, wanted.settings, wanted.schedules), encoding="utf-8")
    except OSError as error:
        raise TileError(f"cannot write to '{folder}': {error.strerror or error}") from None
    return rows


def at_its_sizes(case: Case) -> Case:
    """The case at the sizes of tiles that the search finds, where they are left open."""
    if not isinstance(case.kernel, OpenKernel):
        return case
    options = replace(case.options, without=case.options.without | {IN_TURN})
    return replace(case, kernel=lower(case.kernel, case.chip, search=options).kernel)


def _told_more(told: Told, have: int, most: int, more: int) -> None:
    told(min(have + more, most))


def _rows(them: Crew, pieces: Sequence[Piece], folder: Path, told: Told) -> list[list[Row]]:
    """What is in the pieces, in their order; each is written as soon as it is made. TileError where one cannot be made."""
    found = [_kept(folder, piece) for piece in pieces]
    count = sum(map(len, filter(None, found)))
    missing = [i for i, rows in enumerate(found) if rows is None]
    needs = "npu" if them.has("npu") and pieces[0].timed_by == "npu" else ""
    for outcome in them.each(rows_of_piece, [pieces[i] for i in missing], needs):
        at = missing[outcome.item]
        if outcome.fault:
            raise InternalError("dataset", f"{pieces[at].case.name}, piece {pieces[at].number}: {outcome.error}")
        if outcome.error:
            raise TileError(outcome.error.removeprefix("error: "))
        write_rows(outcome.value, _part(folder, pieces[at]))
        found[at] = outcome.value
        count += len(outcome.value)
        told(count)
    return [rows or [] for rows in found]


def _check_names(cases: Sequence[Case]) -> None:
    """TileError where two cases have one name: their pieces would lie in the same files."""
    names = [c.name for c in cases]
    if twice := next((n for n in names if names.count(n) > 1), None):
        help = "each kernel is given once; of two files of one name in different folders, one is to be called otherwise"
        raise TileError(f"two kernels of the dataset are called '{twice}'", help=help)


def _begin(wanted: Wanted, folder: Path) -> None:
    """Makes the folder. TileError where it holds a dataset of other settings."""
    file = folder / SETTINGS
    text = json.dumps(wanted.settings, indent=1)
    try:
        (folder / PARTS).mkdir(parents=True, exist_ok=True)
        if _holds_rows(folder) and (not file.exists() or file.read_text("utf-8") != text):
            help = "another folder (-o), or the same kernels, sizes, chip, search, seed and release of tile_eg as there"
            raise TileError(f"'{folder}' holds a dataset that was made otherwise", help=help)
        beside = file.with_suffix(f".{os.getpid()}.part")
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, file)
    except OSError as error:
        raise TileError(f"cannot write to '{folder}': {error.strerror or error}") from None


def _holds_rows(folder: Path) -> bool:
    """Whether anything was made there: a run that failed before its first piece holds no folder."""
    return any((folder / PARTS).iterdir()) or any((folder / name).exists() for name in FORMATS.values())


def _part(folder: Path, piece: Piece) -> Path:
    case = hashlib.sha256(piece.case.name.encode()).hexdigest()[:8]
    return folder / PARTS / f"{case}-{piece.number:05}.jsonl.gz"


def _kept(folder: Path, piece: Piece) -> list[Row] | None:
    """The rows of a piece that was made before; None where it was not, or not to its end."""
    path = _part(folder, piece)
    if path.exists():
        with suppress(TileError):
            return read_rows(path)
    return None


# ---- what a worker does -----------------------------------------------------------------------------------------------------


def rows_of_piece(piece: Piece) -> list[Row]:
    """The rows of a piece's draws, equal ones too: what was planned is not planned again. The first begins with what the search
    found."""
    case, chip = piece.case, load_chip(piece.case.chip)
    with rare_collections(), sharing():
        lowered = _lowered(case)
        own = Random(f"{piece.seed} {case.name} {piece.number}")
        best = lowered.extraction.best
        draws = Draws(best.graph, chip, best.nodes, own)
        first = lowered.candidates if piece.number == 0 else ()
        rows = [row for c in first for row in _row(piece, "search", c.schedule, c.planned)]
        drawn = ((way, draws.draw(way)) for way in (WAYS[i % len(WAYS)] for i in range(DRAWS)))
        return rows + [row for way, schedule in drawn if schedule for row in _row(piece, way, schedule)]


@lru_cache(maxsize=4)
def _lowered(case: Case) -> Lowered:
    return lower(case.kernel, case.chip, search=case.options)


def _row(piece: Piece, way: str, schedule: Schedule, planned: Planned | None = None) -> Iterator[Row]:
    """The row of a schedule; none where there are not flags enough for it, or its text does not fit the instructions' fields."""
    try:
        planned = planned or plan_schedule(schedule, load_chip(piece.case.chip))
    except (TileError, PlanError):
        return
    yield row_of(piece.case.name, way, schedule, planned, _measured(planned) if piece.timed_by == "npu" else None)


def _measured(planned: Planned) -> float:
    """Microseconds on the device: the median of its launches."""
    from tile_eg.inputs import draw
    from tile_eg.ir.arrays import begun
    from tile_eg.npu.bench import OnNpu

    drawn = draw([t for t in planned.program.tensors if not t.output], "uniform", 0)
    arrays = {t.name: begun(t, drawn) for t in planned.program.tensors}
    return OnNpu(planned, arrays).measure(30, 5).median
