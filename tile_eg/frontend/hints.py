"""Help lines in the language that the author wrote in."""

from __future__ import annotations

from tile_eg.errors import Span
from tile_eg.ops.types import DTYPES, DType

TWO_STREAMS = "pass_configs with TL_ASCEND_AUTO_CV_COMBINE and TL_ASCEND_AUTO_CV_SYNC: True"
"""What asks for kernels in Python to be read as two streams of statements."""


def hint(tile: str, python: str, span: Span | None) -> str:
    """What to write: as `.tile` text says it, or as Python does where the place is in a Python file."""
    return python if is_python(span) else tile


def is_python(span: Span | None) -> bool:
    """Whether a place is in a Python file, or in a notebook's cell."""
    return span is not None and (span.file.endswith(".py") or "ipython" in span.file or "ipykernel" in span.file)


def cast(dtype: DType | str, x: str, span: Span | None) -> str:
    """A cast as the author's language writes it. """
    return hint(f"{dtype}({x})", f'T.cast({x}, "{_LONG[str(dtype)]}")', span)


_LONG = {d.name: d.numpy for d in DTYPES.values()}
