"""Sizes that are known at run time: as leaves of index expressions, and what they decide beside these, the shapes of tensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache

from tile_eg.ir.index import Expr, evaluate, substitute
from tile_eg.ops.records import record

MOST_GAP = 2**32 - 1
"""The bytes from a row of a window to the next that an instruction's field holds."""


def size(name: str, usual: int) -> Expr:
    """A size that is known at run time, and `usual` where a number is asked for."""
    return Expr("size", (name, usual))


@lru_cache(maxsize=65536)
def sizes_in(e: Expr) -> frozenset[Expr]:
    """The sizes known at run time that e depends on."""
    if e.op == "size":
        return frozenset((e,))
    return frozenset().union(*(sizes_in(a) for a in e.args if isinstance(a, Expr)))


def usual(x: Expr | int) -> int:
    """A number, or what an expression of sizes is at those that stand for them."""
    return evaluate(x, {}) if isinstance(x, Expr) else x


@record
class Sizes:
    """`usual` are the sizes by name, with the numbers that stand for them where one is asked for: what is priced.

    `blocks` counts launch blocks, `grid` has the extents of the grid of tiles, `shapes` those of each tensor. `strides` are the
    elements between two rows of windows: tensor, the number for the usual sizes, the expression. `multiples` are numbers that
    sizes are known to be multiples of; `order` are two sizes of which the first one is never the larger. `shared` has the shapes
    of tensors that blocks share, by name, where sizes decide them.
    """

    usual: tuple[tuple[str, int], ...]
    blocks: Expr
    grid: tuple[Expr, ...]
    shapes: tuple[tuple[Expr, ...], ...]
    strides: tuple[tuple[str, int, Expr], ...] = ()
    multiples: tuple[tuple[str, int], ...] = ()
    order: tuple[str, str] | None = None
    shared: tuple[tuple[str, tuple[Expr, ...]], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.usual)

    def stride(self, tensor: str, number: int) -> Expr | int:
        """The elements between two rows of a window, where they were this number."""
        return next((e for name, n, e in self.strides if (name, n) == (tensor, number)), number)

    def whole(self, e: Expr, by: int) -> bool:
        """Whether e is a size that is known to be a multiple of a number."""
        return e.op == "size" and dict(self.multiples).get(e.args[0], 1) % by == 0

    def at(self, sizes: Mapping[str, int]) -> Sizes:
        """The same with other numbers for the sizes."""
        other = self.meaning(sizes)
        blocks, grid = substitute(self.blocks, other), tuple(substitute(e, other) for e in self.grid)
        shapes = tuple(tuple(substitute(e, other) for e in shape) for shape in self.shapes)
        strides = tuple((name, evaluate(e, dict(sizes)), substitute(e, other)) for name, _, e in self.strides)
        usual = tuple((n, sizes[n]) for n in self.names)
        shared = tuple((name, tuple(substitute(e, other) for e in shape)) for name, shape in self.shared)
        return replace(self, usual=usual, blocks=blocks, grid=grid, shapes=shapes, strides=strides, shared=shared)

    def with_shared(self, name: str, shape: tuple[Expr, ...]) -> Sizes:
        """With a tensor of this shape that blocks share, of which windows have a row for each of its last dimension."""
        if not any(map(sizes_in, shape)):
            return self
        stride = [(name, usual(shape[-1]), shape[-1])] if sizes_in(shape[-1]) else []
        return replace(self, shared=(*self.shared, (name, shape)), strides=(*self.strides, *stride))

    def without_shared(self, names: Collection[str]) -> Sizes:
        """Without these tensors that blocks share."""
        strides = tuple(s for s in self.strides if s[0] not in names)
        return replace(self, shared=tuple(s for s in self.shared if s[0] not in names), strides=strides)

    def meaning(self, sizes: Mapping[str, int]) -> dict[str, Expr]:
        """What stands in index expressions for sizes that are these."""
        return {n: size(n, sizes[n]) for n in self.names}
