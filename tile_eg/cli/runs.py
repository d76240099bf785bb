"""The runs of a kernel, one for each set of inputs, and what they say together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tile_eg.cli import in_a_row, options
from tile_eg.cli.compared import told
from tile_eg.errors import TileError
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel, Tensor, added_to
from tile_eg.ir.passed import examples
from tile_eg.ir.program import Program
from tile_eg.ops.records import record
from tile_eg.search.compiler import Planned, Run, stage

if TYPE_CHECKING:
    from tile_eg.inputs import Drawn
    from tile_eg.report.compare import Comparison
    from tile_eg.report.run import RunReport

NO_NUMBERS: Mapping[str, float] = MappingProxyType({})


def drawn(
    held: Kernel | Program | KeptKernel, names: str | None, seed: int, given: Sequence[str],
    tiles: Collection[int] | None = None, numbers: Mapping[str, float] = NO_NUMBERS,
) -> list[Drawn]:  # fmt: skip
    """The sets of inputs that are named ("uniform,wide"), with the arrays of `--input`, and the `numbers` that a launch passes,
    in each. What they mean is computed of some `tiles` of the grid where these are given.

    A program has one where none is named: it compares with nothing, and does the same whatever the numbers are. It gets an
    example of a number that a launch passes.
    """
    import numpy as np

    from tile_eg.frontend.checks.at_call import checked_at
    from tile_eg.inputs import USUAL, Drawn, draw, drawn_sets, set_names

    passed = {n: np.asarray(numbers.get(n, x), np.float32) for n, x in examples(held).items()}
    updated = held.updated() if isinstance(held, KeptKernel) else ()
    tensors = [replace(t, output=t.output and t.name not in updated) for t in held.tensors]
    arrays = options.given_arrays(tensors, in_a_row.of_this_launch(given, tensors))
    wanted = set_names(names) if names is not None else USUAL
    before = {name: _begun(held, arrays, name) for name in wanted if in_a_row.left_before(name)}
    if isinstance(held, Kernel):
        checked_at(held, passed)
        with stage("reference", held.source):
            arrays |= passed
            if before:
                return [replace(drawn_sets(held, [n], seed, before[n] | passed, tiles)[0], name=n) for n in wanted]
            return drawn_sets(held, wanted, seed, arrays, tiles)
    inputs = [t for t in tensors if not t.output]
    named = wanted if names is not None or before else wanted[:1]
    return [Drawn(name, draw(inputs, name, seed) | before.get(name, arrays) | passed, None) for name in named]


def _begun(held: Kernel | Program | KeptKernel, given: dict[str, Any], name: str) -> dict[str, Any]:
    """What is given for a launch, and what those before it left of the tensors that it begins with, in a set of inputs."""
    read = added_to(held) if isinstance(held, Kernel) else {t.name for t in held.tensors if t.given}
    begins = {t.name for t in held.tensors if not t.output or t.name in read}
    return given | {n: a for n, a in in_a_row.left_before(name).items() if n in begins}


@record
class Runs:
    """What a planned kernel did on each of its sets of inputs."""

    planned: Planned
    held: Kernel | Program | KeptKernel
    sets: Sequence[Drawn]
    runs: Sequence[Run]

    @property
    def comparisons(self) -> dict[str, Sequence[Comparison]] | None:
        """By set; None of a program."""
        from tile_eg.report.compare import compare

        if not isinstance(self.held, Kernel):
            return None
        each = zip(self.sets, self.runs, strict=True)
        return {
            d.name: compare(run.outputs, d.meant or {}, run.unwritten, run.not_computed, d.tiles is not None) for d, run in each
        }

    def report(self) -> RunReport:
        from tile_eg.report.any_order import sums_in_any_order
        from tile_eg.report.run import RunReport

        findings = {(f.kind, f.line, f.other_line, f.message): f for run in self.runs for f in run.findings}
        views = self.planned.program, self.planned.cost, self.planned.memory
        source = self.held.source if isinstance(self.held, Kernel) else ""
        notes = sums_in_any_order(self.planned.program, self.held if isinstance(self.held, Kernel) else None)
        if isinstance(self.held, Kernel):
            notes = [*told(self.sets[0].tiles, self.held, self.planned.program, self.runs[0].sample), *notes]
        texts = self.planned.source, source, [str(e) for e in self._unwritten(source)]
        first = self.runs[0]
        return RunReport(*views, list(findings.values()), first.counts, self.comparisons, *texts, first.sample, notes)

    def _unwritten(self, source: str) -> list[TileError]:
        """A mistake for each output that the kernel, by its own meaning, does not write to its end."""
        if not isinstance(self.held, Kernel):
            return []
        outputs = [t for t in self.held.tensors if t.name in self.runs[0].unwritten]
        return [_left_out(t, self.runs[0], source, self.held.wholes) for t in outputs]

    def save(self, folder: Path) -> None:
        """The arrays of the first set in the folder, those of every other one in a folder of its name below."""
        for n, (d, run) in enumerate(zip(self.sets, self.runs, strict=True)):
            options.save_arrays(folder / d.name if n else folder, d.arrays | run.outputs)


def run_on(planned: Planned, held: Kernel | Program | KeptKernel, sets: Sequence[Drawn], how: Mapping[str, Any]) -> Runs:
    """The emitted text in the simulator, once for each set; `how` are arguments of `Planned.run`."""
    done = [_run(planned, held, d, how) for d in sets]
    for d, run in zip(sets, done, strict=True):
        in_a_row.keep(d.name, {**d.arrays, **run.outputs})
    return Runs(planned, held, sets, done)


def sample(number: int | None, planned: Planned, held: Kernel | Program | KeptKernel) -> tuple[int, ...]:
    """The blocks of `--sample`; none where all shall run."""
    from tile_eg.simulator.sample import sampled_blocks

    grid = [extent for _, extent in held.grid] if isinstance(held, Kernel) else [planned.program.blocks]
    return () if number is None else sampled_blocks(number, planned.program, grid)


def _run(planned: Planned, held: Kernel | Program | KeptKernel, inputs: Drawn, how: Mapping[str, Any]) -> Run:
    run = planned.run(inputs.arrays, strict=False, **how)
    return run.as_meant(held, inputs.arrays) if isinstance(held, Kernel) else run


def _left_out(t: Tensor, run: Run, source: str, wholes: Sequence[str]) -> TileError:
    from tile_eg.simulator.unwritten import left_unwritten

    error = left_unwritten(t, run.unwritten_text(t.name), wholes)
    error.source = source
    return error
