"""What native code of the simulator's process may do to the machine, and what is said of what it was refused.

The kernel of the machine keeps it (include/runtime/confine.h): no network, no new programs or processes, no signals to others, no
writes outside of the folders that are named here, no reads outside of them and of the system's libraries.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

from tile_eg.ops.records import record
from tile_eg.simulator.findings import SimulatorError

OUTPUT = "output"
"""The folder that a file with a main may write in, where the current folder has one: the vendor's samples write there."""
SAID = "tile_eg refused "
_KINDS = MappingProxyType({
    "program": "start a program",
    "process": "start another process",
    "network": "use the network",
    "signal": "send a signal to another process",
    "trace": "look into another process",
    "limits": "change the limits that hold for it",
    "change": "make a link, or change a file's owner, rights or times",
    "call": "make the system call number",
})  # fmt: skip


class Refused(SimulatorError):
    """The code tried what a confined run may not do. `help` says how it can be allowed."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help


@record
class Confinement:
    """Whether a run is confined, and the folders that it may read, and write in, besides the system's libraries."""

    confined: bool = True
    reads: Sequence[Path] = ()
    writes: Sequence[Path] = ()

    def options(self) -> list[str]:
        """What the simulator's executable is told."""
        if not self.confined:
            return ["unconfined"]
        return [f"reads={p.resolve()}" for p in self.reads] + [f"writes={p.resolve()}" for p in self.writes]

    def of_program(self, file: Path) -> Confinement:
        """That of a file with a main: it reads in the current folder and its own, and writes in `./output` if that is no link."""
        output = Path(OUTPUT)
        own = [output] if output.is_dir() and not output.is_symlink() else []
        return Confinement(self.confined, (Path(), file.parent, *self.reads), (*own, *self.writes))


def cannot_confine(runtime: Path) -> str:
    """Why this machine cannot confine a run, or not wholly; empty where it can. `runtime` is the simulator's executable."""
    done = subprocess.run([str(runtime), "confinement"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def refused(printed: str) -> Refused:
    """The error for a run that was ended by a refusal, from what its process said."""
    said = [line.removeprefix(SAID) for line in printed.splitlines() if line.startswith(SAID)]
    kind, _, what = (said[-1] if said else "call").partition(" ")
    tried = f"{kind} '{what}'" if kind in ("read", "write") else _KINDS.get(kind, kind)
    if kind == "call":
        tried = f"{tried} {what}" if what else "make a system call that is not allowed"
    folder = what if Path(what).is_dir() else str(Path(what).parent)
    allow = f"--{kind}s {folder} allows it below that folder, " if kind in ("read", "write") else ""
    return Refused(
        f"refused: the code tried to {tried}, and it runs confined",
        f"{allow}--unconfined lets it do all that you may do: only for code that you trust",
    )
