"""The words, numbers and index expressions of a program text, read one by one."""

from __future__ import annotations

import re
from typing import NoReturn

from tile_eg.errors import Span, TileError
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr

_TOKEN = re.compile(
    r"(?P<skip>[ \t\r\n]+|\#[^\n]*)|(?P<number>\d+(?:\.\d*)?(?:e[+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_][\w.]*)|(?P<sign>->|<-|&&|[][{}(),;:<=+\-*/%])"
)
Token = tuple[str, str, int]  # kind, text, where it starts


class Tokens:
    """Recursive descent over the tokens of one text: words, numbers and index expressions.

    Every method that cannot go on raises a TileError with a caret.
    """

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self.tokens = list(self._tokens())
        self.at = 0

    def _tokens(self) -> list[Token]:
        out, pos = [], 0
        while pos < len(self.text):
            m = _TOKEN.match(self.text, pos)
            if m is None:
                self.fail(f"unexpected character {self.text[pos]!r}", pos, 1)
            if m.lastgroup != "skip":
                out.append((str(m.lastgroup), m.group(), pos))
            pos = m.end()
        return [*out, ("end", "", len(self.text))]

    def span(self, start: int, length: int) -> Span:
        line = self.text.count("\n", 0, start) + 1
        column = start - self.text.rfind("\n", 0, start)
        return Span(self.file, line, column, line, column + max(1, length))

    def fail(self, message: str, start: int, length: int) -> NoReturn:
        error = TileError(message, self.span(start, length), help="`tile-eg emit --program` shows how a program is written")
        error.source = self.text
        raise error

    def expected(self, what: str) -> NoReturn:
        _, text, start = self.tokens[self.at]
        self.fail(f"expected {what}, found {repr(text) if text else 'the end of the program'}", start, len(text))

    def peek(self, *texts: str) -> bool:
        return self.tokens[self.at][1] in texts and self.tokens[self.at][0] != "end"

    def take(self, *texts: str) -> str | None:
        if not self.peek(*texts):
            return None
        self.at += 1
        return self.tokens[self.at - 1][1]

    def need(self, *texts: str) -> str:
        return self.take(*texts) or self.expected(" or ".join(f"`{t}`" for t in texts))

    def name(self, what: str = "a name") -> str:
        if self.tokens[self.at][0] != "name":
            self.expected(what)
        self.at += 1
        return self.tokens[self.at - 1][1]

    def word(self, what: str) -> str:
        """A name that may start with a digit (chips) or hold dashes (rules)."""
        start = self.tokens[self.at][2]
        m = re.compile(r"[\w.-]+").match(self.text, start)
        if m is None:
            self.expected(what)
        while self.tokens[self.at][2] < m.end():
            self.at += 1
        return m.group()

    def integer(self) -> int:
        minus = self.take("-")
        if not self.tokens[self.at][1].isdigit():
            self.expected("an integer")
        self.at += 1
        n = int(self.tokens[self.at - 1][1])
        return -n if minus else n

    def real(self) -> float:
        minus = self.take("-")
        kind, text, _ = self.tokens[self.at]
        if kind != "number" and text not in ("inf", "nan"):
            self.expected("a number")
        self.at += 1
        return -float(text) if minus else float(text)

    # Expressions, loosest binding first; everything printed is parenthesised, what people write need not be.

    def expr(self) -> Expr:
        e = self._less()
        while self.take("&&"):
            e = ix.both(e, self._less())
        return e

    def _less(self) -> Expr:
        e = self._sum()
        while self.take("<"):
            e = ix.less(e, self._sum())
        return e

    def _sum(self) -> Expr:
        e = self._product()
        while sign := self.take("+", "-"):
            right = self._product()
            e = e + right if sign == "+" else e - right
        return e

    def _product(self) -> Expr:
        e = self._atom()
        while sign := self.take("*", "/", "%"):
            e = {"*": ix.mul, "/": ix.div, "%": ix.mod}[sign](e, self._atom())
        return e

    def _atom(self) -> Expr:
        if self.take("("):
            e = self.expr()
            self.need(")")
            return e
        if self.tokens[self.at][0] == "number" or self.peek("-"):
            return ix.const(self.integer())
        name = self.name("an expression")
        if self.take("["):
            return self._read(name)
        return self._call(name) if name in ("min", "max") and self.peek("(") else ix.var(name)

    def _read(self, tensor: str) -> Expr:
        """The rest of an element of a tensor, `idx[place : most]`."""
        place = self.expr()
        self.need(":")
        most = self.integer()
        self.need("]")
        return ix.read(tensor, place, most)

    def _call(self, name: str) -> Expr:
        self.need("(")
        a = self.expr()
        self.need(",")
        b = self.expr()
        self.need(")")
        return ix.minimum(a, b) if name == "min" else ix.maximum(a, b)
