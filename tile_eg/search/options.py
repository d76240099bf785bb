"""What a user may ask of the search: which rules take part, how much is tried, and where it stops."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_eg.errors import TileError, did_you_mean
from tile_eg.ops.records import record
from tile_eg.rules import INEXACT, Theory, registry, selected
from tile_eg.rules.added import added
from tile_eg.search.moves import IN_ANY_ORDER, MOVES

if TYPE_CHECKING:
    from tile_eg.egraph import Budget
    from tile_eg.search.tuned_file import Entry


@record
class Effort:
    """How many schedules of an e-graph are planned and ranked, which extractor finds them, and with which settings."""

    schedules: int
    extractor: str
    settings: tuple[tuple[str, Any], ...] = ()


EFFORTS = {"none": Effort(1, "greedy"), "quick": Effort(4, "exact"), "full": Effort(4, "exact")}
"""Where a search begins. `full` does what `quick` does first, so it is never slower, and goes on: `moves` says with what."""
MORE = Effort(12, "exact", (("work", 10.0), ("total", 15.0), ("refusals", 200)))
"""The further schedules of `full`."""


@record
class SearchOptions:
    """How one kernel's schedules are searched. `search_options` makes them from what a user writes, and checks it.

    `exact_math` keeps the rules that hold bit for bit, and those that choose an instruction. `rules` are theories beside the
    project's own, `without` names of rules and moves that are left out. `fuel` is how many rows a phase may add to the e-graph.
    `k` is how many schedules are kept and ranked, `extractor` who finds them; None: what the effort says. `cost_model` prices
    what is searched and ranks what was found, as far as it can do either; where it fails, `model_faults` says whether that is an
    error ("stop") or the default model takes over ("default"), and it may take `model_seconds` for an answer. `deterministic`: no
    sums of floats whose order changes from run to run. `tuned` is the schedule that is taken instead of a search
    (`search/tuned.py` finds it); `untuned`: none is looked for.
    """

    exact_math: bool = False
    effort: str = "quick"
    rules: tuple[Theory, ...] = ()
    without: frozenset[str] = frozenset()
    fuel: int | None = None
    k: int | None = None
    extractor: str | None = None
    cost_model: str | None = None
    deterministic: bool = False
    tuned: Entry | None = None
    untuned: bool = field(default=False, compare=False)
    model_faults: str = "stop"
    model_seconds: float = 60.0

    @property
    def _not_wanted(self) -> frozenset[str]:
        return self.without | IN_ANY_ORDER if self.deterministic else self.without

    @property
    def theories(self) -> tuple[Theory, ...]:
        """All rules that take part."""
        return selected(self.rules, self._not_wanted, self.exact_math)

    @property
    def left_out(self) -> frozenset[str]:
        """The names of the rules that do not take part."""
        return frozenset(registry(selected(self.rules)).keys() - registry(self.theories).keys())

    @property
    def schedules(self) -> int:
        """How many schedules are kept and ranked."""
        return self.k or EFFORTS[self.effort].schedules

    @property
    def level(self) -> int:
        """The effort as a number: what each adds to the one before."""
        return list(EFFORTS).index(self.effort)

    @property
    def moves(self) -> frozenset[str]:
        """The names of the moves that take part."""
        inexact = {m.name for m in MOVES.values() if self.exact_math and m.law in INEXACT}
        return frozenset(MOVES.keys() - self._not_wanted - inexact)

    @property
    def found_by(self) -> tuple[str, dict[str, Any]]:
        """The extractor's name, and its settings."""
        effort = EFFORTS[self.effort]
        if self.extractor in (None, effort.extractor):
            return effort.extractor, dict(effort.settings)
        return self.extractor or effort.extractor, {}

    @property
    def budget(self) -> Budget:
        """Where a phase of the rules stops."""
        from tile_eg.egraph import Budget

        return Budget() if self.fuel is None else Budget(rows=self.fuel, every=1)


def search_options(
    *,
    exact_math: bool = False,
    effort: str = "quick",
    rules: Iterable[str | Path | Theory] = (),
    without: Iterable[str] = (),
    fuel: int | None = None,
    k: int | None = None,
    extractor: str | None = None,
    cost_model: str | None = None,
    deterministic: bool = False,
    untuned: bool = False,
    model_faults: str = "stop",
    model_seconds: float = 60.0,
) -> SearchOptions:
    """Checked options. `rules` are files, rule texts or theories; those of `tile_eg.rules.add` take part without being named.
    `cost_model` is a name, "module:Class", or either with "@FILE" behind it: what the model saved there.

    TileError for an unknown effort or rule, for a theory with a fault, and for numbers below 1.
    """
    _check_kinds(fuel=fuel, k=k)
    _check_yes_or_no(exact_math=exact_math, deterministic=deterministic, untuned=untuned)
    if not isinstance(effort, str) or effort not in EFFORTS:
        raise TileError(f"unknown effort '{effort}'", help=did_you_mean(str(effort), EFFORTS))
    for name, number in (("fuel", fuel), ("k", k)):
        if number is not None and number < 1:
            raise TileError(f"{name} is at least 1, not {number}")
    _check_model_options(model_faults, model_seconds)
    theories = _theories(rules)
    left_out = frozenset(without)
    known = registry((*selected(), *theories)) if left_out else {}
    for rule in sorted(left_out - MOVES.keys()):
        if rule not in known:
            raise TileError(f"there is no rule '{rule}' to leave out", help=nearest_rule(rule, (*known, *MOVES)))
        if known[rule].ruleset == "facts":
            raise TileError(f"'{rule}' is a fact that other rules rest on; it cannot be left out", help="tile-eg rules lists all")
    models = cost_model, deterministic
    found = SearchOptions(exact_math, effort, theories, left_out, fuel, k, extractor, *models, untuned=untuned)
    return replace(found, model_faults=model_faults, model_seconds=model_seconds)


def _check_model_options(faults: object, seconds: object) -> None:
    if faults != "stop":
        from tile_eg.cost_models import FAULTS

        if faults not in FAULTS:
            raise TileError(f"model_faults is {' or '.join(FAULTS)}, not {faults!r}")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
        raise TileError(f"model_seconds is a number above 0, not {seconds!r}")


def check_names(given: Iterable[str]) -> None:
    """TileError for a name that is no option of the search."""
    known = inspect.signature(search_options).parameters
    for name in given:
        if name not in known:
            raise TileError(f"the search has no option {name!r}", help=did_you_mean(name, known))


def _check_yes_or_no(**given: object) -> None:
    for name, value in given.items():
        if not isinstance(value, bool):
            raise TileError(f"{name} is True or False, not {value!r}")


def _check_kinds(**numbers: object) -> None:
    for name, number in numbers.items():
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise TileError(f"{name} is a whole number, not {number!r}")


def nearest_rule(name: str, known: Iterable[str]) -> str:
    """A help line with the rules whose names are nearest."""
    help = did_you_mean(name, known)
    return help if help.startswith("did") else "`tile-eg rules` lists them"


def _theories(given: Iterable[str | Path | Theory]) -> tuple[Theory, ...]:
    out = list(added())
    for item in given:
        out.append(item if isinstance(item, Theory) else _read(item, tuple(out)))
    return tuple(out)


def _read(rules: str | Path, beside: tuple[Theory, ...]) -> Theory:
    from tile_eg.rules.user import read_theory_of

    return read_theory_of(rules, beside)
