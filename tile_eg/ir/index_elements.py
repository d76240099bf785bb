"""Elements of tensors in index expressions: `W[idx[i], :]`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from tile_eg.ir.index import ONE, ZERO, Expr, Indices, div, from_terms, read, terms_of, with_operands


def place_in(shape: Sequence[int], indices: Sequence[Expr]) -> Expr:
    """Where an element lies in a tensor or buffer of this shape, counted from the first one; an index for each dimension."""
    place = ZERO
    for index, size in zip(indices, shape, strict=True):
        place = place * size + index
    return place


def element(name: str, shape: Sequence[int], indices: Sequence[Expr]) -> Expr:
    """An element of a tensor or buffer of whole numbers, as an index."""
    return read(name, place_in(shape, indices), indices=tuple(zip(indices, shape, strict=True)) if len(shape) > 1 else ())


def indices_of(read: Expr, count: int) -> Indices:
    """The indices of an element, each with the size of its dimension; `count` elements are there."""
    return read.args[3] or ((read.args[1], count),)


@lru_cache(maxsize=65536)
def elements_in(e: Expr) -> frozenset[Expr]:
    """The elements of tensors that e is made of, not those that these are made of."""
    if e.op in ("const", "var", "size"):
        return frozenset()
    return frozenset((e,)) if e.op == "read" else frozenset().union(*map(elements_in, e.args))


def all_elements_in(e: Expr) -> set[Expr]:
    """The elements of tensors that e is made of, and those of which their places are."""
    return {x for r in elements_in(e) for x in (r, *all_elements_in(r.args[1]))}


def with_elements(e: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """e with something else in place of each of the elements in it."""
    if not elements_in(e):
        return e
    if e.op == "read":
        return change(e)
    return with_operands(e, [with_elements(a, change) for a in e.args])


def inside_of(e: Expr, most: int) -> Expr:
    """e, which is `most` at most, with what follows from it for the elements of tensors in it."""
    if not elements_in(e):
        return e
    if e.op == "read":
        return read(e.args[0], e.args[1], max(0, min(e.args[2], most)), e.args[3])
    if e.op == "div" and e.args[1].value:
        return div(inside_of(e.args[0], (most + 1) * e.args[1].value - 1), e.args[1])
    if e.op in ("add", "mul"):
        terms = terms_of(e)
        if len(terms) > 1 or next(iter(terms)) != e:
            rest = most - terms.get(ONE, 0)
            sure = all(c > 0 for k, c in terms.items() if k != ONE)
            return from_terms({inside_of(k, rest // c) if sure and k != ONE else k: c for k, c in terms.items()})
    return e
