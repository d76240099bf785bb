"""What a kernel computes, as values: pure tiles in single-assignment form, versions of GM tensors, and folds for loops.

A tile is rows x cols; a vector is a tile with one row. `vrows` and `vcols` are the valid extents (index expressions): what
lies beyond them does not exist for a reduction, a product or a store. `Builder.make` gives equal terms once: they compare
by identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tile_eg.errors import Span
from tile_eg.ir.index import BLOCK, Expr, evaluate, substitute
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.sampling import spread
from tile_eg.ir.sizes import Sizes
from tile_eg.ops.records import record
from tile_eg.ops.types import DType

WRITES = ("store", "accumulate")
VERSIONS = ("given", *WRITES, "targ", "tproj")
"""The ops of terms that are versions of a tensor; those of `WRITES` make one of another."""

SAMPLE = 1024  # blocks


@record(eq=False)
class Term:
    """A node. `op` and the fields in `args` by op (values unless said otherwise):

    tiles
      load     version, offset (Expr, elements), stride (int, elements between rows)
      fill     value (float, or Passed: what follows from numbers that each call passes)
      matmul   a, b, transpose_a (bool), transpose_b (bool)
      scaled   x, scale                x with a scale for each 32 elements of a row: an operand of a matmul, of a `SCALED` type
      unary    name, x                 exp ln sqrt rsqrt reciprocal abs relu sigmoid tanh neg
      binary   name, x, y              add sub mul div max min, equal shapes
      bcast    axis (int), v           axis 1: v[i] for all j; axis 0: v[j] for all i
      reduce   axis (int), name, x     axis 1: over a row; axis 0: over a column; gives a vector
      cast     x                       to `dtype`
      pack     x                       u8: a bit for each element that is not 0, eight elements a byte
      bytes    x                       the two bytes of each i16, the lower one first, as `dtype`: twice as many columns
      whole    op, i (int), j (int), x, ...   an operation on whole tiles, with two numbers (ops/whole_tiles.py); all valid
      piece    offset (Expr), x        rows x cols of x from an element on, counted in x's rows one behind the other
      panel    row (Expr), x           rows of x from a row on
      put      offset (Expr), x, y     x with the valid elements of y in the window that begins at this element
      choose   op, a, b, x, y          x where a op b holds (lt le gt ge eq ne), else y; equal shapes, a and b of one dtype
      choose_bits bits, x, y           x where the bit of an element is 1, else y; a row of bytes has eight elements a byte
      choose_at op, i (int), j (int), bound (Expr), x, y   x where i * row + j * col op bound holds of an element's position
      nest     s                       a tile from a scalar expression at (i, j)
      arg      loop id (int), k (int)  state k inside the loop
      proj     loop term, k (int)      state k after the loop
    scalar expressions (of a nest)
      elem v | elem_row v (v[i]) | elem_col v (v[j]) | number f (as of a fill) | s_unary name, s | s_binary name, s, s
      | s_index i (int), j (int), start (Expr)   i * row + j * col + start of an element's position, in f32;
        the whole of a nest of i32, its low bits
      | s_reduce name, s (over j) | s_cast s (to `dtype`) | s_choose op, s, s, s, s | s_choose_at op, i, j, bound, s, s
    versions of a tensor
      given    Tensor
      store    version, offset (Expr), stride (int), value      (the value's valid extents are what is written)
      accumulate  the same: the value is added, atomically, so that blocks may meet there
      targ     loop id (int), k (int)
      tproj    loop term, k (int)
    folds
      loop     id (int), trips (int), states: tuple of (init, next), stages (int, slots of its rings as the author asked; 0: free)
    """

    op: str
    args: tuple[Any, ...]
    rows: int = 0
    cols: int = 0
    dtype: DType | None = None
    vrows: Expr | None = None
    vcols: Expr | None = None


class Builder:
    """Makes terms, each once (hash-consing)."""

    def __init__(self) -> None:
        self.table: dict[tuple, Term] = {}

    def make(self, op: str, *args: Any, **shape: Any) -> Term:
        key = (op, args, *sorted(shape.items()))
        if key not in self.table:
            self.table[key] = Term(op, args, **shape)
        return self.table[key]


@record
class Place:
    """What an author says of a buffer: the memory in which it lies ("": open), how many slots it has (0: open), and where."""

    level: str
    slots: int
    span: Span | None = None


@record
class Border:
    """What a tile is a window of that may reach beyond its tensor: where it begins there, before the tensor too, by the tensor's
    dimensions, and their `sizes`. Its rows and columns run along two of these."""

    starts: tuple[Expr, ...]
    sizes: tuple[int, ...]
    row: int
    column: int

    def at(self, names: Mapping[str, Expr]) -> Border:
        """The same with these in the place of variables."""
        return replace(self, starts=tuple(substitute(e, names) for e in self.starts))


@dataclass
class Values:
    """A kernel's meaning: the final version of every output tensor.

    `parents[l]` is the loop around loop l (0: the block itself); loop ids start at 1; `variables[l]` is the name that loop l's
    variable has in index expressions; the block index is `ir.index.BLOCK`, made of grid indices with the
    extents `grid`, the first one fastest. The tensors `shared` are no arguments: one phase of a launch writes them, and another
    one, behind a meeting of all cores, reads them. `strips` names those that hold a tensor in strips of 32 bytes, by
    the tensor's name. `counts[l]` is how many trips loop l has where the block decides it, an index expression of the block's
    index: `trips[l]` is then the most of any block, and `fewest[l]` the least. `spans` and `buffers` (buffer name, scope) tell
    where a term comes from; `places` are what the author says of his buffers, by name; of a tensor: where from it is stored. Of a
    kernel of any size `sizes` says what follows from sizes known at run time; numbers are then those at its usual sizes.
    `deeper` are loops that are another form of one: that one's id, and how many of its trips are one. `numbers` are the floats
    that each call passes. Of a kernel with a tile for each vector core (`tile_each`) a block has two tiles: index expressions are
    of `ir.index.SUB` too, and the cube core does what each says of either. `borders` are windows that may reach beyond their
    tensor, by the tile that what there is of them is put into. `within`: tiles that lie in a larger one, each with that and the
    row that it begins at; it is loaded with the larger one where both lie in L1.
    """

    name: str
    tensors: tuple[Tensor, ...]
    blocks: int
    outputs: tuple[Term, ...]
    parents: dict[int, int]
    trips: dict[int, int]
    variables: dict[int, str]
    spans: dict[Term, Span] = field(default_factory=dict)
    buffers: dict[Term, tuple[str, str]] = field(default_factory=dict)
    grid: tuple[int, ...] = ()
    shared: tuple[Tensor, ...] = ()
    strips: dict[str, str] = field(default_factory=dict)
    counts: dict[int, Expr] = field(default_factory=dict)
    fewest: dict[int, int] = field(default_factory=dict)
    sizes: Sizes | None = None
    places: dict[str, Place] = field(default_factory=dict)
    deeper: dict[int, tuple[int, int]] = field(default_factory=dict)
    numbers: tuple[str, ...] = ()
    wholes: tuple[str, ...] = ()
    tile_each: bool = False
    borders: dict[Term, Border] = field(default_factory=dict)
    within: tuple[tuple[Term, Term, int], ...] = ()

    @property
    def in_gm(self) -> tuple[Tensor, ...]:
        """The tensors that are loaded or stored."""
        return (*self.tensors, *self.shared)

    @cached_property
    def stages(self) -> dict[int, int]:
        """How many slots the author gave to what a loop loads, by loop, where he did; no more than the loop has trips."""
        loops = (t for t in reachable(self) if t.op == "loop" and t.args[3])
        return {t.args[0]: min(t.args[3], t.args[1]) for t in loops}

    @cached_property
    def stores(self) -> dict[tuple[str, Expr, int], Span]:
        """The statements that write to tensors, by the window: tensor, first element, elements between rows."""
        terms = reachable(self)
        loops = {t.args[0]: t for t in terms if t.op == "loop"}
        writes = [t for t in reversed(terms) if t.op in WRITES and t in self.spans]
        return {(tensor_of(t, loops).name, t.args[1], t.args[2]): self.spans[t] for t in writes}

    def trips_of(self, loop: int, block: int) -> int:
        """The trips of a loop in one block."""
        return evaluate(self.counts[loop], {BLOCK: block}) if loop in self.counts else self.trips[loop]

    def trips_of_some(self, loop: int) -> list[int]:
        """The trips of a loop in each block; of many blocks in a sample of them."""
        return [self.trips_of(loop, b) for b in spread(self.blocks, SAMPLE)]

    def mean_trips(self, loop: int) -> float:
        """The trips of a loop in a block, on average; of many blocks a sample is looked at."""
        if loop not in self.counts:
            return self.trips[loop]
        sample = self.trips_of_some(loop)
        return sum(sample) / len(sample)


def first_version(t: Term) -> Term:
    """The version that a version of a tensor began as: the one that was given, or a state of a loop that it is in."""
    while t.op in (*WRITES, "tproj"):
        t = t.args[0].args[2][t.args[1]][0] if t.op == "tproj" else t.args[0]
    return t


def tensor_of(version: Term, loops: dict[int, Term]) -> Tensor:
    """The tensor of a version; `loops` are those that it may be in, by their ids."""
    first = first_version(version)
    while first.op == "targ":
        first = first_version(loops[first.args[0]].args[2][first.args[1]][0])
    return first.args[0]


def accumulates(t: Term) -> bool:
    """Whether something is added to a tensor on the way to this version of it."""
    if t.op == "tproj":
        return any(map(accumulates, t.args[0].args[2][t.args[1]]))
    return t.op == "accumulate" or (t.op == "store" and accumulates(t.args[0]))


def reachable(values: Values) -> list[Term]:
    """Every term that the outputs are made of."""
    seen: dict[Term, None] = {}
    stack: list[Term] = list(values.outputs)
    while stack:
        t = stack.pop()
        if t not in seen:
            seen[t] = None
            states = [x for pair in t.args[2] for x in pair] if t.op == "loop" else t.args
            stack += [x for x in states if isinstance(x, Term)]
    return list(seen)


def made_of(terms: object) -> set[Term]:
    """Every term in a term, or in a tuple of terms and of other things, and all that these are made of."""
    seen: set[Term] = set()
    todo = [terms]
    while todo:
        t = todo.pop()
        if isinstance(t, tuple):
            todo += t
        elif isinstance(t, Term) and t not in seen:
            seen.add(t)
            todo += t.args
    return seen


def loops_in(terms: tuple[Term, ...]) -> set[int]:
    """The ids of the loops that terms are made of."""
    return {t.args[0] for t in made_of(terms) if t.op == "loop"}
