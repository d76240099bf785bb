"""TileLang's `testing`: what its test files ask for.

A test that needs a device runs, in the simulator or on an NPU; one that needs a kind of GPU is skipped, with the reason.
"""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable
from typing import Any

from tile_eg.errors import TileError

__all__ = ["main", "requires_cuda", "requires_package", "set_random_seed", "torch_assert_close"]


def main() -> None:
    """Runs the tests of the file that calls it, and exits."""
    import pytest

    file = inspect.getsourcefile(sys._getframe(1))
    sys.exit(pytest.main([str(file), *sys.argv[1:]]))


def set_random_seed(seed: int = 42) -> None:
    """Seeds Python, NumPy, and torch where it is loaded."""
    import numpy as np

    random.seed(seed)
    np.random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def requires_cuda(function: Any = None) -> Any:
    """The test itself: it needs a device, and there is the simulator where there is no NPU."""
    return function if function is not None else requires_cuda


def requires_package(*packages: str) -> Callable[[Any], Any]:
    """Skips a test where one of the packages is not installed."""
    from importlib.util import find_spec

    import pytest

    missing = [p for p in packages if find_spec(p) is None]
    return lambda f: pytest.mark.skipif(bool(missing), reason=f"without {', '.join(missing)}")(f)


def _needs(name: str) -> Any:
    """A mark that skips a test which needs a kind of GPU; with or without arguments."""
    import pytest

    skip = pytest.mark.skip(reason=f"{name}: kernels run on an Ascend NPU, or in the simulator")
    return lambda *args, **options: skip(args[0]) if len(args) == 1 and callable(args[0]) else skip


_KINDS = ("cuda_compute_version", "rocm", "cdna", "cuda_or_cdna", "gfx", "metal", "llvm")


def __getattr__(name: str) -> Any:
    if name.startswith(tuple(f"requires_{kind}" for kind in _KINDS)):
        return _needs(name)
    if name in ("process_func", "regression"):
        raise TileError(f"testing.{name} is not here", help="tile_eg.profiler.do_bench(f) gives the milliseconds of f")
    raise AttributeError(f"module 'tile_eg.testing' has no attribute {name!r}")


def torch_assert_close(
    tensor_a: Any,
    tensor_b: Any,
    rtol: float = 1e-2,
    atol: float = 1e-3,
    max_mismatched_ratio: float = 0.001,
    verbose: bool = False,
    equal_nan: bool = True,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    base_name: str = "LHS",
    ref_name: str = "RHS",
) -> bool:
    """True where at most a part `max_mismatched_ratio` of the elements differs by more than `atol + rtol * |tensor_b|`.

    AssertionError with the first of them otherwise, and where shapes, or what `check_...` names, are not the same.
    """
    import torch

    wanted = {"shape": True, "device": check_device, "dtype": check_dtype, "layout": check_layout, "stride": check_stride}
    for name in (n for n, asked in wanted.items() if asked):
        x, y = (v() if callable(v) else v for v in (getattr(tensor_a, name), getattr(tensor_b, name)))
        assert x == y, f"the {name} of {base_name} is {x}, that of {ref_name} {y}"
    dtype = torch.promote_types(tensor_a.dtype, tensor_b.dtype)
    x, y = tensor_a.to(dtype), tensor_b.to(dtype)
    far = ~torch.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)
    count, most = int(far.sum()), int(far.numel() * max_mismatched_ratio)
    if verbose:
        print(f"{count} of {far.numel()} elements differ ({most} may)")
    if count > most:
        at = tuple(far.nonzero()[0].tolist())
        what = f"{count} of {far.numel()} elements differ, {most} may; the first is {list(at)}"
        raise AssertionError(f"{what}: {base_name} {x[at].item():.6g}, {ref_name} {y[at].item():.6g}")
    return True
