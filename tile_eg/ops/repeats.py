"""Vector instructions whose masks, repeats and strides an author writes himself.

Sources: WholeReduceMax.md, WholeReduceSum.md, BlockReduceMax.md, BlockReduceSum.md and Gatherb.md of the vendor.
"""

from __future__ import annotations

from tile_eg.ops.records import record
from tile_eg.ops.types import F16, F32, I16, I32, U16, U32, DType

FLOATS = (F16, F32)
WORDS = (F16, F32, I16, U16, I32, U32)
ORDERS = ("ORDER_VALUE_INDEX", "ORDER_INDEX_VALUE", "ORDER_ONLY_VALUE", "ORDER_ONLY_INDEX")


@record
class Repeated:
    """`T.tile.word(dst, src, ..., *numbers)`, the instruction `native`; `priced_as` names its entry in the chip tables.

    `limits` are the numbers in the author's order, with the largest value of each. `second`: the element type of a second
    source. `ordered`: its last argument says what is written, the value, its index, or both.
    """

    word: str
    native: str
    limits: tuple[tuple[str, int], ...]
    types: tuple[DType, ...]
    priced_as: str
    second: DType | None = None
    ordered: bool = False

    @property
    def instruction(self) -> str:
        return f"vrepeated_{self.word}"


_WHOLE = (("mask", 128), ("repeattimes", 255), ("dstrepstride", 65535), ("srcblkstride", 65535), ("srcrepstride", 65535))
_BLOCK = (("repeat", 255), ("mask", 128), ("dstPepStride", 65535), ("srcBlkStride", 65535), ("srcRepStride", 65535))
_OFFSETS = (("repeat_time", 255), ("dst_blk_stride", 255), ("dst_rep_stride", 255))
REPEATED: dict[str, Repeated] = {
    r.word: r
    for r in (
        Repeated("wholereducemax", "WholeReduceMax", _WHOLE, FLOATS, "whole_max", ordered=True),
        Repeated("wholereducemin", "WholeReduceMin", _WHOLE, FLOATS, "whole_max", ordered=True),
        Repeated("wholereducesum", "WholeReduceSum", _WHOLE, FLOATS, "whole_sum"),
        Repeated("block_reduce_max", "BlockReduceMax", _BLOCK, FLOATS, "blockmax"),
        Repeated("block_reduce_min", "BlockReduceMin", _BLOCK, FLOATS, "blockmax"),
        Repeated("block_reduce_sum", "BlockReduceSum", _BLOCK, FLOATS, "blocksum"),
        Repeated("gatherb", "Gatherb", _OFFSETS, WORDS, "gatherb", second=U32),
    )
}
"""By their words in `T.tile`."""
