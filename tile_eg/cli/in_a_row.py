"""Files whose kernel is several launches: commands that take each of them in turn, and `FILE.py:2`, which names one."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_eg.cli.codes import GOOD
from tile_eg.errors import TileError

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.jit import CompiledKernel, Factory
    from tile_eg.jit.any_size import AnySizeKernel

FIRST = "FILE.py:1 is the first of them"
NUMBERED = re.compile(r"(.+\.py):(\d+)")


@dataclass
class _Chosen:
    """The launch that is looked at, by its number from 1 on. `names` are the tensors of all launches where each is taken in turn,
    `sizes` their sizes and numbers, `arrays` by set of inputs what the launches before left in them."""

    number: int
    names: Sequence[str] = ()
    sizes: Sequence[str] = ()
    arrays: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)


_chosen: ContextVar[_Chosen | None] = ContextVar("launch", default=None)


class SeveralLaunches(TileError):
    """A kernel is several launches where one is asked for: so many, of these tensors, sizes and numbers."""

    def __init__(self, name: str, count: int, tensors: Sequence[str], sizes: Sequence[str]) -> None:
        super().__init__(f"`{name}` is {count} launches, and this is of one", help=FIRST)
        self.count, self.tensors, self.sizes = count, tensors, sizes


@contextmanager
def named(arguments: Sequence[str]) -> Iterator[list[str]]:
    """A command line without the number of a launch behind its file (`flash.py:2`), which is chosen within."""
    found = {a: m for a in arguments if (m := NUMBERED.fullmatch(a)) and Path(m[1]).is_file() and not Path(a).exists()}
    with _launch(_Chosen(int(next(iter(found.values()))[2])) if found else None):
        yield [found[a][1] if a in found else a for a in arguments]


@contextmanager
def _launch(chosen: _Chosen | None) -> Iterator[None]:
    token = _chosen.set(chosen)
    try:
        yield
    finally:
        _chosen.reset(token)


def one_of(name: str, kernel: Any) -> Any:
    """The launch that is asked for of a kernel that is several; any other as it is."""
    from tile_eg.jit.in_a_row import AnySizeLaunches, LaunchesInARow

    chosen, several, each, tensors = _chosen.get(), True, [kernel], []
    if isinstance(kernel, AnySizeLaunches):
        each, tensors = [*kernel.each], [a.name for a in kernel.arguments]
    elif isinstance(kernel, LaunchesInARow):
        each, tensors = [*kernel.launches], [t.name for t in kernel.kernel.tensors]
    else:
        several = False
    if chosen is None and several:
        raise SeveralLaunches(name, len(each), tensors, getattr(kernel, "open", ()))
    if chosen is None:
        return kernel
    if not 0 < chosen.number <= len(each):
        launches = f"{len(each)} launches" if several else "one launch"
        raise TileError(f"`{name}` is {launches}, and has no number {chosen.number}")
    return each[chosen.number - 1]


def each_launch(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command, which takes all launches of a kernel in turn where it is several. Its exit code is the worst of theirs."""

    @functools.wraps(command)
    def taken(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except SeveralLaunches as several:
            return max(code or GOOD for code in in_turn(several, lambda: command(*args, **kwargs)))

    return taken


def in_turn(several: SeveralLaunches, way: Callable[[], Any]) -> list[Any]:
    """What a way gives for each launch."""
    found, arrays = [], {}  # type: ignore[var-annotated]
    for number in range(1, several.count + 1):
        with _launch(_Chosen(number, several.tensors, several.sizes, arrays)):
            found.append(way())
    return found


def of_this_launch(given: Sequence[str], tensors: Sequence[Any]) -> list[str]:
    """Of `NAME=FILE` those for the launch at hand; what no launch has stays."""
    chosen, own = _chosen.get(), {t.name for t in tensors if not t.output}
    others = {*chosen.names} - own if chosen else set()
    return [g for g in given if g.partition("=")[0] not in others]


def sizes_of_this_launch(given: Mapping[str, Any], own: Collection[str]) -> dict[str, Any]:
    """Of the sizes that are given those of the launch at hand; what no launch has stays."""
    chosen = _chosen.get()
    others = {*chosen.sizes} - {*own} if chosen else set()
    return {n: v for n, v in given.items() if n not in others}


def left_before(name: str) -> Mapping[str, np.ndarray]:
    """What the launches before were given and left, of a set of inputs."""
    chosen = _chosen.get()
    return chosen.arrays.get(name, {}) if chosen else {}


def keep(name: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Keeps what a launch was given and left, of a set of inputs, for those behind it."""
    if (chosen := _chosen.get()) is not None:
        chosen.arrays.setdefault(name, {}).update(arrays)


def check_whole(asked: str) -> None:
    """TileError where launches are taken in turn, and what is asked for leaves parts out that a later one reads."""
    chosen = _chosen.get()
    if chosen and chosen.names:
        raise TileError(f"{asked} is of one launch: a later one reads what all blocks wrote", help=FIRST)


def text_in_a_row(several: SeveralLaunches, kind: str, text: Callable[[], str], planned: Callable[[], Any]) -> str:
    """A text of all launches, of which `text` gives one and `planned` its program. SeveralLaunches where they have none."""
    from tile_eg.search.in_a_row import host_in_a_row, in_one_file

    if kind == "source":
        return in_one_file(in_turn(several, text))
    if kind != "host":
        raise several
    each = in_turn(several, planned)
    name = each[0].program.name.rpartition("_")[0]
    return host_in_a_row(name, [p.program for p in each], [str(p.host) for p in each], several.tensors)


def factory_and_its_own(kernels: Sequence[CompiledKernel | AnySizeKernel | Factory]) -> Factory | None:
    """The only function among them that gives kernels, where it gave all the others."""
    from tile_eg.jit import Factory

    factories = [k for k in kernels if isinstance(k, Factory)]
    own = len(factories) == 1 and all(k in factories[0].made for k in kernels if k is not factories[0])
    return factories[0] if own else None
