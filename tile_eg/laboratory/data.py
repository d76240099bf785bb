"""A dataset as arrays: features, labels, decisions and graphs of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from tile_eg.chips import load_chip
from tile_eg.cost_models.context import FEATURES
from tile_eg.errors import TileError
from tile_eg.ir.program import Program
from tile_eg.ir.program.parser import parse_program
from tile_eg.laboratory.graphs import GraphArrays, graph_of
from tile_eg.laboratory.rows import Row
from tile_eg.laboratory.stored import FORMATS, PARTS, read_rows
from tile_eg.ops.records import record


@record
class Dataset:
    """Rows, N of them, in an order that stays."""

    rows: tuple[Row, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def labels(self) -> np.ndarray:
        """float64[N]: microseconds."""
        return np.array([r.microseconds for r in self.rows])

    def features(self, names: Sequence[str] = FEATURES) -> np.ndarray:
        """float64[N, len(names)]: what `cost_models.context` knows of each. TileError for a name that there is none of."""
        if unknown := [n for n in names if n not in FEATURES]:
            raise TileError(f"there is no feature '{unknown[0]}'", help=f"there are: {', '.join(FEATURES)}")
        return np.array([[r.features[n] for n in names] for r in self.rows]).reshape(len(self), len(names))

    @property
    def cases(self) -> np.ndarray:
        """str[N]: the kernel and its sizes, by which a model is judged on what it was not taught."""
        return np.array([r.case for r in self.rows])

    @property
    def kernels(self) -> np.ndarray:
        """str[N]: the kernel alone."""
        return np.array([r.kernel for r in self.rows])

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """The instruction streams, as `RankModel.predict` and `update` take them."""
        return tuple(parse_program(r.program) for r in self.rows)

    @cached_property
    def graphs(self) -> tuple[GraphArrays, ...]:
        """The programs as arrays of nodes and edges."""
        return tuple(graph_of(p, load_chip(r.chip)) for p, r in zip(self.programs, self.rows, strict=True))

    @cached_property
    def options(self) -> dict[str, tuple[str, ...]]:
        """What is decided in any row, `case: about`, with the options that were taken, in the order of their text."""
        taken: dict[str, set[str]] = {}
        for r in self.rows:
            for about, option in r.decisions.items():
                taken.setdefault(f"{r.case}: {about}", set()).add(option)
        return {about: tuple(sorted(taken[about])) for about in sorted(taken)}

    @property
    def decisions(self) -> np.ndarray:
        """int64[N, len(options)]: which option each row takes, by the order of `options`; -1 where it does not decide that."""
        columns = {about: n for n, about in enumerate(self.options)}
        out = np.full((len(self), len(columns)), -1, np.int64)
        for n, r in enumerate(self.rows):
            for about, option in r.decisions.items():
                key = f"{r.case}: {about}"
                out[n, columns[key]] = self.options[key].index(option)
        return out

    def where(self, keep: Callable[[Row], bool]) -> Dataset:
        """The rows for which it is true."""
        return Dataset(tuple(filter(keep, self.rows)))


def load_dataset(path: str | Path) -> Dataset:
    """What `tile-eg dataset` wrote into a folder (the last of two formats), or one of its files of rows. TileError where there is
    none."""
    path = Path(path)
    if path.is_dir():
        found = [path / name for name in FORMATS.values() if (path / name).exists()]
        if not found:
            help = "it was cut short: the command that began it goes on" if any(path.glob(f"{PARTS}/*")) else ""
            raise TileError(f"'{path}' holds no rows of a dataset", help=help or "`tile-eg dataset -o` makes one")
        path = max(found, key=lambda file: file.stat().st_mtime_ns)
    return Dataset(tuple(read_rows(path)))
