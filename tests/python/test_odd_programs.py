"""Odd programs in Python: random ones from a fixed seed, and those that once ended in Python's words or in a fault of ours."""

from __future__ import annotations

import random
import re

import pytest

import tile_eg
from tests.python.written import prim_func
from tile_eg import language
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel
from tile_eg.language.words import developer_words
from tile_eg.search.compiler import check_kernel

HEAD = """
import math
def helper(a, b=1):
    return a + b
@T.macro
def put(d, s):
    T.copy(s, d)
@T.prim_func
def f(A: T.Tensor((64, 128), "float32"), B: T.Tensor((64,), "float16"), O: T.Tensor((64, 128), "float32")):
    with T.Kernel(4, is_npu=True) as c:
        x = T.alloc_shared((16, 128), "float32")
        y = T.alloc_shared((16, 128), "float32")
        h = T.alloc_shared((16, 16), "float16")
        v = T.alloc_fragment((16,), "float32")
        w = T.alloc_fragment((16, 1), "float32")
        u = T.alloc_shared((3, 16, 16), "float32")
        T.copy(A[c * 16, 0], x)
        T.copy(A[c * 16, 0], y)
        T.clear(h); T.clear(v); T.clear(w); T.clear(u)
"""
FOOT = "        T.copy(y, O[c * 16, 0])\n"
ATOMS = (
    "x y h v w u A B O c 0 1 16 -1 3.5 None True 'abc' [] (1,2) {} v[0] v[c] w[0,0] x[0,0] x[0,:] x[:,:] x[0:4,:] v[:,None] "
    "v[None,:] h.T A[c*16,0] B[0:16] u[0,:,:] T.float32 'float16' 'nonsense' c*16 c//2 c>0 x>0 math helper put T T.exp range(4) "
    "10**30 ... x.shape x.dtype x[0] x[1.5,0] x['a'] x[v] x[None] v[16] v[-1] x[::2,:] x[4:0,:] T.auto +c ~c"
)
WORDS = [
    *(f"T.{w}" for w in developer_words(language)), *(f"T.tile.{w}" for w in developer_words(language.tile)),
    "helper", "put", "max", "abs", "len", "range", "float", "math.exp",
]  # fmt: skip
OPERATORS = ["+", "-", "*", "/", "//", "%", "@", "&", ">", "==", "and", "or", "in"]
PYTHONS = re.compile(r"^\w*(Error|Exception)\b|NoneType|\w+\(\w+=|'(Expr|Window|Buffer|Compared)'|<.* at 0x")


class Odd:
    """Statements that rarely mean something."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def expression(self, depth: int = 0) -> str:
        r = self.draw.random()
        if depth > 1 or r < 0.6:
            return self.draw.choice(ATOMS.split())
        if r < 0.8:
            return f"({self.expression(depth + 1)} {self.draw.choice(OPERATORS)} {self.expression(depth + 1)})"
        return self.call(depth + 1)

    def call(self, depth: int = 0) -> str:
        arguments = [self.expression(depth) for _ in range(self.draw.randint(0, 3))]
        return f"{self.draw.choice(WORDS)}({', '.join(arguments)})"

    def statement(self) -> str:
        r = self.draw.random()
        if r < 0.5:
            return self.call()
        if r < 0.8:
            return f"{self.draw.choice(ATOMS.split()[:12])} {self.draw.choice(['=', '+=', '*='])} {self.expression()}"
        loop = self.draw.choice(["T.serial", "range", "T.Parallel", "T.Pipelined"])
        return f"for i in {loop}({self.expression()}): {self.call()}"


def program(statement: str) -> str:
    return f"{HEAD}        {statement}\n{FOOT}"


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_random_statement_is_read_or_refused_in_a_users_words(seed: int) -> None:
    odd = Odd(seed)
    for _ in range(150):
        text = program(odd.statement())
        try:
            found = prim_func(text)
        except SyntaxError:
            continue
        try:
            made = tile_eg.jit(found).kernel
            if isinstance(made, Kernel):
                check_kernel(made)
        except TileError as error:
            assert error.span is not None, text
            assert not PYTHONS.search(error.message), (text, error.message)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("v[0] = T.ceildiv(v[0], 4)", "T.ceildiv takes whole numbers, not an element of a buffer"),
        ("T.fill(x, T.floordiv(x, 2))", "a number is needed here, not an expression"),
        ("n = T.ceildiv(c, 0)", "T.ceildiv divides by a number above 0, not by 0"),
        ("n = T.infinity(c)", "T.infinity takes values known when the kernel is compiled"),
        ("len *= 1", "this cannot be done: unsupported operand type(s) for *: a function and 'int'"),
        ("n = c[0]", "this cannot be computed: an index is not subscriptable"),
        ("a, b = x > y", "a condition does not unpack into 2 names"),
        ("[a] = h.T", "a transposed tile does not unpack into 1 names"),
        ("T.symbolic(v)", "T.symbolic takes values known when the kernel is compiled"),
        ("T.alloc_shared((16, 16), x)", "unknown dtype a buffer"),
        ("T.copy(None, x)", "a buffer or a slice of one is needed here, not nothing (None)"),
        ("T.fill(x, ~c)", "indices have +, -, *, // and % with integers"),
        ("for i in range(4, step=c): T.clear(v)", "range takes no keyword arguments"),
    ],
)
def test_what_was_found(statement: str, message: str) -> None:
    with pytest.raises(TileError) as error:
        check_kernel(tile_eg.jit(prim_func(program(statement))).kernel)
    assert message in error.value.message
    assert error.value.span is not None


def test_a_plus_before_an_index_is_no_fault() -> None:
    check_kernel(tile_eg.jit(prim_func(program("T.copy(A[+c * 16, 0], x)"))).kernel)
