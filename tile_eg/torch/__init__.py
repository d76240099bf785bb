"""Kernels in torch: `register` makes one an operator of torch's, with shapes, gradients and compilation.

torch is loaded here alone, and only when this package is.
"""

from __future__ import annotations

from tile_eg.torch.registered import register

__all__ = ["register"]
