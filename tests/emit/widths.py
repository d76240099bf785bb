"""Reads emitted Ascend C as C++ does, and finds whole numbers that may leave the type in which they are computed.

Every expression is evaluated in intervals, with the types that the text gives it: variables as they are declared, literals by
their size, operators by the wider operand. What is no whole number is passed over; what stands in its brackets is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TOKEN = re.compile(r"\s*(\d[\w.]*|[A-Za-z_][\w:]*|&&|\|\||[=!<>]=|\+\+|\+=|->|.)")
TEMPLATE = re.compile(r"(?<=\w)(?<!static_cast)<[\w:, ]+>(?=\()")
BITS = {"int32_t": 32, "int64_t": 64, "uint64_t": 64, "uint32_t": 64}
BINDS = [("||",), ("&&",), ("==", "!="), ("<", ">", "<=", ">="), ("+", "-"), ("*", "/", "%")]


@dataclass(frozen=True)
class Whole:
    """A whole number: the least and the most that it may be, and the bits of its type."""

    low: int
    high: int
    bits: int = 32

    @property
    def overflows(self) -> bool:
        return self.low < -(2 ** (self.bits - 1)) or self.high >= 2 ** (self.bits - 1)


class Reader:
    """Goes through a text line by line; `overflows` gathers the expressions whose value may not fit."""

    def __init__(self, blocks: int) -> None:
        self.scopes: list[dict[str, Whole]] = [{}]
        self.overflows: list[str] = []
        self.places = {"AscendC::GetBlockIdx": Whole(0, blocks - 1), "AscendC::GetSubBlockIdx": Whole(0, 1),
                       "AscendC::GetSubBlockNum": Whole(1, 2)}  # fmt: skip

    def read(self, text: str) -> list[str]:
        body = re.sub(r"//[^\n]*|\(__gm__ \w+\*\)", "", text.partition("workspace)\n")[2])
        for statement in re.split(r"(?<=[;{}])\s*\n", body):
            self.statement(" ".join(statement.split()))
        return self.overflows

    def statement(self, text: str) -> None:
        if loop := re.match(r"for \((int\d+_t) (\w+) = (\w+); \w+ < (.+); (.*)\) \{", text):
            kind, name, first, limit, step = loop.groups()
            most = self.value(limit).high
            last = most if step.startswith("++") else most + int(step.split("+=")[1]) - 1
            self.checked(Whole(int(first), last, BITS[kind]), text)
            self.scopes.append({name: Whole(int(first), max(int(first), most - 1), BITS[kind])})
        elif text.endswith("{"):
            self.scopes.append({})
            for condition in re.findall(r"if \((.*)\) \{", text):
                self.value(condition)
        elif text == "}":
            self.scopes.pop()
        elif constant := re.match(r"const (int\d+_t) (\w+) = (.+);", text):
            kind, name, value = constant.groups()
            found = self.value(value)
            self.scopes[-1][name] = self.checked(Whole(found.low, found.high, BITS[kind]), text)
        elif text:
            Parser(self, TEMPLATE.sub("", text.rstrip(";"))).all()

    def value(self, text: str) -> Whole:
        found = Parser(self, text).expression()
        assert found is not None, text
        return found

    def checked(self, value: Whole, text: str) -> Whole:
        if value.overflows:
            self.overflows.append(text)
        return value

    def variable(self, name: str) -> Whole | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)


class Parser:
    """One statement. `expression` gives None for what is no whole number."""

    def __init__(self, reader: Reader, text: str) -> None:
        self.reader, self.text = reader, text
        self.tokens = [t for t in TOKEN.findall(text) if t.strip()]
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def all(self) -> None:
        while self.peek():
            if self.expression() is None and self.peek():
                self.take()

    def expression(self) -> Whole | None:
        found = self.operators(0)
        if self.peek() != "?":
            return found
        self.take()
        a = self.expression()
        assert self.take() == ":"
        b = self.expression()
        return a and b and Whole(min(a.low, b.low), max(a.high, b.high), max(a.bits, b.bits))

    def operators(self, level: int) -> Whole | None:
        if level == len(BINDS):
            return self.unary()
        left = self.operators(level + 1)
        while self.peek() in BINDS[level]:
            sign = self.take()
            left = self.pair(sign, left, self.operators(level + 1))
        return left

    def pair(self, sign: str, a: Whole | None, b: Whole | None) -> Whole | None:
        if a is None or b is None:
            return None
        if sign not in ("+", "-", "*", "/", "%"):
            return Whole(0, 1)
        return self.reader.checked(Whole(*of(sign, a, b), max(a.bits, b.bits)), self.text)

    def unary(self) -> Whole | None:
        if self.peek() == "-":
            self.take()
            found = self.unary()
            return found and self.reader.checked(Whole(-found.high, -found.low, found.bits), self.text)
        return self.postfix()

    def postfix(self) -> Whole | None:
        word = self.take() if self.peek() not in ("", ")", "]", "}", ",") else ""
        if word == "static_cast":
            return self.cast()
        if word == "(":
            return self.closed(")")[0]
        found = self.atom(word)
        while (word[:1].isalpha() or word[:1] == "_") and self.peek() in ("(", "[", "."):
            found = self.suffix(word)
        return found

    def suffix(self, word: str) -> Whole | None:
        """A call, an index or a member of `word`."""
        sign = self.take()
        if sign == ".":
            self.take()
            return None
        inside = self.closed(")" if sign == "(" else "]")
        if word in ("Min", "Max") and sign == "(":
            return self.extreme(word, inside)
        return self.reader.places.get(word) if sign == "(" else None

    def extreme(self, word: str, of: list[Whole | None]) -> Whole:
        a, b = of
        assert a is not None and b is not None and a.bits == b.bits, self.text  # else no overload fits, or two do
        f = min if word == "Min" else max
        return Whole(f(a.low, b.low), f(a.high, b.high), a.bits)

    def cast(self) -> Whole | None:
        assert self.take() == "<"
        kind = self.take()
        assert self.take() == ">" and self.take() == "("
        found = self.closed(")")[0]
        return self.reader.checked(Whole(found.low, found.high, BITS[kind]), self.text) if found and kind in BITS else None

    def closed(self, end: str) -> list[Whole | None]:
        """What stands between commas up to the closing bracket."""
        out = [self.expression()] if self.peek() != end else []
        while self.peek() == ",":
            self.take()
            out.append(self.expression())
        assert self.take() == end, self.text
        return out

    def atom(self, word: str) -> Whole | None:
        if re.fullmatch(r"\d+", word):
            return Whole(int(word), int(word), 32 if int(word) < 2**31 else 64)
        return self.reader.variable(word)


def of(sign: str, a: Whole, b: Whole) -> tuple[int, int]:
    """The interval of a sum, difference, product, quotient or remainder; divisors are above zero, and what they divide is not
    below it."""
    if sign == "+":
        return a.low + b.low, a.high + b.high
    if sign == "-":
        return a.low - b.high, a.high - b.low
    if sign == "*":
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return min(corners), max(corners)
    if sign == "/":
        return a.low // b.high if a.low >= 0 else -(-a.low // b.low), a.high // b.low
    if a.low == a.high and b.low == b.high and a.low >= 0:
        return a.low % b.low, a.low % b.low
    return (0 if a.low >= 0 else 1 - b.high), min(max(a.high, 0), b.high - 1)


def overflows(text: str, blocks: int) -> list[str]:
    """The expressions of a kernel's text that may overflow in a launch of so many blocks."""
    return Reader(blocks).read(text)


def narrowed(text: str) -> str:
    """The text as it would be in 32 bits."""
    return text.replace("static_cast<int64_t>(", "(").replace("const int64_t", "const int32_t")
