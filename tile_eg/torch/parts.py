"""Torch's operators that take parts of tensors, put parts together, or take rows at indices, in the words of whole tensors."""

from __future__ import annotations

from typing import Any

from tile_eg.torch.word import Word, Writer, arguments, refuse


def _sliced(w: Writer, n: Any) -> str:
    given, before, after = arguments(n), w.shape(n.args[0]), w.shape(n)
    axis, step = given["dim"] % len(after), given.get("step", 1)
    low = _from_the_front(given.get("start") or 0, before[axis])
    high = None if given.get("end") is None else _from_the_front(given["end"], before[axis])
    end = "" if high is None or (before[axis].isdigit() and high >= int(before[axis])) else str(high)
    return _at(w, n, axis, f"{low}:{end}" + (f":{step}" if step != 1 else ""))


def _selected(w: Writer, n: Any) -> str:
    x, dim, index = n.args
    extents = w.shape(x)
    axis = dim % len(extents)
    return _at(w, n, axis, str(_from_the_front(index, extents[axis])), len(extents))


def _from_the_front(place: Any, extent: str) -> int:
    if not isinstance(place, int):
        raise refuse("an index that is read")
    if place < 0 and not extent.isdigit():
        raise refuse("an index from the end of an axis whose size is open")
    return max(0, place + int(extent)) if place < 0 else place


def _at(w: Writer, n: Any, axis: int, index: str, rank: int = 0) -> str:
    return f"{w.text(n.args[0])}[{', '.join(index if a == axis else ':' for a in range(rank or len(w.shape(n))))}]"


def _joined(function: str) -> Word:
    def word(w: Writer, n: Any) -> str:
        given = arguments(n)
        texts = ", ".join(w.text(a) for a in given["tensors"])
        return f"{function}({texts}, axis={given['dim'] % len(w.shape(n))})"

    return word


def _backwards(w: Writer, n: Any) -> str:
    text, rank = w.text(n.args[0]), len(w.shape(n))
    for axis in n.args[1]:
        text = f"flip({text}, axis={axis % rank})"
    return text


def _rolled(w: Writer, n: Any) -> str:
    given, rank, text = arguments(n), len(w.shape(n)), w.text(n.args[0])
    if not given["dims"]:
        raise refuse("a roll over all axes")
    for shift, axis in zip(given["shifts"], given["dims"], strict=True):
        text = f"roll({text}, {shift}, axis={axis % rank})"
    return text


def _rows_of_table(w: Writer, n: Any) -> str:
    given = arguments(n)
    if given["scale_grad_by_freq"] or given["sparse"]:
        raise refuse("an embedding with scaled or sparse gradients")
    return f"{w.text(n.args[0])}[{w.text(n.args[1])}]"


def _rows_at(w: Writer, n: Any) -> str:
    x, axis, index = n.args
    rank = len(w.shape(x))
    return f"{w.text(x)}[{', '.join([':'] * (axis % rank) + [w.text(index)])}]"


def _elements_at(w: Writer, n: Any) -> str:
    """x[i], x[:, i, j], as NumPy has it; a place that counts from the end is outside, and the call is torch's."""
    x, indices = n.args[:2]
    if any(i is not None and str(i.meta["val"].dtype) in ("torch.bool", "torch.uint8") for i in indices):
        raise refuse("elements at a condition")
    return f"{w.text(x)}[{', '.join(':' if i is None else w.text(i) for i in indices)}]"


PARTS: dict[str, Word] = {"slice": _sliced, "select": _selected}
JOINS: dict[str, Word] = {"cat": _joined("concatenate"), "stack": _joined("stack")}
MOVED: dict[str, Word] = {"flip": _backwards, "roll": _rolled}
GATHERS: dict[str, Word] = {"embedding": _rows_of_table, "index_select": _rows_at, "index": _elements_at}
"""Rows at indices, which count from the front."""
INDEX_ARGUMENT = {"embedding": 1, "index_select": 2, "index": 1}
"""Which of a gather's arguments is the index."""
