"""Calls of the language's words: their arguments by the word's signature, and what its handler makes of them."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from tile_eg.frontend import conditions
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.dialect_words import HANDLERS
from tile_eg.frontend.python.instead import instead
from tile_eg.frontend.python.refused import refuse
from tile_eg.frontend.python.values import NewBuffer, is_tile
from tile_eg.frontend.python.ways_out import of_arguments
from tile_eg.language.words import Word, missing


def is_of_kernel(value: Any) -> bool:
    """A value that plain Python cannot compute with."""
    if isinstance(value, (list, tuple)):
        return any(map(is_of_kernel, value))
    return is_tile(value) or conditions.is_condition(value)


def call_word(b: Builder, word: Word, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    handlers = b.handlers or HANDLERS
    if word.level != "developer" and word.name not in handlers:
        raise instead(missing(word, b.span(node.func)), word.name)
    try:
        bound = word.signature.bind(*args, **kwargs)
    except TypeError as e:
        raise b.error(f"T.{word.name}: {e}", node, of_arguments(f"T.{word.name}", word.signature, kwargs)) from e
    refuse(word.name, bound.arguments, b.span(node))
    if word.number and not any(is_of_kernel(v) for v in (*args, *kwargs.values())):
        return b.at_call(word.number(*args, **kwargs))
    bound.apply_defaults()
    if word.name not in handlers and b.handlers is not None:
        help = "leave flags, barriers and scopes away: then the order is found, and this word has a meaning"
        raise b.error(f"T.{word.name} is not supported in a kernel that is kept as it is written", node, help)
    if word.name not in handlers:
        raise b.error(f"T.{word.name} takes values known when the kernel is compiled", node)
    value = handlers[word.name](b, b.span(node), *bound.args, **bound.kwargs)
    return replace(value, column=_is_column(value.shape, node)) if isinstance(value, NewBuffer) else value


def _is_column(shape: tuple[int, ...], node: ast.Call) -> bool:
    """Whether a buffer is written as (n, 1) or (m, n, 1): its 1 is no size that has another value elsewhere."""
    if len(shape) not in (2, 3) or shape[-1] != 1:
        return False
    written = next((k.value for k in node.keywords if k.arg == "shape"), node.args[0] if node.args else None)
    return not isinstance(written, ast.Tuple | ast.List) or isinstance(written.elts[-1], ast.Constant)
