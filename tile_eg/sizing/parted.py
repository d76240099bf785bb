"""Tiles that do not fit UB in a kernel of vector cores: their rows in panels, or long rows in tiles of columns."""

from __future__ import annotations

from collections.abc import Iterator

from tile_eg.chips import Chip
from tile_eg.egraph.columns import NARROWEST, in_columns, sums_in_columns
from tile_eg.egraph.panels import in_panels
from tile_eg.ir.values import Values, reachable
from tile_eg.sizing.estimate import estimate

FASTER = 0.9
PANELS = (2, 4, 8, 16, 32, 64)
WIDEST = 16384  # columns beyond which no tile fits
FEW = 4  # equal parts below which unequal ones are tried as well


def parted(values: Values, chip: Chip, reorder: bool = True) -> list[Values]:
    """The forms of a kernel that the quick estimate takes to fit, fastest first; with `reorder` also those that part sums."""
    forms = [f for f in (*_panels(values), *(_columns(values) if reorder or not sums_in_columns(values) else ())) if f]
    estimates = [(estimate(f, chip), f) for f in forms]
    fitting = [(e.cycles, n) for n, (e, _) in enumerate(estimates) if e.excess(chip) <= 1]
    return [forms[n] for _, n in sorted(fitting)]


def crowded(values: Values, chip: Chip, reorder: bool = True) -> Values | None:
    """A form that is estimated to be faster than a kernel whose tiles fill UB, so that nothing is loaded beside the work."""
    if any(t.op == "matmul" for t in reachable(values)):
        return None
    whole = estimate(values, chip)
    if whole.overlaps:
        return None
    best = next(iter(parted(values, chip, reorder)), None)
    return best if best and estimate(best, chip).cycles < FASTER * whole.cycles else None


def _panels(values: Values) -> Iterator[Values | None]:
    return (in_panels(values, n) for n in PANELS)


def _columns(values: Values) -> Iterator[Values | None]:
    """In equal tiles of whole repeats; in powers of two as well, where there are few such parts."""
    cols = max(t.cols for t in reachable(values))
    widths = {n for n in range(NARROWEST, min(cols, WIDEST + 1), NARROWEST) if cols % n == 0}
    if len(widths) < FEW:
        widths |= {n for i in range(6, 15) if (n := 1 << i) < cols}
    return (in_columns(values, width) for width in sorted(widths))
