"""Operations on whole tiles as Ascend C: gathers, every so many elements, sorts and merges of sorted lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby

from tile_eg.emit.ascend_c.index import EmitError, FieldError, Scope, block, call, counted, not_empty
from tile_eg.emit.ascend_c.vector import BARRIER, copy, tile
from tile_eg.ir.index import ONE, ZERO, Expr, const, var
from tile_eg.ir.machine import BLOCK_BYTES, MAX_REPEAT
from tile_eg.ir.program import Instr, Tile
from tile_eg.ops.records import record
from tile_eg.ops.types import BF16
from tile_eg.ops.whole_tiles import LONGEST, PATTERNS, SORTED, TURNED, Turns, padded

LISTS = 4
"""Sorted lists that one merge takes."""


@record
class Piece:
    """Pairs of a value and an index: where they begin in a tile, in elements, and how many there are."""

    tile: Tile
    start: int
    pairs: int

    def text(self, s: Scope) -> str:
        return s.at(self.tile, const(self.start))


def piece(s: Scope, i: Instr) -> list[str]:
    """A copy of the rows of a window."""
    return copy(s, replace(i, op="vcopy", srcs=(_window(s, i, tile(i, i.srcs[0])),), bound=ZERO))


def put(s: Scope, i: Instr) -> list[str]:
    """A copy of the whole tile, unless the result takes its place, and one of the rows of the window."""
    dst, old, new = (tile(i, o) for o in (i.dst, *i.srcs))
    b = s.buffer(dst)
    rows = copy(s, replace(i, op="vcopy", dst=_window(s, i, dst), srcs=(new,), bound=ZERO))
    if guards := not_empty(s, i):
        rows = block(f"if ({' && '.join(guards)})", rows)
    if s.at(dst) == s.at(old) or (b.addresses == s.buffer(old).addresses and dst.slot == old.slot):
        return rows
    count = const(b.rows * b.pitch if b.rows > 1 else b.cols)
    return [*copy(s, replace(i, op="vcopy", srcs=(old,), rows=ONE, cols=count, form="flat", bound=ZERO)), BARRIER, *rows]


def reshape(s: Scope, i: Instr) -> list[str]:
    """A copy of one run of elements."""
    return copy(s, replace(i, op="vcopy", rows=ONE, form="flat"))


def _window(s: Scope, i: Instr, t: Tile) -> Tile:
    """The tile from an element on."""
    pitch = s.buffer(t).cols
    return replace(t, row=t.row + i.bound // pitch, col=t.col + i.bound % pitch)


def gather(s: Scope, i: Instr) -> list[str]:
    src, at = (tile(i, o) for o in i.srcs)
    return call("Gather", s.at(i.dst), s.at(src), s.at(at), str(i.steps[0]), s.cpp(i.cols))


def sort32(s: Scope, i: Instr) -> list[str]:
    scores, indices = (tile(i, o) for o in i.srcs)
    return _groups(s, Piece(tile(i, i.dst), 0, 0), s.at(scores), s.at(indices), (i.cols.value or 0) // SORTED)


def transpose(s: Scope, i: Instr) -> list[str]:
    """One square of 16-bit elements has a function of its own; others are turned in the fewest instructions."""
    kind = s.dtype(i.dst)
    if i.steps == (TURNED, TURNED) and kind.bytes == 2:
        return call("Transpose", s.at(i.dst), s.at(tile(i, i.srcs[0])))
    turns = Turns.of(i.steps[0], i.steps[1], kind)
    if turns.repeats > MAX_REPEAT:
        raise FieldError(f"{i.op}: {turns.repeats} squares at once; its field holds {MAX_REPEAT}", i.span)
    strip, n = (s.counter(wish, count) for wish, count in (("strip", turns.calls), ("n", TURNED)))
    to, source = s.fresh("to"), s.fresh("from")
    target, origin, apart = _first_blocks(s, i, turns, (var(strip), var(n)))
    addresses = [f"{to}[{n}] = (uint64_t){target}.GetPhyAddr();", f"{source}[{n}] = (uint64_t){origin}.GetPhyAddr();"]
    params = ", ".join(map(str, (turns.repeats, *(apart if turns.repeats > 1 else (0, 0)))))
    return counted(strip, str(turns.calls), [
        f"uint64_t {to}[{TURNED}], {source}[{TURNED}];",
        *counted(n, str(TURNED), addresses),
        *call(f"TransDataTo5HD<{'half' if kind is BF16 else kind.ascend}>", to, source,
              f"AscendC::TransDataTo5HDParams(false, false, {params})"),
    ])  # fmt: skip


def _first_blocks(s: Scope, i: Instr, turns: Turns, at: tuple[Expr, Expr]) -> tuple[str, str, tuple[int, int]]:
    """Where block n of an instruction's first square goes to and comes from, and how many blocks apart the next squares lie.

    `at` is which instruction, and n. 16 elements of 32 bits are two blocks of a row of the result.
    """
    (rows, cols), (strip, n), wide = (i.steps[0], i.steps[-1]), at, BLOCK_BYTES // s.dtype(i.dst).bytes
    halves = TURNED // wide
    row, col = (strip * TURNED, ZERO) if turns.along else (ZERO, strip * wide)
    target = s.at(i.dst, (col + n // halves) * rows + row + n % halves * wide)
    origin = s.at(tile(i, i.srcs[0]), (row + n) * cols + col)
    return target, origin, ((rows, 1) if turns.along else (halves, TURNED * cols // wide))


def every(s: Scope, i: Instr) -> list[str]:
    """By a pattern of the hardware, over a count of elements."""
    pattern = PATTERNS.get((i.steps[0], i.steps[1]))
    if pattern is None:
        raise EmitError(f"{i.op} takes every second or fourth element", i.span)
    taken = s.fresh("taken")
    params = "AscendC::GatherMaskParams(1, 1, 8, 0)"
    lines = call("GatherMask", s.at(i.dst), s.at(tile(i, i.srcs[0])), f"static_cast<uint8_t>({pattern})", "true", s.cpp(i.cols),
                 params, taken)  # fmt: skip
    return ["{", *(f"    {line}" for line in (f"uint64_t {taken} = 0;", *lines)), "}"]


def swap_pairs(s: Scope, i: Instr) -> list[str]:
    """As numbers of two elements each: their lower halves moved up, and their upper ones down."""
    assert i.scratch is not None
    dst, src, other = s.at(i.dst), s.at(tile(i, i.srcs[0])), s.at(i.scratch)
    count = i.cols.value or 0
    shifted = [("ShiftLeft", dst), ("ShiftRight", other)]
    as_pairs, as_bits = (f".ReinterpretCast<{t}>()" for t in ("uint32_t", "uint16_t"))
    lines = [line for name, to in shifted
             for line in call(name, to + as_pairs, src + as_pairs, "uint32_t(16)", str(count // 2))]  # fmt: skip
    return [*lines, BARRIER, *call("Or", dst + as_bits, dst + as_bits, other + as_bits, str(count))]


def merge(s: Scope, i: Instr) -> list[str]:
    lists = [Piece(tile(i, o), 0, n) for o, n in zip(i.srcs, i.steps, strict=True)]
    return _merged(s, i, Piece(tile(i, i.dst), 0, sum(i.steps)), lists, 1)


def sort(s: Scope, i: Instr) -> list[str]:
    """Groups of 32, then merges of four lists at a time between the halves of the scratch, the last one into the result."""
    assert i.scratch is not None
    count, keep = i.steps[0], i.steps[1]
    total = padded(count)
    dst, src = tile(i, i.dst), tile(i, i.srcs[0])
    direct = keep == total
    here, there = Piece(i.scratch, 0, total), Piece(i.scratch, 2 * total, total)
    indices, scores = s.at(i.scratch, const(2 * total)), s.at(src)
    lines = call("CreateVecIndex", indices, "0.0f", str(total))
    if count < total:
        scores = s.at(i.scratch, const(3 * total))
        lines += [*call("Duplicate", scores, "-__builtin_inff()", str(total)), BARRIER,
                  *call("Adds", scores, s.at(src), "0.0f", str(count))]  # fmt: skip
    first = Piece(dst, 0, total) if direct and total == SORTED else here
    lines += [BARRIER, *_groups(s, first, scores, indices, total // SORTED)]
    lengths = [SORTED] * (total // SORTED)
    while len(lengths) > 1:
        last = direct and len(lengths) <= LISTS
        to = Piece(dst, 0, total) if last else there
        lines += [BARRIER, *_round(s, i, here, to, lengths)]
        lengths = [sum(lengths[n : n + LISTS]) for n in range(0, len(lengths), LISTS)]
        here, there = to, here
    return lines if direct else [*lines, BARRIER, *call("Adds", s.at(dst), here.text(s), "0.0f", str(2 * keep))]


def _groups(s: Scope, to: Piece, scores: str, indices: str, groups: int) -> list[str]:
    if groups > MAX_REPEAT:
        raise EmitError(f"sort: {groups * SORTED} elements at once; its field holds {MAX_REPEAT * SORTED}")
    return call("Sort32", to.text(s), scores, f"{indices}.ReinterpretCast<uint32_t>()", str(groups))


def _round(s: Scope, i: Instr, source: Piece, to: Piece, lengths: list[int]) -> list[str]:
    """One round of merges: groups of four lists of one length in one instruction, what remains in one of its own."""
    groups = [tuple(lengths[n : n + LISTS]) for n in range(0, len(lengths), LISTS)]
    lines, at = [], 0
    for group, same in groupby(groups):
        repeat = len(list(same)) if len(set(group)) == 1 and len(group) == LISTS else 1
        starts = [at + sum(group[:n]) for n in range(len(group))]
        lists = [Piece(source.tile, source.start + 2 * a, n) for a, n in zip(starts, group, strict=True)]
        lines += _merged(s, i, Piece(to.tile, to.start + 2 * at, sum(group)), lists, repeat)
        at += repeat * sum(group)
    return lines


def _merged(s: Scope, i: Instr, to: Piece, lists: list[Piece], repeat: int) -> list[str]:
    if len(lists) == 1:
        return call("Adds", to.text(s), lists[0].text(s), "0.0f", str(2 * lists[0].pairs))
    if max(p.pairs for p in lists) > LONGEST or len(lists) > LISTS:
        raise EmitError(f"{i.op}: up to {LISTS} lists of {LONGEST} pairs each are merged", i.span)
    name, kind = s.fresh("lengths"), s.dtype(i.dst).ascend
    lengths = [p.pairs for p in lists] + [0] * (LISTS - len(lists))
    texts = [p.text(s) for p in lists] + [lists[0].text(s)] * (LISTS - len(lists))
    return [
        "{",
        f"    const uint16_t {name}[{LISTS}] = {{{', '.join(map(str, lengths))}}};",
        f"    AscendC::MrgSort({to.text(s)}, AscendC::MrgSortSrcList<{kind}>({', '.join(texts)}),",
        f"        AscendC::MrgSort4Info({name}, false, {(1 << len(lists)) - 1}, {repeat}));",
        "}",
    ]


WHOLE: dict[str, Callable[[Scope, Instr], list[str]]] = {
    "vgather": gather, "vevery": every, "vswap_pairs": swap_pairs, "vsort": sort, "vmerge": merge, "vpiece": piece,
    "vreshape": reshape, "vput": put, "vsort32": sort32, "vtranspose": transpose,
}  # fmt: skip
