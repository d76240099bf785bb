"""The walls of the house, from the code alone: no circle of imports, at most ten floors, no file that is too long to be read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

import tile_eg

HOUSE = Path(tile_eg.__file__).parent
FLOORS = 10
REASONS = {"NotSearched", "ReadFirst", "InOrder"}
MISTAKES = {"TileError", "PlanError", "SyncError", "FlagsRunOut", "CannotMeet"}
LINES = 400
NAME = re.compile(r"(tile_eg(?:\.\w+)+)(?::\w+)?")

Graph = Mapping[str, set[str]]


def modules(folder: Path = HOUSE) -> dict[str, Path]:
    """Every module by its name, packages by theirs."""
    files = sorted(folder.rglob("*.py"))
    return {".".join(f.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__"): f for f in files}


def imports(name: str, file: Path, known: Iterable[str]) -> set[str]:
    """The modules that one imports: at its top, in its functions, for its types, and by a name in a string.

    That a module's packages are run before it is not counted; what is imported from a package by name is.
    """
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    asked = {n for node in looked_at(file) for n in named(node, package)}
    return {found for n in asked if (found := module_of(n, known)) and found != name}


@cache
def looked_at(file: Path) -> tuple[ast.AST, ...]:
    """Imports, strings that may name a module, and handlers of exceptions, of a file that is read once for all tests."""
    kinds = (ast.Import, ast.ImportFrom, ast.ExceptHandler)
    return tuple(n for n in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(n, kinds) or names_a_module(n))


def names_a_module(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and NAME.fullmatch(str(node.value)) is not None


def handlers(module: Path) -> Iterator[ast.ExceptHandler]:
    return (n for n in looked_at(module) if isinstance(n, ast.ExceptHandler))


def named(node: ast.AST, package: str) -> Iterator[str]:
    match node:
        case ast.Import():
            yield from (a.name for a in node.names)
        case ast.ImportFrom():
            up = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*up, *([node.module] if node.module else [])])
            yield from (f"{base}.{a.name}" for a in node.names)
        case ast.Constant(value=str(text)) if found := NAME.fullmatch(text):
            yield found[1]


def module_of(name: str, known: Iterable[str]) -> str:
    """The module that a name is in, or is; empty for names of others."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name


@cache
def graph() -> Graph:
    known = modules()
    return {name: imports(name, file, known) for name, file in known.items()}


def circle(graph: Graph) -> str:
    """One circle of the graph, as a chain; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " <- ".join(error.args[1])
    return ""


def room(module: str) -> str:
    """The folder or file that a module is in. The package's front, and what `python -m tile_eg` runs, are rooms too."""
    return (*module.split("."), "__init__")[1]


def between_rooms(graph: Graph) -> Graph:
    return {r: {room(i) for m in graph if room(m) == r for i in graph[m]} - {r} for r in map(room, graph)}


def longest_chain(graph: Graph) -> list[str]:
    """The rooms of the longest chain of imports, from the top down."""
    chains: dict[str, list[str]] = {}
    for node in TopologicalSorter(graph).static_order():
        chains[node] = [node, *max((chains[below] for below in graph[node]), key=len, default=[])]
    return max(chains.values(), key=len)


@pytest.mark.slow
def test_no_module_imports_itself_through_others() -> None:
    assert circle(graph()) == ""


@pytest.mark.slow
def test_no_room_imports_itself_through_others() -> None:
    assert circle(between_rooms(graph())) == ""


@pytest.mark.slow
def test_the_house_has_ten_floors_at_most() -> None:
    chain = longest_chain(between_rooms(graph()))
    assert len(chain) <= FLOORS, " -> ".join(chain)


def test_no_file_is_too_long() -> None:
    files = (f for f in sorted(HOUSE.rglob("*")) if f.suffix in (".py", ".egg", ".lark", ".h", ".cpp"))
    long = {str(f.relative_to(HOUSE)): n for f in files if (n := len(f.read_text(encoding="utf-8").splitlines())) > LINES}
    assert long == {}


@pytest.mark.slow
def test_how_a_kernel_is_done_is_never_decided_by_catching_that_the_search_has_no_form_for_it() -> None:
    caught = (
        f"{name}:{node.lineno}"
        for name, file in modules().items()
        for node in handlers(file)
        if node.type and REASONS & {*ast.unparse(node.type).strip("()").split(", ")}
    )
    assert list(caught) == []


def goes_on(handler: ast.ExceptHandler) -> bool:
    """Whether a mistake that is caught is neither raised again nor kept to be told."""
    inside = [n for part in handler.body for n in ast.walk(part)]
    called = {n.func.attr for n in inside if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}
    return not any(isinstance(n, ast.Raise) for n in inside) and not called & {"tell", "append"}


@pytest.mark.slow
def test_a_frontend_that_catches_a_mistake_tells_it() -> None:
    """What else may be done where one way is none is decided between results: `errors.attempted`."""
    found = ((m, h) for m in sorted((HOUSE / "frontend").rglob("*.py")) for h in handlers(m))
    caught = [(m, h) for m, h in found if h.type and "TileError" in ast.unparse(h.type)]
    assert caught and [f"{m.relative_to(HOUSE)}:{h.lineno}" for m, h in caught if goes_on(h)] == []


@pytest.mark.slow
def test_the_search_decides_between_results_and_goes_on_from_no_exception() -> None:
    """`errors.attempted` and `errors.plannable` give what went wrong as one of two results."""
    found = ((m, h) for part in ("search", "emit") for m in sorted((HOUSE / part).rglob("*.py")) for h in handlers(m))
    caught = [(m, h) for m, h in found if h.type and MISTAKES & {*re.findall(r"\w+", ast.unparse(h.type))}]
    assert caught and [f"{m.relative_to(HOUSE)}:{h.lineno}" for m, h in caught if goes_on(h)] == []


@pytest.mark.parametrize("page", ["design", "extending", "timing", "cost_models"])
def test_the_files_that_a_page_names_are_there(page: str) -> None:
    text = (HOUSE.parent / "docs" / f"{page}.md").read_text(encoding="utf-8")
    parts = [HOUSE.parent / part for part in ("tile_eg", "tests", "docs", "benchmarks")]
    there = [f"/{f.relative_to(HOUSE.parent)}" for part in parts for f in part.rglob("*.*")]
    named = re.findall(r"`([\w/]+\.(?:py|egg|lark|toml))`", text)
    assert [name for name in named if not any(f.endswith(f"/{name}") for f in there)] == []


# ---- that they see what they look for ----------------------------------------------------------------------------------------


WAYS = {
    "at the top": "import tile_eg.b",
    "from a package": "from tile_eg import b",
    "a name of it": "from tile_eg.b import x",
    "relative": "from . import b",
    "a name of it, relative": "from .b import x",
    "in a function": "def f():\n    from tile_eg.b import x",
    "for its types": "if TYPE_CHECKING:\n    from tile_eg.b import x",
    "by a string": 'FOUND = "tile_eg.b:Class"',
}


@pytest.mark.parametrize("text", WAYS.values(), ids=WAYS)
def test_an_import_is_seen(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(text)
    assert imports("tile_eg.a", file, {"tile_eg", "tile_eg.a", "tile_eg.b"}) == {"tile_eg.b"}


def test_a_circle_is_told_as_a_chain() -> None:
    told = circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})
    assert sorted(pairwise(told.split(" <- "))) == [("a", "c"), ("b", "a"), ("c", "b")]


def test_floors_are_the_longest_way_down() -> None:
    assert longest_chain({"roof": {"hall", "cellar"}, "hall": {"cellar"}, "cellar": set(), "shed": {"cellar"}}) == [
        "roof",
        "hall",
        "cellar",
    ]
