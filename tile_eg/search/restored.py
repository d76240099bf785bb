"""A kernel's program and its text, as they were kept or sent."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from tile_eg.ir.kernel import Kernel
from tile_eg.ops.records import record
from tile_eg.report.text import Text
from tile_eg.search.planned import Planned, Run

if TYPE_CHECKING:
    import numpy as np


@record
class Restored(Planned):
    """A kernel's program and its Ascend C as they were kept."""

    kernel: Kernel
    text: str

    @cached_property
    def source(self) -> Text:
        return Text(self.text)

    @cached_property
    def alike(self) -> frozenset[str]:  # type: ignore[override]
        from tile_eg.frontend.checks.kernel import stored_alike

        return stored_alike(self.kernel)

    def judged(self, run: Run, arrays: Mapping[str, np.ndarray]) -> Run:
        """Elements that the kernel itself never writes are in `unwritten` of the run, and no finding."""
        return run.as_meant(self.kernel, arrays)
