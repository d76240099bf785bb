"""Whether a Program that a person wrote makes sense: names, operands, levels, pipes.

What the machine makes of it (races, capacity) is judged elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tile_eg.errors import Span, TileError
from tile_eg.ir import index as ix
from tile_eg.ir.index import BLOCK, EACH, SUB, Expr, Interval
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ir.machine import ALL_CROSS_IDS, EVENT_IDS, SCALAR_PIPE
from tile_eg.ir.program import (
    AIC,
    AIV,
    BINARY,
    COMPARE,
    MULTIPLY_ADD,
    SPREAD,
    Buffer,
    CrossSet,
    CrossWait,
    Gm,
    Instr,
    Let,
    Loop,
    Node,
    Operand,
    PipeBarrier,
    Program,
    Scalar,
    SetFlag,
    SyncAll,
    Tasks,
    Tile,
    WaitFlag,
    When,
    walk,
)
from tile_eg.ops.repeats import REPEATED
from tile_eg.ops.types import INDICES, Level
from tile_eg.ops.whole_tiles import WHOLE_TILES

KERNEL_TYPES = ("AIC_ONLY", "AIV_ONLY", "MIX_AIC_1_1", "MIX_AIC_1_2")
CORE_PIPES = {AIC: ("MTE1", "MTE2", "M", "FIX"), AIV: ("MTE2", "V", "MTE3")}
_UB, _OUT = (Level.UB,), (Level.GM, Level.WS)
PLACES: dict[str, tuple[tuple[Level, ...], ...]] = {
    "gm_to_l1": ((Level.L1,), _OUT), "l1_to_l0a": ((Level.L0A,), (Level.L1,)), "l1_to_l0b": ((Level.L0B,), (Level.L1,)),
    "mmad": ((Level.L0C,), (Level.L0A,), (Level.L0B,)), "fixpipe": ((*_OUT, Level.L1, Level.UB), (Level.L0C,)),
    "ub_to_l1": ((Level.L1,), _UB), "l1_to_ub": (_UB, (Level.L1,)),
    "gm_to_ub": (_UB, _OUT), "ub_to_gm": (_OUT, _UB), "vdup": (_UB,), "vbeyond": (_UB,), "vramp": (_UB,), "store_element": (_UB,),
    "l1_zero": ((Level.L1,),),
    **{f"vchoose_{c}": (_UB,) * 5 for c in COMPARE}, **{f"vchooses_{c}": (_UB,) * 4 for c in COMPARE},
    **{f"vmask_{c}": (_UB,) * 3 for c in COMPARE},
}  # fmt: skip
TWO_SOURCES = (*MULTIPLY_ADD, "vrowdot", "vput", "vsort32", *(f"v{b}{kind}" for b in BINARY for kind in ("", *SPREAD)))
SOURCES: dict[str, tuple[int, ...]] = {
    **{op: (len(levels) - 1,) for op, levels in PLACES.items()}, **dict.fromkeys(TWO_SOURCES, (2,)), "vbitselect": (2, 3),
    **{f"vcompare_{c}": (1, 2) for c in COMPARE}, "vmerge": (2, 3, 4),
    **{f"v{w.name}": (w.operands,) for w in WHOLE_TILES.values() if not w.made_of_others and w.name != "merge"},
    **{r.instruction: (2 if r.second else 1,) for r in REPEATED.values()},
}  # fmt: skip
"""How many source operands an instruction takes, where that is not one."""


def check_program(p: Program) -> None:
    """TileError for the first thing that does not make sense; its span is the instruction's line, where it has one."""
    if p.kernel_type not in KERNEL_TYPES:
        raise TileError(f"unknown kernel type {p.kernel_type!r}", help=f"one of {', '.join(KERNEL_TYPES)}")
    for b in p.buffers:
        _buffer(b)
    _lets(p.lets, (BLOCK,))
    for core in (AIC, AIV):
        if p.core(core) and p.kernel_type == f"{AIV if core == AIC else AIC}_ONLY":
            raise TileError(f"a kernel of type {p.kernel_type} has no stream for the {_name(core)}")
        for n, scope in _scoped(p.core(core), (BLOCK, SUB, *(let.name for let in p.lets))):
            if isinstance(n, SyncAll) and not any(n is top for top in p.core(core)):
                raise TileError("sync_all stands in a loop or under a guard", help="all cores meet as often: write it at the top")
            _node(p, core, n, scope)
        _slots(p, p.core(core), {BLOCK: (0, p.blocks - 1), SUB: (0, 1)} | {let.name: (0, let.most) for let in p.lets})
    meetings = [sum(isinstance(n, SyncAll) for n in p.core(core)) for core in (AIC, AIV)]
    if meetings[0] != meetings[1]:
        raise TileError("sync_all stands in both streams of a mixed kernel, as often in the one as in the other")


def _lets(lets: tuple[Let, ...], scope: tuple[str, ...]) -> None:
    for k, let in enumerate(lets):
        _known(let.value, (*scope, *(before.name for before in lets[:k])), None)


def _name(core: str) -> str:
    return "cube core" if core == AIC else "vector core"


def _buffer(b: Buffer) -> None:
    if len(b.addresses) != b.slots:
        raise TileError(f"buffer {b.name} has {b.slots} slots and {len(b.addresses)} addresses")
    if b.pitch < b.cols:
        raise TileError(f"buffer {b.name} has rows of {b.cols} elements, {b.pitch} apart")


def _scoped(nodes: tuple[Node, ...], scope: tuple[str, ...]) -> Iterator[tuple[Node, tuple[str, ...]]]:
    for n in nodes:
        yield n, scope
        if isinstance(n, Loop | When):
            lets = (let.name for let in n.lets) if isinstance(n, Tasks) else ()
            yield from _scoped(n.body, (*scope, n.var, *lets) if isinstance(n, Loop) else scope)


def _node(p: Program, core: str, n: Node, scope: tuple[str, ...]) -> None:
    match n:
        case Instr():
            _instr(p, core, n, scope)
        case When():
            _known(n.condition, scope, None)
        case Tasks():
            _known(n.until, scope, None)
            _lets(n.lets, (*scope, n.var))
        case Loop() if n.until is not None:
            _known(n.until, scope, None)
        case SetFlag() | WaitFlag():
            _known(n.id, scope, None)
            _pipes(core, *(pipe for pipe in (n.src, n.dst) if (core, pipe) != (AIV, SCALAR_PIPE)))
            _id(n.id.value, EVENT_IDS)
            if n.src == n.dst:
                raise TileError(f"a flag from {n.src} to itself", help=f"within one pipe: barrier {n.src}")
        case PipeBarrier() if n.pipe != "ALL":
            _pipes(core, n.pipe)
        case CrossSet():
            _pipes(core, n.pipe)
            _cross(n.id, scope)
        case CrossWait():
            _cross(n.id, scope)


def _cross(flag: int | Expr, scope: tuple[str, ...]) -> None:
    _known(ix.wrap(flag), scope, None)
    _id(ix.wrap(flag).value, ALL_CROSS_IDS)


def _id(flag: int | None, ids: range) -> None:
    """`flag` is None where a loop decides it: then the simulator sees which it is."""
    if flag is not None and flag not in ids:
        raise TileError(f"there is no flag {flag}", help=f"ids are {ids.start} to {ids.stop - 1}")


def _pipes(core: str, *pipes: str) -> None:
    for pipe in pipes:
        if pipe not in CORE_PIPES[core]:
            raise TileError(f"the {_name(core)} has no pipe {pipe!r}", help=f"it has {', '.join(CORE_PIPES[core])}")


def _known(e: Expr, scope: tuple[str, ...], span: Span | None) -> None:
    for v in sorted(ix.variables(e) - set(scope)):
        raise TileError(f"nothing here is called {v!r}", span, help=f"known here: {', '.join(scope)}")


def _readable(p: Program, e: Expr, span: Span | None) -> None:
    """What is read for an index is an element of an input of whole numbers: what a core writes meanwhile, it might not see."""
    inputs = {t.name: t for t in p.tensors if not t.output}
    for r in all_elements_in(e):
        if r.args[0] in p.wholes:
            continue
        if any(isinstance(n, Scalar) and n.name == r.args[0] for n in walk((*p.cube, *p.vector))):
            continue
        if r.args[0] not in inputs or inputs[r.args[0]].dtype not in INDICES:
            raise TileError(f"{r.args[0]} is no input of whole numbers, and an index is read from it", span)


def _instr(p: Program, core: str, i: Instr, scope: tuple[str, ...]) -> None:
    if i.core != core:
        raise TileError(f"{i.op} runs on the {_name(i.core)}, not on the {_name(core)}", i.span)
    scaled = i.form == "scales" and i.op in ("l1_to_l0a", "l1_to_l0b")
    takes = (2,) if scaled else SOURCES.get(i.op, (1,))
    if len(i.srcs) not in takes:
        raise TileError(f"{i.op} takes {' or '.join(map(str, takes))} source operands, not {len(i.srcs)}", i.span)
    places = PLACES.get(i.op, (_UB,) * (1 + len(i.srcs)))
    places = (*places, (Level.L1,)) if scaled else places
    for o, levels in zip((i.dst, *i.srcs), places, strict=True):
        level = _level(p, o, i.span)
        if level not in levels:
            raise TileError(f"{i.op} cannot use {level} here", i.span, help=f"this operand lies in {' or '.join(levels)}")
    if i.atomic and not (i.op in ("fixpipe", "ub_to_gm") and isinstance(i.dst, Gm)):
        raise TileError(f"{i.op} cannot add atomically here", i.span, help="a fixpipe or ub_to_gm into a tensor can")
    for e in (i.rows, i.cols, i.depth, i.init, i.bound, i.when, i.unit, *_offsets(i)):
        _known(e, (*scope, EACH) if i.op in ("gm_to_l1", "gm_to_ub", "ub_to_gm") else scope, i.span)
        _readable(p, e, i.span)


def _slots(p: Program, nodes: tuple[Node, ...], ranges: Mapping[str, Interval]) -> None:
    """No slot is used that its buffer does not have. `ranges` are those of the variables around."""
    for n in nodes:
        if isinstance(n, Instr):
            for t in (n.dst, *n.srcs, n.scratch):
                if isinstance(t, Tile):
                    _slot(next(b for b in p.buffers if b.name == t.buffer), *ix.bounds(t.slot, ranges), n)
        elif isinstance(n, Loop | When):
            lets = {let.name: (0, let.most) for let in n.lets} if isinstance(n, Tasks) else {}
            own = {n.var: (0, max(0, n.trips - 1))} if isinstance(n, Loop) else {}
            _slots(p, n.body, {**ranges, **lets, **own})


def _slot(b: Buffer, first: int, last: int, i: Instr) -> None:
    if first < 0 or last >= b.slots:
        those = f"slot {first}" if first == last else f"slots {first} to {last}"
        help = f"slots are 0 to {b.slots - 1}" if b.slots > 1 else "its only slot is 0"
        raise TileError(f"{i.op} uses {those} of {b.name}, which has {b.slots}", i.span, help=help)


def _level(p: Program, o: Operand, span: Span | None) -> Level:
    if isinstance(o, Gm):
        if o.tensor not in {t.name for t in p.in_gm}:
            raise TileError(f"{o.tensor} is a buffer, not a tensor", span, help=f"write {o.tensor}[slot; row, col]")
        return Level.GM
    level = next((b.level for b in p.buffers if b.name == o.buffer), None)
    if level is None:
        raise TileError(f"{o.buffer} is a tensor, not a buffer", span, help=f"write {o.buffer}{{offset : stride}}")
    return level


def _offsets(i: Instr) -> Iterator[Expr]:
    for o in (i.dst, *i.srcs, *((i.scratch,) if i.scratch else ())):
        yield from (o.offset,) if isinstance(o, Gm) else (o.slot, o.row, o.col)
