"""A kernel whose sizes are known, as a callable: its arrays go to the simulator, and come back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.errors import TileError, in_source
from tile_eg.ir.arrays import check_argument
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel, added_to
from tile_eg.jit.arrays import as_declared, by_name, give_back, is_torch, made_last, to_numpy
from tile_eg.jit.host_side import HostSide
from tile_eg.jit.process_cache import cache
from tile_eg.jit.profiling import launched
from tile_eg.jit.told import told
from tile_eg.jit.workspaces import made_by_call, without_stores, written_whole
from tile_eg.search import search_options
from tile_eg.simulator.limits import CALL, Limits

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.jit.any_size import AnySizeKernel
    from tile_eg.jit.kernel_cache import Restored
    from tile_eg.search.any_size import AtSizes
    from tile_eg.search.compiler import Lowered, Run

NOTHING: Mapping[str, Any] = MappingProxyType({})


class CompiledKernel(HostSide):
    """A kernel whose sizes are known.

    Calling it takes the arrays of all tensors but those in `out_idx` and `workspace_idx`, in order or by name, and gives the
    tensors of `out_idx`, in that order: one array, or a list. Written tensors that are passed in are filled in place, as far as
    the kernel writes them; one that is given back and not written whole is a TileError.
    Arrays are NumPy's or torch's on the CPU, with the declared dtypes and shapes (but for dimensions of 1); else TileError.
    What is given back is of the kind of what came in; where nothing did, torch's if `as_torch`.
    """

    def __init__(
        self,
        kernel: Kernel | KeptKernel,
        out_idx: Sequence[int] = (),
        workspace_idx: Sequence[int] = (),
        chip: str = DEFAULT_CHIP,
        search: Mapping[str, Any] = NOTHING,
        limits: Limits = CALL,
        as_torch: bool = False,
    ) -> None:
        self.kernel, self.chip, self.search, self.limits, self.as_torch = kernel, chip, search, limits, as_torch
        with in_source(kernel.source):
            self.out_idx = [made_by_call(i, kernel, "out_idx") for i in out_idx]
            self.workspace_idx = [made_by_call(i, kernel, "workspace_idx") for i in workspace_idx]
        self.for_all_sizes: Callable[[], AtSizes | None] = lambda: None
        unseen = [kernel.tensors[i].name for i in self.workspace_idx]
        self.compiled = kernel if isinstance(kernel, KeptKernel) else without_stores(kernel, unseen)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{t.name}: {t.dtype}{list(t.shape)}" for t in self.kernel.tensors)
        return f"<kernel {self.kernel.name}({shapes})>"

    def searched(self) -> CompiledKernel | AnySizeKernel:
        """The same kernel without its flags, barriers, scopes and addresses, which the search then finds: that of
        `schedule="search"`. TileError where it has no sequential meaning."""
        return self

    @told
    def compile(self, chip: str | None = None, **sizes: int) -> Lowered:
        """The lowered kernel: `.source .schedule .program .cost .memory`. `chip` is a name like "910B2"."""
        if sizes:
            raise TileError(f"{', '.join(sizes)}: the sizes of {self.kernel.name} are fixed by the arguments of its function")
        with in_source(self.kernel.source):
            return cache.lowered(self.compiled, chip or self.chip, search_options(**self.search))

    def planned(self) -> Lowered | Restored | AtSizes:
        """The program with its texts and its predicted time, from the caches where it is there; of a kernel of any size the text
        that serves all."""
        with in_source(self.kernel.source):
            return self.for_all_sizes() or cache.planned(self.compiled, self.chip, search_options(**self.search))

    @told
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = {*self.out_idx, *self.workspace_idx}
        names = [t.name for i, t in enumerate(self.kernel.tensors) if i not in made]
        with in_source(self.kernel.source):
            return self._run(by_name(names, args, kwargs, made_last(self.kernel.tensors, made)))

    def _run(self, values: Mapping[str, Any]) -> Any:
        """Runs on arrays by tensor name."""
        import numpy as np

        arrays = {name: to_numpy(v, name) for name, v in values.items()}
        for t in self.kernel.tensors:
            if t.name in arrays:
                arrays[t.name] = as_declared(arrays[t.name], t.shape)
                check_argument(t, arrays[t.name])
        updated = [t for t in self.kernel.tensors if t.output and t.name in arrays]
        for t in updated:
            if not arrays[t.name].flags.writeable:
                raise TileError(f"argument {t.name} is read-only, and {self.kernel.name} writes it", t.span)
        run = run_lowered(self.planned(), arrays, self.limits)
        for t in updated:
            np.copyto(arrays[t.name], run[t.name], where=~run.unwritten.get(t.name, np.False_))
        outputs = [written_whole(self.kernel.tensors[i], run) for i in self.out_idx]
        return give_back(outputs, any(map(is_torch, values.values())) if values else self.as_torch)


def run_lowered(lowered: Lowered | Restored | AtSizes, arrays: Mapping[str, np.ndarray], limits: Limits = CALL) -> Run:
    """A run in the simulator; what it finds wrong in the emitted text is an InternalError."""
    import numpy as np

    from tile_eg.ir.reference_indices import check_indices

    kept = isinstance(lowered.kernel, KeptKernel)
    given = lowered.inout if kept else added_to(lowered.kernel)
    tensors = [t for t in lowered.kernel.tensors if not t.output or (t.name in given and t.name in arrays)]
    inputs = {t.name: np.ascontiguousarray(arrays[t.name]) for t in tensors}
    launched(lowered)
    if not kept:
        check_indices(lowered.kernel, inputs)
    return lowered.run(inputs, seconds=limits.seconds, memory=limits.bytes)
