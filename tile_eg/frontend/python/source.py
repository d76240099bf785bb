"""The source of a Python function: its text, its syntax tree, and the places of nodes in the file."""

from __future__ import annotations

import ast
import copy
import inspect
import linecache
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any

from tile_eg import language
from tile_eg.errors import Span, TileError
from tile_eg.frontend.python.cleared import with_numbers_assigned
from tile_eg.language.kernels import Macro
from tile_eg.ops.records import record


@record
class Source:
    """A file that a function stands in. `text` is the whole file, so that lines and columns are the user's."""

    file: str
    text: str

    def span(self, node: ast.AST) -> Span:
        line, end_line = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        column, end_column = node.col_offset, node.end_col_offset  # type: ignore[attr-defined]
        return Span(self.file, line, self._column(line, column), end_line, self._column(end_line, end_column))

    def _column(self, line: int, offset: int) -> int:
        """1-based column in characters of an offset in UTF-8 bytes."""
        text = self.text.splitlines()[line - 1] if offset else ""
        return len(text.encode()[:offset].decode(errors="ignore")) + 1


@record
class FunctionSource:
    """A function's definition (an `ast.FunctionDef`, or an `ast.Lambda`), and the values of the names that it does not define
    itself."""

    source: Source
    node: Any
    names: Mapping[str, Any]


@lru_cache(maxsize=64)
def _definitions(text: str) -> dict[tuple[int, str], ast.FunctionDef]:
    """The functions of a file by (first line, name); the first line is that of the first decorator."""
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    return {(min([n.lineno, *(d.lineno for d in n.decorator_list)]), n.name): n for n in nodes}


@lru_cache(maxsize=64)
def _lambdas(text: str) -> list[ast.Lambda]:
    return [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Lambda)]


def _range(node: ast.expr) -> tuple[tuple[int, int], tuple[int | None, int | None]]:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def _lambda(function: FunctionType, text: str) -> ast.Lambda | None:
    """A lambda's source: of several in a line, the one whose body the code says it is."""
    code = function.__code__
    found = [n for n in _lambdas(text) if n.lineno <= code.co_firstlineno <= (n.end_lineno or 0)]
    places = [p for p in code.co_positions() if None not in p and (p[0], p[2]) != (p[1], p[3])]
    if places and len(found) > 1:
        begin, end = min((p[0], p[2]) for p in places), max((p[1], p[3]) for p in places)
        found = [n for n in found if _range(n.body) == (begin, end)]
    return found[0] if len(found) == 1 else None


@record(eq=False)
class Written:
    """A function whose definition is made of another one's. `parts`: its launches, where it has several, each with the names
    that are bound there."""

    found: FunctionSource
    parts: tuple[FunctionSource, ...] = ()

    @property
    def __name__(self) -> str:
        return str(self.found.node.name)

    @property
    def __globals__(self) -> Mapping[str, Any]:
        return self.found.names


def read_function(function: FunctionType | Written, names: Mapping[str, Any] | None = None) -> FunctionSource:
    """The definition of a function. `names` are locals of where it was defined, for annotations that are strings."""
    if isinstance(function, Written):
        return function.found
    code = function.__code__
    file = inspect.getsourcefile(function) or code.co_filename
    text = "".join(linecache.getlines(file, function.__globals__))
    node: ast.FunctionDef | ast.Lambda | None = _definitions(text).get((code.co_firstlineno, code.co_name)) if text else None
    if text and code.co_name == "<lambda>":
        node = _lambda(function, text)
    if node is None:
        raise TileError(
            f"the source of {function.__name__} cannot be read ({file})", help="define the kernel in a file or in a notebook cell"
        )
    known = {**function.__globals__, **(names or {}), **_closure(function)}
    assigned = with_numbers_assigned(_annotated(node, function.__annotations__), lambda e: meant(e, known))
    return _with_launches(FunctionSource(Source(file, text), assigned, known))


def _annotated(node: ast.FunctionDef | ast.Lambda, given: Mapping[str, Any]) -> Any:
    """The definition with the types that its parameters were given behind it, in `__annotations__`."""
    more = {a.arg: given[a.arg] for a in node.args.args if a.annotation is None and a.arg in given}
    if not more:
        return node
    args = [
        ast.copy_location(ast.arg(a.arg, ast.copy_location(ast.Constant(more[a.arg]), a)), a) if a.arg in more else a
        for a in node.args.args
    ]
    arguments = ast.arguments(**{**dict(ast.iter_fields(node.args)), "args": args})
    return ast.copy_location(type(node)(**{**dict(ast.iter_fields(node)), "args": arguments}), node)


def is_launch(s: ast.stmt, names: Mapping[str, Any]) -> bool:
    """Whether a statement is a launch."""
    call = s.items[0].context_expr if isinstance(s, ast.With) else None
    return isinstance(call, ast.Call) and meant(call.func, names) is language.Kernel


def meant(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """What a name, or a word of the language, means."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and names.get(node.value.id) is language:
        return getattr(language, node.attr, None)
    return names.get(node.id) if isinstance(node, ast.Name) else None


# Macros that launch


def _with_launches(found: FunctionSource) -> FunctionSource:
    """The function with the bodies of the macros that it calls, where these launch kernels."""
    if not isinstance(found.node, ast.FunctionDef):
        return found
    names, body = dict(found.names), list[ast.stmt]()
    params = {a.arg for a in found.node.args.args}
    own = params | {n for s in found.node.body for n in _stored(s)}
    for s in found.node.body:
        written = _written_out(s, found, params, own, names)
        body += [s] if written is None else written
        own |= {n for x in written or () for n in _stored(x)}
    if body == found.node.body:
        return found
    node = ast.copy_location(ast.FunctionDef(found.node.name, found.node.args, body, found.node.decorator_list, None), found.node)
    return FunctionSource(found.source, node, names)


def _written_out(
    s: ast.stmt, found: FunctionSource, params: set[str], own: set[str], names: dict[str, Any]
) -> list[ast.stmt] | None:
    """The body of a macro that launches, with the names that a call gives it; `names` gets what it uses of its own.

    None of any other statement, and where a name of the macro's means something else in the function that calls it: one of its
    `params`, a name that is bound in it (`own`), or another value.
    """
    if (macro := called_macro(s, names)) is None:
        return None
    of = read_function(macro.function)
    given = _given(s.value, of.node)  # type: ignore[attr-defined]
    if given is None or of.source.file != found.source.file or not any(is_launch(x, of.names) for x in of.node.body):
        return None
    stored = {n for x in of.node.body for n in _stored(x)}
    free = {n.id for x in of.node.body for n in ast.walk(x) if isinstance(n, ast.Name)} - given.keys() - stored
    other = {n for n in free if n in own or (n in of.names and n in names and names[n] is not of.names[n])}
    if other or (stored - given.keys()) & (params | {*given.values()}):
        return None
    names.update({n: of.names[n] for n in free if n in of.names})
    return [_Renamed(given).visit(copy.deepcopy(x)) for x in of.node.body]


def called_macro(s: ast.stmt, names: Mapping[str, Any]) -> Macro | None:
    """The macro that a statement is a call of."""
    call = s.value if isinstance(s, ast.Expr) else None
    found = meant(call.func, names) if isinstance(call, ast.Call) else None
    return found if isinstance(found, Macro) else None


def _given(call: ast.Call, macro: ast.FunctionDef) -> dict[str, str] | None:
    """The name that a call gives each parameter of a macro that is called with names alone, returns nothing and defines no
    function; None of any other."""
    params = [a.arg for a in macro.args.args]
    pairs = [*zip(params, call.args, strict=False), *((k.arg or "", k.value) for k in call.keywords)]
    found = {name: v.id for name, v in pairs if isinstance(v, ast.Name)}
    nodes = [n for s in macro.body for n in ast.walk(s)]
    inner = {n.arg for n in nodes if isinstance(n, ast.arg)} & {*params, *found.values()}
    apart = inner or any(isinstance(n, ast.FunctionDef | ast.Return) for n in nodes)
    whole = found.keys() == {*params} and len(pairs) == len(params) and len({*found.values()}) == len(params)
    return found if whole and not apart and not macro.args.kwonlyargs and not macro.args.vararg else None


def _stored(s: ast.stmt) -> Iterator[str]:
    """The names that a statement binds, those of its lambdas too."""
    for n in ast.walk(s):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            yield n.id
        elif isinstance(n, ast.arg):
            yield n.arg


class _Renamed(ast.NodeTransformer):
    """Names by those that they are given."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = given

    def visit_Name(self, node: ast.Name) -> ast.Name:  # noqa: N802
        return ast.copy_location(ast.Name(self.given.get(node.id, node.id), node.ctx), node)


def _closure(function: FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not bound yet where the kernel was defined
            continue
    return found


def one_by_one(node: ast.With) -> ast.With:
    """`with a, b:` as `with a:` around `with b:`."""
    if len(node.items) == 1:
        return node
    inner = ast.copy_location(ast.With(node.items[1:], node.body), node)
    return ast.copy_location(ast.With(node.items[:1], [inner]), node)


def ends(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The last statement, or those that end its branches."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return [*ends(last.body), *ends(last.orelse)]
    return [] if last is None else [last]
