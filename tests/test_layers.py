"""The house has floors: a module imports only from rooms below its own, so every room can be read and tested alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tile_eg

HOUSE = Path(tile_eg.__file__).parent
GROUND = {"ops", "ir", "errors", "chips"}
ROOMS: dict[str, set[str]] = {
    "ops": set(),
    "errors": set(),
    "version": set(),
    "state": {"version", "ops"},
    "spread": {"errors", "ops", "state"},
    "ir": {"errors", "ops"},
    "chips": {"errors", "ops"},
    "inputs": GROUND - {"chips"},
    "language": GROUND - {"chips"},
    "frontend": GROUND - {"chips"} | {"language", "disk_cache"},
    "rules": GROUND - {"chips"},
    "transforms": GROUND - {"chips"},
    "egraph": GROUND | {"rules", "transforms"},
    "timeline": GROUND,
    "disk_cache": GROUND - {"chips"},
    "kept_texts": {"disk_cache", "ops"},
    "simulator": GROUND | {"disk_cache"},
    "cost_models": GROUND | {"timeline"},
    "extract": GROUND | {"cost_models", "timeline", "egraph"},
    "emit": GROUND | {"transforms", "inputs", "cost_models", "timeline", "extract", "egraph"},
    "sizing": GROUND | {"timeline", "transforms"},
    "report": GROUND | {"transforms", "sizing", "cost_models", "timeline", "extract", "egraph", "rules", "simulator"},
    "laboratory": GROUND | {
        "frontend", "rules", "search", "cost_models", "timeline", "extract", "egraph", "emit", "report", "inputs", "npu",
        "spread", "version",
    },
    "search": GROUND | {
        "frontend", "rules", "transforms", "egraph", "timeline", "cost_models", "extract", "emit", "sizing", "report",
        "simulator", "inputs", "state", "disk_cache", "kept_texts",
    },
    "explore": GROUND | {
        "frontend", "rules", "search", "egraph", "timeline", "cost_models", "extract", "report",
    },
    "npu": GROUND | {"disk_cache", "simulator", "emit", "timeline", "inputs"},
    "tuning": GROUND | {
        "search", "sizing", "timeline", "frontend", "report", "simulator", "npu", "inputs", "spread", "state", "disk_cache",
    },
    "jit": GROUND | {
        "disk_cache", "language", "frontend", "search", "cost_models", "extract", "report", "simulator", "locate", "npu",
        "kept_texts",
    },
    "torch": {"chips", "errors", "ir", "ops", "frontend", "jit"},
    "locate": GROUND | {"extract", "report", "simulator"},
    "math": set(),
    "utils": {"chips", "errors", "jit", "ops"},
    "intrinsics": {"language"},
    "layout": {"language"},
    "testing": {"errors", "utils"},
    "absent": {"errors"},
    "tools": {"absent"},
    "contrib": {"absent"},
    "profiler": {"jit"},
    "autotuner": {"errors", "ir", "jit", "npu", "ops", "search", "tuning"},
    "cache": {"disk_cache", "jit"},
    "transform": {"jit"},
    "engine": {"jit", "absent"},
    "carver": GROUND | {"frontend", "sizing", "jit", "absent", "utils"},
}  # fmt: skip
"""For each room, what else it may import. `cli` and the package's own front door see everything."""
OPEN = {"cli", "__init__", "__main__"}


def room(module: Path) -> str:
    return module.relative_to(HOUSE).with_suffix("").parts[0]


def modules() -> list[Path]:
    return sorted(HOUSE.rglob("*.py"))


def imported_rooms(module: Path) -> Iterator[tuple[int, str]]:
    """(line, room) of every import of the project in a module, those inside functions included."""
    inside = "tile_eg." + ".".join(module.relative_to(HOUSE).parent.parts)
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            up = inside.split(".")[: len(inside.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*filter(None, up), *([node.module] if node.module else [])])
            names = [f"{base}.{a.name}" for a in node.names]
        for name in names:
            if name.startswith("tile_eg."):
                yield node.lineno, name.split(".")[1]


@pytest.mark.slow(but=82)
@pytest.mark.parametrize("module", modules(), ids=lambda m: str(m.relative_to(HOUSE)))
def test_a_module_imports_only_from_rooms_below_its_own(module: Path) -> None:
    own = room(module)
    if own in OPEN:
        return
    wrong = [f"line {line}: {other}" for line, other in imported_rooms(module) if other != own and other not in ROOMS[own]]
    assert not wrong, f"{own} may import {sorted(ROOMS[own])}, but {module.name} imports {wrong}"


def test_the_page_of_the_design_has_a_row_for_each_room() -> None:
    page = (HOUSE.parent / "docs" / "design.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page, re.M)
    named = {name.removesuffix(".py").rstrip("/") for row in rows for name in re.findall(r"`(.*?)`", row)}
    assert named == {room(m) for m in modules()} - {"__init__"}


def test_every_room_has_its_floor() -> None:
    assert {room(m) for m in modules()} - OPEN <= set(ROOMS)


def test_the_floors_have_no_stair_back_up() -> None:
    def above(start: str, seen: frozenset[str] = frozenset()) -> Iterator[str]:
        for below in ROOMS[start] - {start}:
            yield below
            if below not in seen:
                yield from above(below, seen | {below})

    assert [r for r in ROOMS if r in set(above(r))] == []


def test_imports_inside_functions_and_relative_ones_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "HOUSE", tmp_path)
    (tmp_path / "emit").mkdir()
    module = tmp_path / "emit" / "x.py"
    module.write_text("def f():\n    from tile_eg.cli import main\nfrom ..rules import a\nfrom . import memory\n")
    assert sorted(r for _, r in imported_rooms(module)) == ["cli", "emit", "rules"]
