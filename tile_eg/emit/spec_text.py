"""How to launch a kernel in the simulator, as the TOML that `tile-eg simulate --args` reads."""

from __future__ import annotations

from collections.abc import Set

from tile_eg.emit.host import launch_blocks, workspace_bytes
from tile_eg.emit.names import kernel_symbol
from tile_eg.inputs import USUAL
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.passed import examples
from tile_eg.ir.program import Program


def spec_text(p: Program, meaning: str = "", alike: Set[str] = frozenset()) -> str:
    """Blocks, kernel type, arguments, and what the kernel means: `.tile` text, from which inputs and expected outputs follow.

    To the tensors of `alike` blocks store equal values at one place. Without a meaning inputs are random numbers, and nothing is
    expected of outputs.
    """
    head = f'''\
# Launches kernel {p.name} as it was written for {p.chip}: tile-eg simulate KERNEL.asc --args THIS
kernel = "{kernel_symbol(p)}"
type = "{p.kernel_type}"
blocks = {launch_blocks(p)}
auto_sync = false  # the text holds every flag that it needs
'''
    added = p.added_to - {t.name for t in p.tensors if t.given}
    tensors = (_tensor(t, seed, t.name in added, bool(meaning), t.name in alike) for seed, t in enumerate(p.tensors))
    workspace = f'[[arguments]]\nname = "workspace"\nbytes = {workspace_bytes(p)}\n'
    sizes = (f'[[arguments]]\nname = "{n}"\nvalue = {value}\n' for n, value in (p.sizes.usual if p.sizes else ()))
    numbers = (f'[[arguments]]\nname = "{n}"\nvalue = {x}  # a number of each launch\n' for n, x in examples(p).items())
    return "\n".join([head + _meaning(meaning), *tensors, workspace, *sizes, *numbers])


def _meaning(text: str) -> str:
    if not text:
        return '# no meaning: outputs are compared with nothing, but where one has expect = "C.npy"\n'
    sets = ", ".join(f'"{name}"' for name in USUAL)
    return f"inputs = [{sets}]  # drawn for tensors without a file, a run for each\nseed = 0\nmeaning = '''\n{text}'''\n"


def _tensor(t: Tensor, seed: int, added_to: bool, drawn: bool, alike: bool) -> str:
    shape = ", ".join(map(str, t.shape))
    lines = ["[[arguments]]", f'name = "{t.name}"', f"shape = [{shape}]", f'dtype = "{t.dtype}"']
    if t.output:
        lines += ["output = true", *(['generator = "zeros"  # blocks add to it'] if added_to else [])]
        lines += ["alike = true  # blocks store equal values at one place"] if alike else []
    elif drawn:
        lines += [f'# drawn, or: file = "{t.name}.npy"']
    else:
        lines += [f'generator = "uniform"  # or: file = "{t.name}.npy"', f"seed = {seed}"]
    return "\n".join(lines) + "\n"
