"""Where an element of a reshape lies in what is reshaped."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tile_eg.errors import Span
from tile_eg.frontend.tensor.indices import Affine, Indices, unflattened
from tile_eg.frontend.tensor.shapes import Shape


def groups(old: Shape, new: Shape) -> Iterator[tuple[Shape, Shape, int]]:
    """The runs of axes that a reshape makes of others, as short as can be, each with the place of its first new axis."""
    i = j = 0
    while i < len(old) or j < len(new):
        m, n = i, j
        while (m, n) == (i, j) or (prod(old[i:m]) != prod(new[j:n]) and (m, n) != (len(old), len(new))):
            of_old = m < len(old) and (n == len(new) or prod(old[i:m]) <= prod(new[j:n]))
            m, n = (m + 1, n) if of_old else (m, n + 1)
        yield old[i:m], new[j:n], j
        i, j = m, n


def regrouped(old: Shape, new: Shape, at: Indices, span: Span | None) -> Indices:
    """The indices of the axes of an operand of which a reshape makes new ones with these indices."""
    if [n for n in old if n != 1] == [n for n in new if n != 1]:
        left = (d for d, n in zip(at, new, strict=True) if n != 1)
        return tuple(Affine() if n == 1 else next(left) for n in old)
    flat = Affine()
    for index, size in zip(at, new, strict=True):
        sums = Affine() if index.elements else index
        flat = Affine(tuple((a, s * size) for a, s in flat.terms), flat.offset * size).plus(sums)
    inner = _unflattened(flat, old, span)
    for n, index in enumerate(at):
        if index.elements:
            parts = unflattened(index, new[n], prod(new[n + 1 :]), old)
            inner = tuple(i.plus(p) for i, p in zip(inner, parts, strict=True))
    return inner


def _unflattened(flat: Affine, shape: Shape, span: Span | None) -> Indices:
    """The indices of the axes of a shape, from that of its elements in a row: sums of axes, or else quotients and rests of it."""
    out, offset = [], flat.offset
    for n, size in enumerate(shape):
        stride = prod(shape[n + 1 :])
        terms = tuple((a, s // stride) for a, s in flat.terms if stride <= s < stride * size and s % stride == 0)
        out.append(Affine(terms, offset // stride))
        offset %= stride
    back = sum(len(i.terms) for i in out)
    if back < len(flat.terms) or any(i.most >= n for i, n in zip(out, shape, strict=True)):
        return unflattened(flat, prod(shape), 1, shape)
    return tuple(out)
