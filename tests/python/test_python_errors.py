"""What the Python surface cannot take is a TileError that points to the user's line, with words to act on."""

from __future__ import annotations

import pytest

from tile_eg import language as T
from tile_eg.errors import TileError
from tile_eg.frontend.checks import check
from tile_eg.frontend.python import kernel_of

# name: (lines, where the error points to, what it says)
FAULTS = {
    "an Expert flag": ("T.set_flag('mte2', 'v', 0)", "T.set_flag", "Expert level, not supported yet"),
    "an Expert scope": ("with T.Scope('V'):\n    T.clear(x)", "T.Scope", "T.Scope is Expert level"),
    "an order of blocks": ("d = T.use_swizzle(c, 64, 64, 16, 16, 16)", "T.use_swizzle", "orders 4 x 4 tiles, and there are"),
    "a later word": ("T.copy(T.c2d_im2col(x, y), f)", "T.c2d_im2col", "T.c2d_im2col has no meaning here"),
    "a later tile word": ("T.tile.init_sort_buf(x, 1, 1)", "T.tile.init_sort_buf", "T.tile.init_sort_buf has no meaning here"),
    "a misspelt word": ("T.coppy(x, y)", "T.coppy", "T has no word coppy"),
    "a misspelt tile word": ("T.tile.ad(x, x, y)", "T.tile.ad", "T.tile has no word ad"),
    "an unknown name": ("T.copy(x, z)", "z)", "unknown name `z`"),
    "an argument too few": ("T.copy(x)", "T.copy(x)", "missing a required argument: 'dst'"),
    "an unknown argument": ("T.copy(x, y, async_=True)", "T.copy", "unexpected keyword argument 'async_'"),
    "indices that are too few": ("T.copy(H[c, 0], h)", "H[c, 0]", "H has 3 dimensions, got 2 indices"),
    "an index that is a float": ("T.copy(A[c * 0.5, 0], x)", "c * 0.5", "an index is a whole number, not c * 0.5"),
    "an index from a buffer": ("T.copy(A[v[3], 0], x)", "v[3]", "an index is a whole number, and `v` holds f32"),
    "a slice of varying size": ("T.copy(A[c : c * 16, :], x)", "c : c * 16", "the size of a slice has to be known"),
    "a slice with a step": ("T.copy(A[0:32:2, :], x)", "0:32:2", "a slice in a kernel has no step"),
    "a loop of varying length": (
        "for i in range(999):\n    for j in range(i):\n        pass", "range(i)", "when the block starts",
    ),
    "a loop that counts down": ("for i in range(c, 0, -1):\n    T.clear(x)", "range", "counts down"),
    "a loop over something else": ("for i in 'abc':\n    T.clear(x)", "'abc'", "is not a loop"),
    "a loop with too few variables": ("for i in T.Parallel(4, 4):\n    x[i, i] = 0.0", "i in", "this loop has 2 variables"),
    "a while loop": ("while True:\n    T.clear(x)", "while", "this loop runs more than 256 times"),
    "a while loop of the block": ("while c > 0:\n    T.clear(x)", "c > 0", "known only at run time"),
    "a size known at run time": ("n = T.symbolic('n')", "T.symbolic", "the shape of no tensor has this size"),
    "a dtype that is none": ("u = T.alloc_shared((16, 16), 'float13')", "T.alloc_shared", "unknown dtype 'float13'"),
    "a shape that is none": ("u = T.alloc_shared((16, 0), 'float32')", "T.alloc_shared", "has to be positive"),
    "a copy of unknown size": ("T.copy(A[0, 0], O[0, 0])", "T.copy", "both sides are start points"),
    "a copy with padding": ("T.copy(A[0, 0], x, pad_value=x)", "T.copy", "the padding is a number known"),
    "an extent list that does not fit": ("T.copy(A[0, 0], v, [16, 128])", "T.copy", "does not fit v"),
    "a tile with more dimensions": ("T.copy(S[0, 0], H[0:1, 0:1, 0:1])\nT.copy(H, A[0, 0])", "A[0, 0]", "cannot start in A"),
    "a target that is a number": ("T.exp(x, 3.0)", "T.exp", "a buffer or a slice of one is needed"),
    "a fill with a tile": ("T.fill(x, y)", "T.fill", "a number is needed here"),
    "an axis that is none": ("T.reduce_sum(x, v, dim=2)", "T.reduce_sum", "dim 2 does not exist"),
    "a reduction of a column's rows": ("T.reduce_sum(w, v, dim=1)", "T.reduce_sum", "needs no reduction"),
    "a rounding mode": ("T.tile.cast(h, x, 'CAST_UP', 2048)", "T.tile.cast", "the rounding mode 'CAST_UP' is not supported"),
    "a count that is a part": ("T.tile.cast(h, x, 'CAST_RINT', 64)", "T.tile.cast", "not the whole of h"),
    "an operator on tiles": ("x[:, :] = x % T.cast(y, 'int32')", "x % T", "`%` divides whole numbers of one type"),
    "a branch on a tile": ("if x:\n    T.clear(y)", "x:", "a branch cannot depend on the elements of a tile"),
    "a branch on elements": ("if x > 0:\n    T.clear(y)", "x > 0", "a branch cannot depend on the elements of a tile"),
    "a choice by no comparison": ("x[:, :] = T.if_then_else(x, x, y)", "T.if_then_else(x", "a condition compares"),
    "a transposed vector": ("x[:, :] = v.T", "x[:, :]", "only a tile of two dimensions is transposed"),
    "a whole tile in Parallel": ("for i in T.Parallel(16):\n    T.clear(x)", "T.clear", "only single elements"),
    "an if that changes what it looks at": (
        "for i in T.Parallel(16):\n    if v[i] < 3:\n        v[i] = 0.0\n        v[i] = 1.0", "v[i] = 0.0", "this branch looks",
    ),
    "Parallel in Parallel": (
        "for i in T.Parallel(16):\n    for j in T.Parallel(128):\n        x[i, j] = 0.0", "for j", "T.Parallel inside T.Parallel",
    ),
    "a loop in Parallel": (
        "for i in T.Parallel(16):\n    for j in range(4):\n        x[i, j] = x[0, j]", "for j", "a serial loop",
    ),
    "a name that changes in a loop": ("n = 0\nfor i in range(999):\n    n = n + 1", "n = n + 1", "n changes inside a loop"),
    "a buffer's name bound anew": ("x = T.exp(y)", "x = T.exp", "x is a buffer"),
    "a value from before a write": ("s = x * 2.0\nT.clear(x)\nT.copy(s, y)", "s, y", "s was computed from x"),
    "a value that its loop changes": (
        "s = v[0]\nfor i in range(4):\n    T.tile.mul(x, x, s)\n    v[0] = 2.0", "s)", "s was computed from v",
    ),
    "a value that an inner loop changes": (
        "for i in range(4):\n    s = v[i]\n    for j in range(4):\n        v[j] = s", "s", "s was computed from v",
    ),
    "a value that a loop has changed": (
        "s = v[0] + 1.0\nfor i in range(4):\n    v[i] = 2.0\nT.tile.mul(x, x, s)", "s)", "s was computed from v",
    ),
    "a value that a branch may have changed": (
        "s = v[0] + 1.0\nif c < 1:\n    v[0] = 2.0\nT.tile.mul(x, x, s)", "s)", "s was computed from v",
    ),
    "a value that a macro has changed": ("s = x * 2.0\ndouble(x, y)\nT.copy(s, f)", "s, f", "s was computed from x"),
    "a value that is not used": ("T.exp(x)", "T.exp(x)", "is not used"),
    "Python that fails": ("n = 1 // 0", "1 // 0", "this cannot be computed: integer division or modulo by zero"),
    "an assertion that fails": ("assert SIZE == 32, 'size'", "assert", "assertion failed: size"),
    "a macro's arguments": ("double(x)", "double(x)", "missing a required argument: 'src'"),
    "a function that is no word": ("T.copy(sorted(x), y)", "sorted(x)", "sorted is not a word of the language"),
    "a second launch": ("with T.Kernel(2) as d:\n    T.clear(x)", "with", "only one `with T.Kernel"),
    "a slice of a slice": ("T.copy(x[0:4, :][0:2, :], y)", "x[0:4, :]", "a slice of a slice"),
    "the second column of a column": ("for i in T.Parallel(16):\n    w[i, 1] = 0.0", "w[i, 1]", "w has one column"),
    "an attribute that is none": ("T.copy(x.rows, y)", "x.rows", "a buffer has no attribute rows"),
    "an argument of a lambda": ("g = lambda z: z\ng(1, 2)", "g(1, 2)", "too many positional arguments"),
}  # fmt: skip


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_named_at_its_place(case: str, python_error, pointed_at) -> None:
    lines, place, message = FAULTS[case]
    error = python_error(lines)
    assert pointed_at(error).startswith(place)
    assert message in error.message


def test_a_misspelt_word_gets_the_right_one_offered(python_error) -> None:
    assert "T.copy" in python_error("T.coppy(x, y)").help


def test_a_word_of_the_other_half_of_the_language_is_offered_where_it_stands(python_error) -> None:
    assert "T.tile.axpy?" in python_error("T.axpy(x, y, 2.0)").help


def test_a_word_that_has_no_meaning_is_never_offered(python_error) -> None:
    assert "T.c2d_im2col" not in python_error("T.c2d_im2coll(x, y)").help


HINTS = {
    "x[:, :] = T.cast(x, 'float16') + T.cast(y, 'bfloat16')": 'T.cast(x, "float32")',
    "u = T.alloc_shared((16, 128), 'float32')\nT.exp(u, x)": "T.clear(u)",
    "T.atomic_add(A[c, 0], x)\nT.copy(A[c, 0], y)": "an output that is added to begins with zeros",
}


@pytest.mark.parametrize("lines", HINTS)
def test_help_for_a_python_kernel_is_python(lines: str, python_kernel) -> None:
    with pytest.raises(TileError) as caught:
        check(python_kernel(lines))
    assert HINTS[lines] in caught.value.help


def test_windows_that_are_pushed_back_from_a_tensors_end_need_not_be() -> None:
    def weighted(pushed: bool) -> object:
        @T.prim_func
        def main(A: T.Tensor((40, 16), "float32"), Y: T.Tensor((40, 16), "float32")):
            with T.Kernel(3, threads=2, is_npu=True) as c:
                a = T.alloc_shared((16, 16), "float32")
                r = T.min(c * 16, 24) if pushed else c * 16
                T.copy(A[r : r + 16, :], a)
                for i, j in T.Parallel(16, 16):
                    a[i, j] = a[i, j] * (i + 1)
                T.copy(a, Y[r : r + 16, :])

        return main

    with pytest.raises(TileError, match="two blocks write the same elements of `Y`") as told:
        check(kernel_of(weighted(True)))  # type: ignore[arg-type]
    assert "leave the minimum out" in str(told.value)
    check(kernel_of(weighted(False)))  # type: ignore[arg-type]


@pytest.mark.parametrize("cast", [False, True])
def test_offsets_of_a_gather_are_the_bits_of_whole_numbers(cast: bool) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=2, is_npu=True) as _:
            a, y = T.alloc_shared((64,), "float32"), T.alloc_shared((64,), "float32")
            at, bits = T.alloc_shared((64,), "int32"), T.alloc_shared((64,), "uint32")
            T.copy(A, a)
            T.tile.arith_progression(at, 252, -4, 64)
            T.copy(at, bits)
            T.tile.gather(y, a, bits if cast else at, 0)
            T.copy(y, Y)

    if cast:
        return check(kernel_of(main))
    with pytest.raises(TileError, match="works on u32, not on i32") as told:
        check(kernel_of(main))
    assert 'T.copy(at, b), b being a buffer of "uint32"' in str(told.value)
    return None


def test_an_error_in_a_macro_points_into_the_macro(module_of, pointed_at) -> None:
    module = module_of(
        "import tile_eg.language as T\n@T.macro\ndef wrong(x):\n    T.alloc_ub((4, 4), 'float32')\n"
        "@T.prim_func\ndef k(A: T.Tensor((4, 4), 'float32')):\n    with T.Kernel(1):\n        wrong(A)\n"
    )
    with pytest.raises(TileError) as caught:
        kernel_of(module.k)
    assert pointed_at(caught.value) == "T.alloc_ub((4, 4), 'float32')"


def test_columns_count_characters_and_not_bytes(module_of, pointed_at) -> None:
    module = module_of(
        "import tile_eg.language as T\n@T.prim_func\ndef k(A: T.Tensor((4, 4), 'float32')):\n    with T.Kernel(1):\n"
        "        T.fill(A, {'µ': 0}['µ']); T.copy(A, Ω)\n"
    )
    with pytest.raises(TileError, match="unknown name `Ω`") as caught:
        kernel_of(module.k)
    assert pointed_at(caught.value) == "Ω)"


SIGNATURES = {
    "no type": ("A", "A needs a type"),
    "a type that is none": ("A: 3", "a kernel takes T.Tensor arguments"),
    "an unknown dtype": ("A: T.Tensor((4, 4), 'float13')", "unknown dtype"),
    "an unknown size": ("A: 'T.Tensor((n, 4))'", "unknown name `n`"),
    "a size that is no integer": ("A: T.Tensor((4, 2.5))", "has to be an integer"),
}


@pytest.mark.parametrize("case", SIGNATURES)
def test_a_wrong_argument_is_named_at_its_place(case: str, module_of) -> None:
    argument, message = SIGNATURES[case]
    text = f"import tile_eg.language as T\n@T.prim_func\ndef k({argument}):\n    with T.Kernel(1):\n        pass\n"
    with pytest.raises(TileError, match=message) as caught:
        kernel_of(module_of(text).k)
    assert caught.value.span is not None
    assert caught.value.span.line == 3
    assert ("n: T.int32" in caught.value.help) == (argument == "n=3")


LAUNCHES = {
    "no launch": ("T.clear(A)", "one `with T.Kernel"),
    "another with": ("with open('x') as f:\n        pass", "this cannot be computed: .* No such file"),
    "names that do not fit": ("with T.Kernel(2, 3) as c:\n        T.clear(A)", "this grid has 2 dimensions"),
    "an empty grid": ("with T.Kernel(0) as c:\n        T.clear(A)", "a grid size has to be positive"),
    "a statement after it": ("with T.Kernel(2):\n        T.clear(A)\n    T.clear(A)", "has to end with"),
    "a tile before it": ("x = T.alloc_shared((4, 4), 'float32')\n    with T.Kernel(2):\n        T.clear(x)", "only inside"),
    "the half beside a product": (
        "with T.Kernel(2, is_npu=True) as (cid, vid):\n        T.gemm(A, A, A)\n        T.fill(A[vid : vid + 2, :], 0)",
        "has to part tiles into halves that lie side by side",
    ),
}


@pytest.mark.parametrize("case", LAUNCHES)
def test_a_wrong_launch_is_named(case: str, module_of) -> None:
    body, message = LAUNCHES[case]
    text = f"import tile_eg.language as T\n@T.prim_func\ndef k(A: T.Tensor((4, 4), 'float16')):\n    {body}\n"
    with pytest.raises(TileError, match=message) as caught:
        kernel_of(module_of(text).k)
    assert caught.value.span is not None


def test_a_word_outside_of_a_kernel_says_where_it_belongs() -> None:
    with pytest.raises(TileError, match=r"T\.copy has a meaning only inside") as caught:
        T.copy(1, 2)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
    assert "T.copy(1, 2)" in str(caught.value)


def test_a_kernel_that_was_not_compiled_says_so() -> None:
    @T.prim_func
    def k(A: T.Tensor((4, 4))) -> None:
        with T.Kernel(1):
            T.clear(A)

    with pytest.raises(TileError, match="has to be compiled first"):
        k(1)


def test_a_function_without_source_says_so() -> None:
    space: dict = {"T": T}
    exec("@T.prim_func\ndef k(A: T.Tensor((4, 4))):\n    with T.Kernel(1):\n        T.clear(A)\n", space)
    with pytest.raises(TileError, match="the source of k cannot be read"):
        kernel_of(space["k"])
