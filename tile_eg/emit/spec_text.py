"""How to launch a kernel in the simulator, as the TOML that `tile-eg simulate --args` reads."""

from __future__ import annotations

from tile_eg.emit.host import launch_blocks, workspace_bytes
from tile_eg.emit.names import kernel_symbol
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import Program


def spec_text(p: Program) -> str:
    """Blocks, kernel type and arguments; inputs are random numbers, which `file = "x.npy"` replaces."""
    head = f'''\
# Launches kernel {p.name} as it was written for {p.chip}: tile-eg simulate KERNEL.asc --args THIS
kernel = "{kernel_symbol(p)}"
type = "{p.kernel_type}"
blocks = {launch_blocks(p)}
auto_sync = false  # the text holds every flag that it needs
'''
    tensors = (_tensor(t, seed, t.name in p.added_to) for seed, t in enumerate(p.tensors))
    return "\n".join([head, *tensors, f'[[arguments]]\nname = "workspace"\nbytes = {workspace_bytes(p)}\n'])


def _tensor(t: Tensor, seed: int, added_to: bool) -> str:
    shape = ", ".join(map(str, t.shape))
    lines = ["[[arguments]]", f'name = "{t.name}"', f"shape = [{shape}]", f'dtype = "{t.dtype}"']
    if t.output:
        lines += ["output = true", *(['generator = "zeros"  # blocks add to it'] if added_to else [])]
    else:
        lines += [f'generator = "uniform"  # or: file = "{t.name}.npy"', f"seed = {seed}"]
    return "\n".join(lines) + "\n"
