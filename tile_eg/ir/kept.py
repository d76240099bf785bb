"""A kernel that its author wrote with flags, barriers or scopes: its instructions as they stand, before they have addresses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from tile_eg.errors import Note, Span
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import Buffer, CrossSet, CrossWait, Gm, Instr, Node, SyncAll, walk
from tile_eg.ops.records import record


@record
class KeptKernel:
    """Two streams of instructions over buffers, some of which the author gave an address (`Buffer.addresses`).

    `halves`: the vector part asks which vector core it is on. `places` has the line of each buffer, `beside` the buffers that
    `T.gemm_v0` takes for itself: they may lie where others do. `shared` are results on the way in UB, and where each begins in
    the room behind all other buffers that they share. `barriers` says who places what is missing between instructions:
    "vendor": between vector instructions, and to the scalar unit, as CANN's compiler does; "all": between any two of one core.
    `in_order`: its author wrote no flags, so that buffers which are not used at a time may share memory.
    `views` has, for each buffer that is another name for a memory, the one that it is of.
    `planned`: buffers that hold nothing at the same time share memory where there is not enough of it.
    """

    name: str
    tensors: tuple[Tensor, ...]
    blocks: int
    halves: bool
    buffers: tuple[Buffer, ...]
    cube: tuple[Node, ...]
    vector: tuple[Node, ...]
    barriers: str = "vendor"
    beside: frozenset[str] = frozenset()
    places: tuple[tuple[str, Span | None], ...] = field(default=(), compare=False, repr=False)
    source: str = field(default="", compare=False, repr=False)
    file: str = field(default="", compare=False, repr=False)
    notes: tuple[Note, ...] = field(default=(), compare=False, repr=False)
    in_order: bool = False
    shared: tuple[tuple[str, int], ...] = ()
    planned: bool = False
    views: tuple[tuple[str, str], ...] = ()

    def meets(self) -> bool:
        """Whether a flag, or a meeting of all, orders its two kinds of cores."""
        return any(isinstance(n, CrossSet | CrossWait | SyncAll) for n in walk((*self.cube, *self.vector)))

    def _flagged(self) -> bool:
        """Whether flags between cores are used: only mixed kernels have them."""
        return any(isinstance(n, CrossSet | CrossWait) for n in walk((*self.cube, *self.vector)))

    def handed_over(self) -> set[str]:
        """The tensors that one kind of core writes and the other one reads or writes."""
        used = [_tensors(nodes) for nodes in (self.cube, self.vector)]
        written = [_tensors(nodes, written=True) for nodes in (self.cube, self.vector)]
        return (written[0] & used[1]) | (written[1] & used[0])

    def updated(self) -> set[str]:
        """The tensors that one kind of core reads before it writes them, and the other does not touch: the caller's arrays are
        changed in their place."""
        found = (t for nodes in (self.cube, self.vector) for t in _read_first(nodes))
        return set(found) & {t.name for t in self.tensors if t.output} - self.handed_over()

    @property
    def kernel_type(self) -> str:
        """The cores of a launched block; a mixed kernel has both vector cores where its halves differ."""
        if (self.cube and self.vector) or self._flagged():
            return "MIX_AIC_1_2" if self.halves else "MIX_AIC_1_1"
        return "AIC_ONLY" if self.cube else "AIV_ONLY"


def _read_first(nodes: tuple[Node, ...]) -> Iterator[str]:
    """The tensors whose first instruction reads them."""
    seen: set[str] = set()
    for n in (n for n in walk(nodes) if isinstance(n, Instr)):
        reads, writes = ({o.tensor for o in operands if isinstance(o, Gm)} for operands in (n.reads(), n.writes()))
        yield from sorted(reads - writes - seen)
        seen |= reads | writes


def _tensors(nodes: tuple[Node, ...], written: bool = False) -> set[str]:
    """The tensors that instructions touch, or write."""
    found = (n for n in walk(nodes) if isinstance(n, Instr))
    operands = (o for n in found for o in (n.writes() if written else (*n.writes(), *n.reads())))
    return {o.tensor for o in operands if isinstance(o, Gm)}
