"""The kernels that are tried: the examples, the corner cases of the tests, and small ones for what those do not meet."""

from __future__ import annotations

from pathlib import Path

from benchmarks.rules.texts import LONG_TEXTS, texts
from tile_eg.chips import DEFAULT_CHIP
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.passed import passed

EXAMPLES = Path(__file__).parents[2] / "examples"
LARGE: dict[str, tuple[str, dict[str, int]]] = {
    "gemm 4096": ("gemm", {"M": 4096, "N": 4096, "K": 4096}),
    "gemm 16x5120x5120": ("gemm", {"M": 16, "N": 5120, "K": 5120, "BM": 16}),
    "gemm of one tile, deep": ("gemm", {"M": 128, "N": 128, "K": 16384, "BN": 128, "BK": 128}),
    "gemm one block": ("gemm", {"M": 128, "N": 128, "K": 512, "BN": 128}),
    "gemm_transposed 2048": ("gemm_transposed", {"M": 2048, "N": 2048, "K": 2048}),
    "vector_add 4096": ("vector_add", {"M": 4096, "N": 4096}),
    "flash_attention 2048": ("flash_attention", {"S": 2048, "BM": 128, "BN": 128, "D": 128}),
    "flash_attention of 16 heads": ("flash_attention", {"S": 1024, "H": 16, "BM": 128, "BN": 128}),
    "flash_attention of 8 heads": ("flash_attention", {"S": 1024, "H": 8}),
    "flash_attention of three trips": ("flash_attention", {"S": 192}),
    "flash_attention_causal 2048": ("flash_attention_causal", {"S": 2048, "H": 8, "BM": 128, "BN": 128, "D": 128}),
    "layer_norm 4096x4096": ("layer_norm", {"M": 4096, "N": 4096, "BM": 4}),
    "online_softmax 4096x32768": ("online_softmax", {"M": 4096, "N": 32768, "BM": 1, "BN": 8192}),
    "softmax 8192x1024": ("softmax", {"M": 8192, "N": 1024}),
}
ON_950 = {
    "fixpipe-ub": "exp of a product", "fixpipe-ub-cast": "uneven: exp of a product in f16", "ub-l1": "product of an exp",
    "fixpipe-ub-relu": "uneven: exp of the relu of a product", "l1-ub": "product and the sums of its operand",
    "scale-before-loop": "flash_attention of 8 heads",
    "v-mul-add-outer": "y + v[:, None] * w[None, :]",
}  # fmt: skip
"""Rules for paths that only the 950 has, or that pay where those are taken, and a kernel that takes each."""
SUFFIX = " on the 950"
SHOWN_BY = {
    "v-binary-of-columns": "columns less a tile", "v-binary-with-columns": "a tile less columns",
    "ub-columns": "columns less a tile", "ub-lies": "columns less a tile", "ub-reshaped": "rows of another length",
    "every-by-turns": "every second number", "v-turned-columns": "every second number",
    "v-binary-in-place": "sums of some rows", "v-binary-behind": "sums below rows",
    "v-binary-begins": "sums above differences", "v-put-begins": "sums below rows",
    "v-binary-below-rows": "running sums of columns", "v-binary-above-rows": "running sums upwards",
    "v-keep-rows": "running sums upwards", "ub-rows-of-trip": "rows taken one by one",
    "const-sub": "UB full: 1 - x * x", "const-add": "twelve times c + x", "sub-const": "twelve times x - c",
    "const-mul": "twelve times c * x", "max-const": "twelve times max(x, c)", "const-max": "twelve times max(c, x)",
    "min-const": "twelve times min(x, c)", "const-min": "twelve times min(c, x)", "v-choose-const": "twelve times x > c",
    "choose-const": "twelve times x > c", "choose-const-left": "twelve times c < x",
    "add-of-call": "twelve times x + s", "of-call-add": "twelve times s + x", "sub-of-call": "twelve times x - s",
    "mul-of-call": "twelve times x * s", "of-call-mul": "twelve times s * x", "max-of-call": "twelve times max(x, s)",
    "of-call-max": "twelve times max(s, x)", "min-of-call": "twelve times min(x, s)", "of-call-min": "twelve times min(s, x)",
    "of-call-sub": "UB full: s - x * x", "v-of-call": "twelve times x + s", "v-fill-of-call": "s / x",
    "nest-of-call": "nest of a number of the call", "v-axpy-of-call": "y + x * s",
    "col-operand": "twelve times x - w[None, :]", "col-operand-left": "twelve times w[None, :] - x",
    "v-scalar": "twelve times x + c", "persistent": "softmax 8192x1024", "keep": "flash_attention 2048",
    "v-sum-of-products": "layer_norm 4096x4096",
    "row-operand": "twelve times x - v[:, None]", "row-operand-left": "twelve times v[:, None] - x",
    "v-outer": "twelve times x - v[:, None] * w[None, :]",
    "one-row": "sum of the sums of rows", "reduced-row": "rows times one number and another one a row",
    "number-and-row-factor": "rows times one number and another one a row",
    "column-factors": "tiles times what is the same in all trips", "row-factors": "x * v[:, None] * abs(v)[:, None]",
    "index-const": "places", "flat-ramp": "twelve times x + bx in a nest",
    "add-index": "twelve times x + bx", "index-add": "UB full: bx + x", "skew": "flash_attention of three trips",
    "row-stays": "online_softmax 4096x32768", "row-stays-first": "online_softmax 4096x32768",
    "gm-ub-stays": "online_softmax 4096x32768", "lasting-depth": "online_softmax 4096x32768",
    "handed-alone": "stores with one buffer", "workspace-panel": "gelu of a wide product",
    "workspace-ub-panel": "gelu of a wide product",
    "workspace-l1-strips": "flash_attention of 16 heads", "v-cast-strips": "flash_attention of 16 heads",
    "mmad-mx": "product with scales on the 950", "mmad-mx-accumulate": "products with scales on the 950",
    "short-positions": "flash_attention_causal 2048", "v-short-ramp": "flash_attention_causal 2048",
} | {r: k + SUFFIX for r, k in ON_950.items()}  # fmt: skip
"""Kernels that are tried first, for rules that match in many."""


def small(name: str) -> Kernel:
    """One of the small ones."""
    return made(texts()[name], name)


def made(text: str, name: str) -> Kernel:
    """The kernel of a text, for any numbers of a call."""
    template = load_text(text, f"{name}.tile")
    return template.instantiate({n: passed(n) for n in template.numbers})


def chip_of(name: str) -> str:
    """The chip that a kernel is tried on."""
    return "950" if name.endswith(SUFFIX) else DEFAULT_CHIP


def kernels() -> dict[str, Kernel]:
    """All of them by name, small ones first."""
    files = {f.stem: f.read_text() for f in sorted(EXAMPLES.glob("*.tile"))}
    out = {n: made(t, n) for n, t in (texts() | LONG_TEXTS).items()}
    out |= {f"examples/{n}": load_text(t, f"{n}.tile").instantiate({}) for n, t in files.items()}
    out |= {n: load_text(files[f], f"{f}.tile").instantiate(sizes) for n, (f, sizes) in LARGE.items()}
    return out | {n + SUFFIX: out[n] for n in ON_950.values()}
