"""A kernel as values, by the first way to read its rows that has a form."""

from __future__ import annotations

from tile_eg.errors import NotSearched, TileError, attempted, chain_too_long, in_source
from tile_eg.frontend.liveness import Kept
from tile_eg.frontend.ssa.composed import composed
from tile_eg.frontend.ssa.converter import Converter
from tile_eg.frontend.ssa.interleaved import interleaved
from tile_eg.frontend.ssa.pairs import paired
from tile_eg.frontend.ssa.planes import without_planes
from tile_eg.frontend.ssa.turned import turned
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.values import Values


def to_values(kernel: Kernel) -> Values:
    """The kernel's meaning as value terms. Raises TileError for what is not supported yet."""
    with in_source(kernel.source, kernel.file):
        try:
            return _values(composed(interleaved(turned(paired(without_planes(kernel))))), frozenset())
        except RecursionError:
            raise chain_too_long(NotSearched) from None


def _values(kernel: Kernel, kept: frozenset[Kept], rows_alone: bool = False) -> Values:
    """The same; `kept` are targets that stay as they are where an element that their statements take does not exist. Which these
    are is found on the way, and what they hold then is a state of the loops around. With `rows_alone`, rows are such elements
    too, which takes longer instructions."""
    converter = Converter(kernel, kept, rows_alone)
    values = attempted(converter.values)
    if not converter.keeping <= kept:
        return _values(kernel, kept | converter.keeping, rows_alone)
    if isinstance(values, TileError) and converter.rows_end and not rows_alone:
        otherwise = attempted(lambda: _values(kernel, kept, rows_alone=True))
        values = values if isinstance(otherwise, TileError) else otherwise
    if isinstance(values, TileError):
        raise values
    return values
