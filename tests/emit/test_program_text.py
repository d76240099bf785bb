"""A program reads back as it was printed, and a mistake in one is shown where it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tile_eg
from tile_eg.errors import TileError
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import (
    PIPES,
    VECTOR,
    Buffer,
    CrossSet,
    CrossWait,
    Gm,
    Instr,
    Loop,
    PipeBarrier,
    Program,
    SetFlag,
    Tile,
    WaitFlag,
    When,
)
from tile_eg.ir.program.parser import parse_program
from tile_eg.ir.program.text import FORMS
from tile_eg.ops.types import BF16, F16, F32, Level

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.program"))
PIPE = st.sampled_from(["MTE1", "MTE2", "MTE3", "M", "V", "FIX"])
NAMES = st.sampled_from(["a", "b_ub", "c.l0", "x", "A", "out"])
leaves = st.one_of(st.integers(-40, 40).map(ix.const), st.sampled_from(["i", "k_2", "block", "sub"]).map(ix.var))


def _combined(e: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    two = st.tuples(e, e)
    return st.one_of(
        two.map(lambda p: p[0] + p[1]),
        two.map(lambda p: p[0] - p[1]),
        two.map(lambda p: p[0] * p[1]),
        st.tuples(e, st.integers(1, 9)).map(lambda p: p[0] // p[1]),
        st.tuples(e, st.integers(1, 9)).map(lambda p: p[0] % p[1]),
        two.map(lambda p: ix.minimum(*p)),
        two.map(lambda p: ix.maximum(*p)),
        two.map(lambda p: ix.less(*p)),
        two.map(lambda p: ix.both(*p)),
    )


exprs = st.recursive(leaves, _combined, max_leaves=6)
tiles = st.builds(Tile, NAMES, exprs, exprs, exprs)
operands = st.one_of(tiles, st.builds(Gm, NAMES, exprs, st.integers(0, 10**6)))
instructions = st.builds(
    Instr,
    st.sampled_from([*PIPES, *VECTOR]),
    operands,
    st.lists(operands, max_size=3).map(tuple),
    exprs,
    exprs,
    exprs,
    scalar=st.floats(allow_nan=False, allow_subnormal=False),
    init=exprs,
    transpose=st.booleans(),
    relu=st.booleans(),
    swap=st.booleans(),
    atomic=st.sampled_from(["", "add", "max", "min"]),
    form=st.sampled_from(FORMS),
    mode=st.sampled_from(["", "CAST_FLOOR", "ORDER_VALUE_INDEX"]),
    bound=exprs,
    unit=exprs,
    other=st.floats(allow_nan=False, allow_subnormal=False),
    pad=st.none() | st.floats(allow_nan=False, allow_subnormal=False),
    scratch=st.none() | tiles,
    when=exprs,
    rules=st.lists(st.sampled_from(["c-mmad", "v_add", "tile.64", "2-stage"]), max_size=3).map(tuple),
)
flags = st.one_of(
    st.builds(SetFlag, PIPE, PIPE, exprs),
    st.builds(WaitFlag, PIPE, PIPE, exprs),
    st.builds(PipeBarrier, PIPE),
    st.builds(CrossSet, PIPE, st.integers(0, 10)),
    st.builds(CrossWait, st.integers(0, 10)),
)
nodes = st.recursive(
    st.one_of(instructions, flags),
    lambda n: st.one_of(
        st.builds(Loop, st.sampled_from(["i", "k_2"]), st.integers(1, 9), st.lists(n, max_size=3).map(tuple)),
        st.builds(When, exprs, st.lists(n, max_size=3).map(tuple)),
    ),
    max_leaves=5,
)
streams = st.lists(nodes, max_size=3).map(tuple)
sizes = st.integers(1, 4096)
buffers = st.builds(
    Buffer, NAMES, st.sampled_from(list(Level)), st.sampled_from([F16, BF16, F32]), sizes, sizes, sizes,
    st.sampled_from(["nd", "nz", "zz", "zn"]), st.integers(1, 4), st.lists(sizes, max_size=3).map(tuple), st.booleans(),
)  # fmt: skip
tensors = st.builds(Tensor, NAMES, st.sampled_from([F16, F32]), st.lists(sizes, max_size=3).map(tuple), st.booleans())
EVERY = tuple(Buffer(n, Level.UB, F32, 8, 8, 8) for n in ("a", "b_ub", "c.l0", "x", "A", "out"))
programs = st.builds(
    Program, st.just("k"), st.sampled_from(["910B2", "910C"]), st.sampled_from(["AIC_ONLY", "MIX_AIC_1_2"]),
    st.lists(tensors, max_size=2).map(tuple), sizes, st.booleans(), sizes,
    st.lists(buffers, max_size=2).map(lambda some: (*EVERY, *some)), streams, streams,
)  # fmt: skip


@pytest.mark.slow
@given(programs)
def test_printing_and_parsing_gives_the_program_back(p: Program) -> None:
    assert parse_program(str(p), "p.program", check=False) == p


@pytest.mark.slow
@given(exprs)
def test_an_expression_reads_back_in_its_normal_form(e: Expr) -> None:
    p = Program("k", "910B2", "AIV_ONLY", (), 1, False, 0, (), (), (When(e, ()),))
    assert parse_program(str(p), "p", check=False).vector == (When(e, ()),)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_a_written_program_survives_the_round_trip(path: Path) -> None:
    p = parse_program(path.read_text(), path.name)
    assert parse_program(str(p), "again") == p


def test_an_instruction_remembers_its_line() -> None:
    p = parse_program(PROGRAMS[0].read_text(), "x.program")
    first = next(n for n in (*p.cube, *p.vector) if isinstance(n, Instr))
    assert first.span is not None
    assert PROGRAMS[0].read_text().splitlines()[first.span.line - 1].strip().startswith(first.op)


def test_people_need_not_write_all_the_brackets() -> None:
    text = "program k on 910B2 as AIV_ONLY, blocks 1, workspace 0\ncube { }\nvector { for i in 4 { if 0 < i && i < 3 { } } }"
    condition = ix.both(ix.less(0, ix.var("i")), ix.less(ix.var("i"), 3))
    assert parse_program(text, "p").vector == (Loop("i", 4, (When(condition, ()),)),)


HEAD = "program k on 910B2 as AIV_ONLY, blocks 1, workspace 0\nbuffer a: UB f32 8 x 8 nd, pitch 8, slots 1 at 0\ncube { }\n"
WRONG = {
    "an unknown instruction": ("vector { vfoo a <- a : 8 x 8 }", "no instruction is called 'vfoo'", "vfoo"),
    "an unknown buffer": ("vector { vexp a <- b : 8 x 8 }", "no tensor or buffer is called 'b'", "b"),
    "a missing bracket": ("vector { for i in 3 { vexp a <- a : 8 x 8 }", "expected", ""),
    "a stray sign": ("vector { vexp a <- a : 8 x ? }", "unexpected character '?'", "?"),
    "a pipe that is no name": ("vector { barrier 3 }", "expected a pipe", "3"),
}


@pytest.mark.parametrize(("body", "message", "under"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_shown_with_a_caret(body: str, message: str, under: str) -> None:
    with pytest.raises(TileError, match=message.replace("?", r"\?")) as caught:
        parse_program(HEAD + body, "p.program")
    span = caught.value.span
    assert span is not None
    assert (HEAD + body).splitlines()[span.line - 1][span.column - 1 :].startswith(under)
    assert "^" in caught.value.render()


SENSELESS = {
    "a cube instruction on the vector core": ("gm_to_l1 a <- A{0 : 8} : 8 x 8", "runs on the cube core"),
    "a tensor used as a buffer": ("vexp a <- A : 8 x 8", "A is a tensor, not a buffer"),
    "a buffer used as a tensor": ("gm_to_ub a <- a{0 : 8} : 8 x 8", "a is a buffer, not a tensor"),
    "too few operands": ("vadd a <- a : 8 x 8", "takes 2 source operands, not 1"),
    "a variable of no loop": ("vexp a <- a : 8 x k", "nothing here is called 'k'"),
    "a pipe of the other core": ("barrier FIX", "the vector core has no pipe 'FIX'"),
    "a flag to the same pipe": ("set V -> V id 0", "a flag from V to itself"),
    "a flag that is none": ("set V -> MTE2 id 12", "there is no flag 12"),
    "a flag between cores that is none": ("cross_set MTE3 16", "there is no flag 16"),
    "a meeting in a loop": ("for i in 2 { sync_all }", "sync_all stands in a loop"),
    "a meeting of one kind of cores": ("sync_all", "sync_all stands in both streams of a mixed kernel"),
    "a slot that is none": ("for i in 4 { vexp a[i % 2] <- a : 8 x 8 }", "vexp uses slots 0 to 1 of a, which has 1"),
    "a slot behind the last one": ("vexp a <- a[1] : 8 x 8", "vexp uses slot 1 of a, which has 1"),
    "a copy from the wrong memory": ("ub_to_gm a <- a : 8 x 8", "cannot use UB here"),
}


@pytest.mark.parametrize(("body", "message"), SENSELESS.values(), ids=SENSELESS)
def test_a_program_that_makes_no_sense_is_refused(body: str, message: str) -> None:
    head = HEAD.replace("buffer", "tensor A: f32[8, 8]\nbuffer", 1)
    with pytest.raises(TileError, match=message):
        parse_program(f"{head}vector {{ {body} }}", "p.program")


@pytest.mark.parametrize(
    "body",
    ["vput a <- a, a : 2 x 8 form rows", "vsort32 a <- a, a : 1 x 8", "vbitselect a <- a, a, a : 8 x 8"],
)
def test_instructions_of_several_sources_are_read(body: str) -> None:
    p = parse_program(f"{HEAD}vector {{ {body} }}", "p.program")
    assert parse_program(str(p), "again") == p


def test_a_buffer_needs_an_address_for_every_slot() -> None:
    with pytest.raises(TileError, match="2 slots and 1 addresses"):
        parse_program(HEAD.replace("slots 1", "slots 2") + "vector { }", "p.program")


def test_a_stream_that_the_kernel_type_lacks_is_refused() -> None:
    with pytest.raises(TileError, match="no stream for the vector core"):
        parse_program(HEAD.replace("AIV_ONLY", "AIC_ONLY") + "vector { vexp a <- a : 8 x 8 }", "p.program")


def test_every_form_that_is_written_is_read() -> None:
    sources = (path.read_text("utf-8") for path in Path(tile_eg.__file__).parent.rglob("*.py"))
    written = {form for text in sources for form in re.findall(r'\bform=(?:always\()?"(\w+)"', text)}
    assert {"scales", "strips"} < written <= set(FORMS)
