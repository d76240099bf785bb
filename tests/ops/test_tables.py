"""Operations and instructions are declared once: the tables agree with the rules and the chips, and nothing lists them again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import tile_eg
from tile_eg.chips import known_chips, load_chip
from tile_eg.ops.elementwise import BINARY, COMPARE, REDUCE, UNARY
from tile_eg.ops.physical import TERMS, VECTOR, Structure
from tile_eg.rules import signatures

HOUSE = Path(tile_eg.__file__).parent
OUTSIDE = [m for m in sorted(HOUSE.rglob("*.py")) if m.parent.name != "ops"]
NATIVE = [op.name for op in UNARY.values() if op.native]
PLACES = {"P", "PT", "Cfg", "PStt", "PSt", "PL", "Outs"}
DEMANDS = {
    "at", "gm", "into", "nxt", "l0", "cell", "pst", "stays", "lasting", "buffers", "handed", "skew", "grid", "lines",
    "begun", "beside",
}  # fmt: skip
GRIDS = {"Blocks", "Persistent", "Parts", "Added", "Strips"}
INDEX = {"add", "mul", "div", "max", "min", "lt"}
"""Words of index expressions too, which compute with other rules."""
INSTRUCTIONS = {name for name, term in TERMS.items() if not isinstance(term, Structure)}


@cache
def literals(module: Path) -> list[tuple[int, set[str]]]:
    """(line, strings) of each list of names that a module writes out, read once for all tables."""
    return list(written_lists(module))


def written_lists(module: Path) -> Iterator[tuple[int, set[str]]]:
    """Those lists; a dictionary of what follows from names is none."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        facts = isinstance(node, ast.Dict) and not all(isinstance(v, ast.Constant) for v in node.values)
        items = () if facts else node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
        found = {i.value for i in items if isinstance(i, ast.Constant) and isinstance(i.value, str)}
        if found:
            yield node.lineno, found


def test_every_physical_constructor_of_the_rules_is_a_term() -> None:
    made = {name for name, (_, sort) in signatures().items() if sort in PLACES}
    assert made - DEMANDS - GRIDS == TERMS.keys()


@pytest.mark.parametrize("name", sorted(VECTOR))
def test_an_instruction_has_one_name_in_programs_for_any_operation(name: str) -> None:
    sorts = [s for s in signatures()[name][0] if s not in {*PLACES, "Cell"}]
    payload = tuple("add" if s == "String" else 1 for s in sorts)
    assert re.fullmatch(r"v[a-z_]+", VECTOR[name].instruction(payload))


@pytest.mark.parametrize("chip", ["910B2", *known_chips("dav-3510")])
@pytest.mark.parametrize("name", NATIVE)
def test_a_native_operation_has_a_price_on_every_architecture(name: str, chip: str) -> None:
    ops = load_chip(chip).vector.ops
    assert (name, 2) in ops and (name, 4) in ops, f"chips/{load_chip(chip).architecture}: add [vector.ops.{name}]"


def again(declared: set[str]) -> list[str]:
    """Where more than two of these names stand in one list outside of the tables."""
    found = ((m, line, names & declared) for m in OUTSIDE for line, names in literals(m))
    return [f"{m.relative_to(HOUSE)}:{line}: {sorted(names)}" for m, line, names in found if len(names) > 2]


@pytest.mark.slow
def test_no_second_list_of_instructions() -> None:
    assert again(INSTRUCTIONS) == []


@pytest.mark.slow
@pytest.mark.parametrize("table", [UNARY, BINARY, COMPARE, REDUCE], ids=["unary", "binary", "comparison", "reduction"])
def test_no_second_list_of_operations(table: dict[str, object]) -> None:
    assert again(set(table) - INDEX) == []


def test_a_second_list_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = tmp_path / "again.py"
    module.write_text('NATIVE = ("exp", "ln", "sqrt")\nMEANING = {"exp": f, "ln": g, "sqrt": h}\n')
    monkeypatch.setitem(globals(), "OUTSIDE", [module])
    monkeypatch.setitem(globals(), "HOUSE", tmp_path)
    assert again(set(UNARY)) == ["again.py:1: ['exp', 'ln', 'sqrt']"]


# ---- one number, one place -----------------------------------------------------------------------------------------------------


def numbers_of(module: Path) -> dict[str, object]:
    """The numbers that a module gives names to."""
    found: dict[str, object] = {}
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]  # type: ignore[attr-defined]
            pairs = zip(names, values, strict=False)
            found |= {n.id: v.value for n, v in pairs if isinstance(n, ast.Name) and isinstance(v, ast.Constant)}
    return {n: v for n, v in found.items() if isinstance(v, int) and not isinstance(v, bool)}


def test_a_number_of_the_machine_is_written_once() -> None:
    known = numbers_of(HOUSE / "ir" / "machine.py")
    assert "BLOCK_BYTES" in known
    set_again = re.compile(rf"^[\w, ]*\b({'|'.join(known)})\b[^\n]*=", re.MULTILINE)
    others = [m for m in OUTSIDE if m != HOUSE / "ir" / "machine.py" and set_again.search(m.read_text(encoding="utf-8"))]
    assert [f"{m.relative_to(HOUSE)}: {n}" for m in others for n in numbers_of(m) if n in known] == []
