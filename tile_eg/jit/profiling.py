"""What a kernel's calls cost: measured where they run on an NPU, else predicted by the timeline of the compiled program."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from tile_eg.errors import TileError, TileWarning
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.jit.arrays import is_torch, to_numpy, to_torch
from tile_eg.jit.launches import launches

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.ir.kernel import Tensor

MODES = ("mean", "median", "min", "max")
SEED = 0


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    _n_warmup: int = 0,
    _n_repeat: int = 0,
    grad_to_none: Any = None,
    quantiles: Sequence[float] | None = None,
    fast_flush: bool = True,
    return_mode: str = "mean",
    backend: str = "event",
) -> float | list[float]:
    """The milliseconds of a call of `fn`.

    Where its kernels run on an NPU they are measured there by the device's events: `fn` is called for some `warmup` and then for
    some `rep` milliseconds (or `_n_warmup` and `_n_repeat` times), each time behind a write over all of L2, and the gradients of
    `grad_to_none` are dropped before each. `return_mode` says which of the times is given: "mean", "median", "min", "max"; or
    `quantiles` of them, one as a number and several as a list.

    In the simulator `fn` runs once, and its kernels' times are those that the timeline predicts for their chip; a warning says
    so. A prediction does not vary: all modes and quantiles are the same number. A function that launches no kernel is timed on
    this machine's CPU: the shortest of three calls, which compares with no NPU; the warning says that too.

    L2 is flushed in one way, whatever `fast_flush` is, and the clock is the device's, whatever `backend` is. TileError for an
    unknown `return_mode`, and where kernels of one call run on several devices, or on an NPU and in the simulator.
    """
    if return_mode not in MODES:
        raise TileError(f"return_mode={return_mode!r} is unknown", help="there are " + ", ".join(MODES))
    with launches() as heard:
        fn()
    if any(one.ready for one in heard):
        from tile_eg.jit.measured import Repeats, measured

        return chosen(measured(fn, heard, Repeats(warmup, rep, _n_warmup, _n_repeat), grad_to_none or ()), quantiles, return_mode)
    found = sum(one.planned.cost.microseconds for one in heard) / 1000 if heard else _on_cpu(fn)
    chips = ", ".join(dict.fromkeys(one.planned.program.chip for one in heard))
    said = f"predicted for {chips}, not measured" if heard else "measured on the CPU: it launches no kernel"
    warnings.warn(f"do_bench: {found:.4g} ms are {said}", TileWarning, stacklevel=2)
    return chosen([found], quantiles, return_mode)


def chosen(times: Sequence[float], quantiles: Sequence[float] | None, mode: str) -> float | list[float]:
    """Of several times what `do_bench` is asked for."""
    import numpy as np

    if quantiles is None:
        return float(getattr(np, mode)(times))
    found = [float(q) for q in np.quantile(times, quantiles)]
    return found[0] if len(found) == 1 else found


def _on_cpu(fn: Callable[[], Any]) -> float:
    def once() -> float:
        start = time.perf_counter()
        fn()
        return (time.perf_counter() - start) * 1000

    return min(once() for _ in range(3))


class TensorSupplyType(Enum):
    """What a profiler's inputs hold. Auto is Uniform for floats and Integer for whole numbers."""

    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


def supplied(t: Tensor, kind: TensorSupplyType) -> np.ndarray:
    """An input of a tensor's shape and dtype; the same each time."""
    import numpy as np

    rng, floats = np.random.default_rng(SEED), numpy_dtype(t.dtype).kind not in "iu"
    if kind is TensorSupplyType.Auto:
        kind = TensorSupplyType.Uniform if floats else TensorSupplyType.Integer
    drawn = {
        TensorSupplyType.Integer: lambda: rng.integers(-2, 3, t.shape) if str(t.dtype)[0] != "u" else rng.integers(0, 5, t.shape),
        TensorSupplyType.Uniform: lambda: rng.uniform(-1, 1, t.shape),
        TensorSupplyType.Normal: lambda: rng.normal(-1, 1, t.shape),
        TensorSupplyType.Randn: lambda: rng.standard_normal(t.shape),
        TensorSupplyType.Zero: lambda: np.zeros(t.shape),
        TensorSupplyType.One: lambda: np.ones(t.shape),
    }
    return drawn[kind]().astype(numpy_dtype(t.dtype))


@dataclass
class Profiler:
    """Runs a compiled kernel on inputs drawn for it, compares its results, and predicts its time.

    Inputs are torch tensors where torch was imported, else NumPy arrays: one for each tensor that a call of the kernel takes.
    """

    kernel: Any
    supply_type: TensorSupplyType = TensorSupplyType.Auto
    tensors: list[Tensor] = field(init=False)

    def __post_init__(self) -> None:
        made = {*self.kernel.out_idx, *self.kernel.workspace_idx}
        self.tensors = [t for i, t in enumerate(self.kernel.kernel.tensors) if i not in made]

    def inputs(self) -> list[Any]:
        import sys

        arrays = [supplied(t, self.supply_type) for t in self.tensors]
        return [to_torch(a) for a in arrays] if "torch" in sys.modules else list(arrays)

    def _get_inputs(self, with_output: bool = False) -> list[Any]:
        """TileLang's name for `inputs`, which kernels of others use. TileError where outputs are asked for as well."""
        if with_output:
            raise TileError("a profiler draws the inputs of a call, and no outputs", help="profiler.inputs()")
        return self.inputs()

    @property
    def func(self) -> Any:
        return self.kernel

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.kernel(*args, **kwargs)

    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        """What the kernel, or `func`, gives for the inputs."""
        return (func or self.kernel)(*self.inputs())

    def do_bench(
        self,
        func: Callable[..., Any] | None = None,
        warmup: int = 25,
        rep: int = 100,
        n_warmup: int = 1,
        n_repeat: int = 1,
        input_tensors: Sequence[Any] | None = None,
        backend: str = "event",
    ) -> float:
        """Milliseconds of a call of the kernel, or of `func`, as `do_bench` has them: measured where `input_tensors` lie on an
        NPU, by `n_repeat` calls behind `n_warmup` (where one of them is 0, for `rep` and `warmup` milliseconds)."""
        given = list(input_tensors) if input_tensors is not None else self.inputs()
        found = do_bench(lambda: (func or self.kernel)(*given), warmup, rep, n_warmup, n_repeat)
        assert isinstance(found, float)
        return found

    def assert_allclose(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
    ) -> None:
        """AssertionError where more than a part `max_mismatched_ratio` of an output is not close to the reference's."""
        given = list(input_tensors) if input_tensors is not None else self.inputs()
        wanted, found = as_list(reference_program(*given)), as_list(self.kernel(*given))
        assert len(wanted) == len(found), f"the kernel gives {len(found)} tensors, the reference {len(wanted)}"
        for n, (x, y) in enumerate(zip(found, wanted, strict=True)):
            x, y = as_array(x), as_array(y)
            assert x.shape == y.shape, _other_shape(n, x.shape, y.shape)
            share = _mismatched(x, y, atol, rtol)
            assert share <= max_mismatched_ratio, f"output {n}: {share:.2%} of the elements differ from the reference's"

    def manual_assert_close(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        manual_check_prog: Callable[..., Any] | None = None,
    ) -> None:
        """Calls `manual_check_prog(outputs, reference's outputs)`."""
        given = list(input_tensors) if input_tensors is not None else self.inputs()
        if manual_check_prog is None:
            raise TileError("manual_assert_close needs manual_check_prog, which compares")
        manual_check_prog(as_list(self.kernel(*given)), as_list(reference_program(*given)))

    def assert_consistent(self, repeat: int = 10) -> None:
        """AssertionError where a run gives other bits than the first."""
        given = self.inputs()
        first = [as_array(x).tobytes() for x in as_list(self.kernel(*given))]
        for _ in range(repeat):
            again = [as_array(x).tobytes() for x in as_list(self.kernel(*given))]
            assert again == first, "the kernel's result differs from run to run"


def as_list(outputs: Any) -> list[Any]:
    return [] if outputs is None else list(outputs) if isinstance(outputs, list | tuple) else [outputs]


def as_array(value: Any) -> np.ndarray:
    import numpy as np

    return to_numpy(value, "of an output") if is_torch(value) else np.asarray(value)


def _other_shape(n: int, found: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """That an output has not the shape of the reference's, and how it gets it where only dimensions of 1 are too many."""
    told = f"output {n}: the kernel's has the shape {found}, the reference's {wanted}"
    alike = [s for s in found if s != 1] == [s for s in wanted if s != 1]
    return f"{told}: let the reference give {found}, e.g. by .reshape({', '.join(map(str, found))})" if alike else told


def _mismatched(found: np.ndarray, wanted: np.ndarray, atol: float, rtol: float) -> float:
    """The part of the elements that are not close."""
    import numpy as np

    x, y = (np.asarray(a, np.float64) for a in (found, wanted))
    return float(np.mean(~np.isclose(x, y, atol=atol, rtol=rtol, equal_nan=True))) if x.size else 0.0
