"""The numbers that a kernel has from each call, on the command line: floats that only enter arithmetic, and whole numbers
that only enter indices and arithmetic, are passed at the launch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tile_eg.cli import sources
from tile_eg.errors import TileError, attempted

NUMBER = re.compile(r":\s*(?!dyn\b)[a-z]\w*\s*[,)#]")
"""An element type without a shape, as a number's parameter has it; a text without any has no numbers of a call."""


def left_open(path: Path, sizes: Mapping[str, Any], given: bool = False) -> dict[str, Any]:
    """The sizes and numbers that are given, with the numbers that are not as those of each launch, where the kernel need not know
    them; with `given` also those that are."""
    way = _of_each_call if given else _left_open
    kernel = attempted(lambda: sources.at_each_call(path, sizes))
    if kernel is not None and not isinstance(kernel, TileError):
        own = {n: v for n, v in sizes.items() if n in kernel.open}
        return {**sizes, **way(kernel.of_any, own, kernel.sizes)} if kernel.numbers else dict(sizes)
    template = _template(path)
    return dict(sizes) if template is None else way(_of_any_number(template), sizes, template.of_texts)


def apart(path: Path, sizes: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> tuple[dict[str, Any], dict[str, float]]:
    """The same of those that are given, and what a run passes for them."""
    found = _of_python(path, sizes) or _of_text(path, sizes, shapes)
    if found is None:
        return dict(sizes), {}
    of_any, at = found
    names = attempted(lambda: of_any.open(at))
    open_ = () if isinstance(names, TileError) else names
    return of_any.with_passed(sizes, open_), {n: int(sizes[n]) if n in of_any.wholes else float(sizes[n]) for n in open_}


def _of_python(path: Path, sizes: Mapping[str, Any]) -> tuple[Any, dict[str, Any]] | None:
    """Which numbers of a kernel in Python may be passed, and its sizes and numbers; None where none of these is given."""
    kernel = attempted(lambda: sources.at_each_call(path, sizes))
    if kernel is None or isinstance(kernel, TileError) or not sizes.keys() & set(kernel.numbers):
        return None
    own = {n: v for n, v in sizes.items() if n in kernel.open}
    checked = attempted(lambda: kernel.checked(own))
    return None if isinstance(checked, TileError) else (kernel.of_any, checked)


def _of_text(path: Path, sizes: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> tuple[Any, dict[str, Any]] | None:
    template = _template(path)
    if template is None or not sizes.keys() & template.numbers.keys():
        return None
    at = attempted(lambda: {**template.sizes_of(shapes), **template.with_numbers(sizes)})
    return None if isinstance(at, TileError) else (_of_any_number(template), at)


def _left_open(of_any: Any, given: Mapping[str, Any], sizes: Iterable[str]) -> dict[str, Any]:
    return dict(of_any.left_open(given, sizes))


def _of_each_call(of_any: Any, given: Mapping[str, Any], sizes: Iterable[str]) -> dict[str, Any]:
    return dict(of_any.of_each_call(given, sizes))


def _of_any_number(template: Any) -> Any:
    from tile_eg.jit.passed import OfAnyNumber

    return OfAnyNumber(template.numbers, template.instantiate, template.instantiate)


def _template(path: Path) -> Any:
    """The kernel of a `.tile` file with numbers of each call; None of any other, whose grammar is not loaded for it."""
    text = attempted(lambda: sources.read_text(path)) if path.suffix == ".tile" and path.is_file() else ""
    if isinstance(text, TileError) or not NUMBER.search(text):
        return None
    from tile_eg.frontend.text import load_text

    template = attempted(lambda: load_text(text, str(path)))
    return None if isinstance(template, TileError) or not template.numbers else template
