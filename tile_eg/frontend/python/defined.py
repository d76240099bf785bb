"""Python in a kernel that is done when it is read: functions, lambdas, comprehensions, f-strings, indices in a tuple."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.source import FunctionSource, Source
from tile_eg.frontend.python.values import Buffer, Window, is_tile, value_buffer
from tile_eg.ir.index import Expr
from tile_eg.ops.records import record

Evaluate = Callable[[Builder, ast.expr], Any]
_CONVERSIONS: dict[int, Callable[[Any], Any]] = {-1: lambda v: v, 115: str, 114: repr, 97: ascii}


@record(eq=False)
class Defined:
    """A function of a kernel: its definition, and the names around it. `defaults` are those of its last parameters."""

    node: ast.FunctionDef | ast.Lambda
    source: Source
    names: Mapping[str, Any]
    local: Mapping[str, Any]
    defaults: tuple[Any, ...]
    only_by_name: Mapping[str, Any]

    @property
    def __name__(self) -> str:  # type: ignore[override]
        return getattr(self.node, "name", "<lambda>")

    def found(self) -> FunctionSource:
        return FunctionSource(self.source, self.node, {**self.names, **self.local})

    def signature(self) -> inspect.Signature:
        kinds = inspect.Parameter
        args = self.node.args
        plain = [*((a, kinds.POSITIONAL_ONLY) for a in args.posonlyargs), *((a, kinds.POSITIONAL_OR_KEYWORD) for a in args.args)]
        found = [kinds(a.arg, kind) for a, kind in plain]
        for n, default in enumerate(reversed(self.defaults), 1):
            found[-n] = found[-n].replace(default=default)
        found += [kinds(args.vararg.arg, kinds.VAR_POSITIONAL)] if args.vararg else []
        for a in args.kwonlyargs:
            found.append(kinds(a.arg, kinds.KEYWORD_ONLY, default=self.only_by_name.get(a.arg, kinds.empty)))
        found += [kinds(args.kwarg.arg, kinds.VAR_KEYWORD)] if args.kwarg else []
        return inspect.Signature(found)


def defined(b: Builder, node: ast.FunctionDef | ast.Lambda, evaluate: Evaluate) -> Defined:
    """The function that a definition makes, its defaults as they are here."""
    args = node.args
    by_name = {a.arg: evaluate(b, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None}
    return Defined(node, b.source, b.names, b.local, tuple(evaluate(b, d) for d in args.defaults), by_name)


def comprehended(b: Builder, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp, evaluate: Evaluate) -> Any:
    """The list (set, dictionary) that a comprehension makes; its names end with it."""
    before = dict(b.local)
    try:
        if isinstance(node, ast.DictComp):
            return {evaluate(b, node.key): evaluate(b, node.value) for _ in _rounds(b, node.generators, evaluate)}
        found = [evaluate(b, node.elt) for _ in _rounds(b, node.generators, evaluate)]
        return set(found) if isinstance(node, ast.SetComp) else found
    finally:
        b.local.clear()
        b.local.update(before)


def _rounds(b: Builder, generators: list[ast.comprehension], evaluate: Evaluate) -> Iterator[None]:
    """Each round of nested generators, with their names bound."""
    if not generators:
        yield
        return
    first, *rest = generators
    over = evaluate(b, first.iter)
    if not isinstance(over, Iterable) or is_tile(over):
        raise b.error(f"{ast.unparse(first.iter)} is not known when the kernel is compiled", first.iter)
    for value in over:
        _bind(b, first.target, value)
        if all(evaluate(b, test) for test in first.ifs):
            yield from _rounds(b, rest, evaluate)


def _bind(b: Builder, target: ast.expr, value: Any) -> None:
    if isinstance(target, ast.Name):
        b.local[target.id] = value
        return
    if not isinstance(target, ast.Tuple | ast.List):
        raise b.error(f"{ast.unparse(target)} cannot be assigned here", target)
    for t, v in zip(target.elts, value, strict=True):
        _bind(b, t, v)


class RunTimeText(str):
    """An f-string with values that only run time knows, as a format with places for these."""

    values: tuple[Any, ...] = ()


def joined_text(b: Builder, node: ast.JoinedStr, evaluate: Evaluate) -> str:
    """An f-string; a `RunTimeText` where it shows what only run time knows."""
    parts: list[str] = []
    values: dict[int, Any] = {}
    for part in node.values:
        if not isinstance(part, ast.FormattedValue):
            parts.append(str(evaluate(b, part)))
            continue
        shape = evaluate(b, part.format_spec) if part.format_spec is not None else ""
        value = evaluate(b, part.value)
        if _is_open(value):
            values[len(parts)] = value
        parts.append(_place_for(value, shape) if _is_open(value) else format(_CONVERSIONS[part.conversion](value), shape))
    if not values:
        return "".join(parts)
    made = RunTimeText("".join(p if n in values else p.replace("%", "%%") for n, p in enumerate(parts)))
    made.values = tuple(values.values())
    return made


def _is_open(value: Any) -> bool:
    """Whether only run time knows a number."""
    return isinstance(value, Window) or (isinstance(value, Expr) and value.value is None)


def _place_for(value: Any, shape: str) -> str:
    """The place of a value in a format, as Python's `shape` says: `.3f`, `5d`."""
    whole = not isinstance(value, Window) or value_buffer(value).dtype.whole
    kind = "" if shape[-1:].isalpha() else "d" if whole else "g"
    return f"%{shape}{kind}"


def bound_here(b: Builder, node: ast.NamedExpr, evaluate: Evaluate) -> Any:
    value = evaluate(b, node.value)
    b.bind(node.target.id, value, b.span(node))
    return value


def parts_of(b: Builder, buffer: Buffer, node: ast.expr, evaluate: Evaluate) -> list[ast.expr]:
    """The indices of a window, those of a tuple that is named or starred one by one."""
    if isinstance(node, ast.Name) and len(buffer.shape) > 1:
        named = evaluate(b, node)
        return [_constant(v, node) for v in named] if isinstance(named, tuple | list) else [node]
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    found: list[ast.expr] = []
    for p in parts:
        found += [_constant(v, p) for v in evaluate(b, p.value)] if isinstance(p, ast.Starred) else [p]
    return found


def _constant(value: Any, node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Constant(value), node)
