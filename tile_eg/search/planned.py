"""A program on a chip with everything that follows from it alone: its text, its time, its memory, a run in the simulator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

from tile_eg.chips import Chip, known_chips, load_chip
from tile_eg.errors import InternalError, PlanError, TileError, chain_too_long
from tile_eg.ir.arrays import begun, check_arguments
from tile_eg.ir.kernel import Kernel, Tensor
from tile_eg.ir.program import Program
from tile_eg.ops.records import record
from tile_eg.report.text import Text
from tile_eg.simulator.findings import LimitError
from tile_eg.simulator.limits import USUAL, Limits
from tile_eg.simulator.sample import check_sample

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.report.cost import Cost
    from tile_eg.report.memory import MemoryMap
    from tile_eg.simulator.findings import Counts, Finding
    from tile_eg.simulator.watch import Watch
    from tile_eg.timeline.result import Timeline


COMPILED = ("dav-2201", "dav-3510")


@contextmanager
def stage(name: str, source: str = "", timings: dict[str, float] | None = None) -> Iterator[None]:
    """Runs one part of the way: a user's error learns its source text, anything unforeseen but a lack of memory becomes an
    InternalError.

    egglog's panics are no Exceptions, so everything but an interrupt is caught. The seconds are added to `timings[name]`.
    """
    start = perf_counter()
    try:
        yield
    except TileError as error:
        error.source = error.source or source
        raise
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"the step '{name}'")  # the innermost is the first
        raise
    except (InternalError, SystemExit, GeneratorExit):
        raise
    except LimitError as error:
        raise TileError(str(error), help=error.help) from None
    except MemoryError as error:
        message = f"this machine has not enough memory for the step '{name}': {error}"
        raise TileError(message, help="smaller sizes would do") from None
    except RecursionError:
        raise chain_too_long() from None
    except BaseException as error:
        raise InternalError(name, f"{type(error).__name__}: {error}") from error
    finally:
        if timings is not None:
            timings[name] = timings.get(name, 0.0) + perf_counter() - start


def _unwritable(error: PlanError) -> TileError:
    """The error of a program, written or changed by hand, that has no text."""
    help = "make it smaller: the instruction has no wider field"
    return TileError(f"this program has no Ascend C: {error.message}", error.span, help=help)


@record
class Run:
    """What one run of the emitted text in the simulator gave: outputs by tensor name, findings, and counts of what was done.

    `unwritten` are masks of what it left of outputs that start unwritten, by tensor name; each has a finding too.
    `printed` is what the kernel printed. Where only some blocks ran, `sample` are their numbers, and `not_computed` masks of
    what they left of each output.
    """

    outputs: dict[str, np.ndarray]
    findings: Sequence[Finding]
    counts: Counts
    unwritten: Mapping[str, np.ndarray] = field(default_factory=dict)
    printed: str = ""
    sample: Sequence[int] = ()
    not_computed: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.outputs[name]

    def unwritten_text(self, name: str) -> str:
        """How many elements of this output were left unwritten, and which is the first."""
        from tile_eg.simulator.unwritten import unwritten_text

        return unwritten_text(name, self.unwritten[name])

    def as_meant(self, kernel: Kernel, arrays: Mapping[str, np.ndarray]) -> Run:
        """The run of this kernel's text, without a finding for what the kernel itself does not write, by its own meaning.

        Of `unwritten` that is what stays, and the outputs hold there what the meaning has there.
        """
        from tile_eg.ir.arithmetic import nothing
        from tile_eg.ir.reference import written_elements
        from tile_eg.simulator.unwritten import unwritten_findings

        if not self.unwritten:
            return self
        with stage("reference", kernel.source):
            meant = written_elements(kernel, arrays)
        left = {name: mask & ~meant[name] for name, mask in self.unwritten.items()}
        for name, mask in left.items():
            self.outputs[name][mask] = nothing(self.outputs[name].dtype)
        line = next((f.line for f in self.findings if f.kind == "unwritten"), 0)
        ours = unwritten_findings({name: mask & meant[name] for name, mask in self.unwritten.items()}, line)
        others = [f for f in self.findings if f.kind != "unwritten"]
        return replace(self, findings=(*others, *ours), unwritten={name: mask for name, mask in left.items() if mask.any()})

    def raise_findings(self) -> None:
        """InternalError if the simulator found a race, a deadlock or a broken limit: the text that we emitted is wrong."""
        if self.findings:
            raise InternalError("run", "the emitted kernel breaks the machine's rules\n" + "\n".join(map(str, self.findings)))


@record
class Planned:
    """A synchronised program on a chip, with everything that follows from it alone."""

    program: Program
    chip: Chip
    lenient: ClassVar[bool] = False  # of `simulate`: not of what tile_eg emits

    @cached_property
    def source(self) -> Text:
        """The Ascend C of the kernel: one self-contained file."""
        from tile_eg.emit.ascend_c import kernel_text

        try:
            with stage("write Ascend C"):
                return Text(kernel_text(self.program))
        except InternalError as fault:
            if isinstance(fault.__cause__, PlanError):
                raise _unwritable(fault.__cause__) from fault.__cause__
            raise

    @cached_property
    def unwritable(self) -> PlanError | None:
        """Why an instruction has no Ascend C, or does not fit its fields."""
        try:
            _ = self.source
        except TileError as error:
            if isinstance(error.__cause__, PlanError):
                return error.__cause__
            raise
        return None

    @cached_property
    def host(self) -> Text:
        """The C++ that launches the kernel: shapes, workspace, blocks."""
        from tile_eg.emit.any_size_host import Picked, any_size_host
        from tile_eg.emit.host import host_text

        with stage("write the host part"):
            if self.program.sizes:
                return Text(any_size_host([self.program], Picked()))
            return Text(host_text(self.program))

    @cached_property
    def spec(self) -> Text:
        """How `tile-eg simulate` launches the kernel's text: blocks, arguments, workspace, as TOML."""
        return self.spec_with("")

    def spec_with(self, meaning: str) -> Text:
        """The spec with this `.tile` text as the kernel's meaning, with which outputs are then compared."""
        from tile_eg.emit.spec_text import spec_text

        with stage("write the spec"):
            return Text(spec_text(self.program, meaning, self.alike))

    @cached_property
    def timeline(self) -> Timeline:
        from tile_eg.timeline import engine

        with stage("time the program"):
            return engine.run(self.program, self.chip)

    @cached_property
    def cost(self) -> Cost:
        """The predicted time, and how it divides over pipes and memory levels."""
        from tile_eg.report.cost import Cost
        from tile_eg.timeline.summary import intervals

        timeline = self.timeline
        with stage("time the program"):
            return Cost(timeline, *intervals(self.program, self.chip))

    def trace(self) -> dict[str, Any]:
        """The timeline of one block as a Chrome trace, for `json.dump`: Perfetto opens it."""
        from tile_eg.timeline import engine
        from tile_eg.timeline.trace import chrome_trace

        with stage("trace the program"):
            return chrome_trace(self.program, engine.run(self.program, self.chip, exact=True))

    @cached_property
    def memory(self) -> MemoryMap:
        """Where every buffer lies, and how full each memory is."""
        from tile_eg.report.memory import MemoryMap

        return MemoryMap(self.program, self.chip)

    def run(
        self,
        arrays: Mapping[str, np.ndarray],
        *,
        strict: bool = True,
        order: int | None = None,
        memory: int = USUAL.bytes,
        seconds: float = USUAL.seconds,
        confined: bool = True,
        blocks: Sequence[int] = (),
        watch: Watch | None = None,
    ) -> Run:
        """The emitted text, run in the simulator on an array for every input, by tensor name; and for outputs that are added to.
        `arrays` has the numbers that a launch passes as well.

        TileError where an array does not fit. InternalError where the simulator finds that the text breaks the machine's rules,
        unless `strict` is off: then the findings are in the result. `order` is a seed: instructions then take effect in an
        unfavourable order among those that the flags allow, not in that of the program. `memory` is how many bytes the simulator
        may use: 1.6 for each byte of tensors and workspace that is touched; `seconds` of processor time are what the run may
        take (TileError where it needs more of either). `confined` keeps its process from the network, from files and from
        starting programs, where the machine's kernel can. `blocks` are those that run, where not all shall (TileError where
        they need the others). `watch` gets what a watched text tells.
        """
        check_sample(self.program, blocks)
        check_arguments(self.tensors_of(arrays), arrays, self.program.added_to | self.inout, self.program.numbers)
        with stage("simulate"):
            run = self.judged(_simulated(self, arrays, order, Limits(seconds, memory), confined, blocks, watch), arrays)
        if strict:
            run.raise_findings()
        return run

    def with_program(self, program: Program) -> Planned:
        """The same launch of another program."""
        return Planned(program, self.chip)

    def tensors_of(self, arrays: Mapping[str, np.ndarray]) -> tuple[Tensor, ...]:
        """The tensors of a launch with these arrays."""
        return self.program.tensors

    @property
    def numbers(self) -> tuple[int, ...]:
        """What each launch passes behind the workspace: the sizes that are known at run time."""
        return tuple(n for _, n in self.program.sizes.usual) if self.program.sizes else ()

    @property
    def inout(self) -> frozenset[str]:
        """Further tensors that are written and may begin with an array of the caller's."""
        return frozenset()

    @property
    def alike(self) -> frozenset[str]:
        """The tensors to which blocks store equal values at one place."""
        return frozenset()

    def judged(self, run: Run, arrays: Mapping[str, np.ndarray]) -> Run:
        """The run as the kernel's meaning has it: of a program alone that is not known."""
        return run


def _simulated(
    planned: Planned, arrays: Mapping[str, np.ndarray], order: int | None, limits: Limits, confined: bool, blocks: Sequence[int],
    watch: Watch | None = None,
) -> Run:  # fmt: skip
    from tile_eg.emit.host import launch_blocks, launched, workspace_bytes
    from tile_eg.emit.names import kernel_symbol
    from tile_eg.simulator.build import line_of
    from tile_eg.simulator.confinement import Confinement
    from tile_eg.simulator.run import simulate
    from tile_eg.simulator.unwritten import unwritten_findings

    p, tensors = planned.program, planned.tensors_of(arrays)
    written = [i for i, t in enumerate(tensors) if t.output]
    done = simulate(
        planned.source,
        kernel_symbol(p),
        [begun(t, arrays) for t in tensors],
        kernel_type=p.kernel_type,
        launch=launch_blocks(p),
        workspace=-(-workspace_bytes(p) // launch_blocks(p)),
        outputs=written,
        inout=[i for i in written if tensors[i].name in p.added_to or tensors[i].name in arrays],
        alike=[i for i in written if tensors[i].name in planned.alike],
        capacities={str(level): memory.bytes for level, memory in planned.chip.memories.items()},
        order=order,
        architecture=int(planned.chip.architecture.removeprefix("dav-")),
        cores=planned.chip.cube_cores,
        limits=limits,
        confinement=Confinement(confined),
        numbers=(*planned.numbers, *(int(arrays[n]) if n in p.wholes else float(arrays[n]) for n in p.numbers)),
        blocks=launched(p, blocks),
        lenient=planned.lenient,
        watch=watch,
    )
    names = [tensors[i].name for i in written]
    left = {name: mask for name, mask in zip(names, done.unwritten, strict=True) if mask is not None}
    if blocks:
        return Run(dict(zip(names, done.outputs, strict=True)), done.findings, done.counts, {}, done.printed, blocks, left)
    findings = (*done.findings, *unwritten_findings(left, line_of(planned.source, kernel_symbol(p))))
    return Run(dict(zip(names, done.outputs, strict=True)), findings, done.counts, left, done.printed)


def plan(program: Program, chip: str | None = None) -> Planned:
    """A program that was written or changed by hand, taken as it stands. Its own chip's name holds unless another is given.

    TileError where that is of another architecture: instructions and memories are not the same there.
    """
    target, own = compiled_for(chip or program.chip), load_chip(program.chip)
    if target.architecture != own.architecture:
        raise TileError(
            f"this program is for {own.name} ({own.architecture}), and {target.name} is {target.architecture}",
            help=f"write it for that chip from its kernel: tile-eg emit KERNEL --program --chip {target.name}",
        )
    return Planned(replace(program, chip=target.name), target)


def compiled_for(name: str) -> Chip:
    """The chip of this name. TileError where kernels are not compiled for it."""
    chip = load_chip(name)
    if chip.architecture in COMPILED:
        return chip
    known = ", ".join(c for a in COMPILED for c in known_chips(a))
    raise TileError(f"kernels are not compiled for chip '{name}' ({chip.architecture})", help=f"compiled for: {known}")
