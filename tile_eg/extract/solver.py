"""The constraint solver, set up so that what it finds depends on the model alone: not on the machine, nor on its load.

OR-tools' Python layer imports pandas, for series of variables, which no model here has; that takes most of its import. It also
gives each new model all its methods under their old names, which nobody calls here.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from math import inf
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpSolver

NAME = "ortools.sat.python.cp_model"


FOR_SMALL_MODELS = {
    "linearization_level": 0, "max_presolve_iterations": 1, "cp_model_probing_level": 0, "symmetry_level": 0,
    "find_big_linear_overlap": False, "cp_model_use_sat_presolve": False, "inprocessing_probing_dtime": 0.0,
    "inprocessing_minimization_dtime": 0.0,
}  # fmt: skip
"""What CP-SAT does beside its search: on the models of `model`, which are small, it costs more than it saves, in all examples."""


PLAIN = 0.1
"""Work after which a search without linear relaxation is given up. Nearly every model of a kernel is proven in a tenth of it.
Long chains of vector operations are not: two or three ways for each of many values, which add up in the cycles of one pipe."""


BOUNDED = 1.0
"""The same where the least of each loop is known: kernels of several loops one behind the other mostly take a fifth of it."""


class Found(NamedTuple):
    """What a solver found: the `values` of the variables, None where it has none; the work that this took; what is minimised.

    `proved`: that nothing is better, or that there is nothing at all.
    """

    values: Sequence[int] | None
    proved: bool
    work: float
    least: float = inf

    def then(self, later: Found) -> Found:
        """What is known after a further search in the same model, which may have ended before it found what this one had."""
        better = self if self.least < later.least else later
        return later._replace(values=better.values, least=better.least, work=self.work + later.work)


class Bounds:
    """The least that each of some parts of what a model minimises takes by itself, found when it is first asked for.

    Without them a search tries all choices of one part with all of another one. A single part says no more than the whole.
    """

    def __init__(self, model: Any, parts: Sequence[Any]) -> None:
        """All models that are bounded have the choices of this one, or fewer."""
        self.model, self.parts = model, parts if len(parts) > 1 else ()
        self.least: list[int] = []
        self.work = 0.0

    @property
    def known(self) -> bool:
        return bool(self.least)

    def of(self, model: Any) -> Any:
        """The model with the bounds; itself where there are none."""
        if not self.parts:
            return model
        if not self.known:
            self._find()
        out = model.clone()
        for part, bound in zip(self.parts, self.least, strict=True):
            out.add(part >= bound)
        return out

    def _find(self) -> None:
        bounded = self.model.clone()
        for part in self.parts:
            bounded.minimize(part)
            bound, work = _least_of(small_solver(PLAIN), bounded)
            bounded.add(part >= bound)
            self.least.append(bound)
            self.work += work


class Searches:
    """Solves models that are alike, each within `work`: without a linear relaxation while `PLAIN` is enough for it, then with
    `bounds` while `BOUNDED` is, and then with a relaxation.

    A relaxation bounds what a search would have to try one by one; on models that are proven soon it costs more than it saves.
    """

    def __init__(self, work: float, bounds: Bounds | None = None) -> None:
        self.work, self.bounds, self.linear = work, bounds or Bounds(None, ()), False

    def least(self, model: Any) -> Found:
        """The best choice of a model that is found."""
        out = Found(None, False, 0.0)
        if not self.linear and not self.bounds.known:
            out = _found(small_solver(min(PLAIN, self.work)), model)
            if out.proved or self.work <= PLAIN:
                return out
        before = self.bounds.work
        bounded = self.bounds.of(model)
        out = out._replace(work=out.work + self.bounds.work - before)
        if self.bounds.known and not self.linear:
            out = out.then(_found(small_solver(min(BOUNDED, self.work)), bounded))
            if out.proved or out.work >= self.work:
                return out
        self.linear = True
        return out.then(_found(linear_solver(self.work - out.work), bounded))


def least_bounded(model: Any, work: float, bounds: Bounds) -> Found:
    """The best choice of a model that is found within `work`, with the bounds where `PLAIN` is not enough without them."""
    if not bounds.parts or work <= PLAIN:
        return _found(solver(work), model)
    out = _found(solver(PLAIN), model)
    return out if out.proved else out.then(_found(solver(work - out.work), bounds.of(model)))


def _least_of(cp: CpSolver, model: Any) -> tuple[int, float]:
    """What is minimised is no less than this, and the work that it took to know."""
    known = load_cp_model()
    found = cp.solve(model) in (known.OPTIMAL, known.FEASIBLE)
    return int(cp.best_objective_bound) if found else 0, cp.response_proto.deterministic_time


def _found(cp: CpSolver, model: Any) -> Found:
    known = load_cp_model()
    status = cp.solve(model)
    proved, work = status in (known.OPTIMAL, known.INFEASIBLE), cp.response_proto.deterministic_time
    if status not in (known.OPTIMAL, known.FEASIBLE):
        return Found(None, proved, work)
    return Found(list(cp.response_proto.solution), proved, work, cp.objective_value)


def small_solver(work: float) -> CpSolver:
    """As `solver`, for models of a few hundred variables."""
    out = solver(work)
    for name, value in FOR_SMALL_MODELS.items():
        setattr(out.parameters, name, value)
    return out


def linear_solver(work: float) -> CpSolver:
    """As `small_solver`, with a linear relaxation of all constraints."""
    out = small_solver(work)
    out.parameters.linearization_level = 2
    return out


def solver(work: float) -> CpSolver:
    """A solver that stops after so much work, in CP-SAT's own unit (its `deterministic_time`: about what a second has time for).

    No clock may end a search: on a busy machine it would find another schedule. Nor does the solver take Ctrl-C for itself: it
    would leave a process behind that an interrupt kills without a word.
    """
    out = load_cp_model().CpSolver()
    out.parameters.num_workers = 1
    out.parameters.max_deterministic_time = work
    out.parameters.random_seed = 0
    out.parameters.catch_sigint_signal = False
    return out


@cache
def load_cp_model() -> Any:
    """`ortools.sat.python.cp_model`; a copy of our own that knows no pandas, where it can be made."""
    try:
        return _without_pandas()
    except Exception:  # another release of OR-tools may ask more of pandas than two names
        return import_module(NAME)


def _without_pandas() -> ModuleType:
    """The module with imports of its own, so that whoever else uses OR-tools in this process finds what they expect."""
    spec = find_spec(NAME)
    if spec is None or spec.loader is None:
        raise ImportError(NAME)
    module = module_from_spec(spec)
    series = SimpleNamespace(Index=type("Index", (), {}), Series=type("Series", (), {}))

    def imported(name: str, *arguments: Any, **options: Any) -> Any:
        return series if name == "pandas" else builtins.__import__(name, *arguments, **options)

    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": imported}
    spec.loader.exec_module(module)
    module.CpModel._add_pre_pep8_methods = lambda model: None
    return module
