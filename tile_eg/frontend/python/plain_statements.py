"""Statements of plain Python that are done when a kernel is read: imports, functions, assertions, and what is raised."""

from __future__ import annotations

import ast
from importlib import import_module
from typing import Any

from tile_eg import language
from tile_eg.frontend.conditions import of_elements
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.defined import defined
from tile_eg.frontend.python.expressions import evaluate
from tile_eg.frontend.python.plain_lists import changed, seen
from tile_eg.frontend.python.values import NewBuffer, describe, is_tile
from tile_eg.frontend.python.written_out import MOST
from tile_eg.ir.index import Expr

_ABOVE = "write it above the kernel, at the top of the file: names of the file are known in the kernel"


def imported(b: Builder, node: ast.Import) -> None:
    """`import a.b`, `import a as b`: a name for a module."""
    for name in node.names:
        module = _module(b, name.name, node)
        top, _, rest = name.name.partition(".")
        b.bind(name.asname or top, module if name.asname or not rest else import_module(top), b.span(node))


def imported_from(b: Builder, node: ast.ImportFrom) -> None:
    """`from a import b`."""
    if node.level or node.module is None or any(n.name == "*" for n in node.names):
        raise b.error(f"{ast.unparse(node)} is not done in a kernel", node, _ABOVE)
    module = _module(b, node.module, node)
    for n in node.names:
        if not hasattr(module, n.name):
            raise b.error(f"{node.module} has no {n.name}", node)
        b.bind(n.asname or n.name, getattr(module, n.name), b.span(node))


def _module(b: Builder, name: str, node: ast.AST) -> Any:
    try:
        return import_module(name)
    except ImportError as e:
        raise b.error(f"there is no module {name}: {e}", node) from e


def raised(b: Builder, node: ast.Raise) -> None:
    """What an author refuses when the kernel is read: TileError, with what is said. One that only a run decides is refused."""
    if b.outer:
        help = "write T.device_assert(condition, message): the simulator tells where it does not hold"
        raise b.error("nothing is raised while a kernel runs", node, help)
    fault = evaluate(b, node.exc) if node.exc is not None else "an exception"
    said = f"{type(fault).__name__}: {fault}" if isinstance(fault, BaseException) else getattr(fault, "__name__", describe(fault))
    raise b.error(f"the kernel raises {said}", node)


def asserted(b: Builder, node: ast.Assert) -> None:
    test = evaluate(b, node.test)
    if isinstance(test, Expr) or is_tile(test) or of_elements(test):
        b.asserted(test, None if node.msg is None else evaluate(b, node.msg), node)
        return
    if not test:
        why = f": {evaluate(b, node.msg)}" if node.msg else ""
        raise b.error(f"assertion failed{why}", node)


def function_defined(b: Builder, node: ast.FunctionDef) -> None:
    """A function, or a macro, that stands in a kernel."""
    marks = [evaluate(b, d) for d in node.decorator_list]
    if any(m is not language.macro for m in marks):
        raise b.error("in a kernel a function has no decorator but T.macro", node)
    b.bind(node.name, defined(b, node, evaluate), b.span(node))


def deleted(b: Builder, node: ast.Delete) -> None:
    """`del x`: the name means nothing from here on; `del x[i]` takes an item out of a list or a dict of Python."""
    for target in node.targets:
        match target:
            case ast.Name(id) if id in b.local:
                del b.local[id]
            case ast.Name(id):
                raise b.error(f"`{id}` is not bound in this kernel", target, "del takes names that it binds")
            case ast.Subscript() if isinstance(held := evaluate(b, target.value), list | dict):
                del held[evaluate(b, target.slice)]
            case _:
                raise b.error(f"{ast.unparse(target)} cannot be deleted", target, "del takes names, and items of lists and dicts")


def loaded(target: ast.expr) -> ast.expr:
    """The place of `x += y` as a value."""
    if not isinstance(target, ast.Subscript):
        return target
    return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)


def item_assigned(b: Builder, held: list[Any] | dict[Any, Any], index: Any, value: Any, node: ast.expr) -> None:
    """`d[i] = x` of a list or a dict of Python."""
    if isinstance(value, NewBuffer):
        raise b.error("a buffer in a list or a dict needs a name of its own", node, "name it first: x = T.alloc_shared(...)")
    held[index] = value


def check_lists(b: Builder, node: ast.stmt) -> None:
    """TileError where a statement in a loop or a branch has changed a list of Python from before it: that happened once, as the
    kernel was read."""
    if (name := changed(b.lists)) is not None:
        b.lists = seen({name: value for name, (value, _) in b.lists.items()})
        help = f"write a loop of a known number, at most {MOST} trips, which is written out; or keep what changes in a buffer"
        raise b.error(f"{name} changes inside a loop or branch, which is read once, and not each time that it runs", node, help)
