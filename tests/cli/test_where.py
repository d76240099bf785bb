"""`run --where`, `run --against`, `diff --where`: the first value that differs, and exit codes that say whether one does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tile_eg.cli import app

pytestmark = pytest.mark.slow(but=3)

KERNEL = """kernel k(X: f32[32, 64]) -> Y: f32[32, 64] {
  grid bx = 2
  shared x: f32[16, 64]
  x = X[bx*16, 0]
  x = exp(x)
  Y[bx*16, 0] = x + 1
}
"""
LIE = """(rule ((= p (at v (UB s) r)) (= v (Un "exp" x))) ((union p (VUn "flat" "relu" (at x (UB s) r))))
      :ruleset vec :name "lie" :law implements)"""
FUNCTIONS = """import numpy as np

def right(x):
    return np.exp(x.astype(np.float64)) + 1

def other(x):
    y = right(x)
    y[20, 7] += 1
    return {"Y": y}

def of_two(x):
    return x, x

def of_another_shape(x):
    return x[:4]

def fails(x):
    return x @ x
"""
KEPT = '''import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def kept():
    @T.prim_func
    def main(X: T.Tensor((32, 64), "float32"), Y: T.Tensor((32, 64), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            x = T.alloc_ub((8, 64), "float32")
            with T.Scope("V"):
                T.copy(X[cid * 16 + vid * 8, 0], x)
                T.barrier_all()
                T.tile.exp(x, x)
                T.barrier_all()
                T.copy(x, Y[cid * 16 + vid * 8, 0])

    return main
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "k.tile").write_text(KERNEL)
    (tmp_path / "lie.egg").write_text(LIE)
    (tmp_path / "f.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = app.run([*arguments, *(("--without", "blocks-together") if "k.tile" in arguments else ())])  # two tiles are two blocks
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_a_good_run_says_that_no_value_differs(capsys):
    code, out, _ = ran(capsys, "run", "k.tile", "--where")
    assert code == app.GOOD and "no value differs from the kernel's meaning, on wide inputs" in out


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_the_value_that_a_wrong_rule_computes_is_named_with_its_line_and_the_rule(capsys):
    code, out, _ = ran(capsys, "run", "k.tile", "--where", "--rules", "lie.egg")
    assert code == app.USER_ERROR
    assert "  --> k.tile:5:7\n    5 |   x = exp(x)\n      |       ^^^^^^" in out
    assert "tile 0 of the grid (bx = 0)" in out and "rules lie, v-unary" in out


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_json_has_the_place_and_both_numbers(capsys):
    _, out, _ = ran(capsys, "run", "k.tile", "--where", "--rules", "lie.egg", "--json")
    (found,) = json.loads(out)["where"]
    assert (found["first"]["line"], found["first"]["instruction"], found["first"]["tile"]) == (5, "vrelu", 0)
    assert abs(found["first"]["got"] - found["first"]["want"]) > found["first"]["allowed"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("where", ["f.py:right", "f:right"])
def test_a_function_that_says_the_same_finds_nothing(capsys, where):
    code, out, _ = ran(capsys, "run", "k.tile", "--against", where)
    assert code == app.GOOD and "no value differs from what right computes" in out


@pytest.mark.usefixtures("folder")
def test_a_function_that_says_something_else_gets_the_element_its_tile_and_the_line_of_the_store(capsys):
    code, out, _ = ran(capsys, "run", "k.tile", "--against", "f.py:other")
    assert code == app.USER_ERROR and "error: Y[20, 7] is" in out and "tile 1 of the grid (bx = 1)" in out
    assert "k.tile:6:" in out and "it is the source that differs from other" in out


@pytest.mark.usefixtures("folder")
def test_what_is_wrong_inside_comes_before_what_a_function_says(capsys):
    _, out, _ = ran(capsys, "run", "k.tile", "--against", "f.py:right", "--rules", "lie.egg")
    assert "the first value inside the kernel that differs" in out


@pytest.mark.few(3)
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("f.py:rigth", "did you mean `right`?"),
        ("f.py", "has not one function but right, other"),
        ("nowhere:f", "cannot be loaded: ModuleNotFoundError"),
        ("f.py:of_two", "returned 2 arrays, and the kernel has 1 (Y)"),
        ("f.py:of_another_shape", "of shape (4, 64), and the kernel's has (32, 64)"),
        ("f.py:fails", "fails failed on the kernel's 1 inputs: ValueError"),
    ],
)
def test_mistakes_in_the_function_are_told(capsys, where, told):
    code, _, err = ran(capsys, "run", "k.tile", "--against", where)
    assert code == app.USER_ERROR and told in err and "Traceback" not in err


@pytest.mark.usefixtures("folder")
def test_of_a_sample_its_own_blocks_are_looked_into(capsys):
    code, out, _ = ran(capsys, "run", "k.tile", "--against", "f.py:other", "--sample", "1")
    assert code == app.GOOD and "no value differs" in out  # block 0 runs alone, and what is off is of block 1


@pytest.mark.usefixtures("folder")
def test_another_order_is_refused(capsys):
    code, _, err = ran(capsys, "run", "k.tile", "--where", "--order", "1")
    assert code == app.USER_ERROR and "--order" in err


def test_a_program_needs_a_function(folder, capsys):
    ran(capsys, "emit", "k.tile", "--program", "-o", "k.program")
    code, _, err = ran(capsys, "run", "k.program", "--where")
    assert code == app.USER_ERROR and "--against" in err
    assert ran(capsys, "run", "k.program", "--against", "f.py:right")[0] == app.GOOD
    code, out, _ = ran(capsys, "run", "k.program", "--against", "f.py:other")
    assert code == app.USER_ERROR and "Y[20, 7]" in out and "tile 1 of the grid" in out


def test_a_kept_kernel_is_held_against_the_order_of_its_statements(folder, capsys):
    (folder / "kept.py").write_text(KEPT)
    code, out, _ = ran(capsys, "run", "kept.py", "--where")
    assert code == app.GOOD and "in the order of its statements" in out
    code, out, _ = ran(capsys, "run", "kept.py", "--against", "f.py:right")
    assert code == app.USER_ERROR and "kept.py:16:" in out and "Y[0, 0]" in out


@pytest.mark.usefixtures("folder")
def test_two_schedules_that_agree_are_said_to(capsys):
    code, out, _ = ran(capsys, "diff", "k.tile", "1", "2", "--where")
    assert code == app.GOOD and "schedule 1 and schedule 2 compute the same" in out


@pytest.mark.usefixtures("folder")
def test_of_two_schedules_the_wrong_one_is_named(capsys, monkeypatch):
    from tile_eg.cli import two_runs
    from tile_eg.ir.program import Instr, Loop, When

    def wrong(nodes):
        from dataclasses import replace

        nested = [replace(n, body=wrong(n.body)) if isinstance(n, Loop | When) else n for n in nodes]
        return tuple(replace(n, scalar=2.0) if isinstance(n, Instr) and n.op == "vadds" else n for n in nested)

    def second_is_wrong(a, b, kernel, whole=two_runs.two_schedules):
        from dataclasses import replace

        planned = b.candidate.planned
        broken = replace(planned, program=replace(planned.program, vector=wrong(planned.program.vector)))
        return whole(a, replace(b, candidate=replace(b.candidate, planned=broken)), kernel)

    monkeypatch.setattr(two_runs, "two_schedules", second_is_wrong)
    code, out, _ = ran(capsys, "diff", "k.tile", "1", "2", "--where")
    assert code == app.USER_ERROR and "compute different outputs" in out
    assert "schedule 1: no value differs" in out and "schedule 2: the first value inside" in out and "k.tile:6:" in out
