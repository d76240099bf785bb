"""Kernels, their parameters and the functions that they call, as objects; what they mean is read from their source."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from tile_eg.errors import TileError
from tile_eg.language.data_type import DataType
from tile_eg.language.words import at_frame
from tile_eg.ops.records import record


class _Subscripted(type):
    """`T.Tensor[(M, K), "float16"]`, as TVM's authors write it."""

    def __getitem__(cls, arguments: Any) -> Any:
        return cls(*arguments) if isinstance(arguments, tuple) and len(arguments) == 2 else cls(arguments)


@record(eq=False)
class TensorType(metaclass=_Subscripted):
    """The annotation of a GM tensor argument: `A: T.Tensor((M, K), "float16")`."""

    shape: Any
    dtype: Any = "float32"


Tensor = Buffer = SharedBuffer = FragmentBuffer = TensorType
"""What is said of a macro's parameters is for the reader: a buffer has its own shape and type."""


class ElementType(DataType):
    """A dtype as an object (`T.float16`), its name at the same time; calling it makes a constant: `T.float32(0.5)`."""

    @property
    def name(self) -> str:
        return str(self)

    def __call__(self, value: Any = 0) -> Any:
        if hasattr(value, "__tile_word__"):
            return value.__tile_word__("cast", (value, self.name), {})
        return int(value) if "int" in self.name else float(value)

    def __repr__(self) -> str:
        return f"T.{self}"


@dataclass(frozen=True, eq=False)  # a record would seem to mypy to bind the function
class PrimFunc:
    """A kernel's function with the names that were visible where it was defined.

    `once`: a second name `_` of the launch does not stand for the vector cores of a block; its body runs once. `made`: so many of
    its last tensors are made by a call (`T.alloc_global`).
    """

    function: FunctionType
    names: dict[str, Any] = field(repr=False)
    once: bool = False
    made: int = 0

    def __call__(self, *args: Any) -> Any:
        message = f"{self.function.__name__} is a kernel and has to be compiled first"
        help = "put @tile_eg.jit on it, or on the function that returns it"
        raise at_frame(TileError(message, help=help), sys._getframe(1))


@dataclass(frozen=True, eq=False)
class Macro:
    """A function that is written out where it is called in a kernel."""

    function: FunctionType

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        message = f"the macro {self.function.__name__} has a meaning only inside a function under @T.prim_func"
        raise at_frame(TileError(message), sys._getframe(1))


def prim_func(function: FunctionType) -> PrimFunc:
    """Marks a function as a kernel; its parameters are GM tensors, its body is one `with T.Kernel(...)`."""
    return PrimFunc(function, dict(sys._getframe(1).f_locals))


def macro(function: FunctionType) -> Macro:
    """Marks a function that is written out where a kernel calls it."""
    return Macro(function)
