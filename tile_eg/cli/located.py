"""`run --where` and `--against`, and `diff --where`: the first value of a run that is not what it should be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.cli.runs import Runs
from tile_eg.errors import TileError
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.program import Program
from tile_eg.search import SearchOptions
from tile_eg.search.compiler import Lowered, Planned, Run, stage

if TYPE_CHECKING:
    from tile_eg.inputs import Drawn
    from tile_eg.locate import Located, Subject

MEANING = "from the kernel's meaning"


def subject_of(kernel: Kernel, planned: Planned, number: int | None, chip: str | None, search: SearchOptions) -> Subject:
    """A kernel's schedule with its program: that of this number where one is given."""
    from tile_eg.locate import Subject

    if isinstance(planned, Lowered):
        return Subject(kernel, planned, planned.candidates[0].schedule)
    from tile_eg.explore import schedule_number

    assert number is not None
    candidate = schedule_number(number, kernel, chip or DEFAULT_CHIP, search).candidate
    return Subject(kernel, candidate.planned, candidate.schedule)


def check_where(order: int | None, held: Kernel | Program | KeptKernel, against: str | None) -> None:
    """TileError where there is nothing to compare a run with, or where its instructions are not followed in their order."""
    if order is not None:
        what = "--where follows instructions in the order of the program, and --order takes another one"
        raise TileError(what, help="leave one of the two out; races that --order provokes are findings of a run")
    if isinstance(held, Program) and against is None:
        raise TileError("a program has no meaning beside its own", help="--against module:function says what it should compute")


def _own(
    subject: Subject | None, planned: Planned, meaning: Kernel | None, d: Drawn, run: Run, how: Mapping[str, Any]
) -> Located | None:
    """A run against what the kernel means; None where that is not known."""
    from tile_eg.locate import located

    if subject is not None:
        return located(subject, d.arrays, run, d.meant or {}, f"{MEANING}, on {d.name} inputs", how)
    return _of_kept(planned, meaning, d, run, how) if meaning is not None else None


def first_differences(
    done: Runs, subject: Subject | None, how: Mapping[str, Any], meaning: Kernel | None, against: str | None
) -> list[Located]:
    """What is found on each set of inputs: one is enough where there is a difference."""
    found: list[Located] = []
    for d, run in zip(done.sets, done.runs, strict=True):
        if against is not None:
            found.append(_against(done, subject, meaning, d, run, how, against))
        elif (own := _own(subject, done.planned, meaning, d, run, how)) is not None:
            found.append(own)
        if not found[-1].good:
            break
    return found[-1:] if not found[-1].good else found


def _of_kept(planned: Planned, meaning: Kernel, d: Drawn, run: Run, how: Mapping[str, Any]) -> Located:
    """A kernel that is kept, against what it means in the order of its statements: its outputs."""
    from tile_eg.locate import located_outside

    among = f"{MEANING} in the order of its statements, on {d.name} inputs"
    remarks = ["a kernel that is kept has its own order: only its outputs are compared"]
    return located_outside(planned, d.arrays, run, _meant(meaning, d), among, how, meaning.source, remarks)


def _meant(kernel: Kernel, d: Drawn) -> Any:
    from tile_eg.ir.reference_bounds import run_with_bounds

    with stage("reference", kernel.source):
        return run_with_bounds(kernel, d.arrays)


def _against(
    done: Runs, subject: Subject | None, meaning: Kernel | None, d: Drawn, run: Run, how: Mapping[str, Any], against: str
) -> Located:
    """A run against what a function of the user's says; where it is not what the kernel means either, that comes first."""
    from tile_eg.jit.against import expected_by, function_at, name_of
    from tile_eg.locate import located_outside

    function = function_at(against)
    meant = d.meant or (_meant(meaning, d) if meaning is not None else None)
    expected = expected_by(function, done.held.tensors, d.arrays, meant)
    among = f"from what {name_of(function)} computes, on {d.name} inputs"
    own = _own(subject, done.planned, meaning, d, run, how)
    if own is not None and not own.good:
        return own
    remarks = [_standing(meaning, name_of(function))]
    source = getattr(done.held, "source", "")
    out = located_outside(done.planned, d.arrays, run, expected, among, how, source, remarks)
    return replace(out, remarks=()) if out.good else out


def _standing(meaning: Kernel | None, function: str) -> str:
    if meaning is None:
        return "nothing is known of the roundings inside: so much as is usual for the type is allowed"
    return f"the run is what the source means: it is the source that differs from {function}, or {function} from it"


def meaning_of(held: Kernel | Program | KeptKernel, read: Callable[[], Any], against: str | None) -> Kernel | None:
    """What a run is compared with: the kernel, or a kept one in the order of its statements; None where it has no such meaning
    and a function says what is meant."""
    if isinstance(held, Kernel):
        return held
    if isinstance(held, Program):
        return None
    try:
        found = read()
        if isinstance(found, Kernel) and _fits(found, held):
            return found
        why = TileError("without what its author decided it takes other tensors")
    except TileError as error:
        why = error
    if against is not None:
        return None
    help = "--against module:function says what it should compute"
    raise TileError(f"this kernel has no meaning beside its order: {why.message}", why.span, help=help) from None


def _fits(kernel: Kernel, held: KeptKernel) -> bool:
    """Whether the tensors of a kernel are among those of the kept one, which may have workspaces too."""
    known = {(t.name, t.shape, t.dtype, t.output) for t in held.tensors}
    return all((t.name, t.shape, t.dtype, t.output) in known for t in kernel.tensors)
