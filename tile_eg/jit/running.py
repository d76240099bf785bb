"""The arrays of a call: what they have to be, what of them a run takes, and what a run leaves in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tile_eg.errors import TileError
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel, added_to
from tile_eg.jit.launches import launched
from tile_eg.simulator.limits import CALL, Limits

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.search.any_size import AtSizes
    from tile_eg.search.compiler import Lowered, Run
    from tile_eg.search.kernel_cache import Restored


def check_writable(kernel: Kernel | KeptKernel, arrays: Mapping[str, np.ndarray]) -> None:
    """TileError for an array that cannot be written, of a tensor that the kernel writes."""
    for t in kernel.tensors:
        if t.output and t.name in arrays and not arrays[t.name].flags.writeable:
            raise TileError(f"argument {t.name} is read-only, and {kernel.name} writes it", t.span)


def updated(kernel: Kernel | KeptKernel, arrays: Mapping[str, np.ndarray], run: Run) -> None:
    """Fills the arrays of tensors that the kernel writes, as far as it does."""
    import numpy as np

    for t in kernel.tensors:
        if t.output and t.name in arrays:
            np.copyto(arrays[t.name], run[t.name], where=~run.unwritten.get(t.name, np.False_))


def taken(kernel: Any, lowered: Any, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays that a run takes: those of inputs, and of outputs that begin with what the caller put there."""
    import numpy as np

    from tile_eg.frontend.checks.at_call import checked_at
    from tile_eg.ir.reference_indices import check_indices

    kept = isinstance(kernel, KeptKernel)
    given = lowered.inout if kept else added_to(kernel)
    tensors = [t for t in kernel.tensors if not t.output or (t.name in given and t.name in arrays)]
    inputs = {t.name: np.ascontiguousarray(arrays[t.name]) for t in tensors}
    numbers = {n: arrays[n] for n in getattr(kernel, "numbers", ())}
    if not kept:
        check_indices(checked_at(kernel, numbers), inputs)
    return inputs | numbers


def run_lowered(lowered: Lowered | Restored | AtSizes, arrays: Mapping[str, np.ndarray], limits: Limits = CALL) -> Run:
    """A run in the simulator; what it finds wrong in the emitted text is an InternalError, but for stores of the author's that
    meet, as indices that are read say."""
    from tile_eg.ir.reference_indices import check_stored_once

    launched(lowered)
    inputs = taken(lowered.kernel, lowered, arrays)
    kernel = lowered.kernel
    if isinstance(kernel, KeptKernel):
        return lowered.run(inputs, seconds=limits.seconds, memory=limits.bytes)
    run = lowered.run(inputs, seconds=limits.seconds, memory=limits.bytes, strict=False)
    if any(f.kind in ("race", "block_race") for f in run.findings):
        check_stored_once(kernel, inputs)
    run.raise_findings()
    return run
