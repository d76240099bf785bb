"""A kernel that was compiled before is not compiled again, and becomes the same text to the byte."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tile_eg
from tile_eg import disk_cache, kept_texts
from tile_eg.cli import sources
from tile_eg.cli.app import run
from tile_eg.search import compiler, kernel_cache, search_options

ADD = (Path(__file__).parents[1] / "examples" / "vector_add.tile").read_text(encoding="utf-8")
SMALL = ("--set", "M=40", "--set", "N=72")
KINDS = ((), ("--host",), ("--spec",), ("--program",))
Emit = Callable[..., str]
EXP = """kernel k(X: f32[16, 64]) -> Y: f32[16, 64] {
  grid bx = 1
  shared x: f32[16, 64]
  x = X[0, 0]
  x = exp(x)
  Y[0, 0] = x
}
"""
SHORT = """kernel k(X: f32[16, 64]) -> Y: f32[16, 64] {
  grid bx = 1
  shared x: f32[16, 64]
  for i in pipelined(1, stages=3) {
    x = X[i, 0]
    Y[i, 0] = x
  }
}
"""
LIE = '(rule ((= v (Un "exp" x))) ((union v (Un "relu" x))) :ruleset algebra :name "lie" :law equal)'


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The cache is on, in a folder of this test's own, where the simulator's libraries stay in the user's; the list gets the
    name of each kernel that is compiled."""
    monkeypatch.delenv("TILE_EG_NO_CACHE")
    monkeypatch.setattr(disk_cache, "cache_directory", lambda: tmp_path / "cache")
    done: list[str] = []

    def lower(kernel, *args, **options):  # noqa: ANN001, ANN202
        done.append(kernel.name)
        return compiler.lower(kernel, *args, **options)

    monkeypatch.setattr(sources, "lower", lower)
    return done


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "add.tile").write_text(ADD, encoding="utf-8")
    return tmp_path / "add.tile"


@pytest.fixture
def emit(file: Path, compilations: list[str], capsys: pytest.CaptureFixture[str]) -> Emit:
    def emitted(*options: str | Path, code: int = 0) -> str:
        assert run(["emit", str(file), *SMALL, *map(str, options)]) == code
        return capsys.readouterr().out

    return emitted


def entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache").glob("compiled-*"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=" ".join)
def test_the_text_from_the_cache_is_the_compiled_one(kind: tuple[str, ...], emit: Emit, compilations: list[str]) -> None:
    compiled = emit("--no-cache", *kind)
    emit()
    assert emit(*kind) == compiled and len(compilations) == 2


@pytest.mark.slow
def test_a_kernel_of_a_python_module_is_compiled_once(compilations: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    module = Path(__file__).parents[1] / "examples" / "vector_add.py"
    texts = [run(["emit", str(module), *SMALL]) or capsys.readouterr().out for _ in range(2)]
    assert texts[0] == texts[1] and len(compilations) == 1


OTHERS = {
    "size": ("--set", "M=48"), "chip": ("--chip", "910B4"), "effort": ("--effort", "none"), "exact math": ("--exact-math",),
    "rule left out": ("--without", "row-operand"), "fuel": ("--fuel", "5000"), "extractor": ("--extractor", "beam"),
    "cost model": ("--cost-model", "roofline"),
}  # fmt: skip


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_whatever_is_asked_otherwise_is_compiled(other: tuple[str, ...], emit: Emit, compilations: list[str]) -> None:
    emit()
    emit(*other)
    assert len(compilations) == 2
    emit(*other)
    assert len(compilations) == 2


@pytest.mark.slow
def test_another_text_is_compiled_though_it_means_the_same(emit: Emit, file: Path, compilations: list[str]) -> None:
    emit()
    file.write_text("# lines are told by their numbers\n" + ADD, encoding="utf-8")
    emit()
    assert len(compilations) == 2


@pytest.mark.slow
def test_the_texts_of_rules_are_part_of_an_entrys_name(compilations: list[str]) -> None:
    rules = [f'(rewrite (Un "exp" x) (Un "exp" (BinS "mul" x 1.0)) :ruleset algebra :name "{n}" :law equal)' for n in ("a", "b")]
    names = {kernel_cache.name_of("kernel", "910B2", search_options(rules=r)) for r in ([], rules[:1], rules[1:], rules)}
    assert len(names) == 4 and None not in names


@pytest.mark.slow
def test_another_version_misses(emit: Emit, compilations: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    emit()
    monkeypatch.setattr(kept_texts, "version", lambda: "another")
    emit()
    assert len(compilations) == 2


def test_a_version_is_told_by_every_file_of_ours_and_every_package(monkeypatch: pytest.MonkeyPatch) -> None:
    before = kept_texts.version()
    assert before == kept_texts.version() is not None
    for what in ("_own_files", "_package"):
        with monkeypatch.context() as patch:
            found = getattr(kept_texts, what)
            patch.setattr(kept_texts, what, lambda of, found=found: list(found(of))[1:])
            assert kept_texts.version() not in (None, before)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [OSError(), ImportError(), ValueError()])
def test_files_that_cannot_be_read_are_no_version(fault: Exception, emit: Emit, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: str) -> None:
        raise fault

    monkeypatch.setattr(kept_texts, "_package", failing)
    assert kept_texts.version() is None and "vector_add" in emit()


@pytest.mark.slow
def test_nothing_is_kept_by_a_process_whose_files_have_changed(
    emit: Emit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_texts, "_BEGAN", 0)
    emit()
    assert entries(tmp_path) == []


@pytest.mark.parametrize("asked", [{"cost_model": "table@prices"}, {"cost_model": "mine:Model"}, {"extractor": "mine:Search"}])
def test_what_others_code_decides_has_no_name(asked: dict[str, str]) -> None:
    assert kernel_cache.name_of("kernel", "910B2", search_options(**asked)) is None


def test_what_holds_a_function_has_no_name() -> None:
    assert kernel_cache.name_of(lambda: None, "910B2", search_options()) is None


@pytest.mark.slow
def test_a_damaged_entry_is_compiled_again(emit: Emit, compilations: list[str], tmp_path: Path) -> None:
    text = emit()
    (entry,) = entries(tmp_path)
    for garbage in (b"", b"{}", b'{"source": "wrong"}'):
        (entry / "data").write_bytes(garbage)
        assert emit() == text
    assert len(compilations) == 4


@pytest.mark.parametrize("garbage", [b"", b"[]", b"{}", b"\xff", b'{"told": 1}', b'{"told": []}', b"null"])
def test_what_is_no_entry_is_not_read(garbage: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_texts, "recall", lambda name: garbage)
    assert kernel_cache.find("compiled-0") is None


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["no_folder", "file"])
def test_a_cache_that_cannot_be_written_changes_nothing(
    folder: str, emit: Emit, compilations: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = emit("--no-cache")
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "cache" if folder == "file" else Path("/proc/none/cache")
    monkeypatch.setattr(disk_cache, "cache_directory", lambda: place)
    assert emit() == text == emit()


@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_cache_that_can_only_be_read_is_read(
    number: int, emit: Emit, compilations: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, faster = emit(), emit("--no-cache", "--effort", "none")

    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(disk_cache.tempfile, "TemporaryFile", refused)
    monkeypatch.setattr(disk_cache.os, "utime", refused)
    assert emit() == text and len(compilations) == 2
    assert emit("--effort", "none") == faster and len(entries(tmp_path)) == 1


@pytest.mark.slow
def test_the_switch_of_the_environment_keeps_nothing(emit: Emit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE_EG_NO_CACHE", "1")
    emit()
    assert entries(tmp_path) == []


@pytest.mark.slow
def test_the_command_lists_and_clears(emit: Emit, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    emit()
    assert run(["cache"]) == 0
    assert f"{tmp_path / 'cache'}: 1 compiled kernel, " in capsys.readouterr().out
    assert run(["cache", "--clear"]) == 0
    assert capsys.readouterr().out == "removed 1 compiled kernel\n" and entries(tmp_path) == []


@pytest.mark.slow
def test_a_run_of_what_was_kept_prints_the_same(
    file: Path, compilations: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    printed = [run(["run", str(file), *SMALL]) or capsys.readouterr().out for _ in range(2)]
    assert printed[0] == printed[1] and "good" in printed[0] and len(compilations) == 1


@pytest.mark.slow
def test_what_is_in_the_cache_needs_no_solver_no_rules_and_no_grammar(emit: Emit, file: Path, tmp_path: Path) -> None:
    text = emit()
    code = (
        "import sys; from tile_eg.cli.app import run; run(sys.argv[1:]);"
        "heavy = {'egglog', 'egglog.bindings', 'ortools', 'lark', 'numpy', 'tile_eg.rules.user'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    command = [sys.executable, "-c", code, "emit", str(file), *SMALL]
    env = {**os.environ, "TILE_EG_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert (done.stdout, done.stderr) == (text, "")


@pytest.mark.slow
def test_what_is_told_of_a_kernel_is_told_again(emit: Emit, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(SHORT, encoding="utf-8")
    told = [run(["emit", str(file)]) or capsys.readouterr().err for _ in range(2)]
    assert told[0] == told[1] and "1 of its 3 stages" in told[0]


@pytest.mark.slow
def test_a_bad_run_from_the_cache_blames_the_same_rule(
    file: Path, compilations: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(EXP, encoding="utf-8")
    (file.parent / "mine.egg").write_text(LIE, encoding="utf-8")
    told = []
    for _ in range(2):
        assert run(["run", str(file), "--rules", str(file.parent / "mine.egg")]) == 1
        told.append(capsys.readouterr())
    assert told[0] == told[1] and "these took part: 'lie'" in told[0].err


@pytest.fixture
def lowered_in_python(compilations: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that a call from Python compiles, by name."""
    done: list[str] = []
    lower = compiler.lower
    monkeypatch.setattr(compiler, "lower", lambda kernel, *a, **o: done.append(kernel.name) or lower(kernel, *a, **o))
    return done


@pytest.mark.slow
def test_a_call_in_another_process_does_not_compile(file: Path, lowered_in_python: list[str]) -> None:
    x = np.ones((40, 72), np.float32)
    for _ in range(2):
        tile_eg.cache.clear_cache()  # as another process begins
        add = tile_eg.load(file)
        assert (add(x, x) == 2).all() and "vector_add" in add.get_kernel_source(M=40, N=72)
    assert lowered_in_python == ["vector_add"]
    assert add.compile(M=40, N=72).schedule and len(lowered_in_python) == 2


@pytest.mark.slow
def test_a_switched_off_cache_takes_nothing_from_the_disk(file: Path, lowered_in_python: list[str], tmp_path: Path) -> None:
    tile_eg.disable_cache()
    try:
        for _ in range(2):
            tile_eg.load(file).get_kernel_source(M=40, N=72)
    finally:
        tile_eg.enable_cache()
    assert len(lowered_in_python) == 2 and entries(tmp_path) == []
