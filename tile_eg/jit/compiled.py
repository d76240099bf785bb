"""A kernel whose sizes are known, as a callable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.errors import TileError, in_source
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel
from tile_eg.jit.any_size import NOTHING, AnySizeKernel
from tile_eg.jit.arrays import by_name, fitted, give_back, is_torch, made_last, to_numpy
from tile_eg.jit.host_side import HostSide
from tile_eg.jit.located import Locating
from tile_eg.jit.on_npu import NpuCalls, on_npu
from tile_eg.jit.process_cache import asked, cache
from tile_eg.jit.running import check_writable, run_lowered, updated
from tile_eg.jit.told import told
from tile_eg.jit.workspaces import given_back, made_by_call, without_stores
from tile_eg.simulator.limits import CALL, Limits

if TYPE_CHECKING:
    from tile_eg.jit.kernel_cache import Restored
    from tile_eg.search.any_size import AtSizes
    from tile_eg.search.compiler import Lowered


class CompiledKernel(Locating, HostSide):
    """A kernel whose sizes are known.

    Calling it takes the arrays of all tensors but those in `out_idx` and `workspace_idx`, in order or by name, and gives the
    tensors of `out_idx`, in that order: one array, or a list. Written tensors that are passed in are filled in place, as far as
    the kernel writes them; one that is given back and not written whole is a TileError.
    Arrays are NumPy's or torch's on the CPU, with the declared dtypes, and with the declared shapes but for dimensions of 1 and
    what `jit.arrays.as_declared` takes; else TileError.
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
        with in_source(kernel.source, kernel.file):
            self.out_idx = [made_by_call(i, kernel, "out_idx") for i in out_idx]
            self.workspace_idx = [made_by_call(i, kernel, "workspace_idx") for i in workspace_idx]
        self.for_all_sizes: Callable[[], AtSizes | None] = lambda: None
        self.npu = NpuCalls(self)
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
        with in_source(self.kernel.source, self.kernel.file):
            return cache.lowered(*asked(self.compiled, chip or self.chip, self.search))

    def planned(self) -> Lowered | Restored | AtSizes:
        """The program with its texts and its predicted time, from the caches where it is there; of a kernel of any size the text
        that serves all."""
        with in_source(self.kernel.source, self.kernel.file):
            wanted = asked(self.compiled, self.chip, self.search)
            return (None if wanted[2].tuned else self.for_all_sizes()) or cache.planned(*wanted)

    @told
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = {*self.out_idx, *self.workspace_idx}
        names = [t.name for i, t in enumerate(self.kernel.tensors) if i not in made]
        with in_source(self.kernel.source, self.kernel.file):
            values = by_name(names, args, kwargs, made_last(self.kernel.tensors, made))
            return self.npu(values) if on_npu(values.values()) else self._run(values)

    def _run(self, values: Mapping[str, Any]) -> Any:
        """Runs on arrays by tensor name."""
        arrays = fitted(self.kernel, {name: to_numpy(v, name) for name, v in values.items()})
        check_writable(self.kernel, arrays)
        run = run_lowered(self.planned(), arrays, self.limits)
        updated(self.kernel, arrays, run)
        outputs = [given_back(self.kernel.tensors[i], run, self.kernel) for i in self.out_idx]
        return give_back(outputs, any(map(is_torch, values.values())) if values else self.as_torch)
