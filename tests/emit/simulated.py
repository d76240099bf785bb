"""Runs a hand-built program: synchronised, printed as Ascend C, simulated. Anything that the simulator minds is a failure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tile_eg.emit.ascend_c import kernel_text
from tile_eg.emit.host import launch_blocks
from tile_eg.emit.sync import synchronise
from tile_eg.ir.program import Program
from tile_eg.ops.types import DType


def numpy_type(dtype: DType) -> np.dtype:
    if dtype.name == "bf16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(dtype.numpy)


def simulated(program: Program, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    from tile_eg.simulator.run import simulate

    p = synchronise(program)
    given = [arrays[t.name] if not t.output else np.zeros(t.shape, numpy_type(t.dtype)) for t in p.tensors]
    outputs = [n for n, t in enumerate(p.tensors) if t.output]
    text = kernel_text(p)
    run = simulate(
        text, p.name, given, kernel_type=p.kernel_type, launch=launch_blocks(p), workspace=p.workspace, outputs=outputs
    )
    assert run.ok, "\n".join(f"{f}\n    {text.splitlines()[f.line - 1].strip()}" for f in run.findings)
    return {p.tensors[n].name: a for n, a in zip(outputs, run.outputs, strict=True)}
