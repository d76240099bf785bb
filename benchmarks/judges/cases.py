"""What is asked: each instruction of the tables at several sizes and types, with our price and its text for the judges."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.judges.judges import BYTES
from tile_eg.chips import load_chip
from tile_eg.chips.model import Chip
from tile_eg.ops.types import F16, F32, I8, DType
from tile_eg.timeline.instruction import cycles, repeat_cycles
from tile_eg.timeline.work import Work

FILE = Path(__file__).with_name("judges.toml")
REPEATS = (1, 16, 64, 255)
COPIES = (1024, 4096, 16384, 65536)
CUBES = (64, 128)
QUEUE = 8
"""How many instructions are in front of the one that is judged back to back."""
ALONE, BEHIND = "alone", "back to back"
_ROW, _NZ_ROW, _OUT_COLS = 16, 512, 64


@dataclass(frozen=True)
class Case:
    """One instruction at one size: repeats of 256 bytes, bytes of a copy, or the side of a cube of a product."""

    name: str
    dtype: str
    size: int
    when: str
    ours: float
    text: str = ""
    fit: str = ""
    fit_bytes: int = 0

    @property
    def texts(self) -> tuple[str, str]:
        """What the library is asked: its answer is that of the second less that of the first (nothing: of no instruction)."""
        queued = [self.text] * (QUEUE if self.when == BEHIND else 0)
        return "\n".join(queued), "\n".join([*queued, self.text])


@lru_cache(maxsize=1)
def asked_for() -> Mapping[str, Any]:
    """The file that says how the judges are asked, and what was judged."""
    return tomllib.loads(FILE.read_text("utf-8"))


def instructions(chip: Chip) -> list[str]:
    """Every instruction that the chip's tables price."""
    vector = dict.fromkeys(name for name, _ in chip.vector.ops)
    return [*(f"vector.{name}" for name in vector), "cube.mmad", *(f"path.{name}" for name in chip.paths)]


def cases() -> Iterator[Case]:
    """All cases, in the order of the tables."""
    chip = load_chip()
    for name in instructions(chip):
        room, _, op = name.partition(".")
        how = asked_for()[room][op]
        if "neither" not in how:
            yield from _ROOMS[room](chip, name, op, how)


def unpriced() -> dict[str, str]:
    """The instructions that neither judge prices, and why."""
    rooms = {room: asked_for()[room] for room in _ROOMS}
    return {f"{room}.{op}": how["neither"] for room, ops in rooms.items() for op, how in ops.items() if "neither" in how}


def _vector(chip: Chip, name: str, op: str, how: Mapping[str, Any]) -> Iterator[Case]:
    for dtype in ("half", "float"):
        cost = chip.vector.ops[op, BYTES[dtype]]
        for size in REPEATS:
            text = _text(how, dtype, repeats=max(1, round(size * how.get("repeats", {}).get(dtype, 1))))
            warm = repeat_cycles(chip, cost, size, False)
            size_bytes = size * chip.vector.repeat_bytes
            yield Case(name, dtype, size, ALONE, warm + cost.fixed, text, how.get("fit", ""), size_bytes)
            if size == REPEATS[2]:
                yield Case(name, dtype, size, BEHIND, warm, text)


def _cube(chip: Chip, name: str, op: str, how: Mapping[str, Any]) -> Iterator[Case]:
    types: dict[str, DType] = {"half": F16, "float": F32, "int8_t": I8}
    for dtype, side in ((d, s) for d in types for s in CUBES):
        work = Work(op, side, side, side, src_dtype=types[dtype])
        text = _text(how, dtype, side=side, result="int32_t" if dtype == "int8_t" else "float")
        fit = how["fit"] if dtype == "half" else ""
        yield from _both(chip, Case(name, dtype, side, ALONE, 0, text, fit, side * side * BYTES[dtype]), work)


def _path(chip: Chip, name: str, op: str, how: Mapping[str, Any]) -> Iterator[Case]:
    dtype, work_of = _WORKS[op]
    for size in COPIES:
        numbers = {"blocks": size // 32, "fractals": size // 512, "nz_rows": size // _NZ_ROW, "out_rows": size // 4 // _OUT_COLS}
        case = Case(name, dtype, size, ALONE, 0, _text(how, dtype, **numbers), how.get("fit", ""), size)
        yield from _both(chip, case, work_of(size))


def _both(chip: Chip, case: Case, work: Work) -> Iterator[Case]:
    """Alone, and back to back, which the fitted table does not know."""
    yield replace(case, ours=cycles(chip, work, cold=True))
    yield replace(case, ours=cycles(chip, work), when=BEHIND, fit="")


def _text(how: Mapping[str, Any], dtype: str, **numbers: object) -> str:
    wide = {"half": "16", "float": "32"}.get(dtype, "8")
    text = how.get("text", "")
    return str(text.get(dtype, "") if isinstance(text, Mapping) else text).format(type=dtype, wide=wide, **numbers)


Asking = Callable[[Chip, str, str, Mapping[str, Any]], Iterator[Case]]
_ROOMS: dict[str, Asking] = {"vector": _vector, "cube": _cube, "path": _path}
_WORKS: dict[str, tuple[str, Callable[[int], Work]]] = {
    "gm_to_l1": ("half", lambda size: Work("gm_to_l1", 1, size // 2, dtype=F16)),
    "gm_to_l1_nd2nz": ("half", lambda size: Work("gm_to_l1", size // _NZ_ROW, _NZ_ROW // 2, dtype=F16, stride_bytes=8192)),
    "gm_to_ub": ("half", lambda size: Work("gm_to_ub", 1, size // 2, dtype=F16)),
    "ub_to_gm": ("half", lambda size: Work("ub_to_gm", 1, size // 2, dtype=F16)),
    "l1_to_l0a": ("half", lambda size: Work("l1_to_l0a", size // 32, 1, _ROW, dtype=F16)),
    "l1_to_l0b": ("half", lambda size: Work("l1_to_l0b", 1, size // 32, _ROW, dtype=F16)),
    "l0c_to_gm": ("float", lambda size: Work("fixpipe", size // 4 // _OUT_COLS, _OUT_COLS, dtype=F32, stride_bytes=8192)),
}
