"""A packed operand: vector cores copy a matrix into strips of 32 bytes, before any tile or beside the first tiles, which load
from the matrix itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from tile_eg.search.bounds import floor, timing, unhindered
from tile_eg.search.candidates import Candidate, Dropped, fastest_first, plan_each, ranked, written
from tile_eg.search.form import Form, Setting, extraction_of
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer

if TYPE_CHECKING:
    from tile_eg.egraph import Graph, Node
    from tile_eg.extract.schedule import Schedule

ALIKE = 1.001
"""Times the least bound: what one is less than that by, plans were seen to differ by the other way round."""


def offers(form: Form, candidate: Candidate) -> Iterator[Offer]:
    """The operands that a rule offers to pack, together and each alone, once a form has a candidate whose loads bound it: a
    persistent one, but where there are no more tiles than cores."""
    if not _serves(candidate, form) or timing(candidate).bound != "AIC.MTE2":
        return
    offered = [g for g in form.grids if g.op == "Strips" and g.payload[0] not in form.offered]
    for node in sorted(offered, key=lambda g: -len(g.payload[0])):
        bound, tensor = floor(candidate, form.setting.chip), node.payload[0]
        form.offered.add(tensor)
        yield Offer(MOVES["packed-operand"], tensor, bound, partial(_better, node, form), form, f"packed {tensor}")


def _better(node: Node, form: Form) -> Made:
    """What is made of a form, unless it is known to be slower than its best."""
    return made_of(node, form, form.microseconds)


def made_of(node: Node, form: Form, best: float = float("inf")) -> Made:
    """A kernel that loads the tensor that `node` names from its strips once they are made; and what failed.

    None where to load all tiles from strips takes as many microseconds as the `best` at the least: it takes longer to load the
    first ones, as before.

    The first tiles are done as in the best schedule that has one phase, as many as the copy takes, or none; where that leaves
    none to load from strips there is no such kernel.
    """
    from tile_eg.egraph.view import packed
    from tile_eg.emit.packed_operand import tiles_beside
    from tile_eg.ops.physical import AIC, CROSSING

    first, setting = _least_read(form), form.setting
    if first is None:
        return Made(why="no kernel goes through the tiles core by core")
    if form.graph is None or form.graph.unpacked is None:
        return Made(why="no rule loads from strips")
    alone = first.planned.program.kernel_type == "AIC_ONLY"
    graph = packed(form.graph, node.payload[0], CROSSING[AIC] if alone else ())
    if not graph.nodes:
        return Made(why="no rule loads all of it from strips")
    values = graph.values
    beside = tiles_beside(first.planned.program, values, setting.chip) if first.schedule.persistent else [0]
    if not beside:
        return Made(why="once the copy is made, no whole turn of tiles is left to load from it")
    planned, dropped = _from_strips(graph, first, setting, best)
    found = written(planned)
    if planned and not found:
        return Made((), dropped, why=f"it cannot be written: {planned[0].unwritable}")
    if not found:
        why = "no schedule loads from strips" if best == float("inf") else "to load from strips takes as long at the least"
        return Made((), dropped, why=why)
    schedules = [_behind(n, found[0].schedule, first.schedule, node) for n in beside]
    launches, failed = plan_each(schedules, setting.chip)
    return Made(ranked(launches, setting.model), (*dropped, *failed))


def _behind(tiles: int, strips: Schedule, first: Schedule, node: Node) -> Schedule:
    """So many tiles by the first schedule while copies are made, the others by the one that loads from strips; or all by that."""
    if not tiles:
        return replace(strips, graph=replace(strips.graph, grids=first.graph.grids), parts=node)
    plain = replace(first, shuffled=False, prefetched=False, past_l2=frozenset())
    second = replace(strips, tiles=(tiles, strips.graph.values.blocks - tiles))
    return replace(plain, parts=node, second=second, tiles=(0, tiles))


def _serves(candidate: Candidate, form: Form) -> bool:
    """Whether its cores go through all tiles alike."""
    few = form.values.blocks <= form.setting.chip.cube_cores and not form.values.sizes
    return candidate.schedule.one_phase and (candidate.schedule.persistent or few) and not candidate.schedule.joined


def _least_read(form: Form) -> Candidate | None:
    """The best candidate that serves; of its orders of tiles that are `ALIKE`, the one that reads least of HBM: what loads from
    strips has less time for that."""
    one = [c for c in form.candidates if _serves(c, form)]
    best = next((c for c in one if not c.unwritable), None)
    if best is None:
        return None
    limit = ALIKE * best.microseconds
    alike = [c for c in one if c.microseconds <= limit and c.schedule.nodes is best.schedule.nodes]
    return next(c for c in sorted(alike, key=lambda c: timing(c).hbm_cycles) if not c.unwritable)


def _from_strips(graph: Graph, first: Candidate, setting: Setting, best: float) -> tuple[tuple[Candidate, ...], Dropped]:
    """The kernels that load from strips, in the order of tiles of the `first` phase, ranked; persistent ones also with their
    results in halves. Those are left out that are known to be slower, than the `best` or than these, before they have flags."""
    from tile_eg.extract.grid import in_halves, with_grid

    # where the cube cores do all, they wait for nothing but a pipe: bounds are near, and the best one alone is planned
    grid, alone = first.schedule.grid, first.planned.program.kernel_type == "AIC_ONLY"
    found = extraction_of(graph, setting).schedules
    whole = [with_grid(s, grid, setting.chip) for s in found] if grid else list(found)
    made, dropped = _best_first(_least_bound(whole, first, setting) if alone else whole, (), first, setting, best)
    halved = [s for c in made if c.schedule.persistent and (s := in_halves(c.schedule))]
    return _best_first(halved, made, first, setting, best)[0], dropped


def _least_bound(schedules: list[Schedule], like: Candidate, setting: Setting) -> list[Schedule]:
    """The one with the least bound; among bounds that are `ALIKE` the order of the search holds."""
    bounds = [unhindered(s, setting.chip, like) for s in schedules]
    return [s for s, bound in zip(schedules, bounds, strict=True) if bound <= ALIKE * min(bounds)][:1]


def _best_first(
    schedules: list[Schedule], known: tuple[Candidate, ...], like: Candidate, setting: Setting, best: float
) -> tuple[tuple[Candidate, ...], Dropped]:
    """The candidates that are `known`, and those of the schedules that may be faster than all before them and than the `best`,
    ranked."""
    bounds = [unhindered(s, setting.chip, like) for s in schedules]
    dropped: Dropped = ()
    for bound, schedule in sorted(zip(bounds, schedules, strict=True), key=itemgetter(0)):
        if bound < min(best, known[0].microseconds if known else best):
            planned, failed = plan_each([schedule], setting.chip)
            known, dropped = fastest_first((*known, *ranked(planned, setting.model))), (*dropped, *failed)
    return known, dropped
