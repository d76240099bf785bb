"""Programs without flags, drawn at random: any nest of loops and guards over any buffers, and rings with lags between cores."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_eg.ir import index as ix
from tile_eg.ir.index import ZERO, Expr
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import Buffer, Gm, Instr, Loop, Node, Program, Tile, When
from tile_eg.ops.types import F16, F32, Level

TENSORS = (Tensor("A", F32, (64, 64), False), Tensor("C", F32, (64, 64), True))
SIZE = 8 * 16 * 4


def program(buffers: tuple[Buffer, ...], cube: tuple[Node, ...], vector: tuple[Node, ...]) -> Program:
    kind = "MIX_AIC_1_1" if cube and vector else "AIC_ONLY" if cube else "AIV_ONLY"
    return Program("k", "910B2", kind, TENSORS, 2, False, 1 << 20, buffers, cube, vector)


@st.composite
def _tile(draw: st.DrawFn, buffers: tuple[Buffer, ...], loops: tuple[str, ...]) -> Tile:
    b = draw(st.sampled_from(buffers))
    if b.slots == 1:
        return Tile(b.name)
    terms = [ix.var(v) * draw(st.integers(1, 3)) for v in loops if draw(st.booleans())]
    return Tile(b.name, (sum(terms, ZERO) + draw(st.integers(0, 2))) % b.slots)


@st.composite
def _vector_instr(draw: st.DrawFn, buffers: tuple[Buffer, ...], loops: tuple[str, ...]) -> Instr:
    tile = _tile(buffers, loops)
    gm = Gm("A", sum((ix.var(v) * 64 for v in loops), ZERO), 64)
    kind = draw(st.sampled_from(["load", "store", "exp", "add", "exp"]))
    eight, sixteen = ix.const(8), ix.const(16)
    if kind == "load":
        return Instr("gm_to_ub", draw(tile), (gm,), eight, sixteen)
    if kind == "store":
        return Instr("ub_to_gm", Gm("C", gm.offset, 64), (draw(tile),), eight, sixteen)
    sources = (draw(tile),) if kind == "exp" else (draw(tile), draw(tile))
    return Instr(f"v{kind}", draw(tile), sources, eight, sixteen)


@st.composite
def _nodes(draw: st.DrawFn, buffers: tuple[Buffer, ...], loops: tuple[str, ...], depth: int) -> tuple[Node, ...]:
    out: list[Node] = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["instr"] * 4 + ["loop", "when"] * (depth > 0)))
        if kind == "loop":
            var = f"i{len(loops)}"
            out.append(Loop(var, draw(st.integers(1, 5)), draw(_nodes(buffers, (*loops, var), depth - 1))))
        elif kind == "when" and loops:
            out.append(When(draw(_guard(loops[-1])), draw(_nodes(buffers, loops, depth - 1))))
        else:
            out.append(draw(_vector_instr(buffers, loops)))
    return tuple(out)


@st.composite
def _guard(draw: st.DrawFn, var: str) -> Expr:
    bound = draw(st.integers(0, 3))
    e = draw(st.sampled_from([ix.var(var), ix.var(ix.BLOCK)]))
    return ix.less(e, bound + 1) if draw(st.booleans()) else ix.less(bound - 1, e)


@st.composite
def vector_programs(draw: st.DrawFn) -> Program:
    """One vector core; up to four buffers of one to three slots, some of which share addresses."""
    buffers = []
    for n in range(draw(st.integers(1, 4))):
        slots = draw(st.integers(1, 3))
        start = draw(st.integers(0, 6)) * SIZE
        buffers.append(Buffer(f"u{n}", Level.UB, F32, 8, 16, 16, "nd", slots, tuple(start + s * SIZE for s in range(slots))))
    made = tuple(buffers)
    return program(made, (), draw(_nodes(made, (), 3)))


@st.composite
def fused_programs(draw: st.DrawFn) -> Program:
    """Cube and vector core hand tiles to each other through workspace rings of any depth, each core with lags of its own."""
    trips, slots = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    back = draw(st.booleans())
    lag = draw(st.integers(1, slots)) if back else 0
    ring = lambda n: Tile(n, ix.var("i") % slots)  # noqa: E731
    shape = (ix.const(16), ix.const(16))
    late = (ix.var("i") - lag) % slots
    first: list[Node] = [
        Instr("mmad", Tile("c"), (Tile("a"), Tile("b")), *shape, ix.const(16)),
        Instr("fixpipe", ring("s"), (Tile("c"),), *shape),
    ]
    second: list[Node] = [
        Instr("gm_to_l1", Tile("l"), (Tile("p", late),), *shape),
        Instr("l1_to_l0a", Tile("a"), (Tile("l"),), ix.const(16), ix.ONE, ix.const(16)),
    ]
    vector: list[Node] = [
        Instr("gm_to_ub", ring("u"), (ring("s"),), *shape),
        Instr("vcast", Tile("v"), (ring("u"),), *shape),
        *([Instr("ub_to_gm", ring("p"), (Tile("v"),), *shape)] if back else []),
    ]
    cube = [When(ix.less(ix.var("i"), trips), tuple(first)), When(ix.less(lag - 1, ix.var("i")), tuple(second))]
    if not back:
        cube = first
    at = lambda n: tuple(n * 4096 + 1024 * s for s in range(slots))  # noqa: E731
    buffers = (
        Buffer("a", Level.L0A, F16, 16, 16, 16, "zz", 1, (0,)),
        Buffer("b", Level.L0B, F16, 16, 16, 16, "zn", 1, (0,)),
        Buffer("c", Level.L0C, F32, 16, 16, 16, "nz", 1, (0,)),
        Buffer("l", Level.L1, F16, 16, 16, 16, "nz", 1, (0,)),
        Buffer("s", Level.WS, F32, 16, 16, 16, "nd", slots, at(0)),
        Buffer("p", Level.WS, F16, 16, 16, 16, "nd", slots, at(1)),
        Buffer("u", Level.UB, F32, 16, 16, 16, "nd", slots, at(0)),
        Buffer("v", Level.UB, F16, 16, 16, 16, "nd", 1, (16384,)),
    )
    return program(buffers, (Loop("i", trips + lag, tuple(cube)),), (Loop("i", trips, tuple(vector)),))
