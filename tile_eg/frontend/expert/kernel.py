"""A function under `@T.prim_func` with flags, barriers or scopes -> its two streams of instructions."""

from __future__ import annotations

from dataclasses import replace

from tile_eg.errors import TileError, together
from tile_eg.frontend.expert.pipelined import prefetched
from tile_eg.frontend.expert.printing import launched
from tile_eg.frontend.expert.reader import ExpertReader, Misplaced
from tile_eg.frontend.expert.scalars import store
from tile_eg.frontend.expert.streams import numbered, stream
from tile_eg.frontend.expert.words import EXPERT
from tile_eg.frontend.python.expressions import evaluate
from tile_eg.frontend.python.function import _argument, _grid_names, _tensor, with_texts
from tile_eg.frontend.python.source import FunctionSource, read_function
from tile_eg.frontend.python.values import Launch
from tile_eg.ir import index as ix
from tile_eg.ir.index import BLOCK, SUB
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import AIC, AIV
from tile_eg.language.kernels import PrimFunc
from tile_eg.ops.types import Level


def kept_kernel(function: PrimFunc, barriers: str = "vendor") -> KeptKernel:
    """The kernel as it is written. Raises TileError at the user's line."""
    found = read_function(function.function, function.names)
    levels: dict[str, Level] = {}
    try:
        while True:
            try:
                reader = ExpertReader(found.source, found.names, dict(levels), EXPERT, store, prefetched)
                return _read(reader, found, barriers)
            except Misplaced as found_in:
                levels[found_in.name] = found_in.level
    except TileError as e:
        with_texts(e, found)
        raise


def _read(r: ExpertReader, found: FunctionSource, barriers: str) -> KeptKernel:
    for a in found.node.args.args:
        argument = _argument(r, a)
        if argument.shape is None:
            raise TileError(f"{argument.name} is a number of each call: not supported in a kernel that is kept", argument.span)
        t = _tensor(r, argument)
        r.tensors[t.name] = t
        r.taken.add(t.name)
    r.taken |= {BLOCK, SUB}
    launch, after = launched(r, found.node)
    if len(launch.items) != 1 or not isinstance(over := evaluate(r, launch.items[0].context_expr), Launch):
        raise r.error("a kernel's body is `with T.Kernel(...)`", launch)
    names, half = _grid_names(r, launch.items[0].optional_vars, len(over.extents))
    blocks, rest = 1, ix.var(BLOCK)
    for n in over.extents:
        blocks *= n
    r.grid = {BLOCK: (0, blocks - 1), SUB: (0, 1)}
    for k, (name, n) in enumerate(zip(names, over.extents, strict=True)):
        r.local[name] = rest if k == len(names) - 1 else rest % n
        rest = rest // n
    if half is not None:
        r.local[half] = r.half = ix.var(SUB)
    r.run([*launch.body, *after])
    if r.told:
        raise together(r.told)
    cube, vector = (numbered(stream(r.statements, core), r.ranges) for core in (AIC, AIV))
    written = r.stored
    tensors = tuple(Tensor(t.name, t.dtype, t.shape, t.name in written, t.span) for t in r.tensors.values())
    planned = [h.buffer() for h in r.held.values()]
    planned = [replace(b, addresses=tuple(r.addresses[b.name] + n * b.slot_bytes for n in range(b.slots)))
               if b.name in r.addresses else b for b in planned]  # fmt: skip
    used = _named((*cube, *vector))
    buffers = (*(b for b in planned if b.name in used), *(b for b in r.own.values() if b.name in used))
    return KeptKernel(
        found.node.name, tensors, blocks, r.half_used is not None, buffers, cube, vector, barriers, frozenset(r.own),
        tuple((h.name, h.span) for h in r.held.values()), found.source.text, found.source.file, tuple(r.notes),
    )  # fmt: skip


def _named(nodes: tuple) -> set[str]:
    from tile_eg.ir.program import Instr, Tile, walk

    found = set()
    for n in walk(nodes):
        if isinstance(n, Instr):
            operands = (*n.reads(), *n.writes())
            found |= {o.buffer for o in operands if isinstance(o, Tile)}
    return found
