"""Sums whose order changes from run to run: told by default, and not made by a deterministic kernel."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.locate.test_first_difference import LONG_SUM
from tests.test_atomic import SPLIT_K
from tile_eg.cli import app
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.search import search_options
from tile_eg.search.compiler import lower
from tile_eg.search.kernel_cache import name_of

STORED = LONG_SUM.replace("= relu(c)", "= c").replace("M=64, N=64, K=2048, BM=64, BN=64", "M=128, N=256, K=8192, BM=128, BN=256")
WHOLE = SPLIT_K.replace("f16", "i8").replace("f32", "i32")


@cache
def lowered(text, **options):
    return lower(load_text(text, "k.tile").instantiate(), search=search_options(**options))


@pytest.mark.slow
def test_a_long_sum_is_added_atomically_by_default_and_says_so():
    made = lowered(STORED)
    assert made.candidates[0].schedule.parts.op == "Added"
    assert "// Blocks add to C in any order" in made.source
    told = str(made.explanation)
    assert "note: blocks add to C in any order" in told and "--deterministic does without" in told


@pytest.mark.slow
def test_a_deterministic_one_has_no_atomic_sums():
    made = lowered(STORED, deterministic=True)
    assert not made.program.sums_in_any_order and "SetAtomicAdd" not in made.source
    assert "any order" not in str(made.explanation)


def test_it_is_a_constraint_of_the_search_and_not_a_name_that_is_left_out():
    options = search_options(deterministic=True)
    assert not options.without and "split-k-atomic" not in options.moves and "split-depth-added" in options.left_out
    assert "split-k" in options.moves


def test_caches_tell_it_apart(monkeypatch):
    monkeypatch.delenv("TILE_EG_NO_CACHE", raising=False)
    kernel = load_text(STORED).instantiate()
    names = [name_of(kernel, "910B2", search_options(deterministic=d)) for d in (False, True)]
    assert names[0] != names[1]


def test_a_float_sum_of_the_author_is_refused_at_its_line():
    with pytest.raises(TileError) as e:
        lowered(SPLIT_K, deterministic=True)
    assert SPLIT_K.splitlines()[e.value.span.line - 1].strip().startswith("atomic C") and "^" in str(e.value)


@pytest.mark.slow
def test_sums_of_whole_numbers_are_the_same_in_any_order():
    made = lowered(WHOLE, deterministic=True)
    assert "SetAtomicAdd" in made.source and not made.program.sums_in_any_order and "any order" not in made.source


def test_a_kernel_for_all_sizes_refuses_it_too():
    @tile_eg.jit(deterministic=True)
    def make():
        M = T.symbolic("M")

        @T.prim_func
        def sums(X: T.Tensor((M, 64), "float32"), S: T.Tensor((64,), "float32")):
            with T.Kernel(T.ceildiv(M, 16)) as bx:
                x = T.alloc_shared((16, 64), "float32")
                s = T.alloc_fragment((64,), "float32")
                T.copy(X[bx * 16, 0], x)
                T.reduce_sum(x, s, dim=0)
                T.atomic_add(S[0], s)

        return sums

    with pytest.raises(TileError, match="in any order"):
        make()(np.zeros((64, 64), np.float32), np.zeros(64, np.float32))


@pytest.mark.slow
def test_the_command_line_tells_the_line_and_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.tile"
    file.write_text(SPLIT_K)
    assert app.run(["run", str(file)]) == app.GOOD
    out = capsys.readouterr().out
    assert "note: blocks add to C in any order" in out and "atomic C[bx*BM, by*BN] += c" in out and "^^^" in out
    assert app.run(["run", str(file), "--deterministic"]) == app.USER_ERROR
    assert "a deterministic kernel must not" in capsys.readouterr().err


@pytest.mark.slow
def test_a_program_that_adds_floats_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.program"
    file.write_text(str(lowered(SPLIT_K).program))
    assert app.run(["emit", str(file), "--deterministic"]) == app.USER_ERROR
    assert "in any order" in capsys.readouterr().err


def test_it_is_yes_or_no():
    with pytest.raises(TileError, match="deterministic is True or False"):
        search_options(deterministic=1)
