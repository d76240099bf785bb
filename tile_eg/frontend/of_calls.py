"""Numbers that each call passes: what may be passed, and how expressions have them while a kernel is read: computed with, and
never looked at."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, NoReturn, SupportsFloat, SupportsIndex

from tile_eg.errors import Span, TileError
from tile_eg.frontend.hints import hint
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.passed import Asked, NeedsNumber, Passed, as_index, computed, of_index, wholes_in
from tile_eg.ops.records import record
from tile_eg.ops.types import DType, has_room


def number(name: str, dtype: DType, value: Any, span: Span | None = None) -> Any:
    """A number that a call passes under this name, whole where its type is; one that each call passes as it is. TileError for
    what is none, or has no room in the type."""
    if isinstance(value, Passed):
        return value
    kind, array = SupportsIndex if dtype.whole else SupportsFloat, bool(getattr(value, "shape", ()))
    if isinstance(value, bool) or not isinstance(value, kind) or array:
        declared = hint(f"{name}: {dtype}[M, N]", f'{name}: T.Tensor((M, N), "{dtype.numpy}")', span)
        help = f"an array is declared with its shape: {declared}" if array else ""
        shown = "an array" if array else repr(value)
        raise TileError(f"`{name}` is a {'whole ' if dtype.whole else ''}number, not {shown}", span, help=help)
    given: Any = value
    found = int(given) if dtype.whole else float(given)
    if not has_room(dtype, found):
        raise TileError(f"`{name}` is {dtype}, which has no room for {value!r}", span)
    return found


MOST_FACTORS = 4
"""Of a power that is computed as a product."""


@record(eq=False)
class OfCall:
    """A number that each call passes, or what is computed of such. Whoever asks how large it is, or compares it, gets a
    NeedsNumber; `+ - * /` with other numbers give another one."""

    value: Passed

    @property
    def written(self) -> Any:
        """What a `Number` of the kernel holds."""
        return Asked(self.value.op, self.value.args)

    def __neg__(self) -> OfCall:
        return OfCall(-self.value)

    def __pos__(self) -> OfCall:
        return self

    def __pow__(self, times: object) -> OfCall:
        """A product where it is by a small whole number."""
        if not isinstance(times, int) or not 1 <= times <= MOST_FACTORS:
            self._asked()
        return reduce(operator.mul, [self] * times)

    def _asked(self, *_: object) -> NoReturn:
        raise NeedsNumber(f"this follows from the value of {', '.join(sorted(self.value.names))}, which each call tells")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __float__ = __int__ = __index__ = __bool__ = _asked  # type: ignore[assignment]
    __rpow__ = _asked
    __hash__ = object.__hash__


def _operator(op: str, swapped: bool) -> Callable[[OfCall, Any], Any]:
    def of(a: OfCall, b: Any) -> Any:
        if not isinstance(b, OfCall | int | float) or isinstance(b, bool):
            return NotImplemented
        other = b.value if isinstance(b, OfCall) else float(b)
        return OfCall(computed(op, other, a.value) if swapped else computed(op, a.value, other))

    return of


for _name, _op in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div")):
    setattr(OfCall, f"__{_name}__", _operator(_op, False))
    setattr(OfCall, f"__r{_name}__", _operator(_op, True))


def as_written(given: Any) -> Any:
    """A size or a number as expressions have it."""
    if isinstance(given, Passed):
        return as_index(given) if given.op == "whole" else OfCall(given)
    return given


def as_of_call(x: Any) -> Any:
    """An index that is made of whole numbers of a call alone, as a number of a call; anything else as it is."""
    found = of_index(x) if isinstance(x, Expr) else None
    return x if found is None else OfCall(found)


def divisor(x: Any, span: Span | None) -> Any:
    """What an index is divided by, a number above 0. TileError for others, NeedsNumber where that depends on a whole number of a
    call."""
    number = x.value if isinstance(x, Expr) else x
    if number is not None and number <= 0:
        raise TileError(f"an index is divided by a number above 0, not by {number}", span)
    names = wholes_in(x) if isinstance(x, Expr) else ()
    if names and ix.bounds(x, dict.fromkeys(ix.variables(x), (0, ix.ANY)))[0] < 1:
        raise NeedsNumber(f"whether this is divided by a number above 0 follows from {', '.join(sorted(names))}", span)
    return x


def of_calls(given: Mapping[str, Any]) -> tuple[str, ...]:
    """The numbers whose values are not known while the kernel is read."""
    return tuple(n for n, value in given.items() if isinstance(value, Passed))


def wholes_of_calls(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Those that are whole."""
    return tuple(n for n, value in given.items() if isinstance(value, Passed) and value.op == "whole")


def refuse_wholes(given: Mapping[str, Any]) -> None:
    """NeedsNumber where a whole number is not known: functions of whole tensors have it in shapes and places."""
    if names := wholes_of_calls(given):
        raise NeedsNumber(f"a kernel of whole tensors is made for the value of {', '.join(sorted(names))}")
