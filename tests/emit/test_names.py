"""The names of a kernel are its author's: whatever they are, the text is C++ that computes the same."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.emit.names import spelled
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import Lowered, lower

NAMES = ["main", "new", "half", "int32_t", "std", "AscendC", "Min", "pipe", "workspace", "ub", "sub", "EVENT_ID0", "PIPE_V"]
NAMES += ["NULL", "linux", "GM_ADDR", "validRows", "A_gm", "x_ub", "stream", "launch", "blocks", "_A", "__x", "double", "char"]


def compiled(kernel: str = "k", inputs: str = "A: f32[16]", result: str = "C", body: str = "x = A[0] a += x") -> Lowered:
    text = f"""kernel {kernel}({inputs}) -> {result}: f32[16] {{
      grid b = 1
      shared x: f32[8]
      fragment a: f32[8] = 0
      {body}
      {result}[0] = a
    }}"""
    return lower(load_text(text).instantiate())


@pytest.mark.slow
def test_tensors_may_have_any_name() -> None:
    inputs = ", ".join(f"{name}: f32[16]" for name in NAMES)
    low = compiled(inputs=inputs, result="float", body=" ".join(f"x = {name}[0] a += x" for name in NAMES))
    out = low.run({name: np.ones(16, np.float32) for name in NAMES})["float"]
    assert (out[:8] == len(NAMES)).all()


@pytest.mark.long
def test_loops_may_have_any_name() -> None:
    low = compiled(body=" ".join(f"for {name} in serial(2) {{ x = A[{name}*8] a += x }}" for name in NAMES))
    assert (low.run({"A": np.ones(16, np.float32)})["C"][:8] == 2 * len(NAMES)).all()


@pytest.mark.slow
def test_a_kernel_may_have_the_name_of_a_function_of_the_c_library() -> None:
    low = compiled("exp", body="x = A[0] a = exp(x)")
    assert (low.run({"A": np.zeros(16, np.float32)})["C"][:8] == 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["main", "exp", "sinf", "index", "while", "half", "Min", "KERNEL_X"])
def test_a_kernel_whose_name_cpp_has_a_use_for_is_another_function_there(name: str) -> None:
    low = compiled(name)
    assert f"void {name}_kernel(GM_ADDR A" in low.source
    assert f"ACLRT_LAUNCH_KERNEL({name}_kernel)" in low.host


def test_the_host_part_uses_the_same_names() -> None:
    low = compiled(inputs="stream: f32[16]", result="new", body="x = stream[0] a += x")
    assert "launch(aclrtStream stream, void* t_stream, void* t_new, void* workspace)" in low.host


def test_a_spelling_is_never_that_of_another_name() -> None:
    assert spelled(["new", "t_new"], {"new"}) == {"new": "t_t_new", "t_new": "t_new"}
