"""Index expressions mean what the same Python expression computes."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_eg.frontend.python.expressions import evaluate
from tile_eg.frontend.python.source import Source
from tile_eg.frontend.python.statements import Reader
from tile_eg.ir import index

ATOMS = st.sampled_from(["i", "j", "0", "1", "3", "16", "SIZE"])
VALUES = {"i": st.integers(0, 40), "j": st.integers(0, 40)}
SIZE = 24


def read(text: str) -> Any:
    """What an expression evaluates to where i and j are loop variables."""
    reader = Reader(Source("test", text), {"SIZE": SIZE})
    reader.local = {"i": index.var("i"), "j": index.var("j")}
    return evaluate(reader, ast.parse(text, mode="eval").body)


def value(e: Any, env: dict[str, int]) -> int:
    return index.evaluate(index.wrap(e), env)


sums = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from(["//", "%"]), st.sampled_from(["1", "2", "16", "SIZE"])).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
    ),
    max_leaves=6,
)
counts = st.sampled_from(["i", "j", "0", "1", "3", "16", "i + j", "i // 2", "i % 3", "SIZE", "i - 3", "i - j"])
conditions = st.recursive(
    st.tuples(counts, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), counts).map(" ".join),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map(lambda t: f"({t[0]}{t[1]}{t[2]})"),
        inner.map(lambda t: f"(not {t})"),
    ),
    max_leaves=4,
)


@pytest.mark.slow
@given(sums, VALUES["i"], VALUES["j"])
def test_arithmetic_of_indices_is_pythons(text: str, i: int, j: int) -> None:
    assert value(read(text), {"i": i, "j": j}) == eval(text, {"SIZE": SIZE, "i": i, "j": j})


@pytest.mark.slow
@given(conditions, VALUES["i"], VALUES["j"])
def test_conditions_on_indices_are_pythons(text: str, i: int, j: int) -> None:
    assert bool(value(read(text), {"i": i, "j": j})) == eval(text, {"SIZE": SIZE, "i": i, "j": j})


@pytest.mark.parametrize("number", [np.int64(24), np.uint8(24)])
def test_a_number_of_numpy_counts_as_pythons_own(number: Any) -> None:
    reader = Reader(Source("test", "SIZE"), {"SIZE": number})
    assert type(evaluate(reader, ast.parse("SIZE // 2", mode="eval").body)) is int
