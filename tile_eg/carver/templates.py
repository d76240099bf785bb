"""Sizes for a matrix product, from the estimates of its kernel at each of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tile_eg.carver.arch.ascend import Ascend
from tile_eg.errors import TileError
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.open_kernel import AUTO, OpenKernel
from tile_eg.ops.types import dtype_of
from tile_eg.sizing.candidates import Climb

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


@dataclass(frozen=True)
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
    arch: Ascend = field(default_factory=Ascend)

    def with_arch(self, arch: Ascend) -> MatmulTemplate:
        self.arch = arch
        return self

    def recommend_hints(self, topk: int = 10) -> list[Hint]:
        """At most `topk` sizes that divide M and N, fit the chip's memories, and are estimated fastest, the best first.

        Sums are in f32 (of int8: int32), which is what the cube core has, whatever `accum_dtype` says.
        TileError for a dtype that products are not made of.
        """
        of, out = (self._dtype(name) for name in (self.in_dtype, self.out_dtype))
        total = "i32" if of == "i8" else "f32"
        text = _GEMM.format(m=self.M, n=self.N, k=self.K, of=of, out=out, sum=total)
        kernel = load_text(text, "carver").instantiate(dict.fromkeys(("BM", "BN", "BK"), AUTO))
        assert isinstance(kernel, OpenKernel)
        found = [c for c in Climb(kernel, self.arch.chip, to_values).run() if c.excess <= 1]
        fitting = (c.sizes for c in found if self.M % c.sizes[0] == 0 and self.N % c.sizes[1] == 0)
        return [Hint([rows, columns], [step]) for rows, columns, step in fitting][:topk]

    def _dtype(self, name: str) -> str:
        found = dtype_of(str(name))
        if found is None:
            raise TileError(f"{name!r} is not a dtype of a product", help="float16, bfloat16, float32 and int8 are")
        return found.name
