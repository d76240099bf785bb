"""Whether a chip has the element types of a kernel: floats of 8 and of 4 bits, and scales, are on the 950 alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.ir.index import Expr
from tile_eg.ops.types import NARROW, SCALED, DType


def check_types(
    tree: Any, chip: str, there: Collection[str], others: Callable[[], Sequence[str]],
    spans: Mapping[str, Span | None] | None = None,
) -> None:  # fmt: skip
    """TileError where nodes have a float of 8 bits or scales that are not `there`: the element types of which the chip's cube
    core makes products. `others` are the chips that have them all, `spans` the places of nodes without one of their own."""
    for node in _typed(tree):
        if node.dtype in NARROW and node.dtype.name not in there:
            raise _absent(f"{node.dtype} is a float of 8 bits, and {chip} has none", node, others, spans or {})
        if node.dtype.scale and not {d.name for d in SCALED.values()} <= set(there):
            message = f"e8m0 are scales of products of small floats, and {chip} has no such products"
            raise _absent(message, node, others, spans or {})


def _absent(message: str, node: Any, others: Callable[[], Sequence[str]], spans: Mapping[str, Span | None]) -> TileError:
    name = next(iter(others()), "")
    help = f'chip="{name}" in Python, --chip {name} on the command line; else take f16 or bf16'
    return TileError(message, getattr(node, "span", None) or spans.get(node.name), help=help)


def _typed(tree: Any) -> Iterator[Any]:
    """The nodes of a kernel that have an element type."""
    if isinstance(tree, tuple):
        for part in tree:
            yield from _typed(part)
    elif is_dataclass(tree) and not isinstance(tree, (Expr, DType, Span)):
        if hasattr(tree, "dtype"):
            yield tree
        for f in fields(tree):
            if f.compare:
                yield from _typed(getattr(tree, f.name))
