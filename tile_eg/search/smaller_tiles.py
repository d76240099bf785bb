"""Row panels, of all or of what follows a product, and column tiles: a kernel whose tiles do not fit, or fill UB so that nothing
is loaded beside the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tile_eg.ir.values import Values, reachable
from tile_eg.ops.records import record
from tile_eg.ops.types import Level
from tile_eg.search.form import Form, searched
from tile_eg.search.moves import MOVES, WITHOUT_ROOM
from tile_eg.search.queue import Made, Offer
from tile_eg.sizing.estimate import Estimate, estimate
from tile_eg.transforms.column_parts import in_column_parts
from tile_eg.transforms.column_tiles import NARROWEST, in_columns, sums_in_columns
from tile_eg.transforms.epilogue_panels import epilogue_in_panels
from tile_eg.transforms.row_panels import in_panels
from tile_eg.transforms.sums_in_columns import with_sums_in_columns

SURE = 0.85
"""The least part of its estimate that a form may take; that was seen to be 0.89 (rms_norm of 256 x 1024 in columns of 512)."""
AS_ITS_KERNEL = 0.9
"""The same in the measure of what the kernel takes of its own (assumed)."""
PANELS = (2, 4, 8, 16, 32, 64)
PARTS = (2, 4)
WIDEST = 16384  # columns beyond which no tile fits
ROOMY = 2  # times what an epilogue needs of UB: as much again for what is loaded and stored meanwhile
SUMS = "sums-in-columns"
FEW = 4  # equal parts below which unequal ones are tried as well


@record
class Smaller:
    """A kernel's values in smaller tiles: the move that makes them, how many or how wide they are, and their quick estimate."""

    move: str
    size: int
    values: Values
    estimate: Estimate


def offers(form: Form) -> Iterator[Offer]:
    """The forms of a kernel in smaller tiles; none where its own fit and leave room to load beside the work, or where its author
    keeps tiles in slots, which hold what he says."""
    if any(p.slots for p in form.values.places.values()):
        return
    if form.moves and not (form.candidates and form.moves[-1].startswith(SUMS)):
        return
    if form.candidates and not _crowded(form):
        yield from _beside(form)
        return
    least = 0 if form.candidates else WITHOUT_ROOM
    for found in in_smaller_tiles(form):
        make = partial(_made, form, found)
        yield Offer(MOVES[found.move], str(found.size), _bound(form, found.estimate), make, form, "smaller tiles", least)


def _bound(form: Form, found: Estimate) -> float:
    """By what the kernel takes of its own where that is known: a quick estimate is wrong of both in the same way."""
    if form.candidates:
        return AS_ITS_KERNEL * form.microseconds * found.cycles / form.estimate.cycles
    return found.least_us(form.setting.chip, SURE)


def _made(form: Form, smaller: Smaller) -> Made:
    moves = (*form.moves, f"{smaller.move} {smaller.size}")
    return Made(form=searched(form.kernel, form.source, form.setting, smaller.values, moves, resort=False))


def _crowded(form: Form) -> bool:
    """Whether the tiles of a kernel of vector cores fill UB, so that nothing is loaded beside the work."""
    return not form.estimate.overlaps and not any(t.op == "matmul" for t in reachable(form.values))


def in_smaller_tiles(form: Form) -> list[Smaller]:
    """The forms that the options allow, those first that fit by the quick estimate, the fastest of these first."""
    chip, allowed = form.setting.chip, form.setting.options.moves
    ways = [*_panels(form.values)]
    if form.full in (None, Level.UB):
        ways += _columns(form.values)
    found = [Smaller(move, n, v, estimate(v, chip)) for move, n, v in ways if move in allowed and v is not None]
    fitting = [f for f in found if f.estimate.excess(chip) <= 1]
    if "epilogue-panels" in allowed:
        fitting += _of_the_epilogue(form)
    if form.full is Level.L0C:
        fitting += _of_products(form)
    return sorted(fitting, key=lambda f: f.estimate.cycles)


def _panels(values: Values) -> Iterator[tuple[str, int, Values | None]]:
    return (("row-panels", n, in_panels(values, n)) for n in PANELS)


def _of_the_epilogue(form: Form) -> list[Smaller]:
    """The fewest panels that leave UB room to load and store meanwhile, and twice as many: more of them only take longer."""
    chip, found = form.setting.chip, list[Smaller]()
    for n in PANELS:
        values = epilogue_in_panels(form.values, n)
        if values is not None and (one := estimate(values, chip)).excess(chip) <= 1:
            found.append(Smaller("epilogue-panels", n, values, one))
    roomy = [f for f in found if ROOMY * f.estimate.bytes[Level.UB] <= chip.level_bytes(Level.UB)]
    return roomy[:2] or found[-1:]


def _of_products(form: Form) -> list[Smaller]:
    """Products in loops, and wide sums of them, in the fewest parts: L0C holds those that are under way, which the planner finds;
    the rest has to fit."""
    half = form.setting.chip.level_bytes(Level.L0C) // 2
    found = [_in_parts(form, "column-parts", in_column_parts)]
    if not form.moves:
        found.append(_in_parts(form, SUMS, partial(with_sums_in_columns, beyond=half)))
    return [one for one in found if one]


def _in_parts(form: Form, move: str, made: Callable[[Values, int], Values | None]) -> Smaller | None:
    for n in PARTS if move in form.setting.options.moves else ():
        values = made(form.values, n)
        if values and _fits(form, one := estimate(values, form.setting.chip)):
            return Smaller(move, n, values, one)
    return None


def _fits(form: Form, parts: Estimate) -> bool:
    """Whether parts have room, L0C aside: as much as what is known to have found some."""
    chip, found_room = form.setting.chip, form.estimate.bytes if form.candidates else {}
    others = ((level, n) for level, n in parts.bytes.items() if level is not Level.L0C)
    return all(n <= max(chip.level_bytes(level), found_room.get(level, 0)) for level, n in others)


def _beside(form: Form) -> Iterator[Offer]:
    """Products in parts where L0C cannot hold all of them side by side, so that they wait for each other to leave."""
    chip = form.setting.chip
    if form.estimate.bytes[Level.L0C] > chip.level_bytes(Level.L0C):
        for found in _of_products(form):
            bound = form.estimate.least_us(chip, SURE)
            yield Offer(MOVES[found.move], str(found.size), bound, partial(_made, form, found), form, "smaller tiles")


def _columns(values: Values) -> Iterator[tuple[str, int, Values | None]]:
    """In equal tiles of whole repeats; in powers of two as well, where there are few such parts."""
    cols = max(t.cols for t in reachable(values))
    widths = {n for n in range(NARROWEST, min(cols, WIDEST + 1), NARROWEST) if cols % n == 0}
    if len(widths) < FEW:
        widths |= {n for i in range(6, 15) if (n := 1 << i) < cols}
    move = "column-tiles-of-sums" if sums_in_columns(values) else "column-tiles"
    return ((move, width, in_columns(values, width)) for width in sorted(widths))
