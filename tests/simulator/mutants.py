"""Wrong kernels on purpose: every example kernel with one flag, barrier, id, ring or address changed while it runs.

A mutant is caught when the simulator has a finding, or when the outputs differ from those of the unchanged kernel. One that is
not caught is run in other orders: with each of its instructions held back alone, and by many seeds. If no order changes what any
access meets (the fingerprint), then all legal orders compute the same, and the mutant is harmless; otherwise it was missed.

    python -m tests.simulator.mutants [EXAMPLE ..]      prints the figures of docs/simulator.md, and every mutant that got away
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path

import numpy as np

from tests.emit.test_units import planned
from tile_eg.emit.ascend_c import kernel_text
from tile_eg.emit.host import launch_blocks
from tile_eg.frontend.text import load_text
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.index import ZERO
from tile_eg.ir.program import Buffer, Instr, Program, walk
from tile_eg.ops.types import Level
from tile_eg.search.compiler import lower
from tile_eg.simulator.run import Limits, Simulation, SimulatorError, TraceRow, simulate

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES: dict[str, dict[str, int]] = {
    "vector_add": {"M": 32, "N": 64, "BM": 16, "BN": 64},
    "softmax": {"M": 32, "N": 128, "BM": 16},
    "gemm": {"M": 32, "N": 64, "K": 192, "BM": 32, "BN": 64, "BK": 32},
    "gemm_transposed": {"M": 32, "N": 64, "K": 192, "BM": 32, "BN": 64, "BK": 32},
    "gemm_exp": {"M": 32, "N": 64, "K": 32, "BM": 32, "BN": 64},
    "matmul_add": {"M": 32, "N": 32, "K": 128, "BM": 32, "BN": 32, "BK": 32},
    "flash_attention": {"H": 1, "S": 128, "D": 32, "BM": 64, "BN": 32},
    "flash_attention_rows": {"H": 1, "S": 128, "D": 32, "BM": 64, "BN": 32},
}
PERSISTENT = "gemm_persistent"
"""The GEMM of `tests.emit.test_units`, with two cores that go through tiles: it has unit flags."""
EVERYWHERE = "*:0:0"  # in any memory, at any address
SEEDS = range(24)


@dataclass(frozen=True)
class Mutant:
    """One change of a kernel: what kind, where (for people), and the entries of the table (runtime/mutation.h)."""

    kind: str
    where: str
    entries: tuple[str, ...]


@dataclass(frozen=True)
class Sync:
    """A flag or barrier of the text as it ran: `event` is V_MTE3 or the like, or cross; `ids` are all that it took."""

    line: int
    name: str
    event: str
    core: str
    ids: frozenset[int]

    @property
    def sets(self) -> bool:
        return self.name.endswith("SetFlag")


@dataclass(frozen=True)
class Subject:
    """A kernel that is right, its arguments, and what it computes."""

    name: str
    source: str
    program: Program

    @cached_property
    def lines(self) -> list[str]:
        return self.source.splitlines()

    @cached_property
    def arguments(self) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        return [rng.standard_normal(t.shape).astype(numpy_dtype(t.dtype)) for t in self.program.tensors]

    @cached_property
    def right(self) -> Simulation:
        return self.run(trace=True)

    def run(self, mutations: tuple[str, ...] = (), *, order: int | None = None, trace: bool = False) -> Simulation:
        p = self.program
        return simulate(
            self.source, p.name, self.arguments, kernel_type=p.kernel_type, launch=launch_blocks(p), workspace=p.workspace,
            outputs=[i for i, t in enumerate(p.tensors) if t.output], limits=Limits(seconds=30), mutations=mutations, order=order,
            trace=trace,
        )  # fmt: skip

    def same(self, other: Simulation) -> bool:
        """Whether a run computed what the unchanged kernel does, bit for bit."""
        return all(np.array_equal(bits(a), bits(b)) for a, b in zip(self.right.outputs, other.outputs, strict=True))


def bits(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint8)


@cache
def subject(name: str) -> Subject:
    if name == PERSISTENT:
        program = planned(K=256).program
        return Subject(name, kernel_text(program), program)
    return _lowered(name, SIZES[name])


@cache
def example(name: str) -> Subject:
    """An example at its own size."""
    return _lowered(name, {})


def _lowered(name: str, sizes: Mapping[str, int]) -> Subject:
    file = EXAMPLES / f"{name}.tile"
    lowered = lower(load_text(file.read_text(), file.name).instantiate(dict(sizes)))
    return Subject(name, str(lowered.source), lowered.program)


def sync_of(row: TraceRow) -> tuple[str, str, int] | None:
    """Name, event and id of a flag or barrier in the trace; None for an instruction."""
    if row.name == "PipeBarrier":
        return row.name, row.pipe, 0
    name, _, rest = row.name.partition(" ")
    if name.startswith("CrossCore"):
        return name, "cross", int(rest)
    event, _, number = rest.partition(", ")
    return (name, event, int(number)) if name in ("SetFlag", "WaitFlag") else None


def syncs_of(kernel: Subject) -> list[Sync]:
    found: dict[tuple[int, str, str, str], set[int]] = {}
    for row in kernel.right.trace:
        if sync := sync_of(row):
            core = "AIV" if row.core.startswith("AIV") else "AIC"
            found.setdefault((row.line, *sync[:2], core), set()).add(sync[2])
    return [Sync(*key, frozenset(ids)) for key, ids in sorted(found.items())]


def pairs_of(kernel: Subject) -> list[tuple[int, ...]]:
    """The lines of sets and waits that belong together: of one core, event and ids, or of one flag between cores."""
    groups: list[tuple[set, set[int]]] = []
    for sync in syncs_of(kernel):
        if sync.name == "PipeBarrier":
            continue
        keys = {(sync.event, "" if sync.event == "cross" else sync.core, number) for number in sync.ids}
        joined = [g for g in groups if g[0] & keys]
        groups = [g for g in groups if not g[0] & keys]
        groups.append((keys.union(*(g[0] for g in joined)), {sync.line}.union(*(g[1] for g in joined))))
    return [tuple(sorted(lines)) for _, lines in groups]


# ---- the kinds of mutants ---------------------------------------------------------------------------------------------------


def without_one_flag(kernel: Subject) -> Iterator[Mutant]:
    for sync in syncs_of(kernel):
        if sync.name != "PipeBarrier":
            yield Mutant("one flag deleted", f"{sync.line}", (f"drop:{sync.line}",))


def without_a_pair(kernel: Subject) -> Iterator[Mutant]:
    for lines in pairs_of(kernel):
        yield Mutant("flag pair deleted", ",".join(map(str, lines)), tuple(f"drop:{line}" for line in lines))


def without_a_barrier(kernel: Subject) -> Iterator[Mutant]:
    for sync in syncs_of(kernel):
        if sync.name == "PipeBarrier":
            yield Mutant("barrier deleted", f"{sync.line}", (f"drop:{sync.line}",))


def with_swapped_ids(kernel: Subject) -> Iterator[Mutant]:
    syncs = [s for s in syncs_of(kernel) if s.name != "PipeBarrier"]
    for sync in syncs:
        used = {n for s in syncs if s.event == sync.event and (s.core == sync.core or s.event == "cross") for n in s.ids}
        own = min(sync.ids)
        for other in sorted(used - {own}) or [own + 1]:
            yield Mutant("ids swapped", f"{sync.line}: {own} and {other}", (f"swap:{sync.line}:{own}:{other}",))


def with_an_early_set(kernel: Subject) -> Iterator[Mutant]:
    for sync in syncs_of(kernel):
        if sync.sets:
            yield Mutant("set before its producer", f"{sync.line}", (f"early:{sync.line}",))


def with_a_smaller_ring(kernel: Subject) -> Iterator[Mutant]:
    """The last slot of a ring is its first one."""
    for buffer in kernel.program.buffers:
        if buffer.slots > 1:
            yield Mutant("one buffer fewer", buffer.name, tuple(moved(kernel, buffer, buffer.slots - 1, to_first=True)))


def with_a_shifted_operand(kernel: Subject, by: int = 32) -> Iterator[Mutant]:
    lines = sorted({row.line for row in kernel.right.trace if not sync_of(row)})
    for line, operand in product(lines, range(3)):
        entry = f"shift:{line}:{operand}:{EVERYWHERE}:{by}"
        yield Mutant(f"operand shifted by {by} bytes", f"{line}, operand {operand}", (entry,))


def with_an_operand_shifted_by_a_fractal(kernel: Subject) -> Iterator[Mutant]:
    """What L0A and L0B align to, so that it is not the alignment that gives the shift away."""
    if kernel.program.cube:
        yield from with_a_shifted_operand(kernel, 512)


def with_a_shifted_buffer(kernel: Subject) -> Iterator[Mutant]:
    for buffer in kernel.program.buffers:
        entries = [e for slot in range(len(buffer.addresses)) for e in moved(kernel, buffer, slot)]
        yield Mutant("buffer shifted by 32 bytes", buffer.name, tuple(entries))


def moved(kernel: Subject, buffer: Buffer, slot: int, *, to_first: bool = False) -> Iterator[str]:
    """Entries that move a slot of a buffer, at all instructions that name the buffer, to the first slot or by 32 bytes."""
    begin = buffer.addresses[slot]
    by = buffer.addresses[0] - begin if to_first else 32
    workspace = buffer.level is Level.WS
    starts = range(0, kernel.program.workspace * kernel.program.blocks, kernel.program.workspace) if workspace else [0]
    name = f"{buffer.name}_ws" if workspace and not buffer.name.endswith("_ws") else buffer.name
    for line in lines_with(kernel, name):
        for start in starts:
            place = f"{start + begin}:{start + begin + buffer.slot_bytes}"
            yield f"shift:{line}:-1:{'workspace' if workspace else buffer.level}:{place}:{by}"


def lines_with(kernel: Subject, name: str) -> list[int]:
    """The instructions of the text that name a buffer."""
    ran = {row.line for row in kernel.right.trace if not sync_of(row)}
    return [line for line in sorted(ran) if re.search(rf"\b{name}\b", statement(kernel, line))]


def statement(kernel: Subject, line: int) -> str:
    text = ""
    for part in kernel.lines[line - 1 :]:
        text += part.partition("//")[0]
        if text.rstrip().endswith(";"):
            break
    return text


def with_another_unit_flag(kernel: Subject) -> Iterator[Mutant]:
    """An instruction that keeps its blocks hands them over, or the other way round, or has no unit flag."""
    if all(n.unit == ZERO for n in walk(kernel.program.cube) if isinstance(n, Instr)):
        return
    lines = sorted({row.line for row in kernel.right.trace if row.name in ("Mmad", "Fixpipe")})
    for line, (said, instead) in product(lines, ((2, 3), (3, 2), (2, 0), (3, 0))):
        yield Mutant("unit flag changed", f"{line}: {said} to {instead}", (f"unit:{line}:{said}:{instead}",))


KINDS: tuple[Callable[[Subject], Iterator[Mutant]], ...] = (
    without_one_flag, without_a_pair, without_a_barrier, with_swapped_ids, with_an_early_set, with_a_smaller_ring,
    with_a_shifted_operand, with_an_operand_shifted_by_a_fractal, with_a_shifted_buffer,
    with_another_unit_flag,
)  # fmt: skip


def mutants_of(kernel: Subject) -> list[Mutant]:
    return [mutant for kind in KINDS for mutant in kind(kernel)]


# ---- what becomes of them ---------------------------------------------------------------------------------------------------

FINDING, NUMBERS, HARMLESS, MISSED, NONE = "finding", "numbers", "harmless", "missed", "not there"


def fate(kernel: Subject, mutant: Mutant) -> str:
    """Caught by a finding or by its numbers, harmless, missed, or not there (the change applies to nothing)."""
    try:
        done = kernel.run(mutant.entries)
    except SimulatorError:
        return FINDING
    if not done.ok:
        return FINDING
    if not done.delays.mutated:
        return NONE
    if not kernel.same(done):
        return NUMBERS
    return HARMLESS if is_harmless(kernel, mutant.entries) else MISSED


def found_at_once(kernel: Subject, mutant: Mutant) -> bool:
    """Whether a mutant has a finding in the plain run."""
    try:
        return not kernel.run(mutant.entries).ok
    except SimulatorError:
        return True


def is_harmless(kernel: Subject, entries: tuple[str, ...]) -> bool:
    """Whether every legal order computes the same: whatever one of them could swap, one of these runs swaps.

    Two instructions that may run in either order do so when the first of them alone is held back. If no run changes what any
    access meets, none of the pairs matters, and all orders are one order with independent instructions exchanged.
    """
    first = kernel.run(entries, order=0)
    held_back = range(-first.delays.instructions, 0)
    runs = (kernel.run(entries, order=order) for order in (*SEEDS, *held_back))
    return all(r.ok and kernel.same(r) and r.delays.fingerprint == first.delays.fingerprint for r in runs)


def census(kernel: Subject) -> dict[Mutant, str]:
    return {mutant: found for mutant in mutants_of(kernel) if (found := fate(kernel, mutant)) != NONE}


Fates = dict[str, dict[Mutant, str]]


def table(title: str, groups: dict[str, list[str]]) -> Iterator[str]:
    yield f"| {title} | mutants | by a finding | by the numbers | harmless | missed |"
    yield "|---|---|---|---|---|---|"
    everything = [f for group in groups.values() for f in group]
    for name, group in {**groups, "all": everything}.items():
        numbers = (len(group), *(group.count(f) for f in (FINDING, NUMBERS, HARMLESS, MISSED)))
        yield f"| {name} | {' | '.join(map(str, numbers))} |"
    yield ""


def report(fates: Fates) -> Iterator[str]:
    """The tables of docs/simulator.md, and under them whatever was not caught."""
    kinds = dict.fromkeys(mutant.kind for found in fates.values() for mutant in found)
    of_kind = {kind: [f for found in fates.values() for m, f in found.items() if m.kind == kind] for kind in kinds}
    yield from table("kernel", {name: list(found.values()) for name, found in fates.items()})
    yield from table("kind", of_kind)
    for name, found in fates.items():
        yield from (f"{f}: {name}, {m.kind}: {m.where}" for m, f in found.items() if f in (HARMLESS, MISSED))


if __name__ == "__main__":
    chosen = sys.argv[1:] or [*SIZES, PERSISTENT]
    results: Fates = {}
    for name in chosen:
        results[name] = census(subject(name))
        print(name, Counter(results[name].values()), file=sys.stderr, flush=True)
    print("\n".join(report(results)))
