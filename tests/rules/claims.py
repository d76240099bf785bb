"""What each table of facts claims about the values of a kernel, and whether that is so in numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.rules.worlds import Row, World, around, bound, known_at, loops
from tile_eg.egraph.members import Class, Member
from tile_eg.egraph.numbers import Numbers, Unbound
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.index import BLOCK, SUB, Expr, variables
from tile_eg.ir.machine import BLOCK_BYTES
from tile_eg.ops.types import VALUE_TYPES
from tile_eg.transforms.k_tiling import Tiling


def everywhere(claim: Callable[..., bool]) -> Callable[..., bool]:
    """A claim about numbers, in every place where its values are bound."""

    def held(w: World, *row: Any) -> bool:
        for numbers in w.places:
            try:
                if not claim(w, numbers, *row):
                    return False
            except Unbound:
                continue
        return True

    return held


def raw(n: Numbers, cls: Class) -> np.ndarray:
    """A class by its smallest term, not cut to its valid extents."""
    m = n.members.chosen[cls]
    with np.errstate(all="ignore"):
        return getattr(n, f"_{m.op.lower()}")(*m.args)


def valid(w: World, n: Numbers, v: Class) -> np.ndarray:
    """The valid part of a tile."""
    with np.errstate(all="ignore"):
        return n.inner(v)


def has_extent(w: World, n: Numbers, v: Class, extent: Expr, _: int, axis: int) -> bool:
    return valid(w, n, v).shape[axis] == max(0, n.at(extent)) and not np.isnan(valid(w, n, v)).any()


def depends(w: World, cls: Class, loops: frozenset[int]) -> bool:
    """Whether nothing changes with a loop that is not among `loops`."""
    encoder = w.members.encoder
    for loop in encoder.values.parents.keys() - loops:
        name = encoder.values.variables[loop]
        for n in w.places:
            for other in w.places:
                if n.indices.keys() == other.indices.keys() and _differing(n, other) == {name} and not _same(n, other, cls):
                    return False
    return True


def _differing(n: Numbers, other: Numbers) -> set[str]:
    return {k for k in n.indices if n.indices[k] != other.indices[k]}


def _same(n: Numbers, other: Numbers, cls: Class) -> bool:
    try:
        with np.errstate(all="ignore"):
            return np.array_equal(n.of(cls), other.of(cls), equal_nan=True)
    except Unbound:
        return True


def index_depends(w: World, e: Expr, loops: frozenset[int]) -> bool:
    names = w.members.encoder.values.variables
    return {v for v in variables(e) if v not in (BLOCK, SUB)} <= {names[loop] for loop in loops}


def ancestors(w: World, loop: int, loops: frozenset[int]) -> bool:
    values = w.members.encoder.values
    return around(values, loop) == {values.variables[x] for x in loops}


def region_of(w: World, t: Class, region: int) -> bool:
    """The version is known in its region, and not outside of it."""
    inside = around(w.members.encoder.values, region)
    known = [(bound(n), known_at(n, t)) for n in w.places]
    return all(k if where == inside else not k or where >= inside for where, k in known)


def state(w: World, loop: int, k: int) -> tuple[Class, Class]:
    """The value of a loop's state before the first trip, and that after a trip."""
    n = w.places[0]
    chain = next(m.args[2] for c, ms in w.members.classes.items() if c[0] == "Lp" for m in ms if m.args[0] == loop)
    return n.of(chain)[k]


def adds_to_state(w: World, n: Numbers, v: Class, loop: int, k: int) -> bool:
    """Whether one more in a state is one more in the value."""
    if loop not in n.states:
        raise Unbound
    more = Numbers(n.members, n.arrays, n.indices)
    states = list(n.states[loop])
    states[k] = states[k] + np.float32(1)
    more.states = {**n.states, loop: tuple(states)}
    return np.array_equal(valid(w, more, v), valid(w, n, v) + np.float32(1))


def accumulates(w: World, v: Class, seen: frozenset[Class] = frozenset()) -> bool:
    """Whether a value is zero, a product, or a sum of products that begins with zero: what L0C can hold."""
    if v in seen:
        return True
    return any(
        all(accumulates(w, x, seen | {v}) for x in parts) for m in w.members.classes[v] if (parts := sum_of(w, m)) is not None
    )


def sum_of(w: World, m: Member) -> tuple[Class, ...] | None:
    """What has to be such a sum, too, for a term to be one; None of any other term."""
    match m.op, m.args:
        case ("MatMul", _) | ("Fill", (0.0, *_)):
            return ()
        case "Bin", ("add", x, y):
            return x, y
        case "Arg", (loop, k):
            return state(w, loop, k)
        case "Proj", (k, loop):
            return state(w, w.members.chosen[loop].args[0], k)
    return None


def side_by_side(axis: int) -> Callable[..., bool]:
    def held(w: World, v: Class, deep: int, wide: Class, _: None) -> bool:
        groups = list(w.groups(w.tiling(deep)))
        return bool(groups) and all(
            np.array_equal(np.concatenate([p.inner(v) for p in parts], axis), n.inner(wide)) for n, parts in groups
        )

    return held


def summed(w: World, v: Class, deep: int, wide: Class, _: None) -> bool:
    return all(np.array_equal(sum(p.inner(v) for p in parts), n.inner(wide)) for n, parts in w.groups(w.tiling(deep)))


def deep_states(w: World, chain: Class, deep: int, others: Class, _: None) -> bool:
    """A deeper trip does to the states what the trips do for which it stands."""
    t = w.tiling(deep)
    return all(_deep_trip(w, t, n, parts, chain, others) for n, parts in w.groups(t))


def _deep_trip(w: World, t: Tiling, n: Numbers, parts: list[Numbers], chain: Class, others: Class) -> bool:
    old, new = n.of(chain), n.of(others)
    before = [None] * (len(n.of(loops(w, t.loop)[0].args[2])) - len(old))  # a chain may be the end of another one
    starts = [n.masked(init, np.ones(1, np.float32)) for init, _ in old]
    n.states[t.deep], states = (*before, *starts), starts
    for p in parts:
        p.states[t.loop] = (*before, *states)
        states = [p.of(after) for _, after in old]
    same = (np.array_equal(x, n.of(after), equal_nan=True) for x, (_, after) in zip(states, new, strict=True))
    return [i for i, _ in old] == [i for i, _ in new] and all(same)


@everywhere
def written(w: World, n: Numbers, t: Class, before: Class, v: Class, _: None) -> bool:
    """Whether a version differs from the one before it by what is stored or added there, and in nothing else."""
    old, new = n.of(before), n.of(t)
    moved, given = old != new, valid(w, n, v)
    return moved.sum() <= given.size and bool(np.isin(new[moved], given).all() or np.isin(new[moved] - old[moved], given).all())


@everywhere
def half_of(w: World, n: Numbers, part: Class, whole: Class, _: None) -> bool:
    """One half of a tile, along rows or columns; of products, that of half the depth."""
    depth = w.of("depth")
    if whole in depth:
        return 2 * depth[part] == depth[whole]
    a, b = valid(w, n, part), valid(w, n, whole)
    r, c = (x // 2 for x in b.shape)
    return any(np.array_equal(a, half) for half in (b[:r], b[r:], b[:, :c], b[:, c:]))


def is_part(w: World, n: Numbers, part: Class, whole: Class, row: int, col: int, _: None) -> bool:
    found = valid(w, n, part)
    return np.array_equal(found, valid(w, n, whole)[row : row + found.shape[0], col : col + found.shape[1]])


def again(w: World, v: Class, first: Class, loop: int, earlier: int, _: None) -> bool:
    """Whether each trip of a loop has what the earlier one's trip of that number has."""
    names = w.members.encoder.values.variables
    held = [n for n in w.places if names[loop] in n.indices]
    return bool(held) and all(_again(w, n, v, first, names[loop], names[earlier]) for n in held)


def _again(w: World, n: Numbers, v: Class, first: Class, later: str, earlier: str) -> bool:
    trip = {earlier if k == later else k: i for k, i in n.indices.items()}
    return np.array_equal(valid(w, n, v), valid(w, Numbers(n.members, n.arrays, trip), first))


def flat_or_rows(w: World, v: Class, form: str, _: None) -> bool:
    """Whether the valid elements lie without gaps: rows of whole 32-byte blocks, or one row."""
    shape = w.members.shapes[v]
    without_gaps = shape.rows == 1 or (shape.vcols.value == shape.cols and shape.cols * shape.dtype.bytes % 32 == 0)
    return form == ("flat" if without_gaps else "rows")


def strided(w: World, v: Class, _: None) -> bool:
    """Whether a value is some columns of a tile, in whole blocks of 32 bytes that lie in rows as far apart as its."""
    size, cols = w.of("eb")[v], w.of("cols")
    of = [(m.args[0], m.args[-1]) for m in w.members.classes[v] if m.op == "Piece"]
    return any(
        cols[x] > cols[v] and offset.value % cols[x] + cols[v] <= cols[x]
        and not any(size * n % BLOCK_BYTES for n in (cols[x], cols[v], offset.value)) for offset, x in of
    )  # fmt: skip


def in_window(w: World, n: Numbers, at: Expr, rows: int, cols: int, y: Class, v: Class, _: None) -> bool:
    """Whether a tile holds another one, all of which exists, from an element on."""
    row, col = divmod(n.at(at), w.of("cols")[v])
    found = valid(w, n, y)
    return found.shape == (rows, cols) and np.array_equal(raw(n, v)[row : row + rows, col : col + cols], found)


def covered(w: World, n: Numbers, v: Class, first: Class, _: None) -> bool:
    """Whether windows cover a tile: what it is does not depend on what the first one of them was put into."""
    windows = [row for row in w.tables["Window"] if row[4] == v or row[4] == first]
    seen = np.zeros((w.of("rows")[v], w.of("cols")[v]), bool)
    for at, rows, cols, *_ in windows:
        row, col = divmod(n.at(at), w.of("cols")[v])
        seen[row : row + rows, col : col + cols] = True
    return bool(seen.all())


def can_be_split(w: World, v: Class, share: int | None, _: None) -> bool:
    """Whether each core has two rows or more, whole 8 bytes of a vector, or whole blocks of strips."""
    rows, cols, dtype = (w.of(name)[v] for name in ("rows", "cols", "dt"))
    if share is None:
        return True
    if share == 0:
        return rows % 4 == 0
    return cols % 2 == 0 and cols // 2 * VALUE_TYPES[dtype].bytes % (8 if rows == 1 else BLOCK_BYTES) == 0


def step_of(size: Callable[[World, Class], int]) -> Callable[..., bool]:
    """Whether a cut is in whole fractals, and no longer than what it cuts."""
    return lambda w, v, cut, _: cut % 16 == 0 and 0 < cut < size(w, v) + 16


def part_of(size: Callable[[World, Class], int]) -> Callable[..., bool]:
    """Whether a cut is in whole fractals, and says rightly whether it is a part of what it cuts or all of it."""
    return lambda w, v, cut, part, _: cut % 16 == 0 and (0 < cut < size(w, v) if part else size(w, v) <= cut < size(w, v) + 32)


def chosen_from(w: World, v: Class, x: Class, _: None) -> bool:
    return any(m.op in ("Cho", "ChoS", "ChoI") and x in m.args for m in w.members.classes[v])


def for_vectors(w: World, v: Class, _: None) -> bool:
    read_back = w.holding("ReadBack") if "ReadBack" in w.tables else set()
    loads = all(m.op != "Load" or w.of("tname")[m.args[0]] in read_back for m in w.members.classes[v])
    return any(m.op not in ("MatMul", "Load") for m in w.members.classes[v]) or (bool(w.members.classes[v]) and loads)


def _depth(w: World, v: Class) -> int:
    m = next(m for m in w.members.classes[v] if m.op == "MatMul")
    return w.of("rows" if m.args[2] else "cols")[m.args[0]]


def in_even_steps(x: np.ndarray) -> bool:
    """Whether each row and each column is a number more than the one before, the same everywhere."""
    steps = [np.diff(x.astype(np.float64), axis=axis) for axis in (0, 1)]
    return all(d.size == 0 or (d == d.flat[0]).all() for d in steps)


CLAIMS: dict[str, Callable[..., bool]] = {
    "rows": everywhere(lambda w, n, v, rows: raw(n, v).shape[0] == rows),
    "cols": everywhere(lambda w, n, v, cols: raw(n, v).shape[1] == cols),
    "dt": everywhere(lambda w, n, v, dtype: raw(n, v).dtype == numpy_dtype(VALUE_TYPES[dtype])),
    "eb": lambda w, v, size: size == VALUE_TYPES[w.of("dt")[v]].bytes,
    "vr": everywhere(lambda w, n, v, e: has_extent(w, n, v, e, 0, 0)),
    "vc": everywhere(lambda w, n, v, e: has_extent(w, n, v, e, 0, 1)),
    "Varies": lambda w, extent, _: bool(w.of("ideps")[extent]),
    "deps": depends, "tdeps": depends, "ideps": index_depends, "anc": ancestors,
    "treg": region_of,
    "tdt": everywhere(lambda w, n, t, dtype: n.of(t).dtype == numpy_dtype(VALUE_TYPES[dtype])),
    "tname": everywhere(lambda w, n, t, name: n.of(t).size == w.arrays[name].size),
    "Written": written,
    "ZeroFill": everywhere(lambda w, n, v, _: not n.of(v).any()),
    "IsCube": lambda w, v, _: w.of("dt")[v] in ("f32", "i32") and accumulates(w, v),
    "CubeMade": lambda w, v, _: accumulates(w, v) and any(m.op in ("MatMul", "Bin", "Proj") for m in w.members.classes[v]),
    "IsVec": for_vectors,
    "Positions": everywhere(lambda w, n, v, _: in_even_steps(raw(n, v))),
    "StElem": lambda w, loop, k, init, after, _: state(w, loop, k) == (init, after),
    "StTElem": lambda w, loop, k, init, after, _: state(w, loop, k) == (init, after),
    "Walk": lambda w, loop, k, chain, _: w.places[0].of(loops(w, loop)[0].args[2])[k:] == w.places[0].of(chain),
    "Chain": everywhere(lambda w, n, v, loop, k, _: adds_to_state(w, n, v, loop, k)),
    "Chosen": chosen_from,
    "depth": everywhere(lambda w, n, v, k: _depth(w, v) == k),
    "CutM": part_of(lambda w, v: w.of("rows")[v]), "CutN": part_of(lambda w, v: w.of("cols")[v]),
    "CutK": step_of(_depth),
    "WholeBlocks": lambda w, v, _: w.of("dt")[v] != "i8" or (flat_or_rows(w, v, "flat", None) and w.of("cols")[v] % 32 == 0),
    "Strided": strided, "Window": everywhere(in_window), "Covered": everywhere(covered),
    "Form": flat_or_rows, "ShOK": can_be_split,
    "Factor": lambda w, loop, deep, factor, _: (w.tiling(deep).loop, w.tiling(deep).factor) == (loop, factor),
    "Beside": side_by_side(1), "Below": side_by_side(0), "Summed": summed, "DeepStates": deep_states, "PartOf": half_of,
    "IsPart": everywhere(is_part), "Again": again,
    "Source": lambda w, v, n, _: w.members.encoder.numbered[n].dtype.name == w.of("dt")[v],
}  # fmt: skip
"""What a row of a table says, by the table's name."""


def untrue(w: World) -> list[tuple[str, Row]]:
    """The rows that are not so, or of which no place knows all values."""
    with np.errstate(all="ignore"):
        return [(name, row) for name, rows in w.tables.items() if name in CLAIMS for row in rows if not _so(w, name, row)]


def _so(w: World, name: str, row: Row) -> bool:
    try:
        return CLAIMS[name](w, *row)
    except Unbound:
        return False
