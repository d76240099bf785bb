"""The text of whole kernels, and of their host part: golden files, and facts that any kernel's text must keep."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tile_eg.emit.ascend_c import kernel_text
from tile_eg.emit.ascend_c.cpp import Cpp
from tile_eg.emit.ascend_c.index import EmitError
from tile_eg.emit.host import host_text, launch_blocks, workspace_bytes
from tile_eg.emit.sync import synchronise
from tile_eg.ir import index as ix
from tile_eg.ir.program import Program
from tile_eg.ir.program.parser import parse_program

HERE = Path(__file__).parent
NAMES = sorted(p.stem for p in (HERE / "programs").glob("*.program"))


def example(name: str) -> Program:
    return synchronise(parse_program((HERE / "programs" / f"{name}.program").read_text(), f"{name}.program"))


def golden(name: str, text: str, update: bool) -> None:
    path = HERE / "golden" / name
    if update:
        path.write_text(text)
    assert path.read_text() == text, f"{name} changed: look at the difference, then run pytest with --update-golden"


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_text_is_as_last_seen(name: str, update_golden: bool) -> None:
    golden(f"{name}.cpp", kernel_text(example(name)), update_golden)


def test_the_host_text_is_as_last_seen(update_golden: bool) -> None:
    golden("flash_attention_host.h", host_text(example("flash_attention")), update_golden)


@pytest.mark.parametrize("name", NAMES)
def test_every_call_is_a_plain_call_of_the_public_namespace(name: str) -> None:
    calls = set(re.findall(r"(?<![\w:.])([A-Z]\w+)(?:<[^;]*?>)?\(", kernel_text(example(name))))
    assert calls <= {"Min", "Max", "KERNEL_TASK_TYPE_DEFAULT"}


@pytest.mark.parametrize("name", NAMES)
def test_every_instruction_names_its_source_line(name: str) -> None:
    p = example(name)
    text = kernel_text(p)
    lines = {i.span.line for core in (p.cube, p.vector) for i in _instructions(core) if i.span}
    assert lines == {int(n) for n in re.findall(rf"// {name}\.program:(\d+)", text)}


def _instructions(nodes):  # type: ignore[no-untyped-def]
    from tile_eg.ir.program import Instr, walk

    return [n for n in walk(nodes) if isinstance(n, Instr)]


def test_a_kernel_of_one_kind_has_no_branch_on_the_core() -> None:
    assert "ASCEND_IS" not in kernel_text(example("gemm"))
    assert kernel_text(example("flash_attention")).count("ASCEND_IS") == 2


def test_a_mixed_kernel_counts_blocks_by_cube_cores() -> None:
    assert "GetBlockIdx()) / static_cast<int32_t>(AscendC::GetSubBlockNum())" in kernel_text(example("flash_attention"))


def test_halves_of_a_vector_kernel_are_neighbouring_cores() -> None:
    text = kernel_text(example("softmax_rows"))
    assert "block = static_cast<int32_t>(AscendC::GetBlockIdx()) / 2;" in text
    assert "sub = static_cast<int32_t>(AscendC::GetBlockIdx()) % 2;" in text
    assert launch_blocks(example("softmax_rows")) == 6


def test_the_workspace_is_for_every_block() -> None:
    assert workspace_bytes(example("flash_attention")) == 4 * 1_000_000


def test_a_size_that_only_run_time_knows_is_computed_once_and_guards_what_may_be_empty() -> None:
    text = kernel_text(example("softmax_rows"))
    assert text.count("75 - block * 32 - sub * 16") + text.count("- block * 32 - sub * 16 + 75") == 1
    assert "if (validRows > 0)" in text


def test_an_unevenly_spaced_ring_picks_its_slot() -> None:
    text = """program k on 910B2 as AIV_ONLY, blocks 1, workspace 0
buffer a: UB f32 8 x 8 nd, pitch 8, slots 3 at 0, 256, 1024
cube { }
vector { for i in 6 { vexp a[i % 3] <- a[i % 3] : 8 x 8 } }"""
    assert "a[(i % 3 == 0 ? 0 : i % 3 == 1 ? 64 : 256)]" in kernel_text(synchronise(parse_program(text, "k")))


def test_arithmetic_on_bfloat16_is_refused_at_its_line() -> None:
    text = """program k on 910B2 as AIV_ONLY, blocks 1, workspace 0
buffer a: UB bf16 8 x 16 nd, pitch 16, slots 1 at 0
cube { }
vector { vexp a <- a : 8 x 16 }"""
    with pytest.raises(EmitError, match=r"f16 and f32 only \(k:4\)"):
        kernel_text(synchronise(parse_program(text, "k")))


EXPRESSIONS = {
    "(i + 1) % 2": (ix.var("i") + 1) % 2,
    "FloorMod(i - 1, 2)": (ix.var("i") - 1) % 2,
    "i * 4 + j": ix.var("i") * 4 + ix.var("j"),
    "(i / 3) * 5": (ix.var("i") // 3) * 5,
    "Min(8, i)": ix.minimum(8, ix.var("i")),
    "0 < i && i < 9": ix.both(ix.less(0, ix.var("i")), ix.less(ix.var("i"), 9)),
    "9 - i": 9 - ix.var("i"),
    "(i * 2 + j) % 3 + 1": (ix.var("i") * 2 + ix.var("j")) % 3 + 1,
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_index_expression_reads_like_c(text: str) -> None:
    assert Cpp({"i": (0, 99), "j": (0, 99)})(EXPRESSIONS[text]) == text


def test_under_a_condition_what_is_not_negative_there_reads_like_c() -> None:
    cpp = Cpp({"i": (0, 99)})
    with cpp.where(ix.less(0, ix.var("i"))):
        assert cpp((ix.var("i") - 1) % 2) == "(i - 1) % 2"
    assert cpp((ix.var("i") - 1) % 2) == "FloorMod(i - 1, 2)"
