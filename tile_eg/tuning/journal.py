"""`FILE.tuning.jsonl`: a line for each candidate that was looked at, so that what a killed run has found is not lost."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from os import SEEK_END
from pathlib import Path
from typing import Any

from tile_eg.disk_cache import alone
from tile_eg.errors import TileError
from tile_eg.ops.records import record
from tile_eg.search.tuned_file import Pairs, write_whole

Interval = tuple[float, float]
SUFFIX = ".tuning.jsonl"


@record
class Record:
    """A candidate at its sizes: its time in microseconds, predicted and by the clock that was asked (None: what is wrong), and
    between what times the predicted one lies by what is assumed of the chip: with the launch, and the launch aside."""

    program: str
    sizes: Pairs
    what: str
    predicted: float
    microseconds: float | None
    wrong: str = ""
    interval: Interval | None = None
    on_cores: Interval | None = None


class Journal:
    """The records of one task among those that a file holds; `task` is a digest of all that they follow from."""

    def __init__(self, file: str, task: str, resume: bool) -> None:
        """Without `resume`, what was recorded of the task is forgotten. TileError where the file cannot be written."""
        self.path, self.task = Path(f"{file}{SUFFIX}"), task
        with alone(self.path.parent):
            lines = _lines(self.path)
            own = [one for one in lines if one.get("task") == task]
            if not resume and own or not self.path.exists():
                others = [one for one in lines if one.get("task") != task]
                write_whole(self.path, "".join(json.dumps(one) + "\n" for one in others))
        self.known = {r.program: r for one in own if resume and (r := _record(one)) is not None}

    def add(self, record: Record) -> None:
        """Keeps a record, at once; behind those of other processes, if there are any."""
        self.known[record.program] = record
        line = json.dumps({"task": self.task, **asdict(record), "sizes": dict(record.sizes)}) + "\n"
        try:
            with alone(self.path.parent), self.path.open("ab") as file:
                file.write(b"" if _is_ended(self.path) else b"\n")
                file.write(line.encode())
        except OSError as error:
            raise TileError(f"cannot write '{self.path}': {error.strerror or error}") from None

    def close(self) -> None:
        """Ends it; a file in which nothing was written is removed."""
        with alone(self.path.parent):
            if self.path.exists() and not self.path.stat().st_size:
                self.path.unlink()


def _is_ended(path: Path) -> bool:
    """Whether the last line of a file is whole: that of a killed run may not be."""
    with path.open("rb") as file:
        if not file.seek(0, SEEK_END):
            return True
        file.seek(-1, SEEK_END)
        return file.read() == b"\n"


def _lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file's lines; a line that was cut off is none."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise TileError(f"cannot read '{path}': {error.strerror or error}") from None
    found = []
    for line in text.splitlines():
        try:
            one = json.loads(line)
        except json.JSONDecodeError:
            continue
        found += [one] if isinstance(one, dict) else []
    return found


def _record(one: dict[str, Any]) -> Record | None:
    try:
        pairs = {name: one[name] and tuple(map(float, one[name])) for name in ("interval", "on_cores")}
        return Record(**{f.name: one[f.name] for f in fields(Record)} | pairs | {"sizes": tuple(one["sizes"].items())})
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
