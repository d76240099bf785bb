"""All mistakes of a kernel are told at once: one of a statement, and none that follows from another."""

from __future__ import annotations

import pytest

from tile_eg.errors import FollowUp, TileError, together
from tile_eg.frontend.checks import check
from tile_eg.frontend.expert.kernel import kept_kernel
from tile_eg.frontend.python import kernel_of
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text

HEAD = "kernel k[M=8, N=16](X: f32[M, N]) -> Y: f32[M, N] { shared x: f32[M, N], y: f32[M, N] = 0, m: f32[M] = 0\n x = X[0, 0]\n"


def messages(error: TileError) -> list[str]:
    return [e.message for e in (error, *error.others)]


def of_text(body: str) -> list[str]:
    with pytest.raises(TileError) as caught:
        kernel = load_text(HEAD + body + "\n Y[0, 0] = y }", "x.tile").instantiate()
        check(kernel)
        to_values(kernel)
    return messages(caught.value)


def of_python(module_of, body: str, read=kernel_of, launch: str = "T.Kernel(1)") -> list[str]:
    text = (
        "import tile_eg.language as T\n@T.prim_func\ndef k(X: T.Tensor((8, 16), 'float32'), Y: T.Tensor((8, 16), 'float32')):\n"
        f"    with {launch}:\n" + "".join(f"        {line}\n" for line in body.splitlines())
    )
    with pytest.raises(TileError) as caught:
        check(read(module_of(text).k))
    return messages(caught.value)


SUMS = "parallel (i, j) in (M, N) { m[i] = m[i] + x[i, j] }"
SAME = "every iteration of `j` writes the same `m`"
BODIES = {
    "names": ("x = xx\n y = exp(yy)", ["unknown name `xx`", "unknown name `yy`"]),
    "a name and a shape": ("x = xx\n m = y", ["unknown name `xx`", "`m` takes 8 here, the value is f32[8, 16]"]),
    "what a wrong declaration would have made": ("shared z: f33[M, N]\n z = x\n y = z + 1", ["unknown element type `f33`"]),
    "what a wrong number would have been": ("let n = q\n y = y * n", ["unknown name `q`"]),
    "inside and behind a loop": (
        "for k in serial(4) { x = xx }\n y = yy", ["unknown name `xx`", "unknown name `yy`"],
    ),
    "shapes and what is not written": (
        "shared u: f32[N]\n m = x\n m = rowsum(u[None, :] * x)",
        ["`m` takes 8 here, the value is f32[8, 16]", "`u` is read before it is written"],
    ),
    "element loops": (
        f"{SUMS}\n parallel (i, q) in (M, 8) {{ Y[i, q] = 0  Y[i, q + 7] = 0 }}",
        [SAME, "iterations of `q` meet at `Y`: one uses what another writes"],
    ),
    "what an element loop would have made": (
        f"{SUMS}\n x = x * m[:, None]\n parallel (i, q) in (M, 8) {{ Y[i, q] = x[i, q]  Y[i, q + 7] = 0 }}", [SAME],
    ),
    "a loop of which a statement is wrong": (
        f"for k in serial(4) {{ {SUMS} y = y + x * m[:, None] }}\n x = y\n m = rowmax(x)", [SAME],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BODIES)
def test_each_statement_of_a_text_tells_its_own_mistake(case: str) -> None:
    body, want = BODIES[case]
    assert of_text(body) == want


BUFFER = "x = T.alloc_shared((8, 16), 'float32')\n"
PYTHON = {
    "words and names": (
        BUFFER + "T.coppy(X, x)\nT.exp(x, z)\nT.copy(x, Y)",
        ["T has no word coppy", "unknown name `z`"],
    ),
    "what a wrong declaration would have made": (
        "x = T.alloc_shard((8, 16), 'float32')\nT.copy(X, x)\ny = x * 2.0\nT.copy(y, Y)\nT.copy(q, Y)",
        ["T has no word alloc_shard", "unknown name `q`"],
    ),
    "a name and a shape": (
        BUFFER + "m = T.alloc_shared((8,), 'float32')\nT.copy(z, x)\nm[:] = x[:, :]",
        ["unknown name `z`", "`m` takes 8 here, the value is f32[8, 16]"],
    ),
    "a loop once": (
        BUFFER + "for a in [1, 2, 3]:\n    T.exp(x, z)\nfor i in range(2):\n    n = zz\n    T.fill(x, n)",
        ["unknown name `z`", "unknown name `zz`"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PYTHON)
def test_each_statement_of_a_function_tells_its_own_mistake(module_of, case: str) -> None:
    body, want = PYTHON[case]
    assert of_python(module_of, body) == want


def test_a_kernel_that_is_kept_tells_all_its_mistakes(module_of) -> None:
    body = (
        "x = T.alloc_ub((8, 16), 'float32')\nT.copy(X, x)\nT.set_flag('mte', 'v', 0)\nT.wait_flag('mte2', 'v', 99)\n"
        "T.tile.exp(x, z)\nT.copy(x, Y)"
    )
    found = of_python(module_of, body, kept_kernel)
    assert found[0] == "there is no pipe 'mte'"
    assert found[-1] == "unknown name `z`"
    assert len(found) == 3


def test_a_macro_that_is_wrong_is_told_once(module_of) -> None:
    text = (
        "import tile_eg.language as T\n@T.macro\ndef twice(x):\n    T.exp(x, zz)\n@T.prim_func\n"
        "def k(X: T.Tensor((8, 16), 'float32')):\n    with T.Kernel(1):\n"
        "        twice(X)\n        twice(X)\n        T.copy(q, X)\n"
    )
    with pytest.raises(TileError) as caught:
        kernel_of(module_of(text).k)
    assert messages(caught.value) == ["unknown name `zz`", "unknown name `q`"]


def test_wrong_arguments_stand_beside_what_is_wrong_in_the_body(module_of) -> None:
    text = "import tile_eg.language as T\n@T.prim_func\ndef k(X, Y: 3):\n"
    text += "    with T.Kernel(1):\n        T.copy(X, Y)\n        T.copy(q, Y)\n"
    with pytest.raises(TileError) as caught:
        kernel_of(module_of(text).k)
    assert [m.split()[0] for m in messages(caught.value)] == ["X", "Y", "unknown"]


def test_a_long_list_ends_with_how_many_there_are() -> None:
    error = together([FollowUp(), *(TileError(f"mistake {n}") for n in range(30)), TileError("mistake 0")])
    lines = error.render().splitlines()
    assert lines[0] == "error: mistake 0"
    assert lines[-1] == "30 errors, of which 10 are not shown"
