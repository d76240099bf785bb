"""Small kernels in which copies and loops move rows about, beside what they mean in plain Python.

A program is one text for both: as a kernel it is read by the frontend, as a function it runs on NumPy arrays with the words of
`Plain`. It stores tile `x`, or another one, to `Q`; `c` is the block.
"""

from __future__ import annotations

import itertools
import linecache
import random
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

import tile_eg.language as T
from tile_eg.language.kernels import PrimFunc

TILES = ("x", "y", "z")


@dataclass(frozen=True)
class Program:
    """`blocks` blocks, each of which fills a row of `Q` with `rows` rows of `length` elements, by these lines."""

    blocks: int
    rows: int
    length: int
    lines: tuple[str, ...]

    def kernel(self, name: str) -> PrimFunc:
        shapes = dict.fromkeys(TILES, (self.rows, self.length)) | {"v": (self.rows,), "r": (self.length,)}
        flat, cubed = (self.blocks, self.rows * self.length), (self.blocks, self.rows, self.length)
        tensors = ", ".join(f'{t}: T.Tensor({s}, "float32")' for t, s in (("X", flat), ("Z", cubed), ("Q", flat)))
        buffers = [f'{b} = T.alloc_ub({shape}, "float32")' for b, shape in shapes.items()]
        body = "".join(f"        {line}\n" for line in (*buffers, *self.lines))
        text = f"@T.prim_func\ndef main({tensors}):\n    with T.Kernel({self.blocks}) as c:\n{body}"
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        names: dict[str, Any] = {"T": T}
        exec(compile(text, name, "exec"), names)
        return names["main"]

    def run(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """What `Q` holds in the end."""
        names = {"T": Plain(), "X": x, "Z": z, "Q": np.full_like(x, np.nan)}
        for block in range(self.blocks):
            buffers = {b: np.zeros((self.rows, self.length), np.float32) for b in TILES}
            own = {"v": np.zeros(self.rows, np.float32), "r": np.zeros(self.length, np.float32), "c": block}
            exec("\n".join(self.lines), {**names, **buffers, **own})
        return names["Q"]


class Plain:
    """The words in their plain meaning."""

    @staticmethod
    def _add(to: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        to[...] = a + b

    tile = SimpleNamespace(add=_add)

    @staticmethod
    def copy(value: np.ndarray, to: np.ndarray) -> None:
        to[...] = value.copy()

    @staticmethod
    def serial(*ends: int) -> range:
        return range(*ends)

    @staticmethod
    def Parallel(*extents: int) -> Any:  # noqa: N802
        return itertools.product(*map(range, extents))

    @staticmethod
    def reduce_sum(value: np.ndarray, to: np.ndarray, dim: int) -> None:
        to[...] = value.sum(dim)

    @staticmethod
    def reduce_max(value: np.ndarray, to: np.ndarray, dim: int) -> None:
        to[...] = value.max(dim)

    @staticmethod
    def if_then_else(condition: bool, yes: float, no: float) -> float:
        return yes if condition else no


def drawn(seed: int) -> Program:
    """A program: loads, a few steps, and a store."""
    draw = random.Random(seed)
    blocks, rows, length = draw.choice((1, 2, 3)), draw.choice((2, 3, 4)), draw.choice((8, 16, 32))
    filled: list[str] = []
    lines: list[str] = []
    for _ in range(draw.randrange(2, 6)):
        to = draw.choice(TILES)
        load = not filled or draw.random() < 0.25
        lines += _load(draw, blocks, rows, length, to) if load else _step(draw, rows, length, to, filled)
        filled = sorted({*filled, to})
    return Program(blocks, rows, length, (*lines, *_store(draw, blocks, rows, length, draw.choice(filled))))


def _row(draw: random.Random, rows: int) -> str:
    return draw.choice(("h", f"({rows - 1} - h)"))


def _load(draw: random.Random, blocks: int, rows: int, length: int, to: str) -> list[str]:
    row, at = _row(draw, rows), _row(draw, rows)
    beside = f"{row} * {length} : {row} * {length} + {length}"
    forms = (
        [f"for h in T.serial({rows}):", f"    T.copy(X[c, {beside}], {to}[{at}, :])"],
        [f"for h in T.serial({rows}):", f"    T.copy(X[(c + h) % {blocks}, {beside}], {to}[{at}, :])"],
        [f"for h in T.serial({rows}):", f"    T.copy(Z[c, {row}, :], {to}[h, :])"],
        [f"for h, j in T.Parallel({rows}, {length}):", f"    {to}[h, j] = X[c, h * {length} + j] + 1.0"],
        [f"T.copy(Z[c, :, :], {to})"],
    )
    return draw.choice(forms)


def _step(draw: random.Random, rows: int, length: int, to: str, filled: list[str]) -> list[str]:
    one, two = draw.choice(filled), draw.choice(filled)
    every, half = f"for i, j in T.Parallel({rows}, {length}):", length // 2
    forms = [
        [every, f"    {to}[i, j] = {one}[i, j] * 2.0 + {two}[i, j]"],
        [f"T.reduce_sum({one}, v, dim=-1)", every, f"    {to}[i, j] = {two}[i, j] * v[i]"],
        [f"T.reduce_max({one}, r, dim=0)", every, f"    {to}[i, j] = {two}[i, j] - r[j]"],
        [every, f"    {to}[i, j] = T.if_then_else(i * {draw.randrange(1, 4)} >= j + c, {one}[i, j], {two}[i, j])"],
    ]
    if to in filled:
        forms.append([f"for h in T.serial(1, {rows}):", f"    T.tile.add({to}[h, :], {to}[h - 1, :], {to}[h, :])"])
    if to not in (one, two):
        forms += [
            [f"for h in T.serial({rows}):", f"    T.copy({one}[{rows - 1} - h, :], {to}[h, :])"],
            [f"for h in T.serial({rows}):", f"    T.tile.add({to}[h, :], {one}[h, :], {two}[{draw.randrange(rows)}, :])"],
            [f"for i, j in T.Parallel({rows}, {half}):", f"    {to}[i, j] = {one}[i, j + {half}]",
             f"    {to}[i, j + {half}] = -{two}[i, j]"],
            [every, f"    {to}[i, j] = {one}[i, {length - 1} - j] + {two}[i, 0]"],
        ]  # fmt: skip
    return draw.choice(forms)


def _store(draw: random.Random, blocks: int, rows: int, length: int, tile: str) -> list[str]:
    row, block = _row(draw, rows), draw.choice(("c", f"({blocks - 1} - c)"))
    forms = (
        [f"for h in T.serial({rows}):", f"    T.copy({tile}[{row}, :], Q[{block}, h * {length} : h * {length} + {length}])"],
        [f"for h, j in T.Parallel({rows}, {length}):", f"    Q[{block}, h * {length} + j] = {tile}[h, j]"],
    )
    return draw.choice(forms)
