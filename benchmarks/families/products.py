"""Products: plain, with an epilogue, quantised, of experts."""

from __future__ import annotations

from benchmarks.families.example import Example
from benchmarks.families.product_epilogues import EPILOGUES
from benchmarks.families.product_experts import MOE
from benchmarks.families.product_gemms import GEMM
from benchmarks.families.product_quantised import QUANTISED

EXAMPLES: list[Example] = [*GEMM, *EPILOGUES, *QUANTISED, *MOE]
