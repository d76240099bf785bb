"""The literal schedule of a Developer-mode source: what it says, statement by statement.

One buffer for each value and no ring, no trip runs ahead of another, elementwise work is one instruction a row, and all pipes are
waited for behind each instruction. Otherwise the choice is the kindest that the rules know: the least work, with what does not
vary in a loop kept before it.
"""

from __future__ import annotations

from dataclasses import replace

from tile_eg.extract.exact import Exact
from tile_eg.extract.model import Model
from tile_eg.ir.index import Expr, const, less, var
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.program import (
    BINARY,
    SCALAR,
    UNARY,
    Instr,
    Loop,
    Node,
    Operand,
    PipeBarrier,
    Program,
    SetFlag,
    Tile,
    WaitFlag,
    When,
)
from tile_eg.rules import registry
from tile_eg.search import search_options
from tile_eg.search.compiler import Planned, lower, plan

CLEVER = {"21_tiling", "32_overwrite", "60_grid"}
CLEVER_RULES = {"v-reduce-blocks", "v-rows-apart", "v-brcb-twice", "skew"}
PLAIN_RULES = {"block-a-tile"}
NEVER = 10**6
ROW = "row"
ELEMENTWISE = {
    *(f"v{name}" for name in (*UNARY, *BINARY, *SCALAR) if name != "copy"),
    *(f"v{name}_{form}" for name in BINARY for form in ("rows", "cols")),
    "vaxpy",
    "vmuladd",
}  # fmt: skip


def literal(kernel: Kernel, chip: str) -> Planned:
    """The kernel's literal schedule, for a chip. TileError where the kernel has none."""
    clever = {r.name for r in registry().values() if r.theory in CLEVER and r.ruleset != "facts"} - PLAIN_RULES | CLEVER_RULES
    options = search_options(without=clever & registry().keys(), k=1, extractor=f"{__name__}:Literal")
    return plan(step_by_step(lower(kernel, chip, search=options).program))


class Literal(Exact):
    """The choice with the least work of all pipes together, without rings."""

    name = "literal"

    def aim(self, model: Model) -> None:
        """A second buffer costs more than all work; then cycles count, whichever pipe they are on."""
        graph = model.graph
        deep = (n for n in graph.nodes if n.op in ("Buffers", "Skew") and n.payload[-1] > 1)
        rings = sum(model.chosen[n.index] for n in deep)
        work = sum(
            (p.total * graph.total_trips(n.region) + 1) * x
            for n, p, x in zip(graph.nodes, model.prices, model.chosen, strict=True)
        )
        model.cp.minimize(work + NEVER**2 * rings)


def step_by_step(p: Program) -> Program:
    """The program with its elementwise work row by row, and a wait for all pipes behind each instruction instead of flags."""
    rows = {b.name: b.rows for b in p.buffers}
    return replace(p, cube=_steps(p.cube, rows), vector=_steps(p.vector, rows))


def _steps(nodes: tuple[Node, ...], rows: dict[str, int]) -> tuple[Node, ...]:
    out: list[Node] = []
    for n in nodes:
        match n:
            case SetFlag() | WaitFlag() | PipeBarrier():
                continue
            case Loop() | When():
                out.append(replace(n, body=_steps(n.body, rows)))
            case Instr():
                out += [_by_rows(n, rows) if n.op in ELEMENTWISE else n, PipeBarrier("ALL")]
            case _:
                out.append(n)
    return tuple(out)


def _by_rows(i: Instr, rows: dict[str, int]) -> Node:
    """An instruction for each row of its tile."""
    assert isinstance(i.dst, Tile)
    if i.rows.value == 1:
        return i
    count = i.rows.value or rows[i.dst.buffer]
    one = replace(i, dst=_row(i.dst), srcs=tuple(_row(s, by_column=n and i.op.endswith("_cols")) for n, s in enumerate(i.srcs)))
    one = replace(one, rows=const(1))
    return Loop(ROW, count, (one if i.rows.value else When(less(var(ROW), i.rows), (one,)),))


def _row(o: Operand, by_column: bool | int = False) -> Operand:
    """One row of an operand; what is the same for all rows stays."""
    assert isinstance(o, Tile)
    at: Expr = o.row + var(ROW)
    return o if by_column else replace(o, row=at)
