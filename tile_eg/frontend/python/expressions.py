"""Expressions of a kernel in Python: plain values are computed, indices and tile expressions are built."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from types import FunctionType
from typing import Any

from tile_eg import language
from tile_eg.errors import NotSearched, Span, TileError
from tile_eg.frontend import conditions
from tile_eg.frontend.index_bits import bits
from tile_eg.frontend.of_calls import OfCall, as_of_call, divisor
from tile_eg.frontend.python import logic, ways_out
from tile_eg.frontend.python.beside_floats import beside_floats
from tile_eg.frontend.python.bools import is_truth, truth_of
from tile_eg.frontend.python.build import Builder, Leave
from tile_eg.frontend.python.computed_vectors import computed_vector
from tile_eg.frontend.python.defined import Defined, bound_here, comprehended, defined, joined_text, parts_of
from tile_eg.frontend.python.instead import near_name, near_word
from tile_eg.frontend.python.values import (
    OPEN,
    TILE_NODES,
    Buffer,
    Item,
    Slice,
    Transposed,
    Window,
    as_dtype,
    as_tile,
    describe,
    element,
    is_index,
    is_tile,
    is_whole,
    plainly,
    value_buffer,
)
from tile_eg.frontend.python.whole_numbers import as_whole, wrapped
from tile_eg.frontend.python.word_calls import call_word, is_of_kernel
from tile_eg.frontend.python.word_users import uses_words
from tile_eg.frontend.python.words import cast, counted
from tile_eg.frontend.whole_quotients import divided
from tile_eg.frontend.windows import known_shape, length
from tile_eg.ir import index
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Binary, Choose, MatMul, Region, Unary
from tile_eg.language.kernels import ElementType, Macro
from tile_eg.language.words import Word

ARITHMETIC: dict[type[Any], tuple[str, Callable[..., Any]]] = {
    ast.Add: ("add", operator.add), ast.Sub: ("sub", operator.sub), ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv), ast.FloorDiv: ("", operator.floordiv), ast.Mod: ("", operator.mod),
    ast.Pow: ("pow", operator.pow), ast.MatMult: ("", operator.matmul), ast.LShift: ("shl", operator.lshift),
    ast.RShift: ("shr", operator.rshift), ast.BitAnd: ("and", operator.and_), ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
}  # fmt: skip
QUOTIENTS: dict[type[Any], str] = {ast.FloorDiv: "//", ast.Mod: "%"}
JOINING = (ast.BitAnd, ast.BitOr, ast.BitXor)
INDEX_OPS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)


def evaluate(b: Builder, node: ast.expr) -> Any:
    """The value of an expression; whatever goes wrong in plain Python is a TileError at its place."""
    rule = RULES.get(type(node))
    if rule is None:
        word, help = ways_out.EXPRESSIONS.get(type(node), (ast.unparse(node), ways_out.OUTSIDE))
        raise b.error(f"`{word}` has no meaning in a kernel", node, help)
    try:
        return rule(b, node)
    except TileError as e:
        e.span = e.span or b.span(node)
        raise
    except Leave:
        raise
    except Exception as e:
        raise b.error(f"this cannot be computed: {plainly(e)}", node, ways_out.of_fault(e)) from e


def _name(b: Builder, node: ast.Name) -> Any:
    for scope in (b.local, b.names, vars(builtins)):
        if node.id in scope:
            value = b.from_outside(node.id, scope[node.id]) if scope is b.names else scope[node.id]
            return b.use(node.id, b.at_call(_plain(value)), node)
    if node.id in b.ended:
        raise b.error(f"{node.id} is bound in a loop or a branch, and ends with it", node, f"bind {node.id} before that")
    raise b.error(f"unknown name `{node.id}`", node, near_name(node.id, [*b.local, *b.names]) or ways_out.BOUND)


def _plain(value: Any) -> Any:
    """A number of another library, such as NumPy's int64, as Python's own."""
    if isinstance(value, Integral) and not isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, Real) and not isinstance(value, int | float) else value


def _attribute(b: Builder, node: ast.Attribute) -> Any:
    value = evaluate(b, node.value)
    if is_tile(value) and node.attr == "T":
        return Transposed(as_tile(value, b.span(node)))
    if isinstance(value, (Buffer, Window)) and node.attr in ("shape", "dtype"):
        return value_buffer(value).written if node.attr == "shape" else value_buffer(value).dtype.name
    if hasattr(value, node.attr):
        return b.at_call(getattr(value, node.attr))
    if value is language or value is language.tile:
        prefix = ast.unparse(node.value)
        raise b.error(f"{prefix} has no word {node.attr}", node, near_word(prefix, value, node.attr))
    help = ways_out.of_attribute(ast.unparse(node.value), node.attr) if is_tile(value) else ""
    raise b.error(f"{describe(value)} has no attribute {node.attr}", node, help)


def _tuple(b: Builder, node: ast.Tuple | ast.List) -> Any:
    items = [x for e in node.elts for x in (evaluate(b, e.value) if isinstance(e, ast.Starred) else [evaluate(b, e)])]
    return tuple(items) if isinstance(node, ast.Tuple) else items


def _dict(b: Builder, node: ast.Dict) -> Any:
    found: dict[Any, Any] = {}
    for k, v in zip(node.keys, node.values, strict=True):
        found |= evaluate(b, v) if k is None else {evaluate(b, k): evaluate(b, v)}
    return found


# Arithmetic


def _binary(b: Builder, node: ast.BinOp) -> Any:
    return arithmetic(b, type(node.op), evaluate(b, node.left), evaluate(b, node.right), node)


def arithmetic(b: Builder, op: type[Any], x: Any, y: Any, node: ast.AST) -> Any:
    name, function = ARITHMETIC[op]
    if op is ast.MatMult and (is_tile(x) or is_tile(y)):
        return _product(x, y, b.span(node))
    if op in JOINING and is_truth(x) and is_truth(y):
        x, y = (truth_of(v, b.span(node)) for v in (x, y))
    if op in JOINING and (conditions.of_elements(x) or conditions.of_elements(y) or (_compares(x) and _compares(y))):
        return conditions.joined(op.__name__, x, y, b.span(node))
    x, y = (as_tile(v, b.span(node)) if conditions.of_elements(v) else v for v in (x, y))
    if op in INDEX_OPS and is_whole(x) and is_whole(y) and (b.in_index or not b.in_parallel):
        x, y = (element(v) if isinstance(v, Window) else v for v in (x, y))
    if op in QUOTIENTS and (is_tile(x) or is_tile(y)):
        x, y = (b.number(v, b.span(node)) if (found := as_whole(v)) is None else found for v in (x, y))
    if is_tile(x) or is_tile(y):
        return _tile_arithmetic(b, op, *beside_floats(b, op, x, y, b.span(node)), node)
    if (isinstance(x, Expr) or isinstance(y, Expr)) and _leaves_indices(op, x, y):
        x, y = as_of_call(x), as_of_call(y)
    if isinstance(x, Expr) or isinstance(y, Expr):
        if _leaves_indices(op, x, y):
            return _tile_arithmetic(b, op, as_tile(x, b.span(node)), as_tile(y, b.span(node)), node)
        if is_index(x) and is_index(y) and (found := bits(name, index.wrap(x), index.wrap(y))) is not None:
            return found
        if not (is_index(x) and is_index(y)) or op not in INDEX_OPS:
            symbol = ast.unparse(node) if isinstance(node, ast.BinOp) else name
            raise b.error(f"{symbol}: indices have +, -, *, // and %, and shifts and bits by constants", node)
        return function(index.wrap(x), index.wrap(divisor(y, b.span(node)) if op in QUOTIENTS else y))
    return function(x, y)


def _leaves_indices(op: type[Any], x: Any, y: Any) -> bool:
    return op in (ast.Div, ast.Pow) or isinstance(x, float | OfCall) or isinstance(y, float | OfCall)


def _compares(x: Any) -> bool:
    """Whether an index is a comparison of others."""
    return isinstance(x, Expr) and x.op in ("lt", "and")


def _product(x: Any, y: Any, span: Span) -> MatMul:
    a, b = (v.x if isinstance(v, Transposed) else as_tile(v, span) for v in (x, y))
    return MatMul(a, b, isinstance(x, Transposed), isinstance(y, Transposed), span)


def _tile_arithmetic(b: Builder, op: type[Any], x: Any, y: Any, node: ast.AST) -> Any:
    if op is ast.Pow and getattr(y, "value", None) == 2.0:
        return Binary("mul", x, x, b.span(node))
    if sign := QUOTIENTS.get(op):
        return divided(sign, x, y, b.divided_type, b.span(node))
    return Binary(ARITHMETIC[op][0], x, y, b.span(node))


def _unary(b: Builder, node: ast.UnaryOp) -> Any:
    x = evaluate(b, node.operand)
    if isinstance(node.op, ast.Not):
        return logic.opposite(b, x, node.operand)
    if isinstance(node.op, ast.Invert):
        x = truth_of(x, b.span(node))
    if conditions.of_elements(x):
        if isinstance(node.op, ast.Invert):
            return logic.opposite(b, x, node.operand)
        x = as_tile(x, b.span(node))
    if is_tile(x):
        if isinstance(node.op, ast.UAdd):
            return x
        return Unary("neg" if isinstance(node.op, ast.USub) else "not", as_tile(x, b.span(node)), b.span(node))
    if isinstance(x, Expr):
        if not isinstance(node.op, ast.USub | ast.UAdd):
            raise b.error("indices have +, -, *, // and % with integers", node)
        return 0 - x if isinstance(node.op, ast.USub) else x
    if isinstance(node.op, ast.USub):
        return -x
    return +x if isinstance(node.op, ast.UAdd) else ~x


# Windows


def _subscript(b: Builder, node: ast.Subscript) -> Any:
    value = evaluate(b, node.value)
    if isinstance(value, Window):
        raise b.error("a slice of a slice is not supported: index the buffer once", node)
    if isinstance(value, TILE_NODES):
        return computed_vector(b, value, node)
    if not isinstance(value, Buffer):
        return value[_key(b, node.slice)]
    parts = parts_of(b, value, node.slice, evaluate)
    if len(parts) == 1 and isinstance(parts[0], ast.Constant) and parts[0].value is ...:
        return Window(value, tuple(Slice(index.ZERO, n) for n in value.shape), b.span(node))
    return _window(b, value, parts, node)


def _key(b: Builder, node: ast.expr) -> Any:
    if not isinstance(node, ast.Slice):
        return evaluate(b, node)
    return slice(*(evaluate(b, e) if e is not None else None for e in (node.lower, node.upper, node.step)))


def _window(b: Builder, buffer: Buffer, parts: list[ast.expr], node: ast.Subscript) -> Window:
    axes = [p for p in parts if not _is_new_axis(p)]
    shape = buffer.written if len(axes) == len(buffer.written) else buffer.shape
    if len(axes) != len(shape):
        many, each = f"{len(axes)} {'index' if len(axes) == 1 else 'indices'}", ", ".join("ijklmn"[: len(shape)])
        help = f"an index or a slice for each: {buffer.name}[{'None, ' * (len(parts) - len(axes))}{each}]"
        raise b.error(f"{buffer.name} has {len(buffer.shape)} dimensions, got {many}", node, help)
    sizes = iter(shape)
    items = [_axis(b, p, next(sizes), buffer) if p in axes else None for p in parts]
    if shape != buffer.shape:
        _check_column(b, items.pop(), buffer, node)
    return Window(buffer, tuple(items), b.span(node))


def _is_new_axis(p: ast.expr) -> bool:
    """None, or the name that NumPy has for it."""
    return (isinstance(p, ast.Constant) and p.value is None) or (isinstance(p, ast.Attribute) and p.attr == "newaxis")


def _axis(b: Builder, node: ast.expr, size: int, buffer: Buffer) -> Item:
    """An index or a slice; that of a buffer has as many elements as there are at most."""
    item = _item(b, node, size)
    opened = isinstance(item, Slice) and item.extent == OPEN and buffer.scope != "tensor"
    return replace(item, extent=size) if opened else item  # type: ignore[type-var]


def _check_column(b: Builder, item: Item, buffer: Buffer, node: ast.AST) -> None:
    known = {**b.trips, **b.grid}
    always_0 = isinstance(item, Expr) and index.variables(item) <= known.keys() and index.bounds(item, known) == (0, 0)
    if item != Slice(index.ZERO, 1) and not always_0:
        raise b.error(f"{buffer.name} has one column", node)


def _item(b: Builder, node: ast.expr, size: int) -> Item:
    if not isinstance(node, ast.Slice):
        return _index(b, node)
    if node.step is not None and evaluate(b, node.step) != 1:
        raise b.error("a slice in a kernel has no step", node, ways_out.STEPS)
    start = _bound(b, node.lower, 0)
    extent = length(start, _bound(b, node.upper, size))
    if extent.value is None or extent.value <= 0:
        return b.counted_slice(start, extent, size, b.span(node))
    return Slice(start, extent.value)


def _bound(b: Builder, node: ast.expr | None, default: int) -> Expr:
    return index.const(default) if node is None else _index(b, node)


def _index(b: Builder, node: ast.expr) -> Expr:
    with b.indexing():
        return as_index(b, evaluate(b, node), node)


def as_index(b: Builder, value: Any, node: ast.AST) -> Expr:
    """An integer known now or at run time, as an index expression."""
    value = b.number(value, b.span(node))
    if isinstance(value, Window) and value.is_point:
        return element(value)
    if (found := as_whole(value)) is not None:
        return found
    if isinstance(value, Choose) and (found := as_whole(value, b.read_element)) is not None:
        return found
    if isinstance(value, TILE_NODES) and not isinstance(value, Region):
        kind = NotSearched if known_shape(value) == () else TileError  # one number: the scalar unit may compute it
        what, help = f"an index is a whole number, not {ast.unparse(node)}", "indices have +, -, *, // and %"
        raise kind(what, b.span(node), help=help)
    if not is_index(value):
        raise b.error(f"an index is needed here, not {describe(value)}", node)
    return index.wrap(value)


# Calls


def _call(b: Builder, node: ast.Call) -> Any:
    if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
        x = evaluate(b, node.func.value)
        if is_tile(x) or isinstance(x, index.Expr):
            return _cast(b, evaluate(b, node.args[0]), x, node)
    function = evaluate(b, node.func)
    args: list[Any] = []
    for a in node.args:
        args += evaluate(b, a.value) if isinstance(a, ast.Starred) else [evaluate(b, a)]
    kwargs: dict[str, Any] = {}
    for k in node.keywords:
        value = evaluate(b, k.value)
        if k.arg is None and not isinstance(value, dict):
            raise b.error(f"** takes a dictionary, not {describe(value)}", k.value)
        kwargs |= value if k.arg is None else {k.arg: value}
    return apply(b, function, args, kwargs, node)


def apply(b: Builder, function: Any, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """A call: words have their meaning, macros and functions of tiles are written out, the rest is plain Python."""
    if isinstance(function, Word):
        return call_word(b, function, args, kwargs, node)
    if isinstance(function, Macro):
        return b.inline(function.function, args, kwargs, node)
    if isinstance(function, Defined):
        return b.inline(function, args, kwargs, node)
    if any(function is f for f in OF_LISTS) and not any(is_tile(v) or conditions.is_condition(v) for v in args):
        return function(*args, **kwargs)
    plain = not any(map(is_of_kernel, (*args, *kwargs.values())))
    if plain and not (isinstance(function, FunctionType) and uses_words(function)):
        return b.at_call(function(*args, **kwargs))
    if isinstance(function, FunctionType):
        return b.inline(function, args, kwargs, node)
    if isinstance(function, ElementType) and len(args) == 1:
        return _cast(b, function, args[0], node)
    if function in (float, int) and len(args) == 1 and isinstance(args[0], Expr):
        return as_tile(args[0], b.span(node)) if function is float else args[0]
    if function is range and kwargs:
        raise b.error("range takes no keyword arguments", node)
    if function is range:
        return counted(b, b.span(node), *args, **kwargs)
    if function is max or function is min:
        return call_word(b, getattr(language, function.__name__), args, kwargs, node)
    if function in OF_NUMBERS and len(args) == OF_NUMBERS[function][0] and not kwargs:
        return OF_NUMBERS[function][1](b, args, node)
    raise b.error(f"{ast.unparse(node.func)} is not a word of the language", node, ways_out.of_function(function))


def _length(b: Builder, of: Any, node: ast.Call) -> int:
    """The size of a buffer's first dimension. TileError for anything else."""
    if not isinstance(of, Buffer) or not (shape := value_buffer(of).written):
        what = f"len is that of a whole buffer or tensor, not of `{ast.unparse(node.args[0])}`"
        raise b.error(what, node.args[0], "write the number itself")
    return int(shape[0])


OF_NUMBERS: dict[Any, tuple[int, Callable[[Builder, list[Any], ast.Call], Any]]] = {
    abs: (1, lambda b, args, node: call_word(b, language.abs, args, {}, node)),
    round: (1, lambda b, args, node: call_word(b, language.round, args, {}, node)),
    pow: (2, lambda b, args, node: arithmetic(b, ast.Pow, args[0], args[1], node)),
    len: (1, lambda b, args, node: _length(b, args[0], node)),
}
"""Functions of Python's that have a meaning for tiles, with the number of their arguments."""


OF_LISTS: tuple[Any, ...] = (zip, enumerate, reversed, list, tuple, len)
"""What of Python takes lists of buffers."""


def _cast(b: Builder, dtype: Any, x: Any, node: ast.AST) -> Any:
    if not isinstance(x, Expr):
        return cast(b, b.span(node), x, dtype)
    to = as_dtype(dtype, b.span(node))
    return wrapped(x, to) if to.whole else as_tile(x, b.span(node))


RULES: dict[type, Callable[..., Any]] = {
    ast.Constant: lambda b, node: node.value, ast.Name: _name, ast.Attribute: _attribute, ast.Tuple: _tuple, ast.List: _tuple,
    ast.Dict: _dict, ast.BinOp: _binary, ast.UnaryOp: _unary,
    ast.Compare: lambda b, node: logic.compared(b, node, evaluate), ast.BoolOp: lambda b, node: logic.joined(b, node, evaluate),
    ast.IfExp: lambda b, node: logic.choice(b, node, evaluate),
    ast.Subscript: _subscript, ast.Call: _call, ast.JoinedStr: lambda b, node: joined_text(b, node, evaluate),
    ast.NamedExpr: lambda b, node: bound_here(b, node, evaluate),
    ast.Lambda: lambda b, node: defined(b, node, evaluate),
    **dict.fromkeys((ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp), lambda b, n: comprehended(b, n, evaluate)),
}  # fmt: skip
