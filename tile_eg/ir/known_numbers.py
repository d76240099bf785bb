"""A kernel with the numbers that a call passes: what it means for just these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tile_eg.errors import Span
from tile_eg.ir.index import ZERO, Expr, const, read_at
from tile_eg.ir.index_elements import with_elements
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.passed import Passed


def at_numbers(kernel: Kernel, values: Mapping[str, Any]) -> Kernel:
    """The kernel with these numbers in the place of those that each call passes."""
    if not kernel.numbers:
        return kernel
    return replace(kernel, body=_known(kernel.body, values), numbers=(), wholes=())


def _as_index(e: Expr, values: Mapping[str, Any]) -> Expr:
    """An index with these numbers in the place of those that it has names for."""

    def change(read: Expr) -> Expr:
        name, place = read.args[:2]
        return const(values[name]) if name in values and place == ZERO else read_at(read, lambda e: _as_index(e, values))

    return with_elements(e, change)


def _known(x: Any, values: Mapping[str, Any]) -> Any:
    """A part of a kernel with numbers where it has names for them; what has none stays the same object."""
    if isinstance(x, Passed):
        return x.at(values)
    if isinstance(x, Expr):
        return _as_index(x, values)
    if isinstance(x, tuple):
        found = tuple(_known(item, values) for item in x)
        return found if any(a is not b for a, b in zip(found, x, strict=True)) else x
    if not is_dataclass(x) or isinstance(x, Span | type):
        return x
    parts = {f.name: getattr(x, f.name) for f in fields(x)}
    changed = {n: new for n, v in parts.items() if (new := _known(v, values)) is not v}
    return replace(x, **changed) if changed else x
