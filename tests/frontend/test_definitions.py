"""Functions and constants of one's own, and imports, mean what they are where they are written out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.frontend.text.definitions import imported_texts

KERNEL = """kernel k[M=64](X: f32[M, 32], V: f32[32]) -> Y: f32[M, 32] {
  shared x: f32[M, 32], v: f32[32], y: f32[M, 32] = 0, m: f32[M]
  x = X[0, 0]  v = V[0]
  BODY
  Y[0, 0] = y
}
"""


def body_of(definitions: str, body: str, file: str = "x.tile"):
    return load_text(definitions + KERNEL.replace("BODY", body), file).instantiate().body


def error_of(definitions: str, body: str = "y = x", file: str = "x.tile") -> TileError:
    with pytest.raises(TileError) as caught:
        body_of(definitions, body, file)
    return caught.value


SAME = {
    "a function of a tile": ("function silu(x) = x * sigmoid(x)", "y = silu(x + 1)", "y = (x + 1) * sigmoid(x + 1)"),
    "another meaning of a word": ("function hypot(x, y) = sqrt(x*x + y*y)", "y = hypot(x, x)", "y = sqrt(x*x + x*x)"),
    "a function of functions": (
        "function twice(x) = x + x\nfunction both(a, b) = twice(a) * twice(b)", "y = both(x, y)", "y = (x + x) * (y + y)",
    ),
    "a parameter with an index": ("function shifted(x, v) = x - v[None, :]", "y = shifted(x, v)", "y = x - v[None, :]"),
    "a parameter that is transposed": ("function turned(a) = a @ a.T", "y = turned(x) @ x", "y = (x @ x.T) @ x"),
    "a constant": ("let EPS = 1e-5", "y = x + EPS", "y = x + 1e-5"),
    "a constant of constants": (
        "let N = 4\nlet TWICE = 2*N", "for i in serial(TWICE) { y = y + x }", "for i in serial(8) { y = y + x }",
    ),
    "a function of sizes": (
        "function half(n) = n // 2", "for i in serial(half(M)) { y = y + x }", "for i in serial(32) { y = y + x }",
    ),
    "a function in an element loop": (
        "function positive(x) = select(x > 0, x, 0)", "parallel (i, j) in (M, 32) { y[i, j] = positive(x[i, j]) }",
        "parallel (i, j) in (M, 32) { y[i, j] = select(x[i, j] > 0, x[i, j], 0) }",
    ),
    "a condition": (
        "function small(x) = x < 3", "y = select(small(x), x, 0)", "y = select(x < 3, x, 0)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SAME)
def test_what_is_defined_is_written_out(case: str) -> None:
    definitions, used, written = SAME[case]
    assert body_of(definitions + "\n", used) == body_of("", written)


def test_a_constant_may_be_a_size() -> None:
    assert load_text("let LONG = 2*64\n" + KERNEL.replace("M=64", "M=LONG").replace("BODY", "y = x")).sizes == {"M": 128}


FAULTS = {
    "an argument too few": ("function f(a, b) = a + b\n", "y = f(x)", "`f` takes 2 arguments, not 1", "f(x)"),
    "a name that is none": ("function f(a) = a + q\n", "y = f(x)", "unknown name `q`", "q"),
    "a name of the kernel's": ("function f(a) = a + M\n", "y = f(x)", "unknown name `M`", "M"),
    "itself": ("function f(a) = f(a) + 1\n", "y = f(x)", "unknown function `f`", "f(a)"),
    "a word": ("function exp(a) = a\n", "y = x", "`exp` is a word of the language", "exp"),
    "twice": ("let a = 1\nlet a = 2\n", "y = x", "`a` is defined twice", "a"),
    "a name that the kernel has too": ("let M = 1\n", "y = x", "`M` is defined twice", "M=64"),
    "a parameter twice": ("function f(a, a) = a\n", "y = x", "`a` is defined twice", "a"),
    "a function as a value": ("function f(a) = a\n", "y = f", "`f` is a function", "f"),
    "a constant that is called": ("let a = 1\n", "y = a(x)", "`a` is a number, not a function", "a(x)"),
    "no such file": ("import nowhere\n", "y = x", "cannot read nowhere.tile: No such file or directory", "import nowhere"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_a_wrong_definition_is_told_at_its_place(case: str) -> None:
    definitions, body, message, place = FAULTS[case]
    error = error_of(definitions, body)
    line = (definitions + KERNEL.replace("BODY", body)).splitlines()[error.span.line - 1]
    assert error.message == message
    assert line[error.span.column - 1 :].startswith(place)


def write(folder: Path, **texts: str) -> str:
    """The files, and the name of one beside them."""
    for name, text in texts.items():
        (folder / f"{name}.tile").write_text(text)
    return str(folder / "main.tile")


def test_a_file_gives_what_it_defines_and_imports(tmp_path: Path) -> None:
    file = write(tmp_path, common="import numbers\nfunction near(x) = x + EPS\n", numbers="let EPS = 0.5\n")
    assert body_of("import common\n", "y = near(x) * EPS", file) == body_of("", "y = (x + 0.5) * 0.5")


def test_a_kernel_of_an_imported_file_is_left_there(tmp_path: Path) -> None:
    file = write(tmp_path, common="let TWO = 2\n" + KERNEL.replace("BODY", "y = x"))
    assert body_of("import common\n", "y = x * TWO", file) == body_of("", "y = x * 2")


def test_files_in_folders_are_named_with_dots(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "common.tile").write_text("let TWO = 2")
    assert body_of("import lib.common\n", "y = x * TWO", str(tmp_path / "main.tile")) == body_of("", "y = x * 2")


def test_files_that_import_each_other_are_told(tmp_path: Path) -> None:
    file = write(tmp_path, a="import b", b="import a")
    assert "a.tile imports itself" in error_of("import a\n", file=file).message


def test_a_mistake_in_an_imported_file_is_shown_there(tmp_path: Path) -> None:
    file = write(tmp_path, common="let ONE = 1\nlet TWO = ONE + ONNE\n")
    shown = error_of("import common\n", file=file).render()
    assert "common.tile:2:17" in shown
    assert "let TWO = ONE + ONNE" in shown
    assert "note: it is imported here" in shown
    assert "    1 | import common" in shown


def test_what_an_imported_function_gets_wrong_is_told_where_it_is_used(tmp_path: Path) -> None:
    file = write(tmp_path, common="function f(x) = select(x, x, x)\n")
    assert error_of("import common\n", "y = f(x)", file).span.file == file


def test_what_is_imported_is_part_of_what_a_compiled_kernel_follows_from(tmp_path: Path) -> None:
    file = write(tmp_path, common="import numbers\n", numbers="let EPS = 0.5\n")
    found = imported_texts("import common\nkernel k() -> Y: f32[4] { }", file)
    assert sorted(found.values()) == ["import numbers\n", "let EPS = 0.5\n"]


def test_a_text_without_a_kernel_says_how_one_begins() -> None:
    with pytest.raises(TileError, match="a text begins with `kernel`"):
        load_text("let a = 1\n")
