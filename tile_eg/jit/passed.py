"""The sizes and numbers that a call passes, as Python's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tile_eg.errors import PlanError, TileError, attempted, plannable
from tile_eg.frontend.checks import check
from tile_eg.frontend.of_calls import number
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import NoBlocks
from tile_eg.ir.passed import EXAMPLE, MOST_WHOLE, WHOLE_EXAMPLE, NeedsNumber, passed, passed_whole
from tile_eg.ops.types import F32, DType
from tile_eg.search.at_example import at_example

if TYPE_CHECKING:
    from tile_eg.frontend.python import Argument


def size_of(name: str, value: Any) -> int:
    """A size that a call tells. TileError for what is none."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 0:
        raise TileError(f"the size {name} is a whole number from 0 on, not {value!r}")
    return int(value.__index__())


def whole(a: Argument) -> bool:
    """Whether a number that a call passes is a whole one."""
    return a.dtype.name not in ("f16", "bf16", "f32")


def number_of(a: Argument, value: Any) -> int | float:
    """A number that a call passes, whole where its type is. TileError for what is none, or has no room in its type."""
    return number(a.name, a.dtype, value, a.span)


class OfAnyNumber:
    """Which numbers of a kernel are arguments of what it is compiled to, which then serves all of their values: those of f32 that
    only enter arithmetic of elements, and whole ones from 0 to `MOST_WHOLE` that only enter indices and arithmetic. The others
    are compiled in.

    `build` gives the kernel at sizes and numbers, `made` what is called of it.
    """

    def __init__(self, numbers: Mapping[str, DType], build: Callable[..., Any], made: Callable[..., Any]) -> None:
        self.names = [n for n, dtype in numbers.items() if dtype is F32 or dtype.whole]
        self.wholes = frozenset(n for n, dtype in numbers.items() if dtype.whole)
        self.build, self.made = build, made
        self.known: dict[tuple[Any, ...], tuple[str, ...]] = {}

    def of_call(self, sizes: Mapping[str, Any]) -> tuple[Any, dict[str, float]]:
        """What serves a call with these sizes and numbers, and the numbers that are passed to it."""
        able = self._able(sizes)
        key = tuple((n, v) for n, v in sizes.items() if n not in able)
        if key not in self.known:
            names = self.open(sizes)
            self.known[key] = names if not names or self._is_compiled(self.with_passed(sizes, names)) else ()
        names = self.known[key]
        return self.made(self.with_passed(sizes, names)), {n: sizes[n] for n in names}

    def _is_compiled(self, sizes: Mapping[str, Any]) -> bool:
        """Whether the kernel can be compiled with these sizes and numbers."""
        found: Any = plannable(lambda: attempted(lambda: self.made(sizes).planned()))
        return not isinstance(found, TileError | PlanError)

    def _able(self, sizes: Mapping[str, Any]) -> tuple[str, ...]:
        """The numbers that may be passed, as they are now."""
        return tuple(n for n in self.names if n in sizes and (n not in self.wholes or 0 <= sizes[n] <= MOST_WHOLE))

    def left_open(self, given: Mapping[str, Any], sizes: Iterable[str]) -> dict[str, Any]:
        """What is given, and beside it the numbers that nothing needs to know, where `sizes` are those of each call."""
        left = [n for n in self.names if n not in given]
        asked = [n for n in sizes if n not in given and n not in left]
        if not left:
            return dict(given)
        example = {n: WHOLE_EXAMPLE if n in self.wholes else EXAMPLE for n in left}
        found = attempted(lambda: at_example(asked, lambda at: self._found({**given, **at, **example}, left)))
        return self.with_passed(given, () if isinstance(found, TileError) else found[0])

    def of_each_call(self, given: Mapping[str, Any], sizes: Iterable[str]) -> dict[str, Any]:
        """`left_open`, where numbers that are given are each call's, too, if nothing needs to know them."""
        return {**given, **self.left_open({n: v for n, v in given.items() if n not in self.names}, sizes)}

    def _found(self, sizes: Mapping[str, Any], left: Iterable[str]) -> tuple[str, ...]:
        """Those of some numbers that need not be known at these sizes. TileError where there is none."""
        names = tuple(n for n in self.open(sizes) if n in left)
        if not names:
            raise NeedsNumber(f"{', '.join(left)} has to be known")
        return names

    def open(self, sizes: Mapping[str, Any]) -> tuple[str, ...]:
        """The numbers whose values nothing asks for at these sizes: all of them, or those that are found one after the other."""
        names = self._able(sizes)
        if self._is_right(sizes, names):
            return names
        some: tuple[str, ...] = ()
        for name in names if len(names) > 1 else ():
            some = (*some, name) if self._is_right(sizes, (*some, name)) else some
        return some

    def _is_right(self, sizes: Mapping[str, Any], names: tuple[str, ...]) -> bool:
        """Whether the kernel has a meaning without the values of these. Whole numbers that say how often a loop goes are left to
        the texts for all sizes, which are priced at usual ones."""
        from tile_eg.frontend.ssa import to_values

        def values() -> bool:
            kernel = self.build(self.with_passed(sizes, names))
            if not isinstance(kernel, Kernel):
                return False
            check(kernel)
            counts = to_values(kernel).counts.values()
            return not any(r.args[0] in kernel.wholes for e in counts for r in all_elements_in(e))

        try:
            found = attempted(values) if names else True
        except NoBlocks:
            return False
        return found is True

    def with_passed(self, sizes: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """The sizes and numbers, of which those of these names are each call's."""
        return {**sizes, **{n: passed_whole(n) if n in self.wholes else passed(n) for n in names}}
