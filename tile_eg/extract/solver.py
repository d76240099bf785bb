"""The constraint solver, set up so that what it finds depends on the model alone: not on the machine, nor on its load.

OR-tools' Python layer imports pandas, for series of variables, which no model here has; that takes most of its import.
"""

from __future__ import annotations

import builtins
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpSolver

NAME = "ortools.sat.python.cp_model"


FOR_SMALL_MODELS = {
    "linearization_level": 0, "max_presolve_iterations": 1, "cp_model_probing_level": 0, "symmetry_level": 0,
    "find_big_linear_overlap": False, "cp_model_use_sat_presolve": False, "inprocessing_probing_dtime": 0.0,
    "inprocessing_minimization_dtime": 0.0,
}  # fmt: skip
"""What CP-SAT does beside its search: on the models of `model`, which are small, it costs more than it saves, in all examples."""


def small_solver(work: float) -> CpSolver:
    """As `solver`, for models of a few hundred variables."""
    out = solver(work)
    for name, value in FOR_SMALL_MODELS.items():
        setattr(out.parameters, name, value)
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
    return module
