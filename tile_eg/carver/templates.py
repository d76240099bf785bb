"""Sizes for a matrix product and for what is computed element by element, from the estimates of a kernel at each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from tile_eg.carver.arch.ascend import Ascend
from tile_eg.errors import TileError
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.open_kernel import AUTO, OpenKernel
from tile_eg.ops.records import record
from tile_eg.ops.types import dtype_of
from tile_eg.sizing.candidates import Climb
from tile_eg.utils.npu_arch import AscendArch

_GEMM = """
kernel gemm[BM, BN, BK](A: {of}[{m}, {k}], B: {of}[{k}, {n}]) -> C: {out}[{m}, {n}] {{
  grid (bx, by) = (ceildiv({m}, BM), ceildiv({n}, BN))
  shared   a: {of}[BM, BK], b: {of}[BK, BN]
  fragment c: {sum}[BM, BN] = 0
  for k in pipelined(ceildiv({k}, BK)) {{
    a = A[bx*BM, k*BK]
    b = B[k*BK, by*BN]
    c += a @ b
  }}
  C[bx*BM, by*BN] = c
}}
"""
_ELEMENTS = """
kernel elements[BM, BN](X: {of}[{m}, {n}], Z: {of}[{m}, {n}]) -> Y: {of}[{m}, {n}] {{
  grid (bx, by) = (ceildiv({m}, BM), ceildiv({n}, BN))
  shared   x: {of}[BM, BN], z: {of}[BM, BN]
  x = X[bx*BM, by*BN]
  z = Z[bx*BM, by*BN]
  Y[bx*BM, by*BN] = x + z
}}
"""
_ROWS = """
kernel rows[BM](X: {of}[{m}, {n}]) -> Y: {of}[{m}] {{
  grid bx = ceildiv({m}, BM)
  shared x: {of}[BM, {n}]
  x = X[bx*BM, 0]
  Y[bx*BM] = rowmax(x)
}}
"""


@record
class Hint:
    """Sizes of a block: `block` has its rows and columns, `rstep` how much of the inner dimension is loaded at a time."""

    block: list[int]
    rstep: list[int]


@dataclass
class MatmulTemplate:
    """C[M, N] = A[M, K] @ B[K, N]."""

    M: int
    N: int
    K: int
    in_dtype: str = "float16"
    out_dtype: str = "float16"
    accum_dtype: str = "float32"
    arch: Ascend | AscendArch = field(default_factory=Ascend)

    def with_arch(self, arch: Ascend | AscendArch) -> MatmulTemplate:
        self.arch = arch
        return self

    def recommend_hints(self, topk: int = 10) -> list[Hint]:
        """At most `topk` sizes that divide M and N, fit the chip's memories, and are estimated fastest, the best first.

        Sums are in f32 (of int8: int32), which is what the cube core has, whatever `accum_dtype` says.
        TileError for a dtype that products are not made of.
        """
        of, out = (_dtype(name) for name in (self.in_dtype, self.out_dtype))
        total = "i32" if of == "i8" else "f32"
        text = _GEMM.format(m=self.M, n=self.N, k=self.K, of=of, out=out, sum=total)
        found = _sizes(text, ("BM", "BN", "BK"), self.arch)
        fitting = (sizes for sizes in found if self.M % sizes[0] == 0 and self.N % sizes[1] == 0)
        return [Hint([rows, columns], [step]) for rows, columns, step in fitting][:topk]


@dataclass
class ElementwiseTemplate:
    """Two tensors of one shape and what is computed of them element by element."""

    shape: Sequence[int]
    dtype: str = "float16"
    arch: Ascend | AscendArch = field(default_factory=Ascend)

    def with_arch(self, arch: Ascend | AscendArch) -> ElementwiseTemplate:
        self.arch = arch
        return self

    def recommend_hints(self, topk: int = 10) -> list[Hint]:
        """At most `topk` blocks, the best first: of the last two dimensions, and 1 along those before them.

        No side is longer than its dimension. TileError for an unknown dtype.
        """
        *outer, rows, columns = (1, *self.shape) if len(self.shape) == 1 else self.shape
        text = _ELEMENTS.format(m=prod(outer) * rows, n=columns, of=_dtype(self.dtype))
        inside = ((min(r, rows), min(c, columns)) for r, c in _sizes(text, ("BM", "BN"), self.arch))
        kept = -1 if len(self.shape) == 1 else 0
        blocks = dict.fromkeys((*(1 for _ in outer), *sizes[kept:]) for sizes in inside)
        return [Hint(list(block), []) for block in blocks][:topk]


@dataclass
class GeneralReductionTemplate:
    """Rows that are reduced: `structure` is "SR", rows that are kept and columns that are not."""

    structure: str
    shape: Sequence[int]
    dtype: str = "float16"
    arch: Ascend | AscendArch = field(default_factory=Ascend)

    def with_arch(self, arch: Ascend | AscendArch) -> GeneralReductionTemplate:
        self.arch = arch
        return self

    def recommend_hints(self, topk: int = 10) -> list[Hint]:
        """At most `topk` numbers of rows whose whole rows fit UB, the best first. TileError for another structure, or an
        unknown dtype."""
        if self.structure != "SR" or len(self.shape) != 2:
            raise TileError(f"a reduction of {self.structure!r} has no hints here", help='"SR" of rows and columns has')
        text = _ROWS.format(m=self.shape[0], n=self.shape[1], of=_dtype(self.dtype))
        blocks = dict.fromkeys(min(rows, self.shape[0]) for (rows,) in _sizes(text, ("BM",), self.arch))
        return [Hint([rows], []) for rows in blocks][:topk]


def _sizes(text: str, names: Sequence[str], arch: Ascend | AscendArch) -> list[tuple[int, ...]]:
    """Sizes of a kernel that fit the chip's memories, the best first."""
    kernel = load_text(text, "carver").instantiate(dict.fromkeys(names, AUTO))
    assert isinstance(kernel, OpenKernel)
    return [c.sizes for c in Climb(kernel, arch.chip, to_values).run() if c.excess <= 1]


def _dtype(name: str) -> str:
    found = dtype_of(str(name))
    if found is None:
        raise TileError(f"{name!r} is not a dtype of a kernel's values", help="float16, bfloat16, float32 and int8 are")
    return found.name
