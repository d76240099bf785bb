"""A kernel that is kept as written, planned for a chip: addresses, what is missing between instructions, text, runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from tile_eg.chips import Chip
from tile_eg.errors import InternalError, PlanError, Span, TileError, rendered
from tile_eg.ir.arrays import ending_at
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Note, Tensor
from tile_eg.ir.machine import LINE_BYTES
from tile_eg.ir.program import AIC, AIV, Buffer, Program
from tile_eg.ops.records import record
from tile_eg.ops.types import Level
from tile_eg.search.chip_types import check_chip_types
from tile_eg.search.kept_direct import with_direct_paths
from tile_eg.search.kept_indices import out_of_tensor
from tile_eg.search.kept_places import Places
from tile_eg.search.planned import Planned, Run, compiled_for, stage

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.simulator.findings import Finding
    from tile_eg.timeline.result import Timeline


@record(repr=False)
class PlannedKept(Planned):
    """The kernel's program; what the simulator finds in its runs is its author's to mend, at his lines."""

    kernel: KeptKernel
    lenient: ClassVar[bool] = True

    @property
    def notes(self) -> tuple[Note, ...]:
        return self.kernel.notes

    @property
    def messages(self) -> tuple[str, ...]:
        return tuple(rendered(note, self.kernel.source) for note in self.notes)

    def __repr__(self) -> str:
        return f"<{self.kernel.name} for {self.chip.name}, as it is written>"

    @property
    def inout(self) -> frozenset[str]:
        return frozenset(t.name for t in self.program.tensors if t.output)

    def run(self, arrays: Mapping[str, np.ndarray], *, strict: bool = True, **how: Any) -> Run:
        """As `Planned.run`; tensors that the kernel writes may be given too, and then begin with what they hold. TileError for
        what the simulator finds, unless `strict` is off."""
        run = super().run(arrays, strict=False, **how)
        print(run.printed, end="", flush=True)
        if strict and run.findings:
            raise self.mistake(run.findings, self.tensors_of(arrays))
        return run

    def with_program(self, program: Program) -> PlannedKept:
        return replace(self, program=program)

    def tensors_of(self, arrays: Mapping[str, np.ndarray]) -> tuple[Tensor, ...]:
        """Flat where an array has fewer elements than its tensor: what lies behind them is not there."""
        return tuple(ending_at(t, arrays[t.name].size) if t.name in arrays else t for t in self.program.tensors)

    @property
    def alike(self) -> frozenset[str]:
        """Blocks may store equal values to one place; where the bytes differ it is a race."""
        return frozenset(t.name for t in self.program.tensors if t.output and t.name not in self.program.added_to)

    def judged(self, run: Run, arrays: Mapping[str, np.ndarray]) -> Run:
        """What is left unwritten of a tensor is no finding: a workspace may be larger than what is used of it."""
        return replace(run, findings=tuple(f for f in run.findings if f.kind != "unwritten"))

    @cached_property
    def timeline(self) -> Timeline:
        from tile_eg.timeline import engine

        try:
            with stage("time the program"):
                return engine.run(self.program, self.chip)
        except InternalError as error:
            if not isinstance(error.__cause__, engine.StreamError):
                raise
            raise TileError(f"{self.kernel.name} does not end: {error.__cause__}", help=HELP["deadlock"]) from None

    def mistake(self, findings: Sequence[Finding], tensors: Sequence[Tensor] = ()) -> TileError:
        """The findings at their lines of the source, the first one as the message: of a race before what it leaves unwritten.
        `tensors` are those of the launch."""
        raced = any("race" in f.kind for f in findings)
        findings = sorted(findings, key=lambda f: raced and f.kind == "uninitialised")
        places = [self._places(f) for f in findings]
        first, others = findings[0], list(zip(findings, places, strict=True))[1:]
        notes: list[tuple[str, Span | None]] = [(f"the other one is here ({first.kind})", places[0][1])] if places[0][1] else []
        seen = {(first.kind, places[0])}
        for f, where in others:
            if (f.kind, where) not in seen and len(seen) < SHOWN:
                notes.append((f"{f.kind}: {self.in_source_words(f.message)}", where[0]))
            seen.add((f.kind, where))
        if first.kind == "out_of_bounds" and (told := out_of_tensor(first.message, self.kernel, places[0][0], tensors)):
            notes.append((told, None))
        message = f"{first.kind}: {self.in_source_words(first.message)}"
        error = TileError(message, places[0][0], notes=tuple(notes), help=_help(first))
        error.source = self.kernel.source
        return error

    def in_source_words(self, message: str) -> str:
        """What is said of the emitted text, said of the kernel: its lines, and the words for flags."""
        message = ASSERTED.sub("the assertion does not hold", message)
        message = CROSS.sub(lambda m: f'T.set_cross_flag("{m[1].lower()}", n)', message)
        message = message.replace("CrossCoreWaitFlag", "T.wait_cross_flag(n)")
        message = BARRIER.sub(lambda m: f'T.pipe_barrier("{m[1].lower()}")', message)
        message = FLAG.sub(lambda m: f'T.{m[1].lower()}_flag("{m[2].lower()}", "{m[3].lower()}", n)', message)
        message = re.sub(r"\bline (\d+)", lambda m: f"line {p.line}" if (p := self.place(int(m[1]))) else "another line", message)
        return re.sub(r"between (line \d+) and \1\b", r"behind \1", message)

    def _places(self, f: Finding) -> tuple[Span | None, Span | None]:
        return self.place(f.line), self.place(f.other_line)

    def place(self, line: int) -> Span | None:
        """The line of the source that a line of the text comes from: it stands behind the call."""
        lines = str(self.source).splitlines()
        for text in lines[max(0, line - 1) : line + 3] if line else []:
            if found := re.search(r"// (.+?):(\d+)(  |$)", text):
                return _line(self.kernel, int(found[2]))
        return None


SHOWN = 4
ASSERTED = re.compile(r"the assertion .* does not hold")  # the condition stands at the caret, in the words of the source
FLAG = re.compile(r"\b(Set|Wait)Flag<(?:HardEvent::)?([A-Z0-9]+)_([A-Z0-9]+)>(?:\(\))?")
CROSS = re.compile(r"CrossCoreSetFlag<2, PIPE_([A-Z0-9]+)>")
BARRIER = re.compile(r"PipeBarrier<PIPE_([A-Z0-9]+)>(?:\(\))?")
HELP = {
    "race": "a flag orders two pipes: T.set_flag(src, dst, n) behind the first, T.wait_flag(src, dst, n) before the second",
    "block_race": "two blocks, or both vector cores, must not write the same bytes",
    "deadlock": "each wait needs a set of the same pipes and number that comes before it",
    "leftover_flag": "each set needs a wait: as many on every path",
    "double_set": "a flag holds one bit: a wait has to stand between two sets of it, or the second needs another number",
    "uninitialised": "write it first, and wait for the pipe that does",
}


def _help(f: Finding) -> str:
    """A way out: two instructions of one pipe are ordered by a barrier, not by a flag."""
    if f.kind == "block_race" and f.message.startswith(("RAW", "WAR")):
        return "what one block stores, another one reads behind T.sync_all(), which all blocks reach"
    if f.kind == "race" and CROSS.search(f.message):
        return "a flag orders two cores: T.set_cross_flag(pipe, n) behind the first, T.wait_cross_flag(n) before the second"
    barrier = BARRIER.search(f.message) if f.kind == "race" else None
    if barrier is None:
        return HELP.get(f.kind, "")
    return f'the pipe begins the second before the first ends: T.pipe_barrier("{barrier[1].lower()}") stands between them'


def _line(kernel: KeptKernel, line: int) -> Span | None:
    lines = kernel.source.splitlines()
    if not 0 < line <= len(lines):
        return None
    text = lines[line - 1]
    begin = len(text) - len(text.lstrip())
    return Span(kernel.file, line, begin + 1, line, len(text) + 1)


def planned_kept(kernel: KeptKernel, chip: str) -> PlannedKept:
    """The kernel with addresses and text. TileError where its buffers do not fit, or an instruction has no text."""
    target = compiled_for(chip)
    with stage("plan", kernel.source):
        check_chip_types((kernel.tensors, kernel.buffers), target, dict(kernel.places))
        program = _program(kernel, target)
        made = PlannedKept(program, target, kernel)
        _written(made)
        return made


def _written(made: PlannedKept) -> None:
    from tile_eg.emit.ascend_c import kernel_text

    try:
        kernel_text(made.program)
    except PlanError as error:
        message = error.message
        help = "give the buffer rows of a multiple of 32 bytes" if "32-byte" in message else ""
        raise TileError(f"this instruction cannot be written: {message}", error.span, help=help) from error


def _program(kernel: KeptKernel, chip: Chip) -> Program:
    from tile_eg.emit.sync.missing import completed

    if chip.architecture == "dav-3510":
        kernel = with_direct_paths(kernel)
    workspace, handed = _in_workspace(kernel)
    buffers = (*(b for level in Level if level is not Level.WS for b in Places(kernel, level, chip).found()), *handed)
    program = Program(
        kernel.name, chip.name, kernel.kernel_type, kernel.tensors, kernel.blocks, kernel.halves, workspace, buffers,
        kernel.cube, kernel.vector,
    )  # fmt: skip
    sharing = _overlapping(kernel, buffers)
    streams = {core: completed(program, core, kernel.barriers == "all", sharing) for core in (AIC, AIV)}
    return replace(program, cube=streams[AIC], vector=streams[AIV])


def _in_workspace(kernel: KeptKernel) -> tuple[int, list[Buffer]]:
    """The bytes of a block's workspace, and what cores hand to one another there, one behind the other."""
    at, out = 0, list[Buffer]()
    for b in kernel.buffers:
        if b.level is Level.WS:
            out.append(replace(b, addresses=(at,)))
            at += -(-b.slot_bytes // LINE_BYTES) * LINE_BYTES
    return at, out


def _overlapping(kernel: KeptKernel, buffers: Sequence[Buffer]) -> frozenset[str]:
    """The buffers that share memory though the author gave them no address."""
    given = {b.name for b in kernel.buffers if b.addresses} | {*dict(kernel.shared), *dict(kernel.views)} | kernel.beside
    found = [b for b in buffers if b.name not in given]
    return frozenset(
        b.name for b in found for o in found
        if b is not o and b.level is o.level and b.addresses[0] < o.addresses[-1] + o.slot_bytes
        and o.addresses[0] < b.addresses[-1] + b.slot_bytes
    )  # fmt: skip
