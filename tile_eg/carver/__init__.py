"""TileLang's `carver`: sizes of blocks worth trying, best first by the quick estimate of `tile_eg.sizing`.

The search itself finds sizes too, and compiles the best of them: `gemm(M, N, K, block_M=T.auto, block_N=T.auto, K_L1=T.auto)`.
"""

from tile_eg.carver.templates import ElementwiseTemplate, GeneralReductionTemplate, Hint, MatmulTemplate
from tile_eg.jit.refused import names_of

__all__ = ["ElementwiseTemplate", "GeneralReductionTemplate", "Hint", "MatmulTemplate"]
__getattr__ = names_of("tile_eg.carver", {}, "leave sizes open instead: kernel(..., block_M=T.auto) lets the search find them")
