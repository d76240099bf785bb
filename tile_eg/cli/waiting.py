"""What is said while a run goes on, and when it is interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tile_eg.cli.console import ProgressLine
from tile_eg.simulator.progress import Progress, watched

KEPT = "kept: "
"""How a note on an interrupt begins that says what of the command's work is not lost."""


@contextmanager
def shown_progress() -> Iterator[None]:
    """Shows how far the run inside the block is; Ctrl-C says how far it came."""
    last: list[Progress] = []
    with ProgressLine() as line:

        def watch(progress: Progress) -> None:
            last[:] = [progress]
            line.tell(f"simulating: {progress}", progress.seconds)

        try:
            with watched(watch):
                yield
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(f"the simulation ({last[-1]})" if last else "the simulation")
            raise


def lost(interrupt: BaseException) -> str:
    """What Ctrl-C ended, and what of it is lost."""
    notes: list[str] = getattr(interrupt, "__notes__", [])
    if kept := next((n.removeprefix(KEPT) for n in notes if n.startswith(KEPT)), ""):
        return f"interrupted: {kept}\nhelp: the same command goes on from there"
    where = next((n for n in notes if n.startswith("the simulation")), notes[0] if notes else "the command")
    return (
        f"interrupted: {where} has no result, and no file was written by it; what was compiled for the simulator is kept\n"
        "help: the same command begins anew"
    )
