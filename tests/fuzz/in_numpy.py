"""What a Developer kernel's text does, run statement by statement in NumPy: no frontend of ours, no schedule, no simulator.

What does not exist, beyond a tensor's end or never written, is NaN, and so is what is made of it; reductions leave it out.
Arrays are f64 that hold numbers of their buffer's type: each operation on f32 is rounded, a sum once.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Array = np.ndarray
NOTHING = float("nan")
LARGEST = 2**31 - 1
COMPARISONS = {"GT": operator.gt, "LT": operator.lt, "GE": operator.ge, "LE": operator.le, "EQ": operator.eq, "NE": operator.ne}
TO_WHOLE: dict[str, Callable[[Array], Array]] = {
    "CAST_RINT": np.rint, "CAST_FLOOR": np.floor, "CAST_CEIL": np.ceil, "CAST_TRUNC": np.trunc,
    "CAST_ROUND": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
}  # fmt: skip


def run(text: str, inputs: Iterable[Array], outputs: Iterable[tuple[tuple[Any, ...], str]]) -> list[Array]:
    """The arrays that the function `f` of a text with fixed sizes stores, each of a shape and an element type."""
    names: dict[str, Any] = {"T": Words}
    exec(re.sub(r"with T\.Kernel\((\d+).*?\) as cid:", r"for cid in range(\1):", text), names)
    out = [Buffer(np.full(shape, NOTHING), dtype) for shape, dtype in outputs]
    with np.errstate(all="ignore"):
        names["f"](*(Buffer(x.astype(np.float64), str(x.dtype)) for x in inputs), *out)
    return [buffer.array for buffer in out]


# numbers


class Value:
    """A number, f32 or whole, or NaN."""

    def __init__(self, number: Any) -> None:
        self.number = number

    def __index__(self) -> int:
        return int(self.number)

    def __bool__(self) -> bool:
        raise TypeError("what is chosen by a value is chosen by T.if_then_else")

    def __neg__(self) -> Value:
        return Value(-self.number)


def number(x: Any) -> Any:
    return x.number if isinstance(x, Value) else x


def lifted(on: Callable[..., Any]) -> Callable[..., Value]:
    """An operation on numbers as one on values: NaN if any of them is, of f32 unless all are whole."""

    def on_values(*values: Any) -> Value:
        numbers = [number(x) for x in values]
        if np.isnan(numbers).any():
            return Value(NOTHING)
        return Value(on(*(numbers if all(isinstance(x, int) for x in numbers) else map(np.float32, numbers))))

    return on_values


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "rshift", "gt", "lt", "ge", "le"):
    _on = lifted(getattr(operator, f"__{_name}__"))
    setattr(Value, f"__{_name}__", _on)
    setattr(Value, f"__r{_name}__", lambda self, other, on=_on: on(other, self))


# places


class Buffer:
    def __init__(self, array: Array, dtype: str) -> None:
        self.array, self.dtype = array, dtype

    def rounded(self, x: Any) -> Array:
        return np.asarray(x, np.float64) if "int" in self.dtype else np.asarray(x).astype(self.dtype).astype(np.float64)

    def __getitem__(self, at: Any) -> Window | Place:
        at = at if isinstance(at, tuple) else (at,)
        if any(isinstance(a, slice) for a in at):
            return Window(self, tuple(a if isinstance(a, slice) else slice(int(a), int(a) + 1) for a in at))
        return Place(self, tuple(int(a) for a in at))

    def __setitem__(self, at: Any, x: Any) -> None:
        self.array[at] = self.rounded(number(x))


class Place(Value):
    """An element; in a copy, where a window begins."""

    def __init__(self, buffer: Buffer, at: tuple[int, ...]) -> None:
        self.buffer, self.at = buffer, at

    @property
    def number(self) -> Any:  # type: ignore[override]
        inside = all(0 <= a < n for a, n in zip(self.at, self.buffer.array.shape, strict=True))
        x = self.buffer.array[self.at] if inside else NOTHING
        return int(x) if "int" in self.buffer.dtype and not np.isnan(x) else np.float32(x)

    def window(self, shape: tuple[int, ...]) -> Window:
        shape = (1,) * (len(self.at) - len(shape)) + shape
        return Window(self.buffer, tuple(slice(a, a + n) for a, n in zip(self.at, shape, strict=True)))


class Window:
    """Elements of a buffer, some of which may lie beyond its end."""

    def __init__(self, buffer: Buffer, at: tuple[slice, ...]) -> None:
        self.buffer, self.at = buffer, at
        spans = (s.indices(max(n, s.stop or 0)) for s, n in zip(at, buffer.array.shape, strict=True))
        self.shape = tuple(stop - start for start, stop, _ in spans)

    def inside(self) -> tuple[slice, ...]:
        """The part of the window that does not lie beyond the end."""
        return tuple(slice(0, n) for n in self.buffer.array[self.at].shape)

    def read(self, beyond: float = NOTHING) -> Array:
        out = np.full(self.shape, beyond)
        out[self.inside()] = self.buffer.array[self.at]
        return out

    def write(self, x: Any) -> None:
        x = self.buffer.rounded(x)
        all_of_it = np.full(self.shape, x) if x.ndim == 0 else x.reshape(self.shape)
        self.buffer.array[self.at] = all_of_it[self.inside()]


def window(x: Any, shape: tuple[int, ...] = ()) -> Window:
    """`shape` is that of a place's window."""
    if isinstance(x, Buffer):
        return Window(x, tuple(slice(0, n) for n in x.array.shape))
    return x.window(shape) if isinstance(x, Place) else x


def read(x: Any) -> Any:
    """The elements of a buffer or a window; a number."""
    return window(x).read() if isinstance(x, Buffer | Window) else number(x)


def write(to: Any, x: Any) -> None:
    window(to, np.shape(x)).write(x)


# words


def on_tiles(on: Callable[..., Array]) -> staticmethod[..., None]:
    """A word that writes what an operation makes of the tiles and numbers behind the first one."""
    return staticmethod(lambda to, *of: write(to, on(*map(read, of))))


class TileWords:
    """`T.tile`."""

    add, sub, mul, max, min = map(on_tiles, (operator.add, operator.sub, operator.mul, np.maximum, np.minimum))
    abs, relu, fill = on_tiles(np.abs), on_tiles(lambda x: np.maximum(x, 0)), on_tiles(lambda x: x)
    clamp = on_tiles(lambda x, low, high, count: np.clip(x, low, high))
    leaky_relu = on_tiles(lambda x, slope: np.where(x > 0, x, x * slope))

    @staticmethod
    def axpy(to: Buffer, a: Any, by: float) -> None:
        write(to, read(to) + read(a) * by)

    @staticmethod
    def cast(to: Buffer, a: Buffer, mode: str, count: int) -> None:
        x = read(a)
        write(to, np.clip(TO_WHOLE[mode](x), -LARGEST - 1, LARGEST) if "int" in to.dtype else x)

    @staticmethod
    def compare(mask: Buffer, a: Any, b: Any, mode: str) -> None:
        x, y = read(a), read(b)
        mask.array = np.where(np.isnan(x + y), NOTHING, COMPARISONS[mode](x, y))

    @staticmethod
    def select(to: Buffer, mask: Buffer, a: Any, b: Any, mode: str) -> None:
        x, y = read(a), read(b)
        write(to, np.where(np.isnan(mask.array) | np.isnan(x) | np.isnan(y), NOTHING, np.where(mask.array == 1, x, y)))


def reduction(along: Callable[..., Array], onto: Callable[..., Array], neutral: float) -> staticmethod[..., None]:
    def reduce(a: Any, to: Any, dim: int, clear: bool = True) -> None:
        x = read(a)
        found = along(np.where(np.isnan(x), neutral, x), axis=dim)
        found = np.where(np.isnan(x).all(dim), NOTHING, found)
        write(to, found if clear else onto(found, read(to).reshape(found.shape)))

    return staticmethod(reduce)


class Words:
    """`T`."""

    tile = TileWords
    max, min, abs, floor = (staticmethod(lifted(on)) for on in (max, min, abs, np.floor))
    reduce_sum = reduction(np.sum, np.add, 0)
    reduce_max, reduce_min = reduction(np.max, np.maximum, -np.inf), reduction(np.min, np.minimum, np.inf)
    fill = TileWords.fill

    @staticmethod
    def prim_func(f: Any) -> Any:
        return f

    @staticmethod
    def Tensor(shape: Any, dtype: str) -> None:
        return None

    @staticmethod
    def printf(*_: Any) -> None:
        return None

    @staticmethod
    def alloc_shared(shape: tuple[int, ...], dtype: str) -> Buffer:
        return Buffer(np.full(shape, NOTHING), dtype)

    alloc_fragment = alloc_shared

    @staticmethod
    def serial(trips: int) -> range:
        return range(trips)

    @staticmethod
    def Pipelined(trips: int, num_stages: int) -> range:
        return range(trips)

    @staticmethod
    def Parallel(*extents: int) -> Iterable[Any]:
        return np.ndindex(*extents) if len(extents) > 1 else range(extents[0])

    @staticmethod
    def copy(a: Any, to: Any, pad_value: float = NOTHING) -> None:
        if isinstance(a, Place):
            window(to).write(a.window(window(to).shape).read(pad_value))
        else:
            write(to, read(a))

    @staticmethod
    def gemm_v0(a: Buffer, b: Buffer, to: Buffer, transpose_B: bool, init: bool) -> None:
        """A row of an operand that does not exist makes none, whatever the others are."""
        found = np.nan_to_num(a.array) @ np.nan_to_num(b.array).T
        found[np.isnan(a.array[:, 0]), :] = found[:, np.isnan(b.array[:, 0])] = NOTHING
        write(to, found if init else found + to.array)

    @staticmethod
    def cumsum(a: Any, to: Any, dim: int) -> None:
        x = read(a)
        write(to, np.where(np.isnan(x), NOTHING, np.cumsum(np.nan_to_num(x), axis=dim)))

    @staticmethod
    def if_then_else(test: Any, a: Any, b: Any) -> Value:
        """Of two elements one, where both exist."""
        chosen = [number(x) for x in (test, a, b)]
        return Value(NOTHING if np.isnan(chosen).any() else chosen[1 if chosen[0] else 2])

    @staticmethod
    def cast(a: Any, dtype: str) -> Value:
        x = number(a)
        if np.isnan(x):
            return Value(NOTHING)
        return Value(int(np.clip(np.rint(x), -LARGEST - 1, LARGEST)) if dtype == "int32" else np.float32(np.dtype(dtype).type(x)))
