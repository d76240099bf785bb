"""A planned kernel: for the cube core and for the vector core an instruction stream with addresses and flags.

The same Program gives the Ascend C text and the timeline. It prints (`text`) and parses back (`parser`). What it is made of is
declared in `instructions`.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from typing import Any

from tile_eg.ir.kernel import Tensor
from tile_eg.ir.printed import Printed
from tile_eg.ir.program.buffers import Buffer
from tile_eg.ir.program.instructions import Gm, Instr, Let, Node, walk
from tile_eg.ir.program.text import buffer_text, let_text, nodes_text, tensor_text
from tile_eg.ir.sizes import Sizes
from tile_eg.ops.physical import AIC, AIV
from tile_eg.ops.records import record


@record(repr=False)
class Program(Printed):
    """`kernel_type`: AIC_ONLY, AIV_ONLY, MIX_AIC_1_1 or MIX_AIC_1_2. `blocks` is the number of launch blocks: the tiles of the
    grid, or fewer where each block goes through several of them (`Tasks`); an AIV_ONLY kernel with `halves` launches two vector
    cores for each block (block = index / 2, sub = index % 2).
    `workspace` is bytes for each block. `block_var` and `sub` are `ir.index.BLOCK` and `SUB`. The tensors `shared` lie in the
    workspace behind the parts of the blocks: what some blocks write there others read behind a `SyncAll`. `lets` are names
    that both streams know, in terms of the block's index. `sizes` are those known at run time: the shapes of the tensors, and
    `blocks`, are then those at its usual sizes, and `at` gives the program with other ones. `numbers` are the floats that each
    launch passes, behind the sizes.
    """

    name: str
    chip: str
    kernel_type: str
    tensors: tuple[Tensor, ...]
    blocks: int
    halves: bool
    workspace: int
    buffers: tuple[Buffer, ...]
    cube: tuple[Node, ...]
    vector: tuple[Node, ...]
    shared: tuple[Tensor, ...] = ()
    lets: tuple[Let, ...] = ()
    sizes: Sizes | None = None
    numbers: tuple[str, ...] = ()
    wholes: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, f.name) for f in fields(self)))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_hash"}  # it is another one in another process

    @property
    def added_to(self) -> frozenset[str]:
        """The tensors that instructions only change atomically, and those that are given: what they hold before counts."""
        nodes = (n for core in (AIC, AIV) for n in walk(self.core(core)))
        written = {(n.dst.tensor, n.atomic) for n in nodes if isinstance(n, Instr) and isinstance(n.dst, Gm)}
        given = {t.name for t in self.tensors if t.given}
        return frozenset(tensor for tensor, atomic in written if atomic and (tensor, "") not in written) | given

    @property
    def sums_in_any_order(self) -> tuple[str, ...]:
        """The tensors of floats to which blocks add atomically: the order of their sums may change from run to run."""
        nodes = (n for core in (AIC, AIV) for n in walk(self.core(core)))
        added = {n.dst.tensor for n in nodes if isinstance(n, Instr) and n.atomic == "add" and isinstance(n.dst, Gm)}
        return tuple(t.name for t in self.tensors if t.name in added and not t.dtype.whole)

    @property
    def in_gm(self) -> tuple[Tensor, ...]:
        """The tensors that instructions name: the kernel's own, and those that its blocks share."""
        return (*self.tensors, *self.shared)

    def buffer(self, name: str) -> Buffer:
        return next(b for b in self.buffers if b.name == name)

    def core(self, core: str) -> tuple[Node, ...]:
        return self.cube if core == AIC else self.vector

    def __str__(self) -> str:
        """The text that `parse_program` reads back to an equal Program (spans apart)."""
        halves = ", halves" if self.halves else ""
        launch = f"as {self.kernel_type}, blocks {self.blocks}, workspace {self.workspace}{halves}"
        lines = [f"program {self.name} on {self.chip} {launch}"]
        lines += [*map(tensor_text, self.tensors), *(f"shared {tensor_text(t)}" for t in self.shared)]
        lines += [*map(buffer_text, self.buffers), *(f"let {let_text(let)}" for let in self.lets)]
        lines += [f"{'whole' if name in self.wholes else 'number'} {name}" for name in self.numbers]
        for title, nodes in (("cube", self.cube), ("vector", self.vector)):
            lines += [f"{title} {{", *nodes_text(nodes, "  "), "}"]
        return "\n".join(lines) + "\n"
