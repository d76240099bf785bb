"""What the words of a kernel that is kept become: allocations, scopes, flags, barriers, loops over tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_eg.errors import Note, Span, TileError
from tile_eg.frontend.conditions import is_condition
from tile_eg.frontend.expert import (
    atomics,
    bools,
    by_elements,
    composed_words,
    fills,
    moves,
    parallel,
    printing,
    products,
    reductions,
    repeats,
    running_words,
    vectors,
    views,
    whole_words,
)
from tile_eg.frontend.expert.bool_words import bool_words
from tile_eg.frontend.expert.dialect_words import dialect_words
from tile_eg.frontend.expert.leaving import left
from tile_eg.frontend.expert.nodes import Branch, NewVariable, Part, Persistent, Pipe, Scope
from tile_eg.frontend.expert.reader import SHARED, ExpertReader
from tile_eg.frontend.expert.variables import number, picked
from tile_eg.frontend.expert.vector_words import vector_words
from tile_eg.frontend.python.placement_words import HANDLERS, bands_of
from tile_eg.frontend.python.values import Buffer, NewBuffer, as_dtype, describe, is_index
from tile_eg.frontend.python.words import known, sizes
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.index import Expr
from tile_eg.ir.machine import ALL_CROSS_IDS, EVENT_IDS, valid_event
from tile_eg.ir.program import AIC, AIV

PIPES = ("fix", "mte1", "mte2", "mte3", "m", "v", "s")
WRITTEN = range(16)
"""Numbers of flags that authors write; one that a core does not have gets another (`streams.numbered`)."""
CORES = {"C": AIC, "V": AIV, "CUBE": AIC, "VECTOR": AIV}
MODES = {
    0: "0 joins the cube cores of all blocks, or their vector cores",
    1: "1 the vector cores of a block",
    2: "2 joins the cube core of a block and its vector cores",
}
"""Which cores a flag joins."""
AS_IT_IS = (
    "Kernel", "func_attr", "serial", "unroll", "Pipelined", "Parallel", "grid", "And", "Or", "Not", "ceildiv", "align_up",
    "floordiv", "floormod", "cast", "Cast", "make_zn_layout", "make_nz_layout", "make_col_major_layout",
)  # fmt: skip
"""Words that mean the same in every kernel."""


def _pipe(name: Any, span: Span) -> str:
    found = name.upper().removeprefix("PIPE_") if isinstance(name, str) else ""
    if found.lower() not in PIPES:
        what = name if isinstance(name, str) else describe(name)
        raise TileError(f"there is no pipe {what!r}", span, help=f"pipes are {', '.join(PIPES)}")
    return found


def _flag_id(value: Any, ids: range, r: ExpertReader, span: Span) -> Expr:
    if not is_index(value):
        raise TileError(f"the number of a flag is a whole number, not {describe(value)}", span)
    e = ix.wrap(value)
    low, high = ix.bounds(e, r.ranges)
    if e.value is not None and e.value in WRITTEN:
        return e
    if low < ids.start or high >= ids.stop:
        at = str(low) if low == high else f"{low} to {high}"
        raise TileError(f"there is no flag {at}", span, help=f"flags are numbered {ids.start} to {ids.stop - 1}")
    return e


def _event(node: type, r: ExpertReader, span: Span, src: Any, dst: Any, number: Any) -> None:
    source, target = _pipe(src, span), _pipe(dst, span)
    cores = [core for core in (AIC, AIV) if r.core in (None, core) and valid_event(core, source, target)]
    if not cores:
        where = {AIC: "the cube core", AIV: "the vector cores", None: "any core"}[r.core]
        raise TileError(
            f"there is no flag from {source.lower()} to {target.lower()} on {where}", span,
            help="within one pipe: T.pipe_barrier; from one core to another: T.set_cross_flag",
        )  # fmt: skip
    r.emit(node(source, target, _flag_id(number, EVENT_IDS, r, span), span))


def _set_flag(r: ExpertReader, span: Span, src: Any, dst: Any = 0, eventId: Any = None) -> None:  # noqa: N803
    """T.set_flag(src, dst, id), or T.set_flag(dst, id) in `with T.rs(src)`."""
    ends = (src, dst, eventId) if eventId is not None else (_own_pipe("set_flag", r, span), src, dst)
    _event(pr.SetFlag, r, span, *ends)


def _wait_flag(r: ExpertReader, span: Span, src: Any, dst: Any = 0, eventId: Any = None) -> None:  # noqa: N803
    """T.wait_flag(src, dst, id), or T.wait_flag(src, id) in `with T.rs(dst)`."""
    ends = (src, dst, eventId) if eventId is not None else (src, _own_pipe("wait_flag", r, span), dst)
    _event(pr.WaitFlag, r, span, *ends)


def _own_pipe(word: str, r: ExpertReader, span: Span) -> str:
    """The pipe of the T.rs around."""
    if r.pipe is None:
        raise TileError(f"T.{word}: whose flag is it?", span, help=f'T.{word}(src, dst, n), or write it in `with T.rs("PIPE_V")`')
    return r.pipe


def _rs(r: ExpertReader, span: Span, name: Any) -> Pipe:
    return Pipe(_pipe(name, span))


def _sync_block_set(r: ExpertReader, span: Span, flag: Any) -> None:
    _set_cross_flag(r, span, _own_pipe("sync_block_set", r, span), flag)


def _sync_block_wait(r: ExpertReader, span: Span, flag: Any) -> None:
    """The dialect's wait of one pipe: the pipes of A2 and A3 that come behind a flag of another core all wait for it."""
    _wait_cross_flag(r, span, flag)


def _barrier_all(r: ExpertReader, span: Span) -> None:
    r.emit(pr.PipeBarrier("ALL", span))


def _pipe_barrier(r: ExpertReader, span: Span, pipe: Any) -> None:
    if isinstance(pipe, str) and pipe.lower().removeprefix("pipe_") == "all":
        return _barrier_all(r, span)
    if (name := _pipe(pipe, span)) != "S":  # the scalar unit takes its instructions in order
        r.emit(pr.PipeBarrier(name, span))
    return None


def _sync_all(r: ExpertReader, span: Span) -> None:
    r.emit(pr.SyncAll(span))


def _set_cross_flag(r: ExpertReader, span: Span, pipe: Any, flag: Any, mode: Any = 2) -> None:
    if mode not in MODES:
        raise TileError(f"flags between cores have mode 0, 1 or 2, not {describe(mode)}", span, help=", ".join(MODES.values()))
    if mode == 1 and r.core == AIC:
        raise TileError("mode 1 is between the vector cores of a block, and this is the cube core", span, help=MODES[2])
    r.emit(pr.CrossSet(_pipe(pipe, span), _cross_id(flag, r, span), span, mode))


def _wait_cross_flag(r: ExpertReader, span: Span, flag: Any, pipe: Any = "") -> None:
    if pipe != "":
        note = f"on A2 and A3 a wait between cores stops all pipes of its core, not {_pipe(pipe, span).lower()} alone"
        r.notes += [] if any(n.text == note for n in r.notes) else [Note(note, span)]
    if r.core is None:
        raise TileError("which core waits?", span, help='write it in T.Scope("C") or in T.Scope("V")')
    r.emit(pr.CrossWait(_cross_id(flag, r, span), span))


def _cross_id(flag: Any, r: ExpertReader, span: Span) -> int | Expr:
    e = _flag_id(flag, ALL_CROSS_IDS, r, span)
    return e if e.value is None else e.value


def _scope(r: ExpertReader, span: Span, name: Any) -> Scope:
    core = CORES.get(name.upper()) if isinstance(name, str) else None
    if core is None:
        raise TileError(f"there is no scope {name!r}", span, help='"C" is the cube core, "V" are the vector cores')
    return Scope(core)


def _alloc(level: str) -> Callable[..., NewBuffer]:
    def alloc(r: ExpertReader, span: Span, shape: Any, dtype: Any, *_: Any, **__: Any) -> NewBuffer:
        return bools.allocated(level, shape, dtype, span, level in (SHARED, "fragment"))

    return alloc


def _address(r: ExpertReader, span: Span, addresses: Any) -> None:
    if not isinstance(addresses, dict):
        raise TileError("T.annotate_address takes a dictionary: {buffer: bytes from the start of its memory}", span)
    for buffer, at in addresses.items():
        if not isinstance(buffer, Buffer) or buffer.name not in r.held:
            raise TileError(f"only a buffer has an address, not {describe(buffer)}", span)
        if buffer.name in r.views:
            what = f"{buffer.name} is a view, and lies where {r.views[buffer.name]} does"
            raise TileError(what, span, help=f"give {r.views[buffer.name]} the address")
        r.addresses[buffer.name] = known(int(at) if isinstance(at, float) and at == int(at) else at, "an address", span)


def _layout(r: ExpertReader, span: Span, layouts: Any) -> None:
    """In L1 tiles lie in rows of fractals as the cube core reads them (zN), whatever is written here says the same."""
    for buffer in layouts:
        if not isinstance(buffer, Buffer) or buffer.name not in r.held:
            raise TileError(f"only a buffer has a layout, not {describe(buffer)}", span)


def _persistent(r: ExpertReader, span: Span, domain: Any, wave: Any, index: Any, group: Any = 8) -> Persistent:
    found = sizes(domain, "the domain of T.Persistent", span)
    if not is_index(index):
        raise TileError(f"the place in a wave is an index, not {describe(index)}", span)
    return Persistent(found, known(wave, "the size of a wave", span), ix.wrap(index), known(group, "the size of a group", span))


def _swizzle(r: ExpertReader, span: Span, index: Any, *window: Any, **_: Any) -> Expr | None:
    if index is None or window[0] is None:
        return None
    return bands_of(window, span).within(ix.wrap(index), r.ranges)


def _alloc_var(r: ExpertReader, span: Span, dtype: Any, *rest: Any, init: Any, scope: Any) -> NewVariable:
    """`T.alloc_var("int32", init=1)`; a string among the arguments is a scope."""
    given = [v for v in (*rest, init) if v is not None and not isinstance(v, str)]
    if len(given) > 1:
        raise TileError("T.alloc_var has one init", span)
    return NewVariable(None if str(dtype) == "bool" else as_dtype(dtype, span), given[0] if given else 0)


def _chosen(r: ExpertReader, span: Span, test: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y; an element that is not chosen is not read."""
    if r.in_parallel or not is_condition(test):
        return HANDLERS["if_then_else"](r, span, test, x, y)
    if all(map(is_index, (test, x, y))):
        return picked(r, span, *map(ix.wrap, (test, x, y)))
    return number(r, HANDLERS["if_then_else"](r, span, test, x, y), span)


def _loop_break(r: ExpertReader, span: Span) -> None:
    left(r, span, False)


def _if(r: ExpertReader, span: Span, condition: Any) -> Branch:
    return Branch(condition)


def _part(name: str) -> Callable[..., Part]:
    return lambda r, span: Part(name)


def _limit(word: str) -> Callable[..., Any]:
    def limit(r: ExpertReader, span: Span, *values: Any) -> Any:
        if r.in_parallel:
            return HANDLERS[word](r, span, *values)
        return HANDLERS[word](r, span, *(number(r, v, span) for v in values))

    return limit


EXPERT: dict[str, Callable[..., Any]] = {
    **{word: HANDLERS[word] for word in AS_IT_IS},
    **parallel.WORDS,
    "set_flag": _set_flag, "wait_flag": _wait_flag, "barrier_all": _barrier_all, "pipe_barrier": _pipe_barrier,
    "sync_all": _sync_all, "set_cross_flag": _set_cross_flag, "wait_cross_flag": _wait_cross_flag, "Scope": _scope,
    "rs": _rs, "sync_block_set": _sync_block_set, "sync_block_wait": _sync_block_wait,
    "alloc_L1": _alloc("L1"), "alloc_ub": _alloc("UB"), "alloc_L0A": _alloc("L0A"), "alloc_L0B": _alloc("L0B"),
    "alloc_L0C": _alloc("L0C"), "alloc_shared": _alloc(SHARED), "alloc_fragment": _alloc("fragment"),
    "annotate_address": _address, "annotate_layout": _layout, "Persistent": _persistent, "use_swizzle": _swizzle,
    "loop_break": _loop_break,
    "If": _if, "Then": _part("Then"), "Else": _part("Else"), "alloc_var": _alloc_var, "max": _limit("max"), "min": _limit("min"),
    **dict.fromkeys(("if_then_else", "where", "Select"), _chosen),
    **moves.WORDS, **atomics.WORDS, **products.WORDS, **vectors.WORDS, **composed_words.WORDS,  # type: ignore[dict-item]
    **whole_words.WORDS, **by_elements.WORDS, **repeats.WORDS, **reductions.WORDS, **running_words.WORDS,
    **printing.WORDS, **views.WORDS, **fills.WORDS,
}  # fmt: skip
EXPERT |= bool_words(EXPERT)
EXPERT = {**vector_words(EXPERT), **EXPERT}
EXPERT |= dialect_words(EXPERT)
