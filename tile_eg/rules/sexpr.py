"""S-expressions: how a rule file is read, and how a rule is shown as a line of maths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Union

from tile_eg.ops.records import record

Form = Union[str, tuple]

_TOKEN = re.compile(r';[^\n]*|"[^"]*"|[()]|[^\s()";]+')
_LOCATED = re.compile(r';[^\n]*|"[^"]*"|[()]|[^\s()";]+|"')
_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


def parse(text: str) -> list[tuple]:
    """The top-level forms of `text`; atoms are strings (string literals keep their quotes), comments are dropped."""
    around: list[list] = []
    forms: list = []
    inner = forms
    for token in _TOKEN.findall(text):
        if token == "(":
            around.append(inner)
            inner = []
        elif token == ")":
            done = tuple(inner)
            inner = around.pop()
            inner.append(done)
        elif token[0] != ";":
            inner.append(token)
    return forms


class SyntaxFault(Exception):
    """A text that is no list of forms: what is wrong, and at which offset."""

    def __init__(self, what: str, at: int) -> None:
        super().__init__(what)
        self.what, self.at = what, at


@record
class Placed:
    """A top-level form and where its text begins and ends."""

    form: tuple
    start: int
    end: int


def parse_placed(text: str) -> Iterator[Placed]:
    """The top-level forms of `text` with their places. SyntaxFault where a parenthesis or a string does not end, or begin."""
    opened: list[int] = []
    for token in _LOCATED.finditer(text):
        if token[0] == '"':
            raise SyntaxFault("this string does not end", token.start())
        if token[0] == "(":
            opened.append(token.start())
        elif token[0] == ")":
            if not opened:
                raise SyntaxFault("this parenthesis closes nothing", token.start())
            start = opened.pop()
            if not opened:
                yield Placed(parse(text[start : token.end()])[0], start, token.end())
        elif not opened and not token[0].startswith(";"):
            raise SyntaxFault(f"`{token[0]}` stands outside of any form", token.start())
    if opened:
        raise SyntaxFault("this parenthesis is never closed", opened[0])


def heads(form: Form) -> set[str]:
    """The names that stand first in a form and in the forms inside it."""
    found: set[str] = set()
    left = [form] if isinstance(form, tuple) else []
    for part in left:  # it grows by the forms inside
        left += [inner for inner in part if isinstance(inner, tuple)]
        if part and isinstance(part[0], str):
            found.add(part[0])
    return found


def show(form: Form, bound: Mapping[str, Form]) -> str:
    """A form as maths: `(at v (UB s) r)` reads v @ UB.s, `(Bin "add" x y)` reads x + y."""
    if isinstance(form, str):
        inner = bound.get(form)
        return form.strip('"') if inner is None or inner == form else show(inner, {k: v for k, v in bound.items() if k != form})
    if not form:
        return "()"
    head, args = form[0], [show(a, bound) for a in form[1:]]
    if head == "at":
        return f"{args[0]} @ {args[1]}"
    if head == "UB":
        return f"UB.{args[0]}"
    if head == "Bin" and args[0] in _INFIX:
        return f"({args[1]} {_INFIX[args[0]]} {args[2]})"
    if head in ("Un", "Bin", "BinS", "BinN", "Red") and len(args) > 1:
        return f"{args[0] if head != 'Red' else args[1]}({', '.join(args[1:] if head != 'Red' else args[2:])})"
    if head in ("=", "!=", "<", "<=", ">", ">="):
        return f"{args[0]} {head} {args[1]}" if len(args) == 2 else f"{head}({', '.join(args)})"
    if head in ("+", "-", "*", "/", "%"):
        return f"({f' {head} '.join(args)})"
    return f"{head}({', '.join(args)})" if args else str(head)
