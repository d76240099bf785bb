"""Functions that return expressions of whole tensors, as kernels: a call gives what they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tile_eg.errors import TileError
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel
from tile_eg.jit.any_size import AnySizeKernel, open_names
from tile_eg.language.kernels import PrimFunc


def tensor_kernel(
    function: PrimFunc,
    build: Callable[[Mapping[str, Any]], Kernel],
    positions: Sequence[int],
    placed: Callable[[Kernel | KeptKernel, Sequence[int], Sequence[int]], Any],
) -> Any:
    """The kernel, or one that has its sizes from each call; `placed` makes it of a tree and of what a call gives and makes.

    TileError where `jit` was told positions of outputs.
    """
    from tile_eg.frontend.python import arguments_of, output_names

    name = function.function.__name__
    if positions:
        message = f"{name} returns its outputs: out_idx and workspace_idx say nothing about it"
        raise TileError(message, help="leave them away")
    arguments = arguments_of(function)
    if open_names(arguments):
        outputs = tuple(range(len(arguments) - len(output_names(function)), len(arguments)))
        return AnySizeKernel(name, arguments, build, (outputs, ()), placed)
    kernel = build({})
    return placed(kernel, [i for i, t in enumerate(kernel.tensors) if t.output], ())
