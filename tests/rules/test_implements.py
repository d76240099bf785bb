"""Every rule about instructions, places and loops has a kernel that is made to use it; the simulator computes what that means."""

from __future__ import annotations

import pytest

from benchmarks.rules.kernels import small
from tests.extract.checked import check_numbers
from tests.extract.kernels import graph_of, kernel
from tile_eg.chips import load_chip
from tile_eg.egraph import Graph, saturate
from tile_eg.extract.exact import Exact
from tile_eg.extract.makespan import MEETING
from tile_eg.extract.model import Model
from tile_eg.frontend.ssa import to_values
from tile_eg.ops.types import Level

KERNELS = {
    "nest of a load": ["copy-store"],
    "x + 1 + 2": ["ub-store", "v-scalar", "gm-ub", "buffer-alone", "handed-outside"],
    "rsqrt": ["v-binary", "v-unary", "v-fill"],
    "y + x * 2": ["v-axpy"],
    "y + x * y": ["v-mul-add"],
    "s / x": ["v-fill-of-call"],
    "y + x * s": ["v-of-call", "v-axpy-of-call"],
    "v[:, None] - x": ["v-rows", "v-brcb"],
    "w[None, :] - x": ["v-cols"],
    "x - v[:, None] * w[None, :]": ["v-outer"],
    "y + v[:, None] * w[None, :]": ["v-mul-add-outer"],
    "sums of squares": ["v-sum-of-products"],
    "long rows less their values": ["v-rows-apart", "v-brcb-twice"],
    "row maxima": ["v-reduce", "v-reduce-blocks"],
    "maxima of rows that a block holds": ["v-reduce-in-blocks"],
    "maxima of long rows in f16": ["v-reduce-chunks"],
    "column sums": ["v-reduce-halves"],
    "column sums of a short tile": ["v-reduce-halves-rows"],
    "nest of a choice": ["v-choose"],
    "nest of a choice by a constant": ["v-choose-const"],
    "nest of a choice by place": ["v-choose-index", "v-ramp", "v-short-ramp", "v-mask-index", "v-mask-in-place"],
    "nest of a mask": ["v-mask"],
    "nest of an index": ["v-add-index"],
    "nest of a cast": ["v-cast"],
    "with another sign": ["v-same-bits"],
    "bytes in turns": ["v-bytes"],
    "numbers of 4 bits": ["v-nibbles"],
    "short rows of numbers of 4 bits": ["v-nibbles-rows"],
    "bytes in turns, short rows": ["v-bytes-rows"],
    "a choice by bits": ["v-choose-bits"],
    "bits of a comparison": ["v-pack"],
    "a sorted list in parts": ["v-whole", "v-put"],
    "sorted lists as one": ["v-wholes"],
    "a part of a sorted list": ["v-piece"],
    "sums of running sums that end": ["v-ended"],
    "a product times running sums": ["v-half"],
    "running sums of columns": ["ub-part", "v-binary-below-rows", "v-keep-rows"],
    "running sums upwards": ["v-binary-above-rows"],
    "rows taken one by one": ["ub-rows-of-trip"],
    "columns less a tile": ["v-binary-of-columns", "ub-columns", "ub-lies"],
    "a tile less columns": ["v-binary-with-columns"],
    "rows of another length": ["ub-reshaped"],
    "every second number": ["v-turned-columns"],
    "sums of some rows": ["v-binary-in-place"],
    "sums above differences": ["v-binary-behind", "v-binary-begins"],
    "sums below rows": ["v-put-begins"],
    "running sums of a vector": ["ub-part-of-row"],
    "rows of a vector less its last value": ["v-rows-of-one"],
    "short to other short, short rows": ["v-cast-rows", "v-cast-to-rows"],
    "relu of a product": ["fixpipe-store-relu", "fixpipe-workspace", "mmad", "gm-l1", "l0-whole-k", "fixpipe-workspace-relu"],
    "relu of a product in f16": ["fixpipe-store-relu-cast", "fixpipe-workspace-cast"],
    "product of a relu": ["fixpipe-store", "ub-store-cube", "fixpipe-l1-relu"],
    "products with a tile and a part of it": ["l1-part"],
    "a product of rows from before their tensor on": ["gm-l1-padded", "l1-ended"],
    "rows that two loops go through": ["row-stays", "row-stays-first", "gm-ub-stays", "lasting-depth"],
    "sums of rows whose length is read": ["v-put-halves"],
    "running sums of tiles of columns that end": ["v-beyond"],
    "gated": ["mmad-accumulate", "cell-zero", "cell-fill"],
    "chain": ["fixpipe-l1", "workspace-l1", "ub-workspace"],
    "product of depth 512": ["l0-split-k", "fixpipe-store-cast"],
    "long sum of products": ["gm-l1-coarsened"],
    "exp of a product": ["workspace-ub"],
    "exp of a product in f16": ["workspace-ub-cast"],
    "exp of the relu of a product": ["workspace-ub-relu"],
    "product of products in f32": ["workspace-l1-cube"],
    "product of a sigmoid": ["workspace-l1-strips", "v-cast-strips"],
    "shift": ["keep"],
    "short sum": ["cell-give", "cell-copy"],
    "copied_late": ["next-in-place"],
    "swap": ["next-copy", "result", "state-read", "state-tile", "state-end", "state-place", "state-in-ub"],
    "copy": ["tensor-given"],
    "loads with three slots": ["buffer-depth-given"],
    "stores in a loop": ["tensor-state", "tensor-result", "state-tensor", "no-skew", "buffer-depth", "handed-depth"],
    "stores with one buffer": ["handed-alone"],
    "sums beside exponentials": ["skew", "far-skew", "state-in-l0c"],
    "bytes in L1": ["fixpipe-l1-scaled"],
    "relu to bytes in L1": ["fixpipe-l1-scaled-relu"],
    "floats to bytes in L1": ["fixpipe-l1-bytes"],
    "relu of floats to bytes in L1": ["fixpipe-l1-bytes-relu"],
    "bytes of a product": ["fixpipe-store-bytes"],
    "bytes of the relu of a product": ["fixpipe-store-bytes-relu"],
    "product of bytes times a number": ["fixpipe-store-scaled"],
    "relu of a product of bytes times a number": ["fixpipe-store-scaled-relu"],
}
DIRECT = {
    "exp of a product": ["fixpipe-ub"],
    "exp of a product in f16": ["fixpipe-ub-cast"],
    "exp of the relu of a product": ["fixpipe-ub-relu"],
    "chain": ["ub-l1"],
    "product and the sums of its operand": ["l1-ub"],
    "product with scales on the 950": ["mmad-mx"],
    "products with scales on the 950": ["mmad-mx-accumulate"],
}
USES = [(rule, kernel, "910B2") for kernel, rules in KERNELS.items() for rule in rules]
USES += [(rule, kernel, "950") for kernel, rules in DIRECT.items() for rule in rules]


class Using(Exact):
    """The shortest schedule with an instruction that a rule made."""

    name = "using"

    def __init__(self, rule: str) -> None:
        super().__init__(work=5.0)
        self.rule = rule

    def aim(self, model: Model) -> None:
        model.cp.add_bool_or([model.chosen[n.index] for n in made_by(model.graph, self.rule)])
        super().aim(model)


STATES = {"state-in-ub": Level.UB, "state-in-l0c": Level.L0C}


def made_by(graph: Graph, rule: str) -> list:
    """The nodes of a rule; of those that say where states may live, the states that live there."""
    if rule in STATES:
        return [n for n in graph.nodes if n.op == "State" and n.payload[2][0] == STATES[rule]]
    return [n for n in graph.nodes if rule in n.rules]


GRIDS = ("block-a-tile", "persistent", "bands-across", "bands-down")
TILES = """
kernel tiles[M=80, N=96](A: f16[M, 16], B: f16[16, N]) -> C: f32[M, N] {
  grid (bx, by) = (5, 6)
  shared a: f16[16, 16], b: f16[16, 16]
  a = A[bx*16, 0]
  b = B[0, by*16]
  C[bx*16, by*16] = exp(a @ b)
}
"""


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("rule", GRIDS)
def test_every_order_of_tiles_computes_all_of_them(rule: str) -> None:
    made = [g for g in graph_of(TILES).grids if rule in g.rules]
    assert made
    for grid in made[:2]:
        check_numbers(kernel(TILES), Exact(), order=grid.payload if grid.op == "Persistent" else None)


def meeting_inside(graph: Graph, loop: int) -> bool:
    """Whether one kind of core fills in a loop what the other reads."""
    return any(n.op in MEETING and n.region == loop for n in graph.nodes)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("name", ["sums beside exponentials", "gated", "stores in a loop"])
def test_loops_are_skewed_just_where_the_cores_meet(name: str) -> None:
    graph = saturate(to_values(small(name)), load_chip("910B2"))
    skewed = {n.payload[0] for n in graph.nodes if n.op == "Skew" and n.payload[1]}
    assert skewed == {n.payload[0] for n in graph.nodes if n.op == "PLoop" and meeting_inside(graph, n.payload[0])}


@pytest.mark.few(31)
@pytest.mark.slow
@pytest.mark.parametrize(("rule", "name", "chip"), USES)
def test_what_a_rule_makes_computes_what_it_stands_for(rule: str, name: str, chip: str) -> None:
    check_numbers(small(name), Using(rule), chip=load_chip(chip))
