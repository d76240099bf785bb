"""What the vector cores compute, each step as one instruction on windows of a schedule's storages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tile_eg.emit.lower.storages import Storages, shared
from tile_eg.extract import Step
from tile_eg.extract.masks import needed
from tile_eg.extract.pricing import choice_form
from tile_eg.ir.index import ONE, SUB, Expr, const, maximum, minimum, var
from tile_eg.ir.passed import Passed
from tile_eg.ir.program import Formula, Instr
from tile_eg.ops.physical import Vector
from tile_eg.ops.types import F16
from tile_eg.ops.whole_tiles import WHOLE_TILES

SHORT = 2048
"""Positions in half are nearer to 0 than this; whole numbers up to it are exact there."""


def scalar(value: Any) -> Any:
    """A field of an instruction: what follows from numbers that a call passes is computed by the scalar unit."""
    if not isinstance(value, Passed):
        return value
    if value.op in ("of", "index"):
        return Formula("argument" if value.op == "of" else "index", value.args)
    return Formula(value.op, value.args if value.op == "number" else tuple(map(scalar, value.args)))


def computed(storages: Storages, step: Step, term: Vector) -> Instr:
    """The instruction of a step."""
    return _KINDS[term.kind](storages, step, term)


def _elementwise(storages: Storages, step: Step, term: Vector) -> Instr:
    """All sources in order, the extents of the result; a source that is overwritten is the destination itself."""
    payload = step.node.payload
    sources = storages.sources(step)[: None if term.overwrites is None else term.overwrites]
    fields = {name: scalar(of(payload)) for name, of in term.fields.items()}
    return Instr(
        term.instruction(payload), storages.tile(step.dst), sources, *storages.valid(step), form=term.form(payload), **fields
    )  # type: ignore[arg-type]


def _reduction(storages: Storages, step: Step, term: Vector) -> Instr:
    payload, sources = step.node.payload, storages.sources(step)
    rows, cols = storages.valid(step, cls=step.node.children[0])
    scratch = storages.tile(step.scratch) if step.scratch is not None else None
    return Instr(
        term.instruction(payload), storages.tile(step.dst), sources, rows, cols, form=term.form(payload), scratch=scratch
    )


def _piece(storages: Storages, step: Step, term: Vector) -> Instr:
    made = _elementwise(storages, step, term)
    return replace(made, rows=storages.valid(step)[0], cols=storages.valid(step)[1])


def _half(storages: Storages, step: Step, term: Vector) -> Instr:
    """Each vector core's half of a vector."""
    return replace(_piece(storages, step, term), bound=var(SUB) * storages.schedule.graph.demands[step.node.cls].shape[1])


def _put(storages: Storages, step: Step, term: Vector) -> Instr:
    """Over the valid elements of what is put."""
    rows, cols = storages.valid(step, cls=step.node.children[1])
    return replace(_elementwise(storages, step, term), rows=rows, cols=cols)


def _in_window(storages: Storages, step: Step, term: Vector) -> Instr:
    """Into a window of the result; in one run where that is whole rows, and so are the sources."""
    payload, sources = step.node.payload, storages.sources(step)[: None if term.overwrites is None else term.overwrites]
    (at, rows, cols), pitch = term.window(payload), storages.buffers[step.dst].cols  # type: ignore[index]
    further = lambda t: replace(t, row=t.row + at // pitch, col=t.col + at % pitch)  # noqa: E731
    flat = rows == 1 or (cols == pitch and all(storages.pitch(t) == pitch for t in sources))
    sources = tuple(map(further, sources)) if term.same_window else sources
    form = "flat" if flat else term.form(payload)
    return Instr(term.instruction(payload), further(storages.tile(step.dst)), sources, const(rows), const(cols), form=form)


def _all(storages: Storages, step: Step, term: Vector) -> Instr:
    """Over one run of elements, those that it works through."""
    (rows, cols), (op, i, j) = storages.schedule.graph.demands[step.node.cls].shape, step.node.payload[:3]
    fields = {name: of(step.node.payload) for name, of in term.fields.items()}
    scratch, sources = storages.tile(step.scratch) if step.scratch is not None else None, storages.sources(step)
    if op == "transpose" and storages.schedule.graph.demands[step.node.children[0]].shape == (i, j):
        apart = storages.pitch(sources[0])
        fields |= {"steps": (i, j, apart)} if apart != j else {}
    return Instr(
        term.instruction(step.node.payload), storages.tile(step.dst), sources,
        cols=const(WHOLE_TILES[op].worked(rows * cols, (i, j))), scratch=scratch, **fields,
    )  # fmt: skip


def _choice(storages: Storages, step: Step, term: Vector) -> Instr:
    """A comparison and a selection by its bits; in place, only where it changes something."""
    payload, where = step.node.payload, storages.schedule.graph.demands
    assert step.scratch is not None
    fields = {name: of(payload) for name, of in term.fields.items()}
    compared = where[step.node.children[0]]
    if "bound" in fields and compared.tile.ramp and compared.tile.dtype is F16:
        fields["bound"] = maximum(-SHORT, minimum(SHORT, fields["bound"]))  # type: ignore[arg-type]
    form = choice_form(compared, where[step.node.cls])
    made = Instr(
        term.instruction(payload), storages.tile(step.dst), storages.sources(step), *storages.valid(step),
        form=form, scratch=storages.tile(step.scratch), **fields,
    )  # fmt: skip
    return made if term.overwrites is None else replace(made, when=needed(storages.schedule.graph, step.node))


def _ramp(storages: Storages, step: Step, term: Vector) -> Instr:
    """All of the buffer, its padding included: what reads whole rounds finds numbers there."""
    where, buffer = storages.schedule.graph.demands[step.node.cls], storages.buffers[step.dst]  # type: ignore[index]
    i, j = where.tile.ramp or (0, 0)
    h, w = where.shape
    start = var(SUB) * (i * h if where.share == 0 else j * w if where.share == 1 else 0)
    cols = buffer.cols if buffer.rows == 1 else buffer.pitch
    name = term.instruction(step.node.payload)
    made = Instr(name, storages.tile(step.dst), (), const(buffer.rows), const(cols), bound=start, steps=(i, j))
    return replace(made, when=_wanted(storages, step))


def _wanted(storages: Storages, step: Step) -> Expr:
    """1 where positions are looked at: masks in place in the same trip of the same loop look at them only where they are made.
    Those that are made once for all tiles of a block are looked at in any of these."""
    if storages.schedule.before_tiles(step):
        return ONE
    readers = [s for s, _ in storages.schedule.walk() if step.dst in s.srcs]
    alike = all((s.node.op, s.region, s.lag) == ("VMaskOn", step.region, step.lag) for s in readers)
    wanted = {needed(storages.schedule.graph, s.node) for s in readers} if alike else set()
    return wanted.pop() if len(wanted) == 1 else ONE


def _fill(storages: Storages, step: Step, term: Vector) -> Instr:
    where, buffer = storages.schedule.graph.demands[step.node.cls], storages.buffers[step.dst]  # type: ignore[index]
    rows, cols = buffer.rows, buffer.cols if buffer.rows == 1 else buffer.pitch
    name = term.instruction(step.node.payload)
    made = Instr(name, storages.tile(step.dst), (), const(rows), const(cols))
    value = where.tile.fill
    return replace(made, value=scalar(value)) if isinstance(value, Passed) else replace(made, scalar=value or 0.0)


def _beyond(storages: Storages, step: Step, term: Vector) -> Instr:
    """Behind the valid rows and columns of what is there; only where these are not all."""
    where, payload = storages.schedule.graph.demands[step.node.cls], step.node.payload
    (rows, cols), fields = where.shape, {name: of(payload) for name, of in term.fields.items()}
    valid, _ = shared(where, payload[0], const(cols))
    name, form, to = term.instruction(payload), term.form(payload), storages.tile(step.dst)
    made = Instr(name, to, (), valid, const(cols), const(rows), form=form, **fields)  # type: ignore[arg-type]
    return replace(made, when=needed(storages.schedule.graph, step.node))


def _spread(storages: Storages, step: Step, term: Vector) -> Instr:
    rows, _ = storages.valid(step)
    cols = const(storages.buffers[step.dst].cols)  # type: ignore[index]
    name, form = term.instruction(step.node.payload), term.form(step.node.payload)
    return Instr(name, storages.tile(step.dst), (storages.source(step, 0),), rows, cols, form=form)


def _copy(storages: Storages, step: Step, term: Vector) -> Instr:
    rows, cols = storages.valid(step)
    name, form = term.instruction(step.node.payload), storages.form(step.node.cls)
    return Instr(name, storages.tile(step.dst), (storages.source(step, 0),), rows, cols, form=form)


_KINDS: dict[str, Callable[[Storages, Step, Vector], Instr]] = {
    "elementwise": _elementwise, "reduction": _reduction, "choice": _choice, "position": _ramp, "fill": _fill, "spread": _spread,
    "beyond": _beyond,
    "copy": _copy, "whole": _all, "piece": _piece, "half": _half, "put": _put, "in_window": _in_window, "strips": _reduction,
}  # fmt: skip
