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


class Found(NamedTuple):
    """What a solver found: the `values` of the variables, None where it has none; the work that this took.

    `proved`: that nothing is better, or that there is nothing at all.
    """

    values: Sequence[int] | None
    proved: bool
    work: float


class Searches:
    """Solves models that are alike, each within `work`: without a linear relaxation while `PLAIN` is enough for it.

    A relaxation bounds what a search would have to try one by one; on models that are proven soon it costs more than it saves.
    """

    def __init__(self, work: float) -> None:
        self.work, self.linear = work, False

    def least(self, model: Any) -> Found:
        """The best choice of a model that is found."""
        if self.linear:
            return _found(linear_solver(self.work), model)
        plain = _found(small_solver(min(PLAIN, self.work)), model)
        if plain.proved or self.work <= PLAIN:
            return plain
        self.linear = True
        found = _found(linear_solver(self.work - plain.work), model)
        return found._replace(values=found.values or plain.values, work=plain.work + found.work)


def _found(cp: CpSolver, model: Any) -> Found:
    known = load_cp_model()
    status = cp.solve(model)
    values = list(cp.response_proto.solution) if status in (known.OPTIMAL, known.FEASIBLE) else None
    return Found(values, status in (known.OPTIMAL, known.INFEASIBLE), cp.response_proto.deterministic_time)


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
