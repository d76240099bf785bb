"""What tuning tries: the candidates of the search, at the block sizes that the quick estimate likes best where they are open."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tile_eg.chips import load_chip
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.sharing import sharing
from tile_eg.ops.records import record
from tile_eg.report.decisions import summary
from tile_eg.search import SearchOptions
from tile_eg.search.candidates import Candidate
from tile_eg.search.collector import rare_collections
from tile_eg.search.every import Every, digest_of
from tile_eg.search.result import Lowered
from tile_eg.search.tuned_file import Pairs
from tile_eg.timeline.summary import intervals

Interval = tuple[float, float]
EACH = 8
"""Candidates that are tried at each choice of open sizes, if there are as many."""


@record
class Space:
    """A kernel at some sizes, of which up to `most` candidates are to be compiled."""

    kernel: Kernel
    sizes: Pairs
    chip: str
    options: SearchOptions
    most: int


@record
class Compiled:
    """A candidate as it is sent about: its program and its Ascend C, a digest of the former, what is decided in it, and the
    microseconds that are predicted, with both of its `timeline.summary.intervals`."""

    kernel: Kernel
    sizes: Pairs
    digest: str
    program: str
    source: str
    what: str
    predicted: float
    interval: Interval
    on_cores: Interval


@record
class Candidates:
    """What was compiled of a space; and what the search offered and could not be planned for a fault of tile_eg."""

    found: tuple[Compiled, ...]
    faults: tuple[str, ...] = ()


@rare_collections()
@sharing()
def candidates(space: Space) -> Candidates:
    """The first candidates of a space, in the order of the search. TileError where the kernel has a mistake."""
    every = Every(space.kernel, load_chip(space.chip), space.options)
    found = []
    for one in islice(every, space.most):
        c = one.candidate
        found.append(_compiled(space.kernel, space.sizes, c, one.digest))
    return Candidates(tuple(found), tuple(every.faults))


def spaces(kernel: Kernel, own: Lowered, budget: int, options: SearchOptions) -> Iterator[Space]:
    """A kernel's spaces in the order in which they are tried, that of the search's own choice first."""
    chip = own.chip.name
    if not isinstance(kernel, OpenKernel):
        yield Space(kernel, (), chip, options, budget)
        return
    chosen = tuple(own.trials[0].sizes.items())
    others = (sizes for sizes in _sizes(kernel, own) if sizes != chosen)
    for sizes in (chosen, *others):
        yield Space(kernel.build(dict(sizes)), sizes, chip, options, min(EACH, budget))


def _sizes(kernel: OpenKernel, own: Lowered) -> list[Pairs]:
    """All sizes that were estimated: what fits first, the fastest first."""
    from tile_eg.frontend.ssa import to_values
    from tile_eg.sizing.candidates import Climb, named

    found = Climb(kernel, own.chip, to_values, own.search.moves).run()
    return [tuple(named(kernel.open, c.sizes).items()) for c in found]


def choice_of(own: Lowered) -> Compiled:
    """What the search chooses by itself, as a candidate."""
    sizes = tuple(own.trials[0].sizes.items()) if own.trials else ()
    return _compiled(own.kernel, sizes, own.candidates[0], digest_of(str(own.program)))


def _compiled(kernel: Kernel, sizes: Pairs, c: Candidate, digest: str) -> Compiled:
    texts = str(c.planned.program), str(c.planned.source)
    both = intervals(c.planned.program, c.planned.chip)
    return Compiled(kernel, sizes, digest, *texts, summary(c.schedule), c.microseconds, *both)
