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
from tile_eg.utils.tensor import torch_assert_close

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
