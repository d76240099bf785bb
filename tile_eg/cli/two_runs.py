"""`diff --where`: two schedules of one kernel run on the same inputs, and the first value in which they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tile_eg.ir.kernel import Kernel
from tile_eg.ops.records import record
from tile_eg.search.compiler import Lowered, Planned, Run, stage

if TYPE_CHECKING:
    from tile_eg.explore.numbered import Numbered
    from tile_eg.inputs import Drawn
    from tile_eg.locate import Located
    from tile_eg.search.kept import PlannedKept

NOTHING: Mapping[str, Any] = {}


@record
class TwoRuns:
    """What was found: each of the two against the kernel's meaning, by what it is called, and how their outputs compare."""

    found: Sequence[tuple[str, Located]]
    agree: bool
    names: tuple[str, str]

    @property
    def good(self) -> bool:
        return self.agree and all(f.good for _, f in self.found)

    def __str__(self) -> str:
        how = "compute the same, as far as roundings allow" if self.agree else "compute different outputs"
        return "\n\n".join([f"{self.names[0]} and {self.names[1]} {how}", *(f"{name}: {f}" for name, f in self.found)])


def two_schedules(a: Numbered, b: Numbered, kernel: Kernel) -> TwoRuns:
    """Two numbered schedules, each held against what the kernel means: so it is known which one differs, and from where on."""
    from tile_eg.locate import Subject, located

    names = f"schedule {a.number}", f"schedule {b.number}"
    both = [Subject(kernel, n.candidate.planned, n.candidate.schedule) for n in (a, b)]

    def look(n: int, d: Drawn, run: Run, among: str) -> Located:
        return located(both[n], d.arrays, run, d.meant or {}, among, NOTHING)

    return _compared((a.candidate.planned, b.candidate.planned), kernel, names, look)


def author_and_search(written: PlannedKept, found: Lowered) -> TwoRuns:
    """A kernel as its author wrote it, of which the outputs are compared, and as the search finds it."""
    from tile_eg.locate import Subject, located, located_outside

    subject = Subject(found.kernel, found, found.candidates[0].schedule)

    def look(n: int, d: Drawn, run: Run, among: str) -> Located:
        if n:
            return located(subject, d.arrays, run, d.meant or {}, among, NOTHING)
        return located_outside(written, d.arrays, run, d.meant or {}, among, NOTHING, written.kernel.source)

    return _compared((written, found), found.kernel, ("the author's", "the search's"), look)


def _compared(planned: tuple[Planned, Planned], kernel: Kernel, names: tuple[str, str], look: Any) -> TwoRuns:
    """On the first set of inputs on which something differs; on the last one where nothing does."""
    from tile_eg.inputs import USUAL, drawn_sets

    with stage("reference", kernel.source):
        sets = drawn_sets(kernel, USUAL, 0)
    for d in sets:
        runs = [p.run(d.arrays, strict=False) for p in planned]
        runs = [run.as_meant(kernel, d.arrays) for run in runs]
        among = f"from the kernel's meaning, on {d.name} inputs"
        found = TwoRuns([(name, look(n, d, runs[n], among)) for n, name in enumerate(names)], _agree(runs, d), names)
        if not found.good:
            break
    return found


def _agree(runs: Sequence[Run], d: Drawn) -> bool:
    from tile_eg.ir.reference_bounds import Expected
    from tile_eg.report.compare import wrong_elements

    a, b = (run.outputs for run in runs)
    return not any(wrong_elements(a[name], Expected(b[name], e.allowed)).any() for name, e in (d.meant or {}).items())
