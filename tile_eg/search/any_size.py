"""A kernel that was compiled once for all sizes that are known at run time: its kernels, and which sizes each of them serves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod

from tile_eg.emit.any_size_host import Picked
from tile_eg.ir.index import BLOCK, MOST_SIZE, Expr, evaluate, variables
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.machine import MAX_BLOCKS
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.program import Program
from tile_eg.ir.program.any_size import resized
from tile_eg.ir.sizes import MOST_GAP
from tile_eg.ir.strided import in_memory
from tile_eg.ir.values import Values
from tile_eg.ops.records import record
from tile_eg.report.text import Text
from tile_eg.search.planned import Planned, Run, stage
from tile_eg.search.result import Lowered

__all__ = ["AnySize", "AtSizes", "Picked", "Variant", "named"]


@record
class AtSizes(Planned):
    """The text of a kernel of any size, at some sizes."""

    kernel: Kernel
    text: str

    @property
    def source(self) -> Text:  # type: ignore[override]
        return Text(self.text)

    @cached_property
    def alike(self) -> frozenset[str]:  # type: ignore[override]
        from tile_eg.frontend.checks.kernel import stored_alike

        return stored_alike(self.kernel)

    def judged(self, run: Run, arrays: Mapping[str, object]) -> Run:
        """Elements that the kernel itself never writes are in `unwritten` of the run, and no finding."""
        return run.as_meant(self.kernel, arrays)  # type: ignore[arg-type]


@record
class Variant:
    """One of the kernels of a text: its program, and how many trips its loops take, each with the least that it has to take."""

    program: Program
    trips: tuple[tuple[Expr, int], ...] = ()

    @classmethod
    def of(cls, lowered: Lowered) -> Variant:
        assert lowered.form is not None
        values: Values = lowered.form.values
        return cls(lowered.program, tuple((count, values.fewest[loop]) for loop, count in values.counts.items()))

    def at(self, sizes: Mapping[str, int]) -> Program:
        """The program as a launch at these sizes has it."""
        held = self.program.sizes
        return self.program if held is None else resized(self.program, {n: sizes[n] for n in held.names})

    def why_not(self, sizes: Mapping[str, int]) -> str:
        """Why a launch at these sizes is none of the program's; nothing where it is one: it has blocks, and not too many, loops
        that have to take a trip take one in every block, and numbers fit the fields of instructions."""
        held, program = self.program.sizes, self.program
        if held is None:
            return ""
        if held.order and sizes[held.order[0]] > sizes[held.order[1]]:
            return f"{held.order[0]} is larger than {held.order[1]} there"
        tiles = prod(evaluate(e, sizes) for e in held.grid)
        launched = evaluate(held.blocks, sizes) * (2 if program.halves and program.kernel_type == "AIV_ONLY" else 1)
        if tiles <= 0:
            return "it has no blocks there"
        if tiles > MOST_SIZE or launched > MAX_BLOCKS:
            return f"it has {max(tiles, launched)} blocks there, more than a launch"
        bytes_of = {t.name: t.dtype.bytes for t in program.in_gm}
        if any(evaluate(e, sizes) * bytes_of[name] > MOST_GAP for name, _, e in held.strides):
            return "the rows of a tensor lie further apart there than a field of an instruction says"
        if not all(_takes_trips(count, least, tiles, sizes) for count, least in self.trips):
            return "a loop takes no trip there"
        return ""


def _takes_trips(count: Expr, least: int, tiles: int, sizes: Mapping[str, int]) -> bool:
    blocks = range(tiles) if BLOCK in variables(count) else range(1)
    return not least or all(evaluate(count, {**sizes, BLOCK: b}) >= least for b in blocks)


@record
class AnySize(Planned):
    """A kernel that was compiled once for all sizes: one schedule, or a few of which a launch takes one by its sizes.

    `picked` says which of the `variants` a launch takes; the first one serves all sizes, and `program` is its. `kernel` is the
    kernel at the sizes that this one was priced at, `found` are the lowered kernels where they were compiled in this process, and
    `told` is what was told of them then.
    """

    kernel: Kernel
    variants: tuple[Variant, ...]
    picked: Picked
    found: tuple[Lowered, ...] = ()
    told: tuple[str, ...] = ()

    @property
    def lowered(self) -> Lowered:
        return self.found[0]

    @property
    def alike(self) -> frozenset[str]:
        from tile_eg.frontend.checks.kernel import stored_alike

        return stored_alike(self.kernel)

    @property
    def programs(self) -> tuple[Program, ...]:
        return tuple(v.program for v in self.variants)

    @cached_property
    def source(self) -> Text:
        """The Ascend C of all of them: one file."""
        from tile_eg.emit.ascend_c import kernel_text

        with stage("write Ascend C"):
            return Text(kernel_text(*self.programs))

    @cached_property
    def host(self) -> Text:
        """The C++ that takes one by the sizes of a launch, and launches it."""
        from tile_eg.emit.any_size_host import any_size_host

        with stage("write the host part"):
            return Text(any_size_host(self.programs, self.picked))

    @cached_property
    def spec(self) -> Text:
        """The launch of the first one at the sizes that it was priced at, with the kernel's meaning there."""
        from tile_eg.frontend.text.meaning import meaning_text

        return self.spec_with(meaning_text(self.kernel))

    @property
    def explanation(self) -> Text:
        """Of each kernel which launches take it, and how its schedule was found; of those that were compiled in this process."""
        parts = []
        for place, (variant, lowered) in enumerate(zip(self.variants, self.found, strict=False)):
            title = f"kernel {variant.program.name}, for {self.picked.shown(place)}; priced at the sizes below"
            parts.append(f"{title}\n\n{lowered.explanation}")
        return Text("\n\n".join(parts))

    def at(self, kernel: Kernel, sizes: Mapping[str, int]) -> AtSizes | None:
        """What a launch at these sizes needs; `kernel` is the kernel at them. None where the text does not serve them."""
        if self.why_not(kernel, sizes):
            return None
        return AtSizes(self._variant(sizes).at(sizes), self.chip, kernel, str(self.source))

    def why_not(self, kernel: Kernel, sizes: Mapping[str, int]) -> str:
        """Why the text does not serve these sizes; nothing where it does."""
        if any(n < 1 for n in sizes.values()):
            return "a size is 0, or a number is negative"
        if any(n > MOST_SIZE for n in sizes.values()):
            return f"a size is larger than {MOST_SIZE}"
        variant = self._variant(sizes)
        return _not_of(variant.program, kernel, sizes) or variant.why_not(sizes)

    def microseconds(self, sizes: Mapping[str, int]) -> float:
        """What is predicted for a launch at these sizes, which the text serves."""
        from tile_eg.timeline import engine

        return engine.run(self._variant(sizes).at(sizes), self.chip, record=False).microseconds

    def _variant(self, sizes: Mapping[str, int]) -> Variant:
        return self.variants[self.picked.at(dict(sizes))]


def named(programs: Sequence[Program]) -> Iterator[Program]:
    """The programs of a text, each with a name of its own."""
    return (replace(p, name=f"{p.name}_{n}" if n > 1 else p.name) for n, p in enumerate(programs, 1))


def _not_of(program: Program, kernel: Kernel, sizes: Mapping[str, int]) -> str:
    """What of the tensors and the grid that the kernel has at these sizes is not as the program has it, as a dimension of 1 may
    make it; open block sizes have no grid."""
    held = program.sizes
    if held is None:
        return ""
    grid = tuple(evaluate(e, sizes) for e in held.grid)
    shapes = tuple(tuple(evaluate(e, sizes) for e in shape) for shape in held.shapes)
    own = tuple(extent for _, extent in kernel.grid)
    if not isinstance(kernel, OpenKernel) and grid != own:
        return f"the kernel has {_grid(own)} there, not {_grid(grid)}"
    return "" if shapes == tuple(in_memory(t).shape for t in kernel.tensors) else "its tensors have other shapes there"


def _grid(extents: Sequence[int]) -> str:
    return f"a grid of {' x '.join(map(str, extents))}" if extents else "no grid"
