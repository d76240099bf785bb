"""What several parts of an expression have in common is one object, and is looked at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tile_eg.frontend.checks.types import Typing
from tile_eg.frontend.ssa.conversion import to_values
from tile_eg.frontend.ssa.elements import Statement
from tile_eg.frontend.ssa.expressions import Expressions
from tile_eg.frontend.text import load_text
from tile_eg.ir import kernel as kn
from tile_eg.ir.operands import parts, regions

X = kn.Region("X", (), ())


def squared(e: kn.TileExpr, times: int) -> kn.TileExpr:
    return e if times == 0 else squared(kn.Binary("mul", e, e), times - 1)


def nested(function: str, times: int) -> str:
    value = f"{function}(" * times + "x" + ")" * times
    return f"""kernel k[M=64, N=64](X: f32[M, N]) -> Y: f32[M, N] {{
  grid bx = M // 8
  shared x: f32[8, N]
  x = X[bx*8, 0]
  Y[bx*8, 0] = {value}
}}"""


def in_a_loop(function: str, times: int) -> str:
    """The same by elements."""
    value = f"{function}(" * times + "x[i, j]" + ")" * times
    head, _, _ = nested(function, 0).partition("  Y[")
    loop = f"  shared y: f32[8, N]\n  parallel (i, j) in (8, N) {{ y[i, j] = {value} }}\n"
    return f"{head}{loop}  Y[bx*8, 0] = y\n}}"


def looked_at(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, text: str) -> int:
    """How often a method is called while a text is converted."""
    real, calls = getattr(owner, name), list[object]()
    with monkeypatch.context() as within:
        within.setattr(owner, name, lambda self, e, *others: calls.append(e) or real(self, e, *others))
        to_values(load_text(text).instantiate())
    return len(calls)


def test_each_part_is_given_once() -> None:
    assert len(list(parts(squared(X, 12)))) == 13


def test_a_region_that_is_read_often_is_one() -> None:
    assert list(regions(squared(X, 12))) == [X]


def test_parts_that_are_equal_are_not_one() -> None:
    other = kn.Region("X", (), ())
    assert len(list(regions(kn.Binary("add", X, other)))) == 2


@pytest.mark.parametrize(
    ("owner", "name", "text"),
    [
        (Expressions, "made", nested),
        (Typing, "found", nested),
        (Statement, "scalar_of", in_a_loop),
        (Statement, "cut_off", in_a_loop),
    ],
    ids=["terms", "types", "elements", "ends"],
)
def test_functions_of_functions_take_as_many_steps_more_as_there_are_more_of_them(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, text: Callable[[str, int], str]
) -> None:
    one, two, three = (looked_at(monkeypatch, owner, name, text("sin", times)) for times in (1, 2, 3))
    assert three - two == two - one > 0
