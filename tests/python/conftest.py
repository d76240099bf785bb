"""Kernels from a few lines: the lines are put into a skeleton, written to a file and read from there, as a user's would be."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent, indent
from types import ModuleType

import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.python import kernel_of
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel, Stmt

_count = itertools.count()

PYTHON = """\
import math
import tile_eg.language as T

SIZE = 16

@T.macro
def double(dst, src):
    T.tile.add(dst, src, src)

def scaled(src, factor):
    return src * factor

@T.prim_func
def k(
    A: T.Tensor((64, 128), "float32"), H: T.Tensor((2, 64, 128), "float16"), S: T.Tensor((64, 1), "float32"),
    O: T.Tensor((64, 128), "float32"),
):
    with T.Kernel(4) as c:
        x = T.alloc_shared((SIZE, 128), "float32")
        y = T.alloc_shared((SIZE, 128), "float32")
        h = T.alloc_shared((SIZE, 128), "float16")
        p = T.alloc_shared((128, 128), "float16")
        v = T.alloc_fragment((SIZE,), "float32")
        w = T.alloc_fragment((SIZE, 1), "float32")
        r = T.alloc_fragment((128,), "float32")
        f = T.alloc_fragment((SIZE, 128), "float")
"""
TILE = """\
kernel k(A: f32[64, 128], H: f16[2, 64, 128], S: f32[64, 1]) -> O: f32[64, 128] {
  grid c = 4
  shared x: f32[16, 128]
  shared y: f32[16, 128]
  shared h: f16[16, 128]
  shared p: f16[128, 128]
  fragment v: f32[16]
  fragment w: f32[16]
  fragment r: f32[128]
  fragment f: f32[16, 128]
"""


def imported(path: Path) -> ModuleType:
    name = f"kernels_{next(_count)}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def module_of(tmp_path: Path) -> Callable[[str], ModuleType]:
    """A module with this text, in a file of its own."""

    def make(text: str) -> ModuleType:
        path = tmp_path / f"kernels_{next(_count)}.py"
        path.write_text(text)
        return imported(path)

    return make


@pytest.fixture
def python_kernel(module_of: Callable[[str], ModuleType]) -> Callable[[str], Kernel]:
    """The kernel of the skeleton with these lines in it."""
    return lambda lines: kernel_of(module_of(PYTHON + indent(dedent(lines), " " * 8) + "\n").k)


@pytest.fixture
def python_body(python_kernel: Callable[[str], Kernel]) -> Callable[[str], tuple[Stmt, ...]]:
    """The statements that the lines mean, without those of the skeleton."""
    skeleton = 8
    return lambda lines: python_kernel(lines).body[skeleton:]


@pytest.fixture
def tile_body() -> Callable[[str], tuple[Stmt, ...]]:
    """The statements that lines of `.tile` text mean in the same skeleton."""
    skeleton = 8
    return lambda lines: load_text(TILE + indent(dedent(lines), "  ") + "\n}\n").instantiate().body[skeleton:]


@pytest.fixture
def python_error(python_kernel: Callable[[str], Kernel]) -> Callable[[str], TileError]:
    """The error that the lines cause."""

    def find(lines: str) -> TileError:
        with pytest.raises(TileError) as caught:
            python_kernel(lines)
        return caught.value

    return find


def line_of(error: TileError) -> str:
    """The source text from where the error points to."""
    assert error.span is not None
    return error.source.splitlines()[error.span.line - 1][error.span.column - 1 :]


@pytest.fixture
def pointed_at() -> Callable[[TileError], str]:
    return line_of
