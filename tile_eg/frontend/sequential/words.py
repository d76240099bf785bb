"""What the words of a kernel that is kept mean without their order: flags between cores are marks, others are nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tile_eg.errors import Note, Span, TileError
from tile_eg.frontend.expert.words import CORES
from tile_eg.frontend.python.placement_words import HANDLERS, LEVELS
from tile_eg.frontend.python.product_words import product
from tile_eg.frontend.python.values import Buffer, NewBuffer, as_dtype, as_region, describe, is_index
from tile_eg.frontend.python.words import copied, known, sizes
from tile_eg.frontend.sequential.parts import Mark
from tile_eg.frontend.sequential.placed import Placed
from tile_eg.ir import index as ix
from tile_eg.ir.kernel import Region
from tile_eg.ir.program import AIC, AIV
from tile_eg.ops.records import record

OF_CUBE = ("fix", "m", "mte1")
"""Pipes that only the cube core has; vector cores alone have V, and mostly use MTE3."""


@record
class Scope:
    """What `T.Scope("C")` gives: the core that its body runs on."""

    core: str


def _scope(r: Placed, span: Span, name: Any) -> Scope:
    core = CORES.get(name.upper()) if isinstance(name, str) else None
    if core is None:
        raise TileError(f"there is no scope {name!r}", span, help='"C" is the cube core, "V" are the vector cores')
    return Scope(core)


def _nothing(r: Placed, span: Span, *_: Any, **__: Any) -> None:
    """Flags and barriers of one core order its pipes; its statements stand in their order."""


def _set(r: Placed, span: Span, pipe: Any, flag: Any, mode: Any = 2) -> None:
    core = r.core or (AIC if str(pipe).lower() in OF_CUBE else AIV)
    if mode == 2:
        _mark(r, span, Mark(False, _number(flag, span), core, str(pipe), span))
    else:
        r.alike.add((core, _number(flag, span)))


def _wait(r: Placed, span: Span, flag: Any, pipe: Any = "") -> None:
    if r.core is None:
        raise TileError("which core waits?", span, help='write it in T.Scope("C") or in T.Scope("V")')
    _mark(r, span, Mark(True, _number(flag, span), r.core, str(pipe), span))


def _mark(r: Placed, span: Span, mark: Mark) -> None:
    r.statements.append(mark)  # type: ignore[arg-type]


def _number(flag: Any, span: Span) -> ix.Expr:
    if not is_index(flag):
        raise TileError(f"the number of a flag is a whole number, not {describe(flag)}", span)
    return ix.wrap(flag)


def _alloc(level: str, r: Placed, span: Span, shape: Any, dtype: Any, *_: Any, **__: Any) -> NewBuffer:
    return NewBuffer(level, as_dtype(dtype, span), sizes(shape, "the size of a buffer", span))


def _address(r: Placed, span: Span, addresses: Any) -> None:
    for buffer, at in addresses.items() if isinstance(addresses, dict) else ():
        if isinstance(buffer, Buffer):
            r.addresses[buffer.name] = known(int(at) if isinstance(at, float) and at == int(at) else at, "an address", span)


def _printed(r: Placed, span: Span, *_: Any, **__: Any) -> None:
    r.notes.append(Note("this prints only in a kernel that is kept as it is written", span))


def _copy(r: Placed, span: Span, src: Any, dst: Any, size: Any, **options: Any) -> None:
    """A copy that turns a tile on its way to L0: the products that read it turn it back."""
    if not options["transpose"]:
        return HANDLERS["copy"](r, span, src, dst, size, **options)
    to = as_region(dst, span)
    if r.levels.get(to.name) not in ("L0A", "L0B") or len(to.shape) != 2:
        raise TileError("T.copy with transpose is not supported outside of L0", span, help="T.gemm takes transposed operands")
    r.turned.add(to.name)
    _, value = copied(src, _flipped(to), None if size is None else sizes(size, "an extent", span), span)
    r.assign(to, value, span)
    return None


def _flipped(to: Region) -> Any:
    """A window of the same place with the two sizes exchanged, as the shape that a copy asks for."""
    return Buffer(to.name, None, (to.shape[1], to.shape[0]), "fragment")  # type: ignore[arg-type]


def _mma(r: Placed, span: Span, a: Any, b: Any, c: Any, init: Any) -> None:
    of_a, of_b = (as_region(v, span).name in r.turned for v in (a, b))
    product(r, span, (a, b, c), None, of_a, of_b, init)


WORDS: dict[str, Callable[..., Any]] = {
    **HANDLERS,
    **dict.fromkeys(("set_flag", "wait_flag", "barrier_all", "pipe_barrier", "sync_all"), _nothing),
    "set_cross_flag": _set, "wait_cross_flag": _wait, "Scope": _scope, "annotate_address": _address,
    "copy": _copy, "mma": _mma, "alloc_ub": partial(_alloc, "UB"),
    **{f"alloc_{level}": partial(_alloc, level) for level in LEVELS if level != "UB"},
    **dict.fromkeys(("printf", "dump_tensor", "device_assert"), _printed),
}  # fmt: skip
