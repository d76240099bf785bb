"""A function of the user's, in NumPy or torch, that says what a kernel's outputs should be."""

from __future__ import annotations

import importlib
import inspect
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_eg.errors import TileError, did_you_mean
from tile_eg.ir import accuracy as ac
from tile_eg.ir.kernel import Tensor
from tile_eg.jit.arrays import knows_torch, to_numpy, to_torch

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.ir.reference_bounds import Expected

Function = Callable[..., Any]
COARSEST = {"f16": 2.0**-8, "bf16": 2.0**-5, "f32": 2.0**-12}
"""What is allowed of 1 + |value|, by the output's type, where nothing is known of the roundings inside a kernel."""
OWN_SIDES = 2
"""Half steps of the type that the function returns: the rounding of its result, and of one operation before it."""


def function_at(where: str) -> Function:
    """The function that `module:name` or `file.py:name` names; of a file with one public function, its path alone.

    The module or the file is executed. TileError where there is no such function.
    """
    place, _, name = where.partition(":") if not where.endswith(".py") else (where, "", "")
    names = _names_in(place, where)
    functions = {n: f for n, f in names.items() if inspect.isfunction(f) and not n.startswith("_")}
    if not name:
        own = {n: f for n, f in functions.items() if f.__code__.co_filename == str(Path(place))}
        if len(own) != 1:
            known = ", ".join(own) or "none"
            raise TileError(f"--against {where}: the file has not one function but {known}", help=f"name it: {where}:FUNCTION")
        return next(iter(own.values()))
    found = names.get(name)
    if not callable(found):
        raise TileError(f"--against {where}: there is no function '{name}' in '{place}'", help=did_you_mean(name, functions))
    return found  # type: ignore[no-any-return]


def _names_in(place: str, where: str) -> Mapping[str, Any]:
    try:
        if place.endswith(".py"):
            return runpy.run_path(place, run_name=Path(place).stem)
        sys.path.insert(0, "")
        try:
            return vars(importlib.import_module(place))
        finally:
            sys.path.remove("")
    except (Exception, SystemExit) as error:
        what = f"--against {where}: '{place}' cannot be loaded: {type(error).__name__}: {error}"
        raise TileError(what, help="name a function as module:name, or as file.py:name") from error


def expected_by(
    function: Function,
    tensors: Sequence[Tensor],
    arrays: Mapping[str, np.ndarray],
    meant: Mapping[str, Expected] | None,
    outputs: Sequence[str] | None = None,
) -> dict[str, Expected]:
    """What the function says of the outputs, with the bounds that the kernel's meaning has of them.

    It gets the inputs in their order (torch tensors if its module knows torch, copies in any case), and returns an output, a
    tuple of outputs, or a dict of some by name. `outputs` are their names, in order, where those are not all that the kernel
    writes. Where nothing is meant, `COARSEST` is allowed. TileError for anything else that it returns or raises.
    """
    made = _called(function, [arrays[t.name].copy() for t in tensors if t.name in arrays])
    names = list(outputs) if outputs is not None else [t.name for t in tensors if t.output]
    given = _named(function, made, names)
    known = {t.name: t for t in tensors}
    return {name: _expected(function, known[name], value, (meant or {}).get(name)) for name, value in given.items()}


def name_of(function: Function) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _called(function: Function, arrays: Sequence[np.ndarray]) -> Any:
    torch = knows_torch(getattr(function, "__globals__", {}))
    try:
        return function(*(to_torch(a) if torch else a for a in arrays))
    except TileError:
        raise
    except Exception as error:
        what = f"{name_of(function)} failed on the kernel's {len(arrays)} inputs: {type(error).__name__}: {error}"
        raise TileError(what, help="it gets the inputs in their order, and returns what the kernel should compute") from error


def _named(function: Function, made: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
    """What a function returned, by the outputs' names."""
    if isinstance(made, Mapping):
        for name in made:
            if name not in names:
                what = f"{name_of(function)} returned '{name}', and the kernel has no such output"
                raise TileError(what, help=did_you_mean(str(name), names))
        pairs = list(made.items())
    else:
        values = list(made) if isinstance(made, tuple | list) else [made]
        if len(values) != len(names):
            counts = f"{len(values)} array{'s' * (len(values) != 1)}, and the kernel has {len(names)} ({', '.join(names)})"
            raise TileError(f"{name_of(function)} returned {counts}", help="return them in order, or a dict of some of them")
        pairs = list(zip(names, values, strict=True))
    return {name: _array(value, f"{name} of {name_of(function)}") for name, value in pairs}


def _array(value: Any, name: str) -> np.ndarray:
    import numpy as np

    return np.asarray(value) if isinstance(value, float | int | np.generic) else to_numpy(value, name)


def _expected(function: Function, t: Tensor, value: np.ndarray, meant: Expected | None) -> Expected:
    import numpy as np

    from tile_eg.ir.reference_bounds import Expected

    ones = tuple(n for n in value.shape if n != 1), tuple(n for n in t.shape if n != 1)
    if value.shape != t.shape and ones[0] != ones[1]:
        raise TileError(f"{name_of(function)} returned {t.name} of shape {value.shape}, and the kernel's has {t.shape}")
    wide = value.reshape(t.shape).astype(np.float64)
    if value.dtype.kind in "iub" and t.dtype.whole:
        return Expected(wide, meant.allowed if meant else np.zeros(t.shape))
    size = np.where(np.isfinite(wide), np.abs(wide), 0.0)
    if meant is None:
        return Expected(wide, COARSEST.get(t.dtype.name, 0.0) * (1 + size))
    return Expected(wide, meant.allowed + OWN_SIDES * ac.HALF_STEP.get(value.dtype.name, 0.0) * size)
