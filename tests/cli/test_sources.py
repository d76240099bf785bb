"""A kernel file is `.tile` text, a Python module with one kernel, or a program; the languages say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_eg.cli import sources
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.program import Program

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
