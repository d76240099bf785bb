"""`T.printf`, `T.dump_tensor` and assertions in a kernel that is kept: what they print comes from the simulator."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.conditions import either, is_condition, opposite
from tile_eg.frontend.expert import variables
from tile_eg.frontend.expert.reader import ExpertReader, On
from tile_eg.frontend.expert.scalars import formula, is_scalar
from tile_eg.frontend.python.bools import as_condition
from tile_eg.frontend.python.defined import RunTimeText
from tile_eg.frontend.python.source import one_by_one
from tile_eg.frontend.python.values import Buffer, Window, as_region, describe, is_tile
from tile_eg.frontend.python.words import known
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ops.types import Level

CONVERSION = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l)?(.)", re.S)
WHOLE, REAL = "diuxXc", "feEgG"


def _printf(r: ExpertReader, span: Span, text: Any, *args: Any) -> None:
    if not isinstance(text, str):
        raise TileError(f"a format is a text, not {describe(text)}", span)
    r.emit(pr.Print(*_formatted(r, span, text, args), span=span))


def _formatted(r: ExpertReader, span: Span, text: str, args: tuple[Any, ...]) -> tuple[str, tuple[pr.Formula, ...]]:
    """A format and its values as the scalar unit prints them. TileError where they do not go together."""
    args = (*text.values, *args) if isinstance(text, RunTimeText) else args
    text, args = _with_texts(text, args)
    kinds = [m[1] for m in CONVERSION.finditer(text) if m[1] != "%"]
    if len(kinds) != len(args):
        raise TileError(f"the format has {len(kinds)} places, and {len(args)} values are given", span)
    found = []
    for kind, value in zip(kinds, args, strict=True):
        if kind not in WHOLE + REAL or not is_scalar(value):
            what = f"%{kind}" if kind not in WHOLE + REAL else describe(value)
            raise TileError(f"{what} cannot be printed", span, help="numbers can: %d and %x of whole ones, %f and %g of others")
        f = formula(r, value, span)
        found.append(pr.Formula("cast", (f,), kind in WHOLE) if f.whole != (kind in WHOLE) else f)
    return text, tuple(found)


def _with_texts(text: str, args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The format with the texts among its values put into it."""
    left = list(args)
    kept: list[Any] = []

    def shown(m: re.Match[str]) -> str:
        value = left.pop(0) if left and m[1] != "%" else None
        if m[1] == "s" and isinstance(value, str):
            return (m[0] % value).replace("%", "%%")
        kept.extend([value] if value is not None else [])
        return m[0]

    return CONVERSION.sub(shown, text), (*kept, *left)


def _dump_tensor(r: ExpertReader, span: Span, tensor: Any, desc: Any, dump_size: Any, shape_info: Any = ()) -> None:
    if not isinstance(tensor, Buffer | Window):
        raise TileError(f"a buffer or a tensor is shown, not {describe(tensor)}", span)
    place = r.place(as_region(tensor, span), span, Level.UB, Level.GM)
    count, number = known(dump_size, "how many elements are shown", span), known(desc, "the number of what is shown", span)
    if not 0 < count <= place.count or not 0 <= number < 2**32:
        raise TileError(f"{count} elements of {place.count} cannot be shown under {number}", span)
    node = pr.Print(shown=place.operand, id=number, count=count, span=span)
    r.statements.append(On(pr.AIV if place.level is Level.UB else r.core, node))  # type: ignore[arg-type]


def _print(r: ExpertReader, span: Span, obj: Any, msg: Any = "", *_: Any, **__: Any) -> None:
    """A number in a line; of a buffer a line, and its elements row by row where these do not lie behind one another."""
    before = f"{msg} " if msg else ""
    if not isinstance(obj, Buffer | Window) or is_scalar(obj):
        if isinstance(obj, str) or not is_scalar(obj):
            raise TileError(f"{describe(obj)} cannot be printed", span, help="numbers and buffers can")
        f = formula(r, obj, span)
        return r.emit(pr.Print(before.replace("%", "%%") + ("%d\n" if f.whole else "%f\n"), (f,), span=span))
    if r.in_parallel:
        raise TileError("T.print inside T.Parallel is not supported", span, help="print the buffer behind the loop")
    place = r.place(as_region(obj, span), span, Level.UB, Level.GM)
    name = obj.name if isinstance(obj, Buffer) else obj.buffer.name
    r.emit(pr.Print(f"{before}{name}\n".replace("%", "%%"), span=span))
    rows, cols = (1, place.count) if place.whole else (place.rows, place.cols)
    core = pr.AIV if place.level is Level.UB else r.core
    for i in range(rows):
        shown = place.operand if i == 0 else _row(place.operand, i)
        r.statements.append(On(core, pr.Print(shown=shown, id=i, count=cols, span=span)))  # type: ignore[arg-type]
    return None


def _row(operand: pr.Gm | pr.Tile, i: int) -> pr.Gm | pr.Tile:
    """A window that begins so many rows further down."""
    if isinstance(operand, pr.Gm):
        return replace(operand, offset=operand.offset + i * operand.stride)
    return replace(operand, row=operand.row + i)


def _check(r: ExpertReader, span: Span, condition: Any, msg: Any = "") -> None:
    """A fault with a message where a condition on indices, or on elements that are there, does not hold."""
    condition = as_condition(condition, span)
    if is_tile(condition) or not (is_condition(condition) or isinstance(condition, bool)):
        raise TileError(f"an assertion is a condition, not {describe(condition)}", span, help="it compares: x[i] > 0, i < n")
    if isinstance(condition, bool):
        if not condition:
            raise TileError(f"the assertion does not hold{f': {msg}' if msg else ''}", span)
        return
    test = variables.condition(r, condition, span)
    there = ix.ONE if r.ends is None else r.ends.meant(test)
    holds = test if there.value == 1 else either(opposite(there, None), test, span)
    told = _formatted(r, span, msg, ()) if isinstance(msg, RunTimeText) else (str(msg).replace("%", "%%"), ())
    r.emit(pr.Print(*told, holds=holds, span=span))  # type: ignore[arg-type]


def launched(r: ExpertReader, node: ast.FunctionDef) -> tuple[ast.With, list[ast.stmt]]:
    """The launch of a kernel, and what is printed behind it; what is printed before it begins the body."""
    launches = [n for n, s in enumerate(node.body) if isinstance(s, ast.With)]
    if len(launches) != 1:
        raise r.error(f"{node.name} has to have one `with T.Kernel(...)`", node.body[-1])
    at = launches[0]
    r.run(node.body[:at])
    before: list[Any] = list(r.statements)
    if other := [on.node for on in before if not isinstance(on.node, pr.Print)]:
        raise TileError("tiles can be used only inside `with T.Kernel(...)`", getattr(other[0], "span", None))
    for s in node.body[at + 1 :]:
        if not isinstance(s, ast.Expr):
            raise r.error("behind `with T.Kernel(...)` a kernel can print, and nothing else", s)
    launch = node.body[at]
    assert isinstance(launch, ast.With)
    return one_by_one(launch), node.body[at + 1 :]


WORDS: dict[str, Callable[..., Any]] = {"printf": _printf, "print": _print, "dump_tensor": _dump_tensor, "device_assert": _check}
