"""Arguments of TileLang's words that would say how something is done: that is found here, so that they cannot be kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_eg.errors import Span, TileError

_ORDER = "the order of a loop's instructions, and where cores wait for each other, are found"
_GPU = "an NPU has nothing like it"
_EXTRA = "a loop has no annotations here"
REFUSED: dict[str, dict[str, tuple[Any, str]]] = {
    "Kernel": {"pipeline": (None, "num_stages of T.Pipelined says how many buffers a loop has"), "prelude": (None, _GPU)},
    "serial": {"annotations": (None, _EXTRA)},
    "unroll": {"explicit": (None, "what is written out is found"), "annotations": (None, _EXTRA)},
    "Pipelined": {
        "order": (None, _ORDER), "stage": (None, _ORDER), "sync": (None, _ORDER), "group": (None, _ORDER),
        "cross_interval": (1, _ORDER),
    },
    "Parallel": {"coalesced_width": (None, _GPU)},
    "copy": {"coalesced_width": (None, _GPU)},
    "gemm": {"k_pack": (1, _GPU), "wg_wait": (0, _GPU)},
    "use_swizzle": {"order": ("row", "the order of blocks is found"), "enable": (True, "the order of blocks is found")},
}  # fmt: skip
"""By word and argument: the one value that it may have, which is its default, and why it can have no other."""
ATTRIBUTES = {"enable_auto_sync": (True,), "tir.noalias": (True,)}
"""Attributes of a function, and what they may be."""


def refuse(word: str, given: Mapping[str, Any], span: Span) -> None:
    """TileError for an argument that cannot be kept, unless it has its default."""
    for name, (default, why) in REFUSED.get(word, {}).items():
        if name in given and given[name] is not default and given[name] != default:
            raise TileError(f"T.{word} takes no {name}: {why}", span, help=f"leave {name} out")


def check_attributes(given: Any, span: Span) -> None:
    """TileError for an attribute of a function that is unknown, or asks for what is not there."""
    if not isinstance(given, Mapping):
        raise TileError("T.func_attr takes a dictionary", span, help='T.func_attr({"enable_auto_sync": True})')
    for name, value in given.items():
        if not any(value is allowed for allowed in ATTRIBUTES.get(name, ())):
            what = f"is {ATTRIBUTES[name][0]} here, not {value!r}" if name in ATTRIBUTES else "has no meaning here"
            raise TileError(f"the attribute {name!r} {what}", span, help="leave it out")
