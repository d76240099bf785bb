"""`kernel.where(...)`: the first value of a run that is not what the kernel means, or what a function of the user's says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tile_eg.errors import TileError, in_source
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel
from tile_eg.jit.against import expected_by, name_of
from tile_eg.jit.arrays import fitted, of_call, to_numpy
from tile_eg.jit.running import taken
from tile_eg.jit.told import told
from tile_eg.simulator.limits import Limits

if TYPE_CHECKING:
    from tile_eg.locate import Located
    from tile_eg.search.compiler import Lowered


class Locating:
    """Of a kernel whose sizes are known: where its run differs."""

    if TYPE_CHECKING:
        kernel: Kernel | KeptKernel
        compiled: Kernel | KeptKernel
        limits: Limits
        out_idx: list[int]
        workspace_idx: list[int]

        def compile(self) -> Lowered: ...

    @told
    def where(self, *args: Any, against: Callable[..., Any] | None = None, **kwargs: Any) -> Located:
        """Runs the kernel on the arrays of a call, and names the first value that differs: from its own meaning, or from what the
        function `against` says of its outputs.

        The function gets the inputs in their order (torch tensors where its module knows torch) and returns an output, a tuple
        of outputs, or a dict of some by name. The result prints; `.good` says that nothing differs, `.first` has the value's
        buffer or output, element, trips, tile of the grid, and both numbers. Arrays are left as they are.

        TileError for arrays that do not fit, and for a kernel that is kept as it is written where nothing is to compare it with.
        """
        with in_source(self.kernel.source, self.kernel.file):
            values = of_call(self.kernel, {*self.out_idx, *self.workspace_idx}, args, kwargs)
            return self._where(fitted(self.kernel, {name: to_numpy(v, name) for name, v in values.items()}), against)

    def _where(self, arrays: Mapping[str, Any], against: Callable[..., Any] | None) -> Located:
        from tile_eg.ir.reference_bounds import run_with_bounds
        from tile_eg.locate import Subject, located, located_outside

        kernel, how = self.compiled, {"seconds": self.limits.seconds, "memory": self.limits.bytes}
        if isinstance(kernel, KeptKernel) and against is None:
            what = f"{kernel.name} is kept as it is written, and has no meaning beside its order"
            raise TileError(what, help="where(..., against=function) compares its outputs with a NumPy or torch function's")
        lowered: Any = self.compile()
        given = taken(kernel, lowered, arrays)
        run = lowered.run(given, strict=False, **how)
        meant = None
        if isinstance(kernel, Kernel):
            meant = run_with_bounds(kernel, given)
            subject = Subject(kernel, lowered, lowered.candidates[0].schedule)
            found = located(subject, given, run, meant, "from the kernel's meaning", how)
            if against is None or not found.good:
                return found
        assert against is not None
        expected = expected_by(against, kernel.tensors, given, meant)
        return located_outside(lowered, given, run, expected, f"from what {name_of(against)} computes", how, kernel.source)


class LocatingAtSizes:
    """Of a kernel that has its sizes from each call."""

    if TYPE_CHECKING:

        with_sizes: Callable[..., Any]

        def arrays_and_sizes(self, args: Any, kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]: ...

    @told
    def where(self, *args: Any, against: Callable[..., Any] | None = None, **kwargs: Any) -> Located:
        """As `where` of the kernel at the sizes of these arrays, which may be given by name as a call takes them."""
        arrays, sizes = self.arrays_and_sizes(args, kwargs)
        return self.with_sizes(**sizes).where(**arrays, against=against)  # type: ignore[no-any-return]
