"""The Beginner level: outputs as expressions of whole tensors, without grid, buffers or loops, become one kernel tree."""

from tile_eg.frontend.tensor.kernel import TensorKernel

__all__ = ["TensorKernel"]
