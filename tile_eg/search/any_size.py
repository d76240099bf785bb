"""One compiled kernel for all sizes that are known at run time.

The values of the kernel at a few sets of sizes, primes that have nothing to do with one another, are joined to values of any size
(`transforms/any_size.py`); what these mean at small sizes is compared with what the kernel means there. They are searched like any
others: the sizes are leaves of index expressions, of which the rules know nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from math import prod

from tile_eg.errors import TileError
from tile_eg.frontend.checks import check
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import NoBlocks
from tile_eg.ir.program.any_size import resized
from tile_eg.ir.values import Values
from tile_eg.report.text import Text
from tile_eg.search import persistent
from tile_eg.search.candidates import Candidate
from tile_eg.search.form import Form, Setting, check_room, searched
from tile_eg.search.options import SearchOptions
from tile_eg.search.planned import Planned, Run, compiled_for, stage
from tile_eg.search.queue import Offer, Queue
from tile_eg.search.result import Lowered
from tile_eg.transforms.any_size import NotAlike, at, of_any_size

Build = Callable[[Mapping[str, int]], Kernel]

SETS = 6
FIRST_PRIMES = (1009, 307, 4099, 101)
"""Where the primes of a set begin, one scale after the other, until the kernel is the same one at all sizes of a scale."""
MOST_BLOCKS = 1 << 16
"""Blocks of a kernel at the sizes that it is looked at with: what is asked of each of them is asked of so many at most."""
USUAL = 4096
"""The size at which a kernel is priced where its author names none."""
SMALL = ((1, 2, 3, 5), (7, 1, 17, 2), (16, 33, 1, 3), (67, 48, 29, 2))
"""Sizes at which the meaning of what was found is compared with that of the kernel."""


@dataclass(frozen=True)
class AnySize:
    """A kernel that was compiled once for all sizes. `lowered` is it, with its text, at the sizes that it was priced at."""

    lowered: Lowered
    names: tuple[str, ...]

    def at(self, kernel: Kernel, sizes: Mapping[str, int]) -> AtSizes:
        """What a launch at these sizes needs; `kernel` is the kernel at them."""
        return AtSizes(resized(self.lowered.program, sizes), self.lowered.chip, kernel, str(self.lowered.source))


@dataclass(frozen=True)
class AtSizes(Planned):
    """The text of a kernel of any size, at some sizes."""

    kernel: Kernel
    text: str

    @property
    def source(self) -> Text:  # type: ignore[override]
        return Text(self.text)

    def judged(self, run: Run, arrays: Mapping[str, object]) -> Run:
        """Elements that the kernel itself never writes are in `unwritten` of the run, and no finding."""
        return run.as_meant(self.kernel, arrays)  # type: ignore[arg-type]


def lower_for_any_size(build: Build, sizes: Mapping[str, int], chip: str, options: SearchOptions) -> AnySize:
    """The kernel that `build` gives at sizes, compiled for all of them, and priced at `sizes`.

    NotAlike where it is another kernel at other sizes; TileError as for a kernel whose sizes are known.
    """
    from tile_eg.cost_models import rank_model, roles
    from tile_eg.ir.sharing import sharing
    from tile_eg.search.planned import rare_collections

    kernel = build(sizes)
    with rare_collections(), sharing():
        target = compiled_for(chip)
        setting = Setting(target, options, rank_model(roles(options.cost_model, target).rank, target), kernel.source)
        check_room(kernel, target)
        with setting.step("values"):
            values = values_of_any_size(build, sizes)
        return AnySize(_searched(kernel, values, setting), tuple(sizes))


def _searched(kernel: Kernel, values: Values, setting: Setting) -> Lowered:
    """The best schedule that is found in the e-graph of the values; moves of the search count blocks, and take no part."""
    from time import perf_counter

    from tile_eg.search.driver import result_of, run_queue

    start = perf_counter()
    queue = Queue(setting, _moves_from, (TileError,))
    form = searched(kernel, values, setting)
    with setting.step("moves"):
        queue.add(form)
    run_queue(queue)
    if queue.best == float("inf"):
        with stage("plan", kernel.source):
            raise form.problem or TileError("no schedule of this kernel was found")
    return result_of(queue, start)


def _moves_from(form: Form, candidate: Candidate | None) -> Iterator[Offer]:
    """Persistent grids; the other moves count blocks, or build the kernel anew."""
    allowed = form.setting.options.moves
    return (o for o in (persistent.offers(form, candidate) if candidate else ()) if o.move.name in allowed)


def values_of_any_size(build: Build, usual: Mapping[str, int]) -> Values:
    """What a kernel means at any sizes; numbers are those at the `usual` ones. NotAlike where it is not one kernel at all sizes."""
    why: NotAlike | None = None
    for first in FIRST_PRIMES:
        sets = list(islice(_sets(tuple(usual), first), SETS))
        try:
            values = of_any_size([_values(build, s) for s in sets], sets, usual)
        except NotAlike as fault:
            why = why or fault
        else:
            _compare_small(build, values, tuple(usual))
            return values
    assert why is not None
    raise why


def _values(build: Build, sizes: Mapping[str, int]) -> Values:
    """The values at some sizes. NotAlike where the kernel cannot be built there, or has too many blocks to look at."""
    try:
        kernel = build(sizes)
        if prod(extent for _, extent in kernel.grid) > MOST_BLOCKS:
            raise NotAlike("it has too many blocks at the sizes that it is looked at with")
        check(kernel)
        return to_values(kernel)
    except (TileError, NoBlocks) as fault:
        shown = ", ".join(f"{n}={v}" for n, v in sizes.items())
        said = fault.message if isinstance(fault, TileError) else "it has no blocks"
        raise NotAlike(f"it has a fault at {shown}: {said}") from None


def _sets(names: Sequence[str], first: int) -> Iterator[dict[str, int]]:
    """Sets of sizes that are primes from about `first` on, all different, with gaps that grow as they like."""
    primes = _primes(first)
    turn = count()
    while True:
        yield {name: next(islice(primes, 2 + (next(turn) * 7) % 5, None)) for name in names}


def _primes(first: int) -> Iterator[int]:
    return (n for n in count(first) if all(n % d for d in range(2, int(n**0.5) + 1)))


def _compare_small(build: Build, values: Values, names: Sequence[str]) -> None:
    """NotAlike where the values that were found mean something else at small sizes than the kernel does there."""
    import numpy as np

    from tile_eg.inputs import draw
    from tile_eg.ir.reference_values import run_values

    for small in SMALL:
        sizes = {name: small[n % len(small)] for n, name in enumerate(names)}
        try:
            kernel = build(sizes)
            check(kernel)
            own = to_values(kernel)
        except (TileError, NoBlocks):
            continue
        found, inputs = at(values, sizes), draw([t for t in kernel.tensors if not t.output], "uniform", seed=0)
        ours, theirs = run_values(found, inputs), run_values(own, inputs)
        for name, x in theirs.items():
            one, other = np.asarray(ours[name], np.float64), np.asarray(x, np.float64)
            if not np.allclose(one, other, rtol=1e-2, atol=1e-2, equal_nan=True):
                shown = ", ".join(f"{n}={v}" for n, v in sizes.items())
                raise NotAlike(f"at {shown} it computes something else than at large sizes")
