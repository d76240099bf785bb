"""Do the rules tell the truth? Every term of every class of values in numbers, and the rules that joined two that differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tile_eg.egraph.members import Class, Member, Members
from tile_eg.egraph.numbers import Numbers, Unbound
from tile_eg.ir.index import BLOCK, SUB
from tile_eg.ops.records import record

ALLOWED = {"float16": 2.0**-7, "bfloat16": 2.0**-4, "float32": 2.0**-11}
"""By how much terms of a class may differ, relative to the largest magnitude beside it: some roundings of a few steps each."""


@record
class Disagreement:
    """Two terms of one class with different numbers. `error` is in multiples of what is allowed; `rules` joined them.

    `first` and `second` are whole terms in the rule language, `brief` the same without what lies deep inside.
    """

    first: str
    second: str
    error: float
    where: str
    brief: tuple[str, str] = ("", "")
    rules: tuple[str, ...] = ()


@dataclass
class Audit:
    """What was looked at, and what was found."""

    classes: int = 0
    terms: int = 0
    compared: int = 0
    found: list[Disagreement] = field(default_factory=list)


def audit(members: Members, arrays: dict[str, np.ndarray], blocks: Sequence[int]) -> Audit:
    """Compares all terms of each class in the given blocks, in the first two and the last trip of every loop."""
    several = {c: ms for c, ms in members.classes.items() if len(ms) > 1 and c[0] in ("V", "T", "Lp")}
    out = Audit(len(members.classes), sum(map(len, members.classes.values())))
    seen: set[tuple[Member, Member]] = set()
    with np.errstate(all="ignore"):
        for block in blocks:
            for where, numbers in places(members, Numbers(members, arrays, {BLOCK: block, SUB: 0}), f"block {block}"):
                for cls, terms in several.items():
                    _compare(cls, terms, numbers, where, out, seen)
    return out


def places(members: Members, numbers: Numbers, where: str, region: int = 0) -> Iterator[tuple[str, Numbers]]:
    """The region itself, and chosen trips of each loop in it."""
    yield where, numbers
    loops = [m.args for c, terms in members.classes.items() if c[0] == "Lp" for m in terms]
    for loop, trips, chain in loops:
        if members.encoder.values.parents[loop] != region:
            continue
        run = numbers.trips(loop, trips, chain)
        for trip in sorted({0, 1, len(run) - 1} & set(range(len(run)))):
            yield from places(members, run[trip][0], f"{where}, {numbers.variable(loop)} = {trip}", loop)


def _compare(
    cls: Class, terms: Sequence[Member], numbers: Numbers, where: str, out: Audit, seen: set[tuple[Member, Member]]
) -> None:
    first = numbers.members.chosen[cls]
    try:
        want = numbers.of(cls)
    except Unbound:
        return
    for m in terms:
        if m is first or (first, m) in seen:
            continue
        try:
            error = _error(numbers.member(cls, m), want)
        except Unbound:
            continue
        out.compared += 1
        if error > 1:
            seen.add((first, m))
            text = numbers.members.text
            brief = text(first, 2), text(m, 2)
            out.found.append(Disagreement(text(first), text(m), error, where, brief))


def _error(got: Any, want: Any) -> float:
    """The largest difference over what is allowed; infinite where only one is a number."""
    if isinstance(want, tuple):
        return max((_error(a, b) for a, b in zip(got, want, strict=True)), default=0.0)
    a, b = np.asarray(got, np.float64), np.asarray(want, np.float64)
    limit = ALLOWED.get(np.asarray(want).dtype.name, 0.0)
    numbers = b[np.isfinite(b)]
    scale = max(float(np.abs(numbers).max()), 1e-30) if numbers.size else 1.0
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    off = np.where(same, 0.0, np.where(np.isfinite(a) & np.isfinite(b), np.abs(a - b) / scale, np.inf))
    worst = float(off.max()) if off.size else 0.0
    return worst / limit if limit else float("inf") if worst else 0.0


def joined_by(names: Sequence[str], equal: Callable[[frozenset[str]], bool]) -> tuple[str, ...]:
    """The rules without which two terms are no longer equal: `equal` says whether they are under a set of rules.

    Rules are taken out one after the other as long as the terms stay equal; what is left is needed.
    """
    kept = list(names)
    for name in names:
        fewer = frozenset(kept) - {name}
        if equal(fewer):
            kept.remove(name)
    return tuple(kept)
