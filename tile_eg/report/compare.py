"""Are these numbers right? Arrays against the kernel's sequential meaning, as closely as its roundings allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tile_eg.ir.kernel import Alloc, Assign, For, If, Kernel, Parallel, Region, Stmt, Tensor
from tile_eg.ir.types import I8, I32, DType

if TYPE_CHECKING:
    import numpy as np

TOLERANCE = {"f16": 2.0**-9, "bf16": 2.0**-6, "f32": 2.0**-13, "i8": 0.0, "i32": 0.0}
"""Largest relative error by the coarsest element type that a result was rounded to: two units in the last place of f16 and bf16.

f32 has 2**-13, not two units: sums of a few thousand products may be taken in another order than the sequential meaning has
it (n * 2**-24 in the worst case), and the machine's exp and ln are good to some units only.
"""


@dataclass(frozen=True)
class Comparison:
    """The largest error of one output, in relative terms, and where it is; `tolerance` is what the roundings explain."""

    name: str
    error: float
    tolerance: float
    where: tuple[int, ...]

    @property
    def good(self) -> bool:
        return self.error <= self.tolerance


def compare(kernel: Kernel, got: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray]) -> list[Comparison]:
    """Every output of the kernel against what it should be; arrays by tensor name, in the tensors' shapes."""
    return [_compare(t, tolerance(kernel, t), got[t.name], want[t.name]) for t in kernel.tensors if t.output]


def relative_error(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """|got - want| over |want|, or over the median of the non-zero |want| where that is larger; inf where only one is a number.

    The median keeps cancellation near zero from looking like an error, and, unlike a constant, it follows the data's scale.
    Of whole numbers it is the difference itself.
    """
    import numpy as np

    a, b = got.astype(np.float64), want.astype(np.float64)
    if want.dtype.kind == "i":
        return np.abs(a - b)
    size = np.abs(b[np.isfinite(b) & (b != 0)])
    scale = np.maximum(np.abs(b), np.median(size) if size.size else 1.0)
    with np.errstate(invalid="ignore"):
        error = np.abs(a - b) / scale
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isfinite(a) & np.isfinite(b), error, np.inf))


def _compare(tensor: Tensor, limit: float, got: np.ndarray, want: np.ndarray) -> Comparison:
    import numpy as np

    error = relative_error(got, want)
    worst = np.unravel_index(int(np.argmax(error)), error.shape) if error.size else ()
    return Comparison(tensor.name, float(error[worst]) if error.size else 0.0, limit, tuple(int(i) for i in worst))


def tolerance(kernel: Kernel, output: Tensor) -> float:
    """The tolerance of the coarsest type among the output's and those of the buffers that hold computed values.

    A byte that numbers were rounded to may be the next one: the fixpipe holds what it multiplies by with 10 bits of mantissa.
    """
    dtypes = {a.name: a.dtype for s in _statements(kernel.body) if isinstance(a := s, Alloc)}
    computed = {a.target.name for s in _statements(kernel.body) if isinstance(a := s, Assign) and not isinstance(a.value, Region)}
    if output.dtype in (I8, I32):
        return float(output.dtype == I8 and output.name in computed)
    rounded: list[DType] = [output.dtype, *(dtypes[name] for name in computed if name in dtypes)]
    return max(TOLERANCE[d.name] for d in rounded)


def _statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    for s in body:
        yield s
        if isinstance(s, For | Parallel):
            yield from _statements(s.body)
        elif isinstance(s, If):
            yield from _statements(s.then + s.otherwise)
