"""The names that `.tile` text may use at one place, and what they stand for."""

from __future__ import annotations

from dataclasses import dataclass, field

from tile_eg.errors import FollowUp, Span, TileError, did_you_mean
from tile_eg.frontend.scalars import CONSTANTS, Scalar
from tile_eg.ir import index as ix
from tile_eg.ir.kernel import Alloc, Tensor


def fresh(name: str, taken: set[str]) -> str:
    """`name`, or the first of name_1, name_2, ... that is free; it is taken from now on."""
    out, n = name, 0
    while out in taken:
        n += 1
        out = f"{name}_{n}"
    taken.add(out)
    return out


@dataclass
class Scope:
    """`elements` are the variables of the element loop in which the text stands, where buffers and tensors are indexed one
    element at a time; `failed` are names whose declaration is wrong, `bools` those that hold bools."""

    file: str
    scalars: dict[str, Scalar] = field(default_factory=dict)
    arrays: dict[str, Tensor | Alloc] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)
    elements: tuple[str, ...] = ()
    failed: set[str] = field(default_factory=set)
    bools: set[str] = field(default_factory=set)

    def known(self, name: str) -> bool:
        return name in self.scalars or name in self.arrays

    def define(self, name: str, value: Scalar | Tensor | Alloc, span: Span) -> None:
        """Binds a new name; TileError where it is bound already."""
        if self.known(name) or name in CONSTANTS:
            notes = (("it is defined here", self.places[name]),) if name in self.places else ()
            raise TileError(f"`{name}` is defined twice", span, notes=notes)
        self.places[name] = span
        if isinstance(value, Tensor | Alloc):
            self.arrays[name] = value
            self.variables.add(name)
        else:
            self.scalars[name] = value

    def open_variable(self, name: str, span: Span, start: ix.Expr = ix.ZERO) -> str:
        """Binds a loop variable, which counts from `start` there, for the body that follows; its name in the kernel, unique
        there, is returned."""
        unique = fresh(name, self.variables)
        self.define(name, start + ix.var(unique), span)
        return unique

    def close_variable(self, name: str) -> None:
        del self.scalars[name], self.places[name]

    def array(self, name: str, span: Span) -> Tensor | Alloc:
        """The tensor or buffer called `name`; TileError with near names where there is none."""
        if name in self.failed:
            raise FollowUp(span)
        if name in self.arrays:
            return self.arrays[name]
        if self.known(name):
            raise TileError(f"`{name}` is a number, not a buffer or a tensor", span)
        raise self.unknown(name, span)

    def unknown(self, name: str, span: Span) -> TileError:
        return TileError(f"unknown name `{name}`", span, help=did_you_mean(name, [*self.scalars, *self.arrays]))
