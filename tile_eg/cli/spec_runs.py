"""The runs that a spec asks for: one, or one for each set of inputs that is drawn for the kernel that it means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tile_eg.errors import TileError
from tile_eg.ir.arrays import numpy_dtype, signature
from tile_eg.ir.kernel import Kernel, Tensor
from tile_eg.ops.records import record
from tile_eg.search.compiler import check_kernel, stage

if TYPE_CHECKING:
    from tile_eg.ir.reference_bounds import Expected
    from tile_eg.report.simulated import Compared
    from tile_eg.simulator.findings import Simulation
    from tile_eg.simulator.spec import Argument, Spec


@record
class SpecRun:
    """A spec with arrays for all its tensors: the name of the set that they are from, and the outputs that are meant."""

    inputs: str
    spec: Spec
    kernel: Kernel | None = None
    meant: Mapping[str, Expected] | None = None

    def compared(self, done: Simulation) -> Sequence[Compared]:
        """Every output that something is known of: an `expect` of the spec, or what the kernel means."""
        from tile_eg.report.compare import compare
        from tile_eg.simulator.kernel_run import compare as compare_with_expected

        expected = compare_with_expected(self.spec, done)
        if self.meant is None:
            return expected
        named = {c.name for c in expected}
        names = [a.name for a in self.spec.arguments if a.output]
        outputs = dict(zip(names, done.outputs, strict=True))
        unwritten = {name: mask for name, mask in zip(names, done.unwritten, strict=True) if mask is not None}
        return [*expected, *(c for c in compare(outputs, self.meant, unwritten) if c.name not in named)]


def spec_runs(spec: Spec, path: Path, names: str | None, seed: int | None) -> list[SpecRun]:
    """A run for each set of inputs; `names` and `seed` win over those of the spec. `path` is where the spec was read."""
    from tile_eg.inputs import USUAL, drawn_sets, set_names

    if not spec.meaning:
        if names is not None or seed is not None:
            help = "`tile-eg emit KERNEL --spec` writes one with a meaning; `generator` and `seed` draw one tensor"
            raise TileError(f"--inputs and --seed: '{path}' has no `meaning`, for whose kernel inputs are drawn", help=help)
        return [SpecRun("", spec)]
    kernel = _kernel(spec, path)
    wanted = set_names(",".join(spec.inputs or USUAL) if names is None else names)
    given = {a.name: a.array for a in spec.arguments if a.given and a.array is not None}
    with stage("reference", kernel.source):
        sets = drawn_sets(kernel, wanted, spec.seed if seed is None else seed, given)
    return [SpecRun(d.name, spec.with_arrays(d.arrays), kernel, d.meant) for d in sets]


def simulated(
    runs: Sequence[SpecRun], run: Callable[[Spec, bool], Simulation]
) -> tuple[Simulation, dict[str, Sequence[Compared]]]:
    """The first run's simulation with the findings of all, and how the outputs of each compare, by the name of its set.

    `run` simulates a spec; it is told whether it is the first, which alone is traced.
    """
    done = [run(r.spec, n == 0) for n, r in enumerate(runs)]
    findings = {(f.kind, f.line, f.other_line, f.file, f.message): f for d in done for f in d.findings}
    compared = {r.inputs: r.compared(d) for r, d in zip(runs, done, strict=True)}
    return replace(done[0], findings=tuple(findings.values())), compared


def _kernel(spec: Spec, path: Path) -> Kernel:
    """The kernel that the spec means. TileError where its text is none, or its tensors are not those of the spec."""
    from tile_eg.frontend.text import load_text

    kernel = load_text(spec.meaning, f"{path}, meaning").instantiate()
    check_kernel(kernel)
    arguments = {a.name: a for a in spec.arguments}
    for t in kernel.tensors:
        if not _fits(arguments.get(t.name), t):
            kind = "an output" if t.output else "an input"
            message = f"'{path}': its meaning has {signature([t])} as {kind}, and its arguments have none like that"
            raise TileError(message, help="the meaning goes with the arguments: leave it out where they are changed")
    names = {t.name for t in kernel.tensors}
    for a in spec.arguments:
        if a.drawn and a.name not in names:
            raise TileError(f"'{path}', {a.name}: an input needs `file` or `generator`", help="its meaning has no such tensor")
    return kernel


def _fits(a: Argument | None, t: Tensor) -> bool:
    if a is None or a.array is None or a.output != t.output:
        return False
    return a.array.shape == t.shape and a.array.dtype == numpy_dtype(t.dtype)
