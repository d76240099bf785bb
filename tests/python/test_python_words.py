"""Every word of the Python surface means what its `.tile` form means: both give the same statements."""

from __future__ import annotations

import pytest

WORDS = {
    "copy between buffers": ("T.copy(x, y)", "y = x"),
    "copy from a start point": ("T.copy(A[c * 16, 0], x)", "x = A[c*16, 0]"),
    "copy to a start point": ("T.copy(x, O[c * 16, 0])", "O[c*16, 0] = x"),
    "copy of slices": ("T.copy(A[c * 16 : (c + 1) * 16, :], x)", "x = A[c*16 : c*16 + 16, :]"),
    "copy with an extent list": ("T.copy(A[c * 16, 0], x, [16, 128])", "x = A[c*16, 0]"),
    "copy of a part by an extent list": ("T.copy(A[c * 16, 0], x, [8, 64])", "x[0:8, 0:64] = A[c*16 : c*16 + 8, 0:64]"),
    "copy between start points": ("T.copy(A[0, 0], O[0, 0], [16, 128])", "O[0:16, 0:128] = A[0:16, 0:128]"),
    "copy out of a tensor of higher rank": ("T.copy(H[1, c * 16, 0], h)", "h = H[1, c*16, 0]"),
    "copy of one row": ("T.copy(A[c, 0], r)", "r = A[c, 0:128]"),
    "copy of a row given as a slice": ("T.copy(A[c : c + 1, :], r)", "r = A[c, :]"),
    "copy of a column vector": ("T.copy(S[c * 16, 0], w)", "w = S[c*16 : c*16 + 16, 0]"),
    "copy with ReLU": ("T.copy(f, h, enable_relu=True)", "h = relu(f)"),
    "copy of an expression": ("T.copy(x + y, O[c * 16, 0])", "O[c*16, 0] = x + y"),
    "atomic_add": ("T.atomic_add(O[c * 16, 0], x)", "atomic O[c*16, 0] += x"),
    "tile.atomic_add": ("T.tile.atomic_add(O[c * 16, 0], x + y)", "atomic O[c*16, 0] += x + y"),
    "fill": ("T.fill(x, 2.5)", "x = 2.5"),
    "tile.fill": ("T.tile.fill(x, -(2**30))", "x = -1073741824"),
    "fill with infinity": ("T.fill(v, -T.infinity('float32'))", "v = -inf"),
    "clear": ("T.clear(f)", "f = 0"),
    "tile.clear": ("T.tile.clear(f)", "f = 0"),
    "gemm accumulates": ("T.gemm(h, p, f)", "f += h @ p"),
    "gemm_v0 accumulates": ("T.gemm_v0(h, p, f)", "f += h @ p"),
    "gemm with init": ("T.gemm_v0(h, p, f, init=True)", "f = h @ p"),
    "gemm with initC": ("T.gemm(h, p, f, initC=True)", "f = h @ p"),
    "gemm with clear_accum": ("T.gemm(h, p, f, clear_accum=True)", "f = h @ p"),
    "gemm with an extent list": ("T.gemm(h, p, f, [16, 128, 128], initC=True)", "f = h @ p"),
    "gemm of a part": ("T.gemm(h, p, f, [16, 64, 128], initC=True)", "f = h[0:16, 0:64] @ p[0:64, 0:128]"),
    "gemm with transpose_B": ("T.gemm(h, p, f, transpose_B=True)", "f += h @ p.T"),
    "gemm with b_transpose": ("T.gemm(h, p, f, b_transpose=True)", "f += h @ p.T"),
    "gemm with transpose_A": ("T.gemm(p, p, p, transpose_A=True, init=True)", "p = p.T @ p"),
    "gemm with positional transposes": ("T.gemm_v0(p, p, p, True, True, True)", "p = p.T @ p.T"),
    "gemm by position, as TileLang has it": ("T.gemm(p, p, p, True, True, T.GemmWarpPolicy.FullRow, True)", "p = p.T @ p.T"),
    "gemm of slices": ("T.gemm(h[0:16, 0:64], p[64:128, :], f)", "f += h[0:16, 0:64] @ p[64:128, :]"),
    "exp to a buffer": ("T.exp(x, y)", "y = exp(x)"),
    "vexp": ("T.vexp(x, y)", "y = exp(x)"),
    "exp2": ("y[:, :] = T.exp2(x)", "y[:, :] = exp(x * 0.6931471805599453)"),
    "log2": ("y[:, :] = T.log2(x)", "y[:, :] = ln(x) * 1.4426950408889634"),
    "silu": ("T.tile.silu(y, x)", "y = x * sigmoid(x)"),
    "vadd": ("T.vadd(x, y, f)", "f = x + y"),
    "vmax": ("T.vmax(x, 0.0, f)", "f = max(x, 0)"),
    "tile op with a number": ("T.tile.mul(x, x, 0.5)", "x = x * 0.5"),
    "tile op with an element": ("T.tile.sub(x[3, :], x[3, :], v[3])", "x[3, :] = x[3, :] - v[3]"),
    "axpy": ("T.tile.axpy(y, x, 2.0)", "y = y + x * 2"),
    "mul_add_dst": ("T.tile.mul_add_dst(y, x, f)", "y = y + x * f"),
    "clamp": ("T.tile.clamp(y, x, 0.0, 6.0, 16 * 128)", "y = min(max(x, 0), 6)"),
    "clamp as an expression": ("y[:, :] = T.clamp(x, 0.0, 6.0)", "y[:, :] = min(max(x, 0), 6)"),
    "clamp_min": ("T.tile.clamp_min(y, x, 0.0)", "y = max(x, 0)"),
    "tile.cast": ("T.tile.cast(h, x, 'CAST_RINT', 16 * 128)", "h = x"),
    "vcast": ("T.vcast(x, h)", "h = x"),
    "Min": ("y[:, :] = T.Min(x, f)", "y[:, :] = min(x, f)"),
    "Cast": ("T.copy(T.Cast('float32', h) * 2.0, x)", "x = f32(h) * 2"),
    "tile.sin": ("T.tile.sin(y, x)", "y = sin(x)"),
    "tile.round": ("T.tile.round(y, x, 16 * 128)", "y = round(x)"),
    "tile.pow": ("T.tile.pow(y, x, f)", "y = x ** f"),
    "a power": ("y[:, :] = x**3", "y[:, :] = x ** 3"),
    "tile.leaky_relu": ("T.tile.leaky_relu(y, x, 0.1)", "y = leaky_relu(x, 0.1)"),
    "tile.atan2": ("T.tile.atan2(y, x, f)", "y = atan2(x, f)"),
    "hypot": ("y[:, :] = T.hypot(x, f)", "y = hypot(x, f)"),
    "exp2 and silu": ("y[:, :] = T.exp2(x) + T.silu(f)", "y = exp2(x) + silu(f)"),
    "exp10 and log2": ("y[:, :] = T.exp10(x) + T.log2(f)", "y = exp10(x) + log2(f)"),
    "fmod": ("y[:, :] = T.fmod(x, f)", "y = fmod(x, f)"),
    "verf": ("T.verf(x, y)", "y = erf(x)"),
    "where": ("y[:, :] = T.where(x > 0.0, x, f)", "y[:, :] = select(x > 0, x, f)"),
    "isnan": ("y[:, :] = T.if_then_else(T.isnan(x), 0.0, x)", "y[:, :] = select(isnan(x), 0, x)"),
    "reduce_absmax": ("T.reduce_absmax(x, v, dim=1)", "v = rowmax(abs(x))"),
    "row_expand_mul": ("T.tile.row_expand_mul(y, x, v)", "y = x * v[:, None]"),
    "real_shape": ("T.reduce_max(x, v, dim=1, real_shape=[16, 64])", "v = rowmax(x[:, 0:64])"),
    "conditions joined as NumPy does": (
        "y[:, :] = T.where((x > 0.0) & (x < 1.0), x, f)", "y[:, :] = select(x > 0 and x < 1, x, f)",
    ),
    "cast": ("T.copy(T.cast(h, 'float32') * 2.0, x)", "x = f32(h) * 2"),
    "astype": ("T.copy(h.astype('float32'), x)", "x = f32(h)"),
    "reduce_max over rows": ("T.reduce_max(x, v, dim=1)", "v = rowmax(x)"),
    "reduce_max over the last dim": ("T.reduce_max(x, v)", "v = rowmax(x)"),
    "reduce_min over columns": ("T.reduce_min(x, r, dim=0)", "r = colmin(x)"),
    "reduce_sum into an (n, 1) buffer": ("T.reduce_sum(x, w, dim=-1)", "w = rowsum(x)"),
    "reduce_max that merges": ("T.reduce_max(x, v, dim=1, clear=False)", "v = max(v, rowmax(x))"),
    "reduce_sum that merges": ("T.reduce_sum(x, v, dim=1, clear=False)", "v = v + rowsum(x)"),
    "reduction as an expression": ("v[:] = T.reduce_sum(x * x, dim=1)", "v[:] = rowsum(x * x)"),
    "broadcast of row statistics": ("T.tile.broadcast(x, v)", "x = v[:, None]"),
    "broadcast of an (n, 1) buffer": ("T.tile.broadcast(x, w)", "x = w[:, None]"),
    "broadcast of a row": ("T.tile.broadcast(x, r)", "x = r[None, :]"),
    "broadcast along an axis": ("T.tile.broadcast(p, r, axis=1)", "p = r[:, None]"),
    "vbrc of a number": ("T.vbrc(3.0, x)", "x = 3"),
    "Parallel": (
        "for i, j in T.Parallel(16, 128):\n    x[i, j] = T.exp(x[i, j] - v[i]) * r[j]",
        "parallel (i, j) in (16, 128) { x[i, j] = exp(x[i, j] - v[i]) * r[j] }",
    ),
    "Parallel with (n, 1) buffers": (
        "for i, j in T.Parallel(16, 128):\n    x[i, j] /= w[i, 0]",
        "parallel (i, j) in (16, 128) { x[i, j] = x[i, j] / w[i] }",
    ),
    "Parallel with several statements": (
        "for i in T.Parallel(16):\n    v[i] = T.max(v[i], w[i, 0])\n    w[i, 0] *= 2.0",
        "parallel i in 16 {\n  v[i] = max(v[i], w[i])\n  w[i] = w[i] * 2\n}",
    ),
    "serial": ("for i in T.serial(4):\n    T.copy(x, y)", "for i in serial(4) { y = x }"),
    "serial with a start": ("for i in T.serial(1, 4):\n    T.copy(x, y)", "for i in serial(1, 4) { y = x }"),
    "range": ("for i in range(4):\n    T.copy(x, y)", "for i in serial(4) { y = x }"),
    "range with a step": (
        "for i in range(0, 16, 4):\n    T.tile.fill(x[i : i + 4, :], 0)",
        "for i in serial(4) { x[i*4 : i*4 + 4, :] = 0 }",
    ),
    "unroll": ("for i in T.unroll(4):\n    T.copy(x, y)", "for i in serial(4) { y = x }"),
    "Pipelined": ("for i in T.Pipelined(4, num_stages=3):\n    T.copy(x, y)", "for i in pipelined(4, stages=3) { y = x }"),
    "Pipelined with a start": ("for i in T.Pipelined(1, 4):\n    T.copy(x, y)", "for i in pipelined(1, 4) { y = x }"),
    "grid": (
        "for i, j in T.grid(2, 3):\n    x[i, j] = 0.0",
        "for i in serial(2) { for j in serial(3) { x[i, j] = 0 } }",
    ),
    "a row loop": (
        "for i in range(16):\n    T.tile.exp(x[i, :], x[i, :])",
        "for i in serial(16) { x[i, :] = exp(x[i, :]) }",
    ),
    "loops of one name after another": (
        "for i in range(2):\n    x[i, 0] = 0.0\nfor i in range(3):\n    x[i, 0] = 1.0",
        "for i in serial(2) { x[i, 0] = 0 }\nfor i in serial(3) { x[i, 0] = 1 }",
    ),
    "if on a loop variable": (
        "for i in range(4):\n    if i < 2:\n        T.clear(x)\n    else:\n        T.fill(x, 1)",
        "for i in serial(4) { if i < 2 { x = 0 } else { x = 1 } }",
    ),
    "gemm with init at the first step": (
        "for k in range(4):\n    T.gemm_v0(h, p, f, init=(k == 0))",
        "for k in serial(4) { f = select(k == 0, 0, f) + h @ p }",
    ),
    "if at the first step": (
        "for k in range(4):\n    if k == 0:\n        T.clear(f)\n    T.gemm(h, p, f)",
        "for k in serial(4) { if k == 0 { f = 0 } f += h @ p }",
    ),
    "if at any but the first step": (
        "for k in range(4):\n    if k != 0:\n        T.clear(f)",
        "for k in serial(4) { if k != 0 { f = 0 } }",
    ),
    "if at the last step": (
        "for k in range(4):\n    if k == 3:\n        T.clear(f)",
        "for k in serial(4) { if k == 3 { f = 0 } }",
    ),
    "a block order as a hint": ("T.use_swizzle(panel_size=10, enable=True)\nT.clear(x)", "x = 0"),
    "a macro": ("double(y, x)", "y = x + x"),
    "a function of tiles": ("T.copy(scaled(x, 3), y)", "y = x * 3"),
    "a name for an element": (
        "for i in range(16):\n    s = v[i]\n    for j in T.Parallel(128):\n        x[i, j] = x[i, j] * s",
        "for i in serial(16) { parallel j in 128 { x[i, j] = x[i, j] * v[i] } }",
    ),
    "a name for a tile": ("s = x * 2.0\nfor i in range(4):\n    T.copy(s, y)", "for i in serial(4) { y = x * 2 }"),
    "a name for a part": ("s = x[0:8, :]\nT.clear(x)\nT.copy(s, y[0:8, :])", "x = 0\ny[0:8, :] = x[0:8, :]"),
    "whole-buffer arithmetic": ("y[:, :] = (x - v[:, None]) / 2 + -x", "y[:, :] = (x - v[:, None]) / 2 + -x"),
    "a square": ("y[:, :] = x**2", "y[:, :] = x * x"),
    "an augmented whole buffer": ("f += h @ p", "f += h @ p"),
    "a choice": ("x[:, :] = y if c < 2 else f", "x[:, :] = select(c < 2, y, f)"),
    "index arithmetic": ("T.copy(A[c // 2 * 16 + c % 2, 0], x)", "x = A[c//2*16 + c%2, 0]"),
    "ceildiv of an index": ("T.copy(A[T.ceildiv(c, 2) * 16, 0], x)", "x = A[ceildiv(c, 2)*16, 0]"),
    "min of an index": ("T.copy(A[T.min(c * 16, 48), 0], x)", "x = A[min(c*16, 48), 0]"),
    "builtin max of an index": ("T.copy(A[max(c * 16, 3), 0], x)", "x = A[max(c*16, 3), 0]"),
    "constants of the module": ("T.tile.mul(x, x, math.sqrt(SIZE))", "x = x * 4"),
    "T.float32 of a number": ("T.tile.mul(x, x, T.float32(0.5))", "x = x * 0.5"),
}


@pytest.mark.slow(but=78)
@pytest.mark.parametrize("case", WORDS)
def test_a_word_means_what_its_tile_form_means(case: str, python_body, tile_body) -> None:
    python, tile = WORDS[case]
    assert python_body(python) == tile_body(tile)


@pytest.mark.parametrize(
    "word", ["exp", "ln", "log", "sqrt", "rsqrt", "reciprocal", "abs", "relu", "sigmoid", "tanh"], ids=lambda w: f"T.{w}"
)
def test_an_elementary_function_has_four_spellings(word: str, python_body, tile_body) -> None:
    expected = tile_body(f"y = {word}(x)")
    assert all(
        python_body(line) == expected
        for line in (f"T.tile.{word}(y, x)", f"T.{word}(x, y)", f"T.v{word}(x, y)", f"y[:, :] = T.{word}(x)")
    )


@pytest.mark.parametrize(("word", "sign"), [("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/")])
def test_an_operator_has_three_spellings(word: str, sign: str, python_body, tile_body) -> None:
    expected = tile_body(f"f = x {sign} y")
    assert all(
        python_body(line) == expected for line in (f"T.tile.{word}(f, x, y)", f"T.v{word}(x, y, f)", f"f[:, :] = x {sign} y")
    )


@pytest.mark.parametrize(
    ("condition", "value"),
    [("SIZE == 16", 1), ("SIZE > 16", 0), ("not SIZE", 0), ("SIZE > 1 and SIZE < 20", 1), ("SIZE < 1 or SIZE == 16", 1)],
)
def test_a_condition_that_is_known_picks_its_branch(condition: str, value: int, python_body, tile_body) -> None:
    lines = f"if {condition}:\n    T.fill(x, 1)\nelse:\n    T.fill(x, 0)"
    assert python_body(lines) == tile_body(f"x = {value}")


def test_a_name_for_an_index_is_its_expression(python_body, tile_body) -> None:
    assert python_body("row = c * 16\nT.copy(A[row, 0], x)") == tile_body("x = A[c*16, 0]")


def test_a_buffer_of_n_by_1_is_a_vector(python_kernel) -> None:
    shapes = {s.name: s.shape for s in python_kernel("T.clear(x)").body[:8]}
    assert shapes["w"] == shapes["v"] == (16,)
