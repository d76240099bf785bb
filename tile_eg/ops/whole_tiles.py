"""Operations on whole tiles: an element of the result depends on others than the one in its place.

Each has one vector instruction, or a row of them, that works on tiles whose elements lie in one run. Frontends, the reference
meaning, the rules' numbers and the text of the instruction take it from this table.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod
from typing import Any

from tile_eg.ops.records import record
from tile_eg.ops.types import BF16, F16, F32, FLOATS, I8, I16, I32, U8, U16, U32, DType

Shape = tuple[int, ...]
Numbers = tuple[int, int]
WORDS = (F16, F32, I16, I32, U16, U32)
SORTED = 32
"""Elements that one repeat of an instruction sorts."""
MOST_SORTED = 255 * SORTED
"""Elements that are sorted at once: the repeats of an instruction."""
LONGEST = 4095
"""Pairs of a list that is merged (`MrgSort4Info.elementLengths`)."""

TURNED = 16
"""Rows of 32 bytes that one repeat of an instruction makes columns of (TransDataTo5HD)."""
IN_BLOCKS = -1
"""Where a gather begins: its offsets are those of rows that each begin at a multiple of 32 bytes."""


@record
class WholeTile:
    """`operands` tiles and two whole numbers, whose names are `numbers` (empty: none); the result has the first one's dtype, or
    `result`.

    `meaning(module, *arrays, *numbers)` takes arrays of any shape and gives the result's elements in one run; `shape` that of the
    result, from the operands' shapes and the numbers, or says what is wrong as a text. `types` are those of the first operand,
    `second` that of the other one where it has its own. `default` are the numbers
    that stand for those that are left out. `scratch` are the elements of the first one's dtype that the instruction
    keeps beside its result, `doubled` that these are as many as the result has, and `worked` those that it works through, from
    how many the result has. `moves`: where an element goes does not depend on its value. `made_of_others`: no instruction takes
    any tile; `frontend/ssa/whole_tiles.py` makes it of what there is. `by_rows`: the instruction's numbers are the rows and
    columns that it goes through, by which its time goes.
    """

    name: str
    meaning: Callable[..., Any]
    shape: Callable[[tuple[Shape, ...], Numbers], Shape | str]
    operands: int = 1
    numbers: tuple[str, ...] = ()
    types: tuple[DType, ...] = WORDS
    second: DType | None = None
    result: DType | None = None
    default: Callable[[tuple[Shape, ...]], Numbers] = lambda shapes: (0, 0)
    scratch: Callable[[Numbers], int] = lambda numbers: 0
    moves: bool = False
    made_of_others: bool = False
    doubled: bool = False
    by_rows: bool = False
    worked: Callable[[int, Numbers], int] = lambda count, numbers: count


def padded(n: int) -> int:
    """So many elements in whole groups that one instruction sorts."""
    return -(-n // SORTED) * SORTED


@record
class Turns:
    """How a tile of whole squares is transposed: `calls` instructions, each of `repeats` squares, that lie side by side (`along`)
    or one below the other. A square is `TURNED` rows of 32 bytes."""

    calls: int
    repeats: int
    along: bool

    @classmethod
    def of(cls, rows: int, cols: int, dtype: DType) -> Turns:
        """The fewest instructions for so many rows and columns of elements of 16 or 32 bits."""
        down, across = -(-rows // TURNED), -(-cols * dtype.bytes // 32)
        return cls(down, across, True) if down <= across else cls(across, down, False)


def _turned(m: Any, x: Any, rows: int, cols: int) -> Any:
    """Of a tile's own rows, or of as many as its elements are taken to lie in."""
    return (x.reshape(rows, cols) if rows else x).T.reshape(-1)


def _gathered(m: Any, x: Any, at: Any, base: int, _: int) -> Any:
    """An offset outside of the tile is a finding of the simulator; here it wraps around."""
    return x.reshape(-1)[(at.reshape(-1).astype(m.int64) + base) // x.dtype.itemsize % x.size]


def _every(m: Any, x: Any, first: int, step: int) -> Any:
    return x.reshape(-1)[first::step]


def _swapped(m: Any, x: Any, *_: int) -> Any:
    return m.flip(x.reshape(-1, 2), 1).reshape(-1)


def _sorted(m: Any, x: Any, count: int, keep: int) -> Any:
    """Pairs of value and index, the largest value first, equal ones in their order; behind them -inf with what indices follow."""
    values = m.concatenate([x.reshape(-1)[:count], m.full(padded(count) - count, -m.inf, x.dtype)])
    order = m.lexsort((m.arange(values.size), -values))[:keep]
    return m.stack([values[order], order.astype(x.dtype)], axis=1).reshape(-1)


def _merged(m: Any, x: Any, y: Any, *_: int) -> Any:
    pairs = m.concatenate([x.reshape(-1, 2), y.reshape(-1, 2)])
    return pairs[m.lexsort((m.arange(len(pairs)), -pairs[:, 0]))].reshape(-1)


def _gather_shape(shapes: tuple[Shape, ...], numbers: Numbers) -> Shape | str:
    return shapes[1]


def _every_shape(shapes: tuple[Shape, ...], numbers: Numbers) -> Shape | str:
    first, step = numbers
    if (first, step) not in PATTERNS:
        return f"every second or fourth element can be taken, every(x, 1, 2), not steps of {step} from {first} on"
    count = prod(shapes[0])
    return (-(-(count - first) // step),) if first < count else f"there is no element {first} of {count}"


def _swap_shape(shapes: tuple[Shape, ...], numbers: Numbers) -> Shape | str:
    count = shapes[0][-1]
    return shapes[0] if count % 2 == 0 else f"rows of {count} elements have no pairs"


def _sort_shape(shapes: tuple[Shape, ...], numbers: Numbers) -> Shape | str:
    count, keep = numbers
    if not 0 < count <= prod(shapes[0]):
        return f"{count} of {prod(shapes[0])} elements cannot be sorted"
    if count > MOST_SORTED:
        return f"{MOST_SORTED} elements can be sorted at once, not {count}: sort parts of them, and merge what is kept of each"
    if not 0 < keep <= padded(count):
        return f"{count} elements are {padded(count)} pairs when they are sorted, not {keep}"
    return (2 * keep,)


def _summed(m: Any, x: Any, axis: int, reverse: int) -> Any:
    turned = x[(slice(None),) * axis + (slice(None, None, -1),)] if reverse else x
    made = m.cumsum(turned, axis=axis, dtype=_in_f32(m, x))
    return (made[(slice(None),) * axis + (slice(None, None, -1),)] if reverse else made).reshape(-1).astype(x.dtype)


def _multiplied(m: Any, x: Any, axis: int, reverse: int) -> Any:
    turned = m.flip(x, axis) if reverse else x
    made = m.cumprod(turned, axis=axis, dtype=_in_f32(m, x))
    return (m.flip(made, axis) if reverse else made).reshape(-1).astype(x.dtype)


def _in_f32(m: Any, x: Any) -> Any:
    """The type in which floats of 16 bits are added up, and any other's own."""
    return m.float32 if x.dtype.itemsize == 2 else x.dtype


def _first_extreme(largest: bool) -> Callable[..., Any]:
    """The first place of the largest or smallest element along an axis."""
    return lambda m, x, axis, _: (m.argmax if largest else m.argmin)(x, axis=axis).astype(m.int32).reshape(-1)


def _flipped(shapes: tuple[Shape, ...], numbers: Numbers) -> Shape | str:
    return shapes[0][::-1] if len(shapes[0]) == 2 else "rows and columns are transposed: a tile of two dimensions"


def _same(shapes: tuple[Shape, ...], numbers: Numbers) -> Shape | str:
    axis, reverse = numbers
    if not 0 <= axis < len(shapes[0]) or reverse not in (0, 1):
        return f"a tile of {len(shapes[0])} dimensions has no axis {axis}"
    return shapes[0]


def _reduced(shapes: tuple[Shape, ...], numbers: Numbers) -> Shape | str:
    same = _same(shapes, (numbers[0], 0))
    return same if isinstance(same, str) else (*same[: numbers[0]], *same[numbers[0] + 1 :]) or (1,)


def _all(shapes: tuple[Shape, ...]) -> Numbers:
    return prod(shapes[0]), padded(prod(shapes[0]))


def _last(shapes: tuple[Shape, ...]) -> Numbers:
    return len(shapes[0]) - 1, 0


def _pairs(shapes: tuple[Shape, ...]) -> Numbers:
    return prod(shapes[0]) // 2, prod(shapes[1]) // 2


def _reshaped(shapes: tuple[Shape, ...], numbers: Numbers) -> Shape | str:
    """Rows and columns; one number is a vector's length."""
    shape = numbers if numbers[1] else numbers[:1]
    if prod(shape) != prod(shapes[0]) or 0 in shape:
        return f"{prod(shapes[0])} elements have no shape {' x '.join(map(str, shape))}"
    return shape


def _merge_shape(shapes: tuple[Shape, ...], numbers: Numbers) -> Shape | str:
    if any(2 * n != prod(s) for n, s in zip(numbers, shapes, strict=True)):
        return "pairs of a value and an index are merged: an even number of elements"
    if max(numbers) > LONGEST:
        return f"lists of up to {LONGEST} pairs can be merged, not of {max(numbers)}"
    return (2 * sum(numbers),)


WHOLE_TILES: dict[str, WholeTile] = {
    w.name: w
    for w in (
        WholeTile("gather", _gathered, _gather_shape, 2, ("base",), (*WORDS, BF16), second=U32, moves=True),
        WholeTile("every", _every, _every_shape, 1, ("first", "step"), (*WORDS, BF16), moves=True,
                  worked=lambda count, n: n[0] + (count - 1) * n[1] + 1),  # fmt: skip
        WholeTile("swap_pairs", _swapped, _swap_shape, types=(F16, BF16, I16, U16), moves=True, doubled=True),
        WholeTile("sort", _sorted, _sort_shape, 1, ("count", "keep"), (F32,), default=_all, scratch=lambda n: 4 * padded(n[0]),
                  worked=lambda count, n: padded(n[0])),  # fmt: skip
        WholeTile("merge", _merged, _merge_shape, 2, types=(F32,), default=_pairs),
        WholeTile("transpose", _turned, _flipped, 1, (), (*WORDS, BF16, I8, U8), moves=True,
                  made_of_others=True, by_rows=True),  # fmt: skip
        WholeTile("reshape", lambda m, x, *_: x.reshape(-1), _reshaped, 1, ("rows", "cols"), (*WORDS, BF16), moves=True),
        WholeTile("cumsum", _summed, _same, 1, ("axis", "reverse"), FLOATS, default=_last, made_of_others=True),
        WholeTile("cumprod", _multiplied, _same, 1, ("axis", "reverse"), FLOATS, default=_last, made_of_others=True),
        WholeTile("argmax", _first_extreme(True), _reduced, 1, ("axis",), FLOATS, None, I32, _last, made_of_others=True),
        WholeTile("argmin", _first_extreme(False), _reduced, 1, ("axis",), FLOATS, None, I32, _last, made_of_others=True),
    )
}
NOTHING = {"cumsum": 0.0, "cumprod": 1.0, "argmax": -inf, "argmin": inf}
"""What changes nothing of a result where it stands beside a tile's elements."""
PATTERNS = {(0, 2): 1, (1, 2): 2, (0, 4): 3, (1, 4): 4, (2, 4): 5, (3, 4): 6, (0, 1): 7}
"""Which elements GatherMask takes, first and step, by the number of its pattern."""
