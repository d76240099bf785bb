"""A kernel file is `.tile` text, a Python module with one kernel, or a program; the languages say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_eg.cli import sources
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.program import Program
from tile_eg.search import search_options

EXAMPLES = Path(__file__).parents[2] / "examples"
KERNEL = """
import tile_eg
import tile_eg.language as T

@tile_eg.jit(out_idx=[-1])
def double(N, BN=32):
    @T.prim_func
    def double(A: T.Tensor((N, 32), "float32"), C: T.Tensor((N, 32), "float32")):
        with T.Kernel(T.ceildiv(N, BN)) as bx:
            a = T.alloc_shared((BN, 32), "float32")
            T.copy(A[bx * BN, 0], a)
            T.copy(a + a, C[bx * BN, 0])
    return double
"""


def module(tmp_path: Path, text: str) -> Path:
    (tmp_path / "kernel.py").write_text(text)
    return tmp_path / "kernel.py"


def test_a_python_module_gives_its_kernel_at_the_sizes_asked_for(tmp_path: Path) -> None:
    kernel = sources.read(module(tmp_path, KERNEL), {"N": 96})
    assert isinstance(kernel, Kernel)
    assert (kernel.name, kernel.tensors[0].shape, [t.output for t in kernel.tensors]) == ("double", (96, 32), [False, True])


@pytest.mark.parametrize(("sizes", "rows"), [({}, 64), ({"N": 96}, 96)])
def test_a_kernel_that_a_module_makes_of_its_function_is_the_one(tmp_path: Path, sizes: dict[str, int], rows: int) -> None:
    kernel = sources.read(module(tmp_path, KERNEL + "\nof_64 = double(64)\n"), sizes)
    assert isinstance(kernel, Kernel)
    assert kernel.tensors[0].shape == (rows, 32)


@pytest.mark.parametrize("name", ["gemm", "vector_add"])
def test_both_forms_of_an_example_are_one_kernel(name: str) -> None:
    sizes = {"M": 96, "N": 80} | ({"K": 64} if name == "gemm" else {})
    assert sources.read(EXAMPLES / f"{name}.py", sizes) == sources.read(EXAMPLES / f"{name}.tile", sizes)


@pytest.mark.parametrize(
    ("text", "sizes", "words"),
    [
        ("x = 1\n", {}, "holds no kernel.*@tile_eg.jit"),
        (
            KERNEL + KERNEL.replace("def double(N,", "def triple(N,"),
            {},
            "several kernels \\(double, triple\\).*from kernel import double",
        ),
        (KERNEL + "\na, b = double(64), double(32)\n", {}, "several kernels \\(double, a, b\\)"),
        (KERNEL, {}, "needs a value for N.*--set N=512"),
        (KERNEL, {"N": 32, "BM": 8}, "no parameter called `BM`.*BN"),
        ("import tile_eg\n\n1 / 0\n", {}, "(?s)this raised ZeroDivisionError: division by zero.*kernel.py:3:1"),
        ("def f(:\n", {}, "this is not Python: invalid syntax"),
        ("import no_such_module_here\n", {}, "ModuleNotFoundError"),
        ("from .x import y\n", {}, "relative import.*from .*[.]kernel import"),
    ],
)
def test_a_module_that_gives_no_kernel_is_refused(tmp_path: Path, text: str, sizes: dict[str, int], words: str) -> None:
    with pytest.raises(TileError, match=f"(?s){words}"):
        sources.read(module(tmp_path, text), sizes)


def test_a_module_may_import_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "sizes_of_mine.py").write_text("ROWS = 64\n")
    text = "from sizes_of_mine import ROWS\n" + KERNEL.replace("def double(N,", "def double(N=ROWS,")
    kernel = sources.read(module(tmp_path, text), {})
    assert isinstance(kernel, Kernel)
    assert kernel.tensors[0].shape == (64, 32)


@pytest.mark.slow
def test_a_program_is_taken_as_it_stands(tmp_path: Path) -> None:
    planned = sources.compiled(EXAMPLES / "vector_add.tile", {"M": 16, "N": 16}, None)
    (tmp_path / "add.program").write_text(str(planned.program))
    assert sources.read(tmp_path / "add.program", {}) == planned.program
    assert isinstance(sources.read(tmp_path / "add.program", {}), Program)


def test_a_program_with_a_fault_shows_its_line(tmp_path: Path) -> None:
    head = "program p on 910B2 as AIV_ONLY, blocks 1, workspace 0\n"
    (tmp_path / "add.program").write_text(head + "cube {\n  gargle x\n}\nvector {\n}\n")
    with pytest.raises(TileError) as caught:
        sources.read(tmp_path / "add.program", {})
    assert "gargle x" in str(caught.value)


OPEN = """
kernel copy[M: dyn, N=32](A: f32[M, N]) -> C: f32[M, N] {
  grid b = ceildiv(M, 16)
  shared a: f32[16, N]
  a = A[b*16, 0]
  C[b*16, 0] = a
}
"""
SYMBOLIC = """
import tile_eg
import tile_eg.language as T

M = T.symbolic("M")

@tile_eg.jit
def twice(X: T.Tensor((M, 32), "float32")) -> T.Tensor:
    return X + X
"""


@pytest.mark.parametrize(("name", "text"), [("copy.tile", OPEN), ("twice.py", SYMBOLIC)])
def test_sizes_that_a_call_tells_stand_at_an_example(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    kernel, example = sources.read_at_example(tmp_path / name, {})
    assert isinstance(kernel, Kernel)
    assert (kernel.tensors[0].shape, example) == ((128, 32), {"M": 128})
    assert sources.read_at_example(tmp_path / name, {"M": 48})[1] == {}


def test_an_example_is_a_size_that_the_kernel_is_for(tmp_path: Path) -> None:
    (tmp_path / "k.tile").write_text(OPEN.replace("f32[16, N]", "f32[M // 256, N]"))
    assert sources.read_at_example(tmp_path / "k.tile", {})[1] == {"M": 512}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("copy.tile", OPEN.replace("] = a", "] = a + zz"), "unknown name `zz`"),
        ("twice.py", SYMBOLIC.replace("X + X", "X + Y"), r"unknown name `Y`(.|\n)*twice.py:9"),
    ],
)
def test_a_fault_is_told_before_sizes_are_asked_for(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(TileError, match=words):
        sources.read_at_example(tmp_path / name, {})


def test_what_a_line_raises_while_a_kernel_is_made_is_told_at_it(tmp_path: Path) -> None:
    path = module(tmp_path, SYMBOLIC.replace("X + X", "X + {}[0]"))
    with pytest.raises(TileError, match=r"this raised KeyError(.|\n)*kernel.py:9"):
        sources.for_all_sizes(path, {}, None, search_options(), {})
