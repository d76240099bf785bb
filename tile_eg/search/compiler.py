"""The one place that sees the whole way from a kernel to Ascend C, and drives it; the rooms it calls know their part only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.errors import InternalError, TileError
from tile_eg.ir.arrays import check_arguments
from tile_eg.ir.kernel import Kernel, Note, added_to
from tile_eg.ir.sharing import sharing
from tile_eg.search import SearchOptions, search_options
from tile_eg.search.candidates import Candidate
from tile_eg.search.chip_types import check_chip_types
from tile_eg.search.collector import rare_collections
from tile_eg.search.planned import Planned, Run, compiled_for, plan, stage
from tile_eg.search.planning import plan_schedule
from tile_eg.search.result import Lowered

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.frontend.text import Template
    from tile_eg.ir.reference_bounds import Expected


__all__ = [
    "Candidate", "InternalError", "Lowered", "Planned", "Run", "check_kernel", "expected", "lower", "meaning", "plan",
    "plan_schedule", "stage",
]  # fmt: skip


@rare_collections()
@sharing()
def lower(kernel: Kernel | Template, chip: str = DEFAULT_CHIP, *, search: SearchOptions | None = None) -> Lowered:
    """Compiles a kernel for a chip. TileError is the user's to mend, with its place; InternalError is ours.

    Block sizes that are left open are found by the same search. A template has its own sizes, where it has all.
    """
    from tile_eg.cost_models import ModelFault, Roles, patience, roles
    from tile_eg.search.driver import compiled

    kernel = _at_its_sizes(kernel)
    options = search or search_options()
    with stage("load", kernel.source):
        target = compiled_for(chip)
        check_chip_types((kernel.tensors, kernel.body), target)
    if options.tuned is not None:
        from tile_eg.search.tuned import as_tuned

        return as_tuned(kernel, target, options)
    try:
        with patience(options.model_seconds):
            with stage("load", kernel.source):
                rank = roles(options.cost_model, target).rank
            return compiled(kernel, target, options, rank)
    except ModelFault as fault:
        if options.model_faults == "stop":
            fault.help = f"{fault.help}; --model-faults default goes on without the model"
            raise
        return replace(compiled(kernel, target, replace(options, cost_model=None), Roles.rank), failed=fault.message)


def _at_its_sizes(kernel: Any) -> Kernel:
    """A kernel as it is, a template with its own sizes. TileError for anything else, and where a size has no value."""
    from tile_eg.frontend.text import Template

    if isinstance(kernel, Template):
        return kernel.instantiate({})
    if not isinstance(kernel, Kernel):
        help = "load_text(...).instantiate(sizes) gives one; tile_eg.compile(f) compiles a function under @T.prim_func, and what "
        help += "tile_eg.load and tile_eg.jit give is compiled by .compile()"
        raise TileError(f"a kernel is compiled here, not a value of type {type(kernel).__name__}", help=help)
    return kernel


def check_kernel(kernel: Kernel | Template, chip: str = DEFAULT_CHIP) -> tuple[Note, ...]:
    """TileError unless names, types, shapes and bounds fit, every read follows a write, and every loop is a fold; and unless the
    tensors fit the chip's HBM.

    Gives the notes on the kernel: what is right, and may not be what its author had in mind.
    """
    from tile_eg.frontend.checks import check
    from tile_eg.frontend.checks.notes import notes
    from tile_eg.frontend.ssa import to_values
    from tile_eg.search.form import check_room

    kernel = _at_its_sizes(kernel)
    with stage("check", kernel.source):
        check_chip_types((kernel.tensors, kernel.body), compiled_for(chip))
        check_room(kernel, compiled_for(chip))
        check(kernel)
        to_values(kernel)
        return notes(kernel)


def meaning(kernel: Kernel | Template, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the kernel's outputs are by its own sequential meaning, computed in NumPy; arrays as in `Planned.run`."""
    from tile_eg.ir.reference import run_kernel

    kernel = _at_its_sizes(kernel)
    check_arguments(kernel.tensors, arrays, added_to(kernel), kernel.numbers)
    with stage("reference", kernel.source):
        return run_kernel(kernel, arrays)


def expected(kernel: Kernel, arrays: Mapping[str, np.ndarray]) -> dict[str, Expected]:
    """`meaning`, and how far each element may be from it: what `tile_eg.report.compare.compare` compares a run with."""
    from tile_eg.ir.reference_bounds import run_with_bounds

    check_arguments(kernel.tensors, arrays, added_to(kernel), kernel.numbers)
    with stage("reference", kernel.source):
        return run_with_bounds(kernel, arrays)
