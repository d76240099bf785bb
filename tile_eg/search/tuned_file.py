"""`FILE.tuned.json`: what tuning found for the kernels of FILE, checked when it is read, and written whole or not at all.

A file is an object with "format", "schema" and "kernels"; each of these says which kernel of which chip at which sizes it is for,
what it was found with, and its winner: the sizes that were open, and the program by its digest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from tile_eg.disk_cache import alone
from tile_eg.errors import TileError
from tile_eg.ops.records import record

FORMAT, SCHEMA, SUFFIX = "tile_eg tuned kernels", 1, ".tuned.json"
TIMELINE, NPU = "predicted by the timeline", "measured"
"""Where the microseconds of an entry are from."""
Pairs = tuple[tuple[str, Any], ...]


@record
class Entry:
    """A schedule for one kernel at the sizes that `tensors` shows, with the sizes in `open` left to the search.

    `source` and `meaning` are digests of the kernel's text and of what it says, `rules` of rules of the user's; `made_with` is
    the tile_eg that found it. `options` are those of its search that differ from the usual ones. The winner has `sizes` for
    those that were open, and a program of digest `program`; it takes `microseconds`, `by` says of what clock, and the search's
    own choice `untuned_microseconds` (None: not known). `tried` candidates were looked at.
    """

    kernel: str
    chip: str
    tensors: str
    open: tuple[str, ...]
    source: str
    meaning: str
    rules: str
    options: Pairs
    made_with: Pairs
    sizes: Pairs
    program: str
    microseconds: float
    by: str
    untuned_microseconds: float | None
    tried: int
    what: str = ""

    @property
    def asked(self) -> tuple[object, ...]:
        """For what it is, wherever the kernel's own numbers differ."""
        return self.kernel, self.chip, self.tensors, self.open, self.rules, self.strict

    def replaces(self, other: Entry) -> bool:
        """Whether the other one is for the same, or for a text that is no longer there."""
        return self.asked == other.asked and (self.meaning == other.meaning or self.source != other.source)

    @property
    def strict(self) -> Pairs:
        """The options that decide what may be computed, not how long is searched."""
        return tuple((n, v) for n, v in self.options if n in STRICT)


STRICT = ("exact_math", "deterministic", "without")
_PAIRS = ("options", "made_with", "sizes")


def path_of(file: str) -> Path:
    """The file beside a kernel's."""
    return Path(f"{file}{SUFFIX}")


def read(path: Path) -> tuple[Entry, ...]:
    """The entries of a file; none where there is no file. TileError where it is not such a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise TileError(f"cannot read '{path}': {error.strerror}", help=_WAYS) from None
    except UnicodeDecodeError as error:
        raise TileError(f"'{path}' is not UTF-8 text (byte {error.start})", help=_WAYS) from None
    try:
        return _entries(json.loads(text))
    except json.JSONDecodeError as error:
        raise TileError(f"'{path}' is not JSON: line {error.lineno}, column {error.colno}: {error.msg}", help=_WAYS) from None
    except _Unfit as unfit:
        raise TileError(f"'{path}' holds no tuned kernels as they are written: {unfit}", help=_WAYS) from None


_WAYS = "remove it and tune again (tile-eg tune), or leave it aside: --untuned, in Python untuned=True"


class _Unfit(Exception):
    """What of a file's content is not as it has to be."""


def _entries(held: Any) -> tuple[Entry, ...]:
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise _Unfit(f'it is no object with "format": "{FORMAT}"')
    if held.get("schema") != SCHEMA:
        raise _Unfit(f'"schema" is {held.get("schema")!r}, and this tile_eg reads {SCHEMA}')
    if not isinstance(held.get("kernels"), list):
        raise _Unfit('"kernels" is no list')
    return tuple(_entry(one, f"kernels[{n}]") for n, one in enumerate(held["kernels"]))


_KINDS: Mapping[str, tuple[type, ...]] = {
    "tuple[str, ...]": (list,), "Pairs": (dict,), "str": (str,), "int": (int,), "float": (int, float),
    "float | None": (int, float, type(None)),
}  # fmt: skip


def _entry(one: Any, where: str) -> Entry:
    if not isinstance(one, dict):
        raise _Unfit(f"{where} is no object")
    given: dict[str, Any] = {}
    for f in fields(Entry):
        if f.name not in one and f.default is MISSING:
            raise _Unfit(f'{where} has no "{f.name}"')
        value = one.get(f.name, f.default)
        if not isinstance(value, _KINDS[str(f.type)]) or isinstance(value, bool):
            raise _Unfit(f'"{f.name}" of {where} is {json.dumps(value)}')
        given[f.name] = _plain(value)
    if unknown := one.keys() - given.keys():
        raise _Unfit(f'{where} has "{min(unknown)}", which means nothing')
    for name, size in given["sizes"]:
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise _Unfit(f'"sizes" of {where} gives {name} the value {json.dumps(size)}')
    return Entry(**given)


def _plain(value: Any) -> Any:
    """Lists as tuples, objects as pairs."""
    if isinstance(value, dict):
        return tuple((n, _plain(v)) for n, v in value.items())
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def text_of(entries: Sequence[Entry]) -> str:
    """The text of a file with these entries."""
    kernels = [{f.name: _written(f.name, getattr(e, f.name)) for f in fields(Entry)} for e in entries]
    return json.dumps({"format": FORMAT, "schema": SCHEMA, "kernels": kernels}, indent=2) + "\n"


def _written(name: str, value: Any) -> Any:
    return dict(value) if name in _PAIRS else value


def keep(path: Path, entry: Entry) -> None:
    """Writes the entry in the place of the one that is for the same. TileError where that cannot be done."""
    with alone(path.parent):  # another process may keep what it found for another kernel, chip or sizes
        others = [e for e in read(path) if not entry.replaces(e)]
        kept = sorted([*others, entry], key=lambda e: (e.kernel, e.chip, e.tensors, e.open, e.meaning, e.rules, str(e.strict)))
        write_whole(path, text_of(kept))


def write_whole(path: Path, text: str) -> None:
    """Writes a file in one step: a reader finds the one before, or all of this one. TileError where it cannot be written."""
    from tempfile import NamedTemporaryFile

    made = None
    try:
        with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            made = file.name
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(made, 0o644)
        os.replace(made, path)
    except OSError as error:
        if made is not None:
            with suppress(OSError):
                os.unlink(made)
        help = "tuning writes beside the kernel: copy it to a folder that can be written"
        raise TileError(f"cannot write '{path}': {error.strerror or error}", help=help) from None
