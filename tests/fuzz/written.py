"""A program as a user writes it, and beside it what it means in NumPy: the two are made together, and neither from the other.

All numbers are whole and stay small enough to be exact in the buffers that hold them (`MOST`), so that results are compared for
equality: no order of sums and no rounding can excuse a difference.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from tile_eg.errors import TileError

Env = dict[str, Any]
MOST = {"float32": 2**22, "float16": 2**10, "int32": 2**22}
_numbers = count()


@dataclass(frozen=True)
class Line:
    """A statement of the kernel's body, indented by `depth`, and the pipe that does it ("" for none)."""

    text: str
    depth: int = 0
    pipe: str = ""


@dataclass
class Program:
    """`arguments` are (name, shape as text, dtype), outputs last; `meaning` fills the outputs from the inputs at some sizes."""

    head: list[str]
    arguments: list[tuple[str, str, str]]
    outputs: list[str]
    launch: str
    buffers: list[str]
    lines: list[Line]
    meaning: Callable[[dict[str, int], dict[str, np.ndarray]], dict[str, np.ndarray]]
    inputs: Callable[[dict[str, int], np.random.Generator], dict[str, np.ndarray]]
    sizes: dict[str, int]
    used_in_pairs: set[str] = field(default_factory=set)
    limits: tuple[str, ...] = ()
    """What a right program may be refused for, as parts of the message."""

    def text(self) -> str:
        first = len(self.arguments) - len(self.outputs)
        listed = ", ".join(f'{name}: T.Tensor({shape}, "{dtype}")' for name, shape, dtype in self.arguments)
        positions = list(range(first, len(self.arguments)))
        body = [*(Line(b) for b in self.buffers), *self.lines]
        return "\n".join([
            "import tile_eg", "import tile_eg.language as T", *self.head, f'@tile_eg.jit(out_idx={positions}, effort="none")',
            "@T.prim_func", f"def made({listed}):", f"    with {self.launch}:",
            *("    " * (line.depth + 2) + line.text for line in body),
        ]) + "\n"  # fmt: skip

    def drawn(self, seed: int) -> dict[str, np.ndarray]:
        return self.inputs(self.sizes, np.random.default_rng(seed))


def loaded(text: str) -> Any:
    """The kernel of a text, whose source can be read as that of a file."""
    name = f"made_{next(_numbers)}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"__name__": name}
    exec(compile(text, name, "exec"), space)
    return space["made"]


def results(program: Program, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the program gives in the simulator."""
    found = loaded(program.text())(*arrays.values())
    return dict(zip(program.outputs, found if isinstance(found, list) else [found], strict=True))


def check_valid(program: Program, seed: int) -> None:
    """The simulator and NumPy agree on every element."""
    arrays = program.drawn(seed)
    want = program.meaning(program.sizes, arrays)
    try:
        got = results(program, {n: a.copy() for n, a in arrays.items()})
    except TileError as e:
        if not any(limit in e.message for limit in program.limits):
            raise
        return
    for name in program.outputs:
        np.testing.assert_array_equal(got[name].astype(np.float64), want[name], f"{name} of\n{program.text()}")


def check_broken(text: str, what: str, program: Program) -> TileError:
    """The text is refused, at a place of it."""
    arrays = program.drawn(0)
    try:
        loaded(text)(*arrays.values())
    except TileError as e:
        assert all(each.span is not None for each in (e, *e.others)), f"{what}: no place in\n{e}\n{text}"
        assert "^" in e.render(), f"{what}: no caret in\n{e}\n{text}"
        return e
    raise AssertionError(f"{what}: not refused\n{text}")
