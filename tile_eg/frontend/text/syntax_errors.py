"""What is wrong with a text that does not parse, in words.

Every message stands beside texts with that fault. An error gets the message of the text that fails in the same parser state, on
the same token if there is one. (Lark's `match_examples` wants the same depth of nesting too, so that it is not used.)
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from tile_eg.errors import Span, TileError
from tile_eg.ops.records import record


@record
class Fault:
    """A message, a help line, and texts that have this fault; `@` in them stands for the beginning of a kernel's body."""

    message: str
    help: str
    texts: tuple[str, ...]


HEAD = "kernel k(A: f32[4]) -> C: f32[4] { "
NAME_A_TYPE = "name, type and shape belong together: A: f32[M, N]; a number that each call passes has a type alone: s: f32"

UNFINISHED = tuple(
    f"@ a = {value}{then} = d"
    for value in (
        "", "b + ", "exp(b) + ", "b - ", "b * ", "b / ", "b @ ", "b and ", "b < ", "b & ", "b | ", "b ** ", "-", "max(b, ",
    )
    for then in ("c", "c[0]", "c[0, i]")
)
"""A value that lacks its end, and the next statement."""
FAULTS = (
    Fault("this `)` closes nothing", "", ("@ a = b)", "@ a = b + 1)", "@ a = b[0])", "@ a = f(b))")),
    Fault(
        "a loop has one variable",
        "for i in serial(m) { for j in serial(n) { ... } }, and over elements parallel (i, j) in (m, n) { ... }",
        ("@ for (i", "@ for i, j in serial(4)"),
    ),
    Fault("a loop over elements begins with `parallel`", "parallel (i, j) in (m, n) { ... }", ("@ for i in parallel(4) {",)),
    Fault(
        "a text begins with `kernel`, or with what its kernel uses", "kernel name[sizes](inputs) -> results { ... }",
        ("gemm", "{", "shared a: f32[4]", "", "let x = 4 gemm", "import common {"),
    ),
    Fault(
        "a function is a name, parameters in parentheses, and a value", "function silu(x) = x * sigmoid(x)",
        ("function", "function (", "function f", "function f {", "function f()", "function f(x", "function f(x y)",
         "function f(x)", "function f(x) {", "function f(x):", "function f(4)"),
    ),
    Fault(
        "an import is the name of a file beside this one, without its ending", "import common",
        ("import", "import 4", "import (", "import kernel", "import a."),
    ),
    Fault("`let` gives a value a name", "let EPS = 1e-5", ("let", "let = 4", "let x 4", "let 4", "let x: 4", "let x kernel")),
    Fault("the kernel needs a name", "kernel gemm[M, N](...)", ("kernel (", "kernel [", "kernel {")),
    Fault(
        "this size is not complete", "kernel name[M, N=512](...)",
        ("kernel k[4", "kernel k[M N", "kernel k[M, ,", "kernel k[M=]"),
    ),
    Fault(
        "the inputs are missing", "kernel name(A: f32[M, N]) -> C: f32[M, N]",
        ("kernel k {", "kernel k ->", "kernel k[M] {"),
    ),
    Fault(
        "this tensor needs a type and a shape", NAME_A_TYPE,
        ("kernel k(A)", "kernel k(A,", "kernel k(A: f32)", "kernel k(A: f32,", "kernel k(f32[", "kernel k(A: [",
         "kernel k(A f32"),
    ),
    Fault(
        "the results are missing", "kernel name(...) -> C: f32[M, N] { ... }",
        ("kernel k(A: f32[4]) {", "kernel k(A: f32[4]):"),
    ),
    Fault(
        "this result needs a type and a shape", NAME_A_TYPE,
        ("kernel k() -> {", "kernel k() -> C {", "kernel k() -> C: f32 {", "kernel k() -> (C)"),
    ),
    Fault(
        "the kernel's body stands in braces", "-> C: f32[M, N] { ... }",
        ("kernel k() -> C: f32[4] a", "kernel k() -> C: f32[4]:", "kernel k() -> C: f32[4, 4] a", "kernel k() -> C: f32[4, 4]:",
         "kernel k() -> C: f32[4, 4] grid"),
    ),
    Fault(
        "a closing brace } is missing", "",
        ("@", "@ a = b", "@ for k in serial(4) { a = b }", "@ if k == 0 { a = b", "@ if k == 0 { a = b }"),
    ),
    Fault("something stands behind the kernel's last brace", "one text holds one kernel", ("@ } }", "@ } a")),
    Fault(
        "this buffer needs a type and a shape", "shared a: f16[BM, BK], b: f16[BK, BN]",
        ("@ shared a }", "@ shared a,", "@ shared a = 0", "@ shared a: f32 }", "@ shared a: f32,", "@ fragment a b",
         "@ shared a: [", "@ shared a: f32 = 0", "@ shared f32[4]", "@ shared a: f32 b"),
    ),
    Fault(
        "a buffer stands behind `shared` or `fragment`, and commas between several", "shared a: f16[BM, BK], b: f16[BK, BN]",
        ("@ shared a: f32[4] b: f32[4]",),
    ),
    Fault("`shared` and `fragment` need a buffer", "shared a: f16[BM, BK]", ("@ shared }", "@ fragment = 4", "@ shared [4]")),
    Fault(
        "the grid names its variables and their extents", "grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))",
        ("@ grid }", "@ grid bx by", "@ grid bx }", "@ grid (4, 4)", "@ grid 4", "@ grid (bx, by) }", "@ grid (bx by)",
         "@ grid (bx) in"),
    ),
    Fault(
        "a grid with several variables names them first, then their extents", "grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))",
        ("@ grid bx = 2, by = 3", "@ grid bx = n, by = m", "@ grid bx = ceildiv(n, 2), by = m", "@ grid bx = (n), by = 3"),
    ),
    Fault(
        "`let` gives a value a name", "let scale = 1 / sqrt(D)",
        ("@ let = 4", "@ let x }", "@ let x: 4", "@ let 4", "@ let x += 1"),
    ),
    Fault("indices stand in one pair of brackets", "x[i, j]", ("@ a[0][0] = b", "@ a[i][j] += b")),
    Fault("an assignment is written with one =", "a = b", ("@ a == b", "@ a[0] == b", "@ a < b")),
    Fault(
        "this is not a statement", "a statement assigns something: c = a + b",
        ("@ a }", "@ a b", "@ a[0] }", "@ a + b", "@ a @ b", "@ a : b", "@ a[0] b", "@ 4 }", "@ (a", "@ -a", "@ a.T",
         "@ a -> b"),
    ),
    Fault(
        "only buffers and tensors are assigned to", "a function is part of a value: c = exp(x); a load is x = X[i, j]",
        ("@ f(a) = b", "@ exp(a)", "@ a(b"),
    ),
    Fault(
        "this loop has no range", "for k in serial(n) { ... } or for k in pipelined(n, stages=2) { ... }",
        ("@ for k = serial(4)", "@ for k serial(4)", "@ for k in 4", "@ for k in n {", "@ for k in (", "@ for k {",
         "@ for k in {"),
    ),
    Fault(
        "a statement assigns to one name", "y = x * 2, and z = x + 1 behind it",
        ("@ a, b = c", "@ a[0], b = c"),
    ),
    Fault("this loop has no variable", "for k in serial(n) { ... }", ("@ for in", "@ for 4", "@ for {")),
    Fault(
        "the body of a loop stands in braces", "for k in serial(n) { ... }",
        ("@ for k in serial(4) a", "@ for k in serial(4):"),
    ),
    Fault(
        "this element loop is not complete", "parallel (i, j) in (BM, BN) { ... }",
        ("@ parallel {", "@ parallel i {", "@ parallel i = 4", "@ parallel (i, j) {", "@ parallel (i j)",
         "@ parallel (4", "@ parallel i j", "@ parallel i, j in n"),
    ),
    Fault(
        "the body of an element loop stands in braces", "parallel (i, j) in (BM, BN) { ... }",
        ("@ parallel i in n: a", "@ parallel i in n a"),
    ),
    Fault(
        "an atomic addition names a window of a tensor and what is added", "atomic C[i, j] += x",
        ("@ atomic = a", "@ atomic += a", "@ atomic a = b", "@ atomic a[0] = b", "@ atomic }", "@ atomic a }"),
    ),
    Fault("the condition is missing", "if k == 0 { ... }", ("@ if {", "@ if = 0", "@ if }")),
    Fault(
        "values are chosen by a function", "select(x > 0, x, y)",
        ("@ a = b if c > 0 else d", "@ a = b if c else d", "@ a = b if c[0] > 0 else d", "@ a = b if f(c) else d"),
    ),
    Fault("a comparison is written with ==", "if k == 0 { ... }", ("@ if k = 0", "@ if k += 1")),
    Fault(
        "what a condition decides stands in braces", "if k == 0 { ... } else { ... }",
        ("@ if k == 0: a", "@ if k == 0 a", "@ if k a"),
    ),
    Fault("`else` belongs behind the braces of an `if`", "if k == 0 { ... } else { ... }", ("@ else {", "@ a = b else")),
    Fault(
        "`else` needs braces", "else { if ... }",
        ("@ if k == 0 { } else if k == 1 {", "@ if k { } else a", "@ if k { } else: a"),
    ),
    Fault(
        "a value is missing here", "",
        ("@ a = }", "@ a = b + }", "@ a += ,", "@ a = )", "@ a = b * }", "@ a = -}", "@ a = for", "@ a = ]",
         "@ a = b @ }", "@ a = (}", "@ a = (b + )", "@ a = =", "@ a = exp(b + )", "@ a = exp(, b)", "@ a = :"),
    ),
    Fault(
        "an index is missing here", "A[i, j], A[i:i + 64, :] or v[:, None]",
        ("@ a[] = b", "@ a = b[]", "@ a = b[, 0]", "@ a = b[0,,", "@ a = b[i +]"),
    ),
    Fault(
        "a closing bracket ] or a comma is missing", "",
        ("@ a[0 = b", "@ a = b[0 }", "@ a = b[0 c", "@ a = b[0:4 }", "@ a = b[0)", "@ a[0) = b", "@ a = b[0:4 c",
         "@ a = b[:, None }", "@ a[0 1]"),
    ),
    Fault(
        "a closing parenthesis ) or a comma is missing", "",
        ("@ a = exp(b }", "@ a = exp(b c", "@ a = (b }", "@ a = (b c", "@ a = exp(b]", "@ a = (b]", "@ grid (a, b }",
         "@ grid a = (4, 4 }", "@ for k in serial(4 {", "@ a = (b, c)"),
    ),
    Fault(
        "`=` inside a call names an argument", "pipelined(n, stages=2)",
        ("@ a = exp(b[0] = c)", "@ a = exp(4 = c)", "@ a = f(b = )"),
    ),
    Fault(
        "the value before this statement is not complete", "does the line above end with an operator?",
        UNFINISHED,
    ),
    Fault("`==` does not chain", "a < b and b < c", ("@ if a == b == c", "@ if a < b < c")),
    Fault(
        "functions are called by their name alone", "exp(x), not np.exp(x); a transposed operand is a.T",
        ("@ a = b.c(",),
    ),
    Fault(
        "`.` has no name behind it", "a transposed operand is a.T",
        ("@ a = b.}", "@ a = b.4", "@ a = b. c.4", "@ a = b.("),
    ),
    Fault(
        "this operator of another language has no meaning here", "conditions are joined by `and`, `or`",
        ("@ a = b && c", "@ a = b || c"),
    ),
)  # fmt: skip

CHARACTERS = {
    ";": ("statements need no `;`", "leave it out: a statement ends where the next one begins"),
    "!": ("`!` is not an operator", "a condition is turned round by `not`; two values differ by !="),
    '"': ("there are no strings here", "names and numbers alone; an import is a file's name without its ending: import common"),
    "'": ("there are no strings here", "a transposed operand is a.T"),
    "?": ("`?` is not an operator", "select(k == 0, x, y)"),
}


WORDS = {
    "while": ("there is no `while`", "a loop runs a number of times: for k in serial(n) { ... }"),
    "return": ("there is no `return`", "results are named behind ->, and stored to: Y[i, j] = x"),
    "elif": ("there is no `elif`", "else { if ... { } }"), "def": ("there is no `def`", "function f(x) = x + 1"),
    "const": ("there is no `const`", "let EPS = 1e-5"),
    "var": ("there is no `var`", "let n = 4; shared n: f32[1] where it changes"),
    "print": ("nothing is printed in `.tile`", "tile-eg run FILE shows outputs, --where the first value that differs"),
    "gemm": ("a product is an expression", "c += a @ b, c = a @ b.T"),
    "copy": ("a copy is an assignment", "x = X[i, j], Y[i, j] = x"),
    "fill": ("a fill is an assignment", "x = 0"), "clear": ("a fill is an assignment", "x = 0"),
    "T": ("`T` is a name of Python's language", "functions stand alone here, y = exp(x); a copy is an assignment, x = X[i, j]"),
    ":=": ("a value is assigned with =", "y = x"), "import": ("an import stands before the kernel", "import common"),
    "kernel": ("a text has one kernel", "write each into a file of its own; what they share, into one that both import"),
    "++": ("there is no `++`", "x += 1"), "--": ("there is no `--`", "x -= 1"),
}  # fmt: skip
"""Words of other languages: what is said where a kernel fails at or behind one."""
BESIDE_KERNELS = ("def", "const", "var")
"""Those that are said of a text which fails before its kernel, too."""


def _of_other_languages(error: UnexpectedToken, text: str) -> tuple[str, str] | None:
    at = error.token.start_pos if error.token.start_pos is not None else len(text)
    before = re.search(r"(\w+)\s*$", text[:at])
    found = [text[at : at + 2], str(error.token), before[1] if before else ""]
    known = WORDS if "{" in text[:at] else BESIDE_KERNELS
    return next((WORDS[w] for w in found if w in known), None)


GLUED = re.compile(r"(?<![\w.])(\d+\.?\d*(?:[eE][+-]?\d+)?)([A-Za-z_]\w*)")
"""A number with letters right behind it, as in C."""


def _a_number(glued: re.Match[str]) -> str:
    """What to write in place of such a number."""
    digits, letters = glued[1], glued[2]
    if digits == "0" and letters[0] in "xXbB":
        return "digits stand behind it: 0x1f, 0b101"
    if letters[0] == "_":
        return f"digits stand together: {digits}{letters.replace('_', '')}"
    return f"{digits}; a type stands before it: f32({digits})"


def _glued(error: UnexpectedToken, text: str) -> re.Match[str] | None:
    """The number right before what does not fit, if letters follow it: they are what does not fit, or are read as the name that
    begins a statement."""
    at = error.token.start_pos if error.token.start_pos is not None else len(text)
    found = [m for m in GLUED.finditer(text) if m.start(2) <= at and not text[m.end() : at].strip()]
    return found[-1] if found else None


LETTERS = "a name is made of the letters a to z and A to Z, digits and `_`"


def explain(error: UnexpectedInput, text: str, file: str, parser: Lark) -> TileError:
    """A syntax error as a TileError at its place."""
    if isinstance(error, UnexpectedCharacters):
        found = text[error.pos_in_stream or 0]
        message, help = CHARACTERS.get(found, (f"the {_shown(found)} has no meaning here", LETTERS if found.isalpha() else ""))
        return TileError(message, Span(file, error.line, error.column, error.line, error.column + 1), help=help)
    assert isinstance(error, UnexpectedToken)
    known, span = known_faults(parser), _place(error, text, file)
    if foreign := _of_other_languages(error, text):
        return TileError(foreign[0], span, help=foreign[1])
    if glued := _glued(error, text):
        line = text[: glued.start()].count("\n") + 1
        column = glued.start() - (text.rfind("\n", 0, glued.start()) + 1) + 1
        at = Span(file, line, column, line, column + len(glued[0]))
        return TileError(f"{glued[0]} is no number", at, help=_a_number(glued))
    fault = next((known[k] for k in _keys(error) if k in known), None)
    if fault is None and error.token.type == "$END":
        left = Counter(COMMENT.sub("", text))
        help = "a } is missing: of a branch, of a loop, or the kernel's own" if left["{"] > left["}"] else ""
        return TileError("the text ends here, and is not complete", span, help=help)
    if fault is None:
        return TileError(f"`{error.token}` is not expected here", span)
    return TileError(fault.message, _behind(span, text) if fault.message.endswith("is missing") else span, help=fault.help)


COMMENT = re.compile("#.*")


def _behind(span: Span, text: str) -> Span:
    """Where something is missing: behind what stands before, if that is on a line further up; else at what does not fit."""
    lines = [COMMENT.sub("", line).rstrip() for line in text.splitlines()[: span.line]]
    if lines[-1][: span.column - 1].strip() or not any(lines[:-1]):
        return span
    last = max(n for n, line in enumerate(lines[:-1]) if line)
    return replace(span, line=last + 1, end_line=last + 1, column=len(lines[last]) + 1, end_column=len(lines[last]) + 2)


def _shown(character: str) -> str:
    return f"character `{character}`" if character.isprintable() else f"invisible character U+{ord(character):04X}"


def _keys(error: UnexpectedToken) -> tuple[Any, ...]:
    """What tells one syntax error from another: the parser's last states and the token, from exact to vague."""
    stack = error.state.state_stack
    return *((*stack[-n:], error.token.type) for n in (5, 3, 2, 1)), stack[-1]


@cache
def known_faults(parser: Lark) -> dict[Any, Fault]:
    """Every fault by the keys of its texts."""
    out: dict[Any, Fault] = {}
    for fault in FAULTS:
        for text in fault.texts:
            for key in _keys(_failure(parser, whole_text(text))):
                out.setdefault(key, fault)
    return out


def whole_text(text: str) -> str:
    """A fault's text with the beginning of a kernel in place of `@`."""
    return text.replace("@", HEAD, 1) if text.startswith("@") else text


def _failure(parser: Lark, text: str) -> UnexpectedToken:
    try:
        parser.parse(text)
    except UnexpectedToken as error:
        return error
    raise AssertionError(f"this text has no fault: {text}")


def _place(error: UnexpectedToken, text: str, file: str) -> Span:
    """The token that does not fit; the end of the text where there is none."""
    token = error.token
    if token.type == "$END":
        lines = text.splitlines() or [""]
        last = max((n for n, line in enumerate(lines) if line.strip()), default=0)
        end = len(lines[last].rstrip())
        return Span(file, last + 1, max(1, end), last + 1, end + 1)
    return Span(file, token.line, token.column, token.end_line, token.end_column)
