"""Vector instructions whose masks, repeats and strides the author wrote, as Ascend C."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tile_eg.emit.ascend_c.index import Scope, call
from tile_eg.emit.ascend_c.vector import tile
from tile_eg.ir.program import Instr
from tile_eg.ops.repeats import REPEATED, Repeated
from tile_eg.ops.types import U16, U32

PARAMS = {"Gatherb": "AscendC::GatherRepeatParams"}
"""Instructions that take their strides as one argument."""


def _repeated(entry: Repeated, s: Scope, i: Instr) -> list[str]:
    operands = [s.at(tile(i, o)) for o in (i.dst, *i.srcs)]
    if entry.native == "Gatherb":
        dtype = s.buffer(tile(i, i.dst)).dtype
        seen = U16 if dtype.bytes == 2 else U32
        behind = f".ReinterpretCast<{seen.ascend}>()" if dtype != seen else ""
        operands[:2] = [o + behind for o in operands[:2]]
    first, *rest = map(str, i.steps)
    numbers = [first, f"{PARAMS[entry.native]}({', '.join(rest)})"] if entry.native in PARAMS else [first, *rest]
    return call(entry.native, *operands, *numbers, *([f"AscendC::ReduceOrder::{i.mode}"] if i.mode else []))


REPEATS: dict[str, Callable[[Scope, Instr], list[str]]] = {r.instruction: partial(_repeated, r) for r in REPEATED.values()}
