"""Index expressions as an author of `.tile` text would write them."""

from __future__ import annotations

from tile_eg.ir.index import Expr


def index_text(e: Expr, tight: int = 0) -> str:
    """An index expression as an author would write it; `tight` is how strongly the text around it binds (0-2)."""
    if e.op in ("const", "var"):
        text, strength = str(e.args[0]), 3 if e.op == "var" or e.args[0] >= 0 else 1
    elif e.op == "read":
        text, strength = f"{e.args[0]}[{index_text(e.args[1])}]", 3
    elif e.op in ("min", "max"):
        text, strength = f"{e.op}({index_text(e.args[0])}, {index_text(e.args[1])})", 3
    elif e.op == "add":
        text, strength = _sum_text(e.args), 1
    else:
        sign, strength = {"mul": ("*", 2), "div": ("//", 2), "mod": ("%", 2), "lt": ("<", 0), "and": ("and", -1)}[e.op]
        left, right = (0, 1) if e.op == "and" else (1, 1) if e.op == "lt" else (2, 3)
        left = 3 if e.op == "mul" and e.args[0].op in ("div", "mod") else left
        space = "" if sign == "*" else " "
        text = f"{index_text(e.args[0], left)}{space}{sign}{space}{index_text(e.args[1], right)}"
    return f"({text})" if strength < tight else text


def _sum_text(parts: tuple[Expr, ...]) -> str:
    """The terms of a sum, those with a minus behind the others."""
    signed = sorted(((_coefficient(p) < 0, p) for p in parts), key=lambda s: s[0])
    first, *rest = ((index_text(p * -1 if n and minus else p, 1 if n == 0 else 2), minus) for n, (minus, p) in enumerate(signed))
    return first[0] + "".join(f" {'-' if minus else '+'} {text}" for text, minus in rest)


def _coefficient(e: Expr) -> int:
    if e.op == "mul" and e.args[1].op == "const":
        return e.args[1].args[0]
    return e.args[0] if e.op == "const" else 1
