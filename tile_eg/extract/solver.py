"""The constraint solver, set up so that what it finds depends on the model alone: not on the machine, nor on its load."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpSolver


def solver(work: float) -> CpSolver:
    """A solver that stops after so much work, in CP-SAT's own unit (its `deterministic_time`: about what a second has time for).

    No clock may end a search: on a busy machine it would find another schedule.
    """
    from ortools.sat.python.cp_model import CpSolver

    out = CpSolver()
    out.parameters.num_workers = 1
    out.parameters.max_deterministic_time = work
    out.parameters.random_seed = 0
    return out
