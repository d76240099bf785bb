"""What became of the moves of a search, a row for each outcome."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from tile_eg.report.text import duration
from tile_eg.search.moves import LEFT

if TYPE_CHECKING:
    from tile_eg.search.queue import Tried

SHOWN = 4


def rows(tried: Sequence[Tried], effort: str) -> list[tuple[str, str, str, str]]:
    """The move, what it is made of, in which form of the kernel ("" where there is one only), and what it gives.

    Moves of one kind that gave the same in one form stand together; so do, of all forms, those that gave nothing, or were not
    made, for one reason. `effort` is that of the search.
    """
    made = _together((t for t in tried if t.made), lambda t: (_outcome(t), t.microseconds is not None and _form(t)))
    left = _together((t for t in tried if not t.made), lambda t: t.why)
    everywhere = dict.fromkeys(_form(t) for t in tried if t.offer.form)
    told = [(of, _outcome(of[0])) for of in made] + [(of, _dropped(of, effort)) for of in left]
    return [(of[0].offer.move.name, _few(t.offer.what for t in of), _forms(of, everywhere), gives) for of, gives in told]


def _form(t: Tried) -> str:
    return t.offer.form.name if t.offer.form else ""


def _forms(tried: Sequence[Tried], everywhere: Collection[str]) -> str:
    found = dict.fromkeys(map(_form, tried))
    if len(everywhere) < 2:
        return ""
    return f"all {len(everywhere)}" if len(found) == len(everywhere) else _few(found)


def _together(tried: Iterable[Tried], alike: Callable[[Tried], object]) -> list[list[Tried]]:
    out: dict[object, list[Tried]] = {}
    for t in tried:
        out.setdefault((t.offer.move.name, alike(t)), []).append(t)
    return list(out.values())


def _few(whats: Iterable[str]) -> str:
    found = list(dict.fromkeys(whats))
    rest = len(found) - SHOWN
    return "; ".join(found[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _outcome(tried: Tried) -> str:
    return duration(tried.microseconds * 1e-6) if tried.microseconds is not None else tried.why or "nothing new"


def _dropped(found: Sequence[Tried], effort: str) -> str:
    """Why offers were not made, with the best of their bounds; and at which effort they are, where this one has not enough."""
    least, why = min(t.offer.bound for t in found), found[0].why
    further = "; --effort full makes more" if why == LEFT and effort != "full" else ""
    return f"not made: {why}{further}" + (f" ({duration(least * 1e-6)} at the least)" if least else "")
