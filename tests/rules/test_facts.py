"""Every fact that the rules find about a value is so in numbers: shapes, valid extents, dependences, splits, panels."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.rules.kernels import made
from tests.rules.claims import CLAIMS, untrue
from tests.rules.fact_kernels import FACTS, IN_PANELS, fact_kernels
from tests.rules.worlds import World, changed, world
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.kernel import Kernel
from tile_eg.rules import Theory, read_theory, registry, theories
from tile_eg.rules.sexpr import parse
from tile_eg.transforms.epilogue_panels import epilogue_in_panels

KERNELS = fact_kernels()
QUICK = (*FACTS, "sum of a.T @ b", "product of depth 512", "nest of a choice", "two_passes", "swaps_in_swaps")
BLOCKS = """
(rule ((= v (BinR op w x y))) ((Blk y) (Twice y)) :ruleset algebra :name "blocks" :law fact)
(rule ((= v (Cast "f16" x)) (= n (rows v)) (= (vr v) (IC n)) (= c (cols v)) (= (vc v) (IC c)) (= 0 (% c 16))) ((StripsOf v))
      :ruleset algebra :name "strips" :law fact)
"""
"""Blocks of a vector and strips of a tile are asked for by an instruction only; so they stand beside the values, too."""
PLACED = {"crossing-cube", "crossing-vector"}
"""Facts about places: `test_implements.py` has them."""


@cache
def kernel(name: str) -> Kernel:
    return made(KERNELS[name], name)


@cache
def with_blocks() -> tuple[Theory, ...]:
    return (*theories(), read_theory("blocks", BLOCKS, {}))


@cache
def world_of(name: str) -> World:
    panels = epilogue_in_panels(to_values(kernel(name)), 2) if name == IN_PANELS else None
    return world(kernel(name), with_blocks(), panels)


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in KERNELS])
def test_all_facts_about_a_kernel_are_so(name: str) -> None:
    assert untrue(world_of(name)) == []


@pytest.mark.slow
def test_every_rule_of_facts_finds_something_in_these_kernels() -> None:
    found = set().union(*(world_of(n).matched() for n in KERNELS))
    assert {r.name for r in registry().values() if r.law == "fact"} - PLACED <= found


def test_every_table_that_a_rule_fills_has_a_claim() -> None:
    filled = set()
    for theory in theories():
        for form in (f for text in theory.text for f in parse(text) if f[0] == "rule" and str(f[-1]).strip('"') not in PLACED):
            filled |= {a[1][0] if a[0] == "set" else a[0] for a in form[2] if a[0] not in ("union", "let")}
    physical = {t for t in filled if t.startswith("by")} | {"StateAt"}
    assert filled - physical <= CLAIMS.keys()


@pytest.mark.few(8)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "old", "new", "name"),
    [
        ("shape-red0", "(set (cols v) c)", "(set (cols v) (+ c 1))", "columns"),
        ("valid-red0", "(= j (vc a))", "(= j (vr a))", "columns"),
        ("valid-un", "(set (vr v) i)", "(set (vr v) j)", "choice at a tail of rows"),
        ("deps-load", "(set-union (set-union a b) (set-union d e))", "(set-empty)", "two_passes"),
        ("deps-arg", "(set (deps (Arg l k)) s)", "(set (deps (Arg l k)) (set-empty))", "swaps_in_swaps"),
        ("unit-zero", "(Fill 0.0 r c ", "(Fill f r c ", "two_passes"),
        ("chain-step", '(Bin "add" s (MatMul a b ta tb))', "(Bin op s b)", "copied_late"),
        ("share-rows", "(% r 4)", "(% r 1)", "columns"),
        ("form-short-rows", '"rows"', '"flat"', "narrow_product"),
        ("panel-beside", "(Load t p st r (* f c) i w)", "(Load t o st r (* f c) i w)", "sum of a @ b.T"),
        ("panel-below", "(* f r)", "r", "sum of a @ b"),
        ("panel-product-ta", "(MatMul x y 1 0)", "(MatMul x b 1 0)", "sum of a.T @ b"),
        ("panel-state", '(Bin "add" (Arg d k) w) others', "w others", "sum of a @ b"),
        ("depth-t", "(rows a)", "(cols a)", "nested sum"),
        ("cut-k", "(< s k)", "(< k s)", "sum of a @ b"),
        ("version-store", "(set (treg t) x)", "(set (treg t) (+ x 1))", "two_passes"),
    ],
)  # fmt: skip
def test_a_wrong_fact_is_seen(rule: str, old: str, new: str, name: str) -> None:
    try:
        found = untrue(world(kernel(name), changed(rule, old, new)))
    except (RuntimeError, KeyError, ValueError):  # two facts disagree, there is no such value, or it fits nowhere
        return
    assert found
