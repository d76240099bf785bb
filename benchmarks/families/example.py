"""A kernel of a family: what it means in NumPy, the sizes it is run at, and what bounds it at the sizes of real models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmarks.targets.bounds import Bound
from tile_eg.chips import DEFAULT_CHIP, Chip
from tile_eg.frontend.text import Template, load_text
from tile_eg.ir.program import Program
from tile_eg.search.compiler import Lowered, lower

FOLDER = Path(__file__).parents[2] / "examples"
Arrays = Mapping[str, np.ndarray]
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Example:
    """`examples/{file}.tile`, and `{file}.py` that is the same kernel in Python.

    `meant` is the kernel in plain NumPy: arrays by the name of their tensor, in double precision (whole numbers as they are), to
    outputs. It is `tried` at small sizes in the simulator, tails among them; at `real` sizes, those of models, it is only
    priced. `bound` is what no schedule can be faster than on a chip at given sizes; a schedule reaches its target within `slack`
    times that. `schedule` says in a sentence what the search makes of the kernel. `inputs` draws arrays that cannot be any
    numbers, such as indices and lengths. `experts` build the programs of published schedules for real sizes, by label of a size.
    `held` says what holds a size that misses its target, and what would mend it. `of` is the family of a file in no folder.
    One that is `lengthy` takes tens of seconds to compile, and is run in the long suite alone. It is run on `chip`.
    """

    file: str
    meant: Callable[[Arrays], Arrays]
    tried: Sequence[Sizes]
    real: Mapping[str, Sizes]
    bound: Callable[[Chip, Sizes], Bound]
    schedule: str
    slack: float | None = None
    inputs: Callable[[Sizes, np.random.Generator], Arrays] | None = None
    experts: Mapping[str, Mapping[str, Callable[[], Program]]] = field(default_factory=dict)
    held: str = ""
    of: str = ""
    lengthy: bool = False
    chip: str = DEFAULT_CHIP

    @property
    def family(self) -> str:
        return self.of or self.file.split("/")[0]

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.file}.tile"

    @cached_property
    def template(self) -> Template:
        return load_text(self.path.read_text("utf-8"), self.path.name)

    def compiled(self, sizes: Sizes, chip: str) -> Lowered:
        return lower(self.template.instantiate(sizes), chip)

    def drawn(self, sizes: Sizes, seed: int) -> dict[str, np.ndarray]:
        """The arrays that the example draws itself, by tensor name."""
        return dict(self.inputs(sizes, np.random.default_rng(seed))) if self.inputs else {}
