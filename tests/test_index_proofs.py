"""Index arithmetic, proven by z3 for every integer where it can, else tried for all grids and loops of a size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tile_eg.frontend.ssa.extents import inside, smaller
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr, const, evaluate, var
from tile_eg.ir.program.tasks import in_order, tile_at
from tile_eg.transforms.k_tiling import Tiling

z3 = pytest.importorskip("z3")

PROOFS = settings(max_examples=60, deadline=None, phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck))
NAMES = "ijk"
SYMBOLS = {n: z3.Int(n) for n in NAMES}


def least(a: object, b: object) -> object:
    return z3.If(a <= b, a, b)


def most(a: object, b: object) -> object:
    return z3.If(a >= b, a, b)


MEANING: dict[str, Callable] = {
    "mul": lambda a, b: a * b, "div": lambda a, b: a / b, "mod": lambda a, b: a % b, "min": least,
    "max": lambda a, b: z3.If(a >= b, a, b), "lt": lambda a, b: z3.If(a < b, 1, 0),
    "and": lambda a, b: z3.If(z3.And(a != 0, b != 0), 1, 0),
}  # fmt: skip


def symbolic(e: Expr, symbols: dict | None = None) -> object:
    """An expression as z3 reads it. Divisors are positive: division rounds down, and a remainder is not negative."""
    names = SYMBOLS if symbols is None else symbols
    if e.op == "const":
        return z3.IntVal(e.args[0])
    if e.op == "var":
        return names[e.args[0]]
    if e.op == "add":
        return z3.Sum([symbolic(a, names) for a in e.args])
    return MEANING[e.op](*(symbolic(a, names) for a in e.args))


def holds(claim: object, *given_that: object) -> bool:
    """Whether z3 finds no integers for which the claim is false: a proof, unless its two seconds are over."""
    solver = z3.Solver()
    solver.set("timeout", 2000)
    solver.add(*given_that, z3.Not(claim))
    return solver.check() != z3.sat


@dataclass(frozen=True)
class Both:
    """An expression as our arithmetic simplifies it, and as it was written."""

    ours: Expr
    written: object

    def __repr__(self) -> str:
        return f"{self.ours} for {self.written}"


def combined(op: Callable, meaning: Callable) -> Callable[[tuple[Both, Both]], Both]:
    return lambda p: Both(op(p[0].ours, p[1].ours), meaning(p[0].written, p[1].written))


def scaled(op: Callable, meaning: Callable) -> Callable[[tuple[Both, int]], Both]:
    return lambda p: Both(op(p[0].ours, p[1]), meaning(p[0].written, p[1]))


leaves = st.one_of(
    st.integers(-8, 8).map(lambda n: Both(const(n), z3.IntVal(n))), st.sampled_from(NAMES).map(lambda n: Both(var(n), SYMBOLS[n]))
)
expressions = st.recursive(
    leaves,
    lambda e: st.one_of(
        st.tuples(e, e).map(combined(lambda a, b: a + b, lambda a, b: a + b)),
        st.tuples(e, e).map(combined(lambda a, b: a - b, lambda a, b: a - b)),
        st.tuples(e, st.integers(-4, 4)).map(scaled(lambda a, n: a * n, lambda a, n: a * n)),
        st.tuples(e, st.integers(1, 5)).map(scaled(lambda a, n: a // n, lambda a, n: a / n)),
        st.tuples(e, st.integers(1, 5)).map(scaled(lambda a, n: a % n, lambda a, n: a % n)),
        st.tuples(e, e).map(combined(ix.minimum, MEANING["min"])),
        st.tuples(e, e).map(combined(ix.maximum, MEANING["max"])),
        st.tuples(e, e).map(combined(ix.less, MEANING["lt"])),
    ),
    max_leaves=6,
)


@pytest.mark.slow
@PROOFS
@given(expressions)
def test_the_normal_form_means_what_was_written(e: Both) -> None:
    assert holds(symbolic(e.ours) == e.written), e


@pytest.mark.slow
@PROOFS
@given(expressions, st.tuples(*[st.tuples(st.integers(-5, 20), st.integers(0, 20))] * 3))
def test_an_interval_holds_every_value(e: Both, drawn: tuple) -> None:
    ranges = {n: (low, low + more) for n, (low, more) in zip(NAMES, drawn, strict=True)}
    low, high = ix.bounds(e.ours, ranges)
    assert holds(z3.And(e.written >= low, e.written <= high), *within(ranges)), (e, ranges)


@pytest.mark.parametrize("divisor", [2, 3, 16, 64])
def test_a_multiple_divides_and_leaves_nothing_for_all_integers(divisor: int) -> None:
    i, j = var("i"), var("j")
    e = i * (2 * divisor) + j * divisor
    assert holds(symbolic(e // divisor) == (2 * SYMBOLS["i"] * divisor + SYMBOLS["j"] * divisor) / divisor)
    assert e % divisor == const(0) and holds((2 * SYMBOLS["i"] * divisor + SYMBOLS["j"] * divisor) % divisor == 0)


def test_a_false_claim_is_refuted() -> None:
    assert not holds(symbolic((var("i") + 1) // 2) == SYMBOLS["i"] / 2)


# ---- valid extents ----

RANGES = st.fixed_dictionaries(
    {n: st.tuples(st.integers(0, 4), st.integers(0, 9)).map(lambda r: (r[0], r[0] + r[1])) for n in NAMES}
)
STARTS = st.tuples(*[st.integers(0, 9)] * 4).map(lambda c: var("i") * c[0] + var("j") * c[1] + var("k") * c[2] + c[3])


def within(ranges: dict[str, tuple[int, int]]) -> list:
    return [z3.And(SYMBOLS[n] >= a, SYMBOLS[n] <= b) for n, (a, b) in ranges.items()]


@pytest.mark.slow
@PROOFS
@given(STARTS, RANGES, st.integers(1, 40), st.integers(1, 200))
def test_a_window_ends_with_its_tensor(start: Expr, ranges: dict, extent: int, size: int) -> None:
    found = inside(start, extent, size, ranges)
    assert holds(symbolic(found) == most(0, least(extent, size - symbolic(start))), *within(ranges))


@pytest.mark.slow
@PROOFS
@given(STARTS, STARTS, RANGES)
def test_the_smaller_of_two_extents_is_smaller_everywhere(a: Expr, b: Expr, ranges: dict) -> None:
    assert holds(symbolic(smaller(a, b, ranges)) == least(symbolic(a), symbolic(b)), *within(ranges))


# ---- deeper loops: a trip of the new loop stands for `factor` of the old one, of which this is number `part` ----


@pytest.mark.parametrize(("factor", "part"), [(f, p) for f in (2, 4, 8) for p in range(f)])
def test_a_panel_has_an_element_just_where_a_tile_has_it_for_all_sizes(factor: int, part: int) -> None:
    i, size, total, start = z3.Ints("i size total start")  # start = size * deep, so that all is linear
    valid = least(size, total - factor * start - part * size)
    wide = least(factor * size, total - factor * start)
    claim = (i < valid) == (part * size + i < wide)
    solver = z3.Solver()
    solver.add(size > 0, i >= 0, i < size, z3.Not(claim))
    assert solver.check() == z3.unsat


def test_the_halves_of_a_long_product_have_every_element_once_and_in_its_place() -> None:
    start, stride, row, col, half, element = z3.Ints("start stride row col half element")
    second = z3.And(col - half >= 0, col - half < half)
    once = z3.Xor(z3.And(col >= 0, col < half), second) == z3.And(col >= 0, col < 2 * half)
    moved = element == start + row * stride + col
    place = z3.Implies(moved, element == (start + half) + row * stride + (col - half))
    solver = z3.Solver()
    solver.add(half > 0, z3.Not(z3.And(once, place)))
    assert solver.check() == z3.unsat


@pytest.mark.slow
@PROOFS
@given(expressions, st.integers(1, 512))
def test_a_half_begins_so_many_elements_further(e: Both, step: int) -> None:
    assert holds(symbolic(e.ours + step) == e.written + step), e


TILINGS = st.tuples(st.integers(2, 40), st.sampled_from((2, 4, 8)), st.integers(1, 300)).filter(lambda t: t[1] < t[0])


@pytest.mark.slow
@PROOFS
@given(TILINGS, st.data())
def test_the_extent_of_a_panel_is_the_one_that_is_holds(drawn: tuple[int, int, int], data: st.DataObject) -> None:
    before, factor, size = drawn
    total = data.draw(st.integers((before - 1) * size + 1, before * size))
    t = Tiling(1, 2, factor, before, "k", "deep")
    wide = t.wider(ix.minimum(size, total - var("k") * size), size)
    deep = z3.Int("deep")
    law = least(factor * size, total - factor * size * deep)
    assert wide is not None
    assert holds(symbolic(wide, {"deep": deep}) == law, deep >= 0, deep < t.trips)


@pytest.mark.slow
@PROOFS
@given(TILINGS, st.integers(-9, 9).filter(bool), st.integers(0, 50))
def test_a_panel_starts_where_its_first_tile_does(drawn: tuple[int, int, int], step: int, base: int) -> None:
    before, factor, _ = drawn
    t = Tiling(1, 2, factor, before, "k", "deep")
    offset = var("k") * step + var("i") * 7 + base
    later = t.later(offset)
    deep = z3.Int("deep")
    assert later is not None and later[0] == step
    at_first = symbolic(offset, {"k": factor * deep, "i": SYMBOLS["i"]})
    assert holds(symbolic(later[1], {"deep": deep, "i": SYMBOLS["i"]}) == at_first)


# ---- the order of tiles ----

ORDER = {n: n for n in ("turn", "band", "width", "step", "tile", "task")}


def tiles(grid: tuple[int, int], window: int, along: int) -> Iterator[int]:
    """The tile of each turn, by the names of a program."""
    lets = in_order(var("at"), grid, window, along, ORDER)
    for at in range(grid[0] * grid[1]):
        env = {"at": at}
        for let in lets:
            env[let.name] = evaluate(let.value, env)
            assert 0 <= env[let.name] <= let.most
        yield env["tile"]


@pytest.mark.slow
@pytest.mark.parametrize("along", [0, 1])
@pytest.mark.parametrize("window", [1, 2, 3, 4, 6, 8])
def test_every_tile_has_one_turn_in_all_small_grids(window: int, along: int) -> None:
    for grid in product(range(1, 11), repeat=2):
        if window < grid[along]:
            order = list(tiles(grid, window, along))
            assert sorted(order) == list(range(grid[0] * grid[1])), grid
            assert order == [tile_at(t, grid, window, along) for t in range(len(order))], grid


@pytest.mark.parametrize(("grid", "window", "along"), [((32, 16), 3, 0), ((24, 37), 4, 1), ((64, 64), 8, 0), ((7, 90), 6, 1)])
def test_no_two_turns_have_one_tile_in_a_large_grid(grid: tuple[int, int], window: int, along: int) -> None:
    order = list(tiles(grid, window, along))
    assert sorted(order) == list(range(grid[0] * grid[1]))


@pytest.mark.parametrize("window", [2, 3, 4, 8])
def test_a_band_of_whole_width_gives_every_place_one_step_for_all_extents(window: int) -> None:
    one, other, length = z3.Ints("one other length")  # two turns inside a band that is `length` tiles long
    same = z3.And(one / window == other / window, one % window == other % window)
    band = [x >= 0 for x in (one, other)] + [x < window * length for x in (one, other)]
    assert holds(z3.Implies(same, one == other), *band)
    assert holds(z3.And(one / window >= 0, one / window < length), *band)
