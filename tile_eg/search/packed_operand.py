"""A packed operand: vector cores copy a matrix into strips of 16 columns while the first tiles are computed from the matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tile_eg.search.bounds import floor, timing, unhindered
from tile_eg.search.candidates import Candidate, Dropped, fastest_first, plan_each, ranked
from tile_eg.search.form import Form, Setting, extraction_of
from tile_eg.search.moves import MOVES
from tile_eg.search.persistent import best_persistent
from tile_eg.search.queue import Made, Offer

if TYPE_CHECKING:
    from tile_eg.egraph import Graph, Node

FORMS = 3
"""Schedules that load from strips: forms of the loop of products. Of these the one with the best bound is planned: the loads from
strips are no longer what bounds a kernel, so that others differ by next to nothing."""


def offers(form: Form, candidate: Candidate) -> Iterator[Offer]:
    """Each operand that a rule offers to pack, once a form has a persistent candidate whose loads bound it."""
    if not candidate.schedule.persistent or candidate.schedule.parts or timing(candidate).bound != "AIC.MTE2":
        return
    for node in (g for g in form.grids if g.op == "Strips" and g.payload[0] not in form.offered):
        bound, tensor = floor(candidate, form.setting.chip), node.payload[0]
        form.offered.add(tensor)
        yield Offer(MOVES["packed-operand"], tensor, bound, partial(made_of, node, form), form, f"packed {tensor}")


def made_of(node: Node, form: Form) -> Made:
    """A kernel that loads the tensor that `node` names from its strips once they are made; and what failed.

    The first tiles are done as in the best schedule that has one phase, as many as the copy takes; where that leaves none to load
    from strips there is no such kernel.
    """
    from tile_eg.egraph.view import packed
    from tile_eg.emit.packed_operand import tiles_beside

    first, setting = best_persistent(form), form.setting
    if first is None or first.schedule.grid is None or form.graph is None or form.graph.unpacked is None:
        return Made(why="no kernel goes through the tiles core by core")
    graph = packed(form.graph, node.payload[0])
    values = graph.values
    beside = tiles_beside(first.planned.program, values, setting.chip)
    if not beside:
        return Made(why="once the copy is made, no whole turn of tiles is left to load from it")
    found, dropped = _from_strips(graph, first, setting)
    if not found:
        return Made((), dropped, why="no schedule loads from strips")
    schedules = []
    for n in beside:
        second = replace(found[0].schedule, tiles=(n, values.blocks - n))
        schedules.append(replace(first.schedule, parts=node, second=second, tiles=(0, n)))
    launches, failed = plan_each(schedules, setting.chip)
    return Made(ranked(launches, setting.model), (*dropped, *failed))


def _from_strips(graph: Graph, first: Candidate, setting: Setting) -> tuple[tuple[Candidate, ...], Dropped]:
    """The persistent kernel that loads from strips, in the order of tiles of the `first` phase, ranked; also with their results
    in halves, unless that is known to be slower before it has flags."""
    from tile_eg.extract.grid import in_halves, with_grid

    chip, grid = setting.chip, first.schedule.grid
    assert grid is not None
    found = [with_grid(s, grid, chip) for s in extraction_of(graph, setting, most=FORMS).schedules]
    if not found:
        return (), ()
    best = min(found, key=lambda s: unhindered(s, chip, first))
    planned, dropped = plan_each([best], chip)
    whole = ranked(planned, setting.model)
    halved = in_halves(best)
    if halved is None or (whole and unhindered(halved, chip, first) >= whole[0].microseconds):
        return whole, dropped
    planned, failed = plan_each([halved], chip)
    return fastest_first((*whole, *ranked(planned, setting.model))), (*dropped, *failed)
