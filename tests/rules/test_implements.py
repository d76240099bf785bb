"""Every rule that chooses an instruction has a kernel that is made to use it; the simulator computes what the source means."""

from __future__ import annotations

import pytest

from benchmarks.rules.kernels import small
from tests.extract.checked import check_numbers
from tile_eg.chips import load_chip
from tile_eg.egraph import Graph
from tile_eg.extract.exact import Exact
from tile_eg.extract.model import Model
from tile_eg.rules import registry

KERNELS = {
    "nest of a load": ["copy-store"],
    "x + 1 + 2": ["ub-store", "v-scalar", "gm-ub"],
    "rsqrt": ["v-binary", "v-unary", "v-fill"],
    "y + x * 2": ["v-axpy"],
    "y + x * y": ["v-mul-add"],
    "v[:, None] - x": ["v-rows", "v-brcb"],
    "w[None, :] - x": ["v-cols"],
    "long rows less their values": ["v-rows-apart", "v-brcb-twice"],
    "row maxima": ["v-reduce", "v-reduce-blocks"],
    "nest of a choice": ["v-choose"],
    "nest of a choice by a constant": ["v-choose-const"],
    "nest of a choice by place": ["v-choose-index", "v-ramp", "v-mask-index"],
    "nest of a mask": ["v-mask"],
    "nest of an index": ["v-add-index"],
    "nest of a cast": ["v-cast"],
    "short to other short, short rows": ["v-cast-rows", "v-cast-to-rows"],
    "relu of a product": ["fixpipe-store-relu", "fixpipe-workspace", "mmad", "gm-l1", "l0-whole-k", "fixpipe-workspace-relu"],
    "relu of a product in f16": ["fixpipe-store-relu-cast", "fixpipe-workspace-cast"],
    "product of a relu": ["fixpipe-store", "ub-store-cube", "fixpipe-l1-relu"],
    "gated": ["mmad-accumulate", "cell-zero", "cell-fill"],
    "chain": ["fixpipe-l1"],
    "product of depth 512": ["l0-split-k", "fixpipe-store-cast"],
    "long sum of products": ["gm-l1-ahead"],
    "narrow product of depth 1024": ["l0-longest-step"],
}
DIRECT = {
    "exp of a product": ["fixpipe-ub"],
    "exp of a product in f16": ["fixpipe-ub-cast"],
    "exp of the relu of a product": ["fixpipe-ub-relu"],
}
USES = [(rule, kernel, "910B2") for kernel, rules in KERNELS.items() for rule in rules]
USES += [(rule, kernel, "950") for kernel, rules in DIRECT.items() for rule in rules]


class Using(Exact):
    """The shortest schedule with an instruction that a rule made."""

    name = "using"

    def __init__(self, rule: str) -> None:
        super().__init__(seconds=5.0)
        self.rule = rule

    def aim(self, model: Model) -> None:
        model.cp.add_bool_or([model.chosen[n.index] for n in made_by(model.graph, self.rule)])
        super().aim(model)


def made_by(graph: Graph, rule: str) -> list:
    return [n for n in graph.nodes if rule in n.rules]


def test_every_rule_that_chooses_an_instruction_has_a_kernel() -> None:
    assert {r.name for r in registry().values() if r.law == "implements"} <= {rule for rule, _, _ in USES}


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "kernel", "chip"), USES)
def test_an_instruction_computes_what_it_stands_for(rule: str, kernel: str, chip: str) -> None:
    check_numbers(small(kernel), Using(rule), chip=load_chip(chip))
