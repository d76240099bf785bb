"""One compiled kernel for all sizes that are known at run time.

The values of the kernel at a few sets of sizes, primes that have nothing to do with one another, are joined to values of any size
(`transforms/any_size.py`); what these mean at small sizes is compared with what the kernel means there. They are searched like
any others: the sizes are leaves of index expressions, of which the rules know nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from math import prod
from time import perf_counter
from types import MappingProxyType
from typing import Any

from tile_eg.chips import Chip
from tile_eg.emit.any_size_host import Picked
from tile_eg.errors import PlanError, TileError
from tile_eg.ir.index import BLOCK, MOST_SIZE, evaluate, variables
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.machine import MAX_BLOCKS
from tile_eg.ir.open_kernel import NoBlocks, OpenKernel
from tile_eg.ir.program import Program
from tile_eg.ir.program.any_size import resized
from tile_eg.ir.sharing import sharing
from tile_eg.ir.sizes import MOST_GAP
from tile_eg.ir.values import Values
from tile_eg.report.text import Text
from tile_eg.search import persistent
from tile_eg.search.alike import Build, values_of_any_size, which_are_open
from tile_eg.search.candidates import Candidate
from tile_eg.search.collector import rare_collections
from tile_eg.search.driver import compiled, result_of, run_queue
from tile_eg.search.form import Form, Setting, check_room, searched
from tile_eg.search.options import SearchOptions
from tile_eg.search.planned import InternalError, Planned, Run, compiled_for, stage
from tile_eg.search.queue import Offer, Queue
from tile_eg.search.result import Lowered
from tile_eg.transforms.any_size import NotAlike

USUAL = (4096, 1024, 256, 64)
"""The size at which a kernel is priced where its author names none: the first at which its tensors together fit 1 GiB."""
ROOM = 1 << 30
ABOUT = 1.1
CLEARLY = 0.97
"""A further schedule is kept where it takes no more than this part of the time of those that are there."""
Points = Mapping[str, Sequence[int]]
NOWHERE: Points = MappingProxyType({})


@dataclass(frozen=True)
class AtSizes(Planned):
    """The text of a kernel of any size, at some sizes."""

    kernel: Kernel
    text: str

    @property
    def source(self) -> Text:  # type: ignore[override]
        return Text(self.text)

    @cached_property
    def alike(self) -> frozenset[str]:  # type: ignore[override]
        from tile_eg.frontend.checks.kernel import stored_alike

        return stored_alike(self.kernel)

    def judged(self, run: Run, arrays: Mapping[str, object]) -> Run:
        """Elements that the kernel itself never writes are in `unwritten` of the run, and no finding."""
        return run.as_meant(self.kernel, arrays)  # type: ignore[arg-type]


@dataclass(frozen=True)
class AnySize(Planned):
    """A kernel that was compiled once for all sizes: one schedule, or a few of which a launch takes one by its sizes.

    `found` are the lowered kernels, each priced at sizes of its own, and `picked` says which of them a launch takes. `program` is
    that of the first one.
    """

    found: tuple[Lowered, ...]
    picked: Picked

    @property
    def lowered(self) -> Lowered:
        return self.found[0]

    @property
    def alike(self) -> frozenset[str]:
        return self.lowered.alike

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """Those of the lowered kernels, each with a name of its own."""
        named = ((p.program, f"{p.program.name}_{n}" if n > 1 else p.program.name) for n, p in enumerate(self.found, 1))
        return tuple(replace(p, name=name) for p, name in named)

    @cached_property
    def source(self) -> Text:
        """The Ascend C of all of them: one file."""
        from tile_eg.emit.ascend_c import kernel_text

        with stage("write Ascend C"):
            return Text(kernel_text(*self.programs))

    @cached_property
    def host(self) -> Text:
        """The C++ that takes one by the sizes of a launch, and launches it."""
        from tile_eg.emit.any_size_host import any_size_host

        with stage("write the host part"):
            return Text(any_size_host(self.programs, self.picked))

    @cached_property
    def spec(self) -> Text:
        """The launch of the first one at the sizes that it was priced at, with the kernel's meaning there."""
        from tile_eg.frontend.text.meaning import meaning_text

        return self.spec_with(meaning_text(self.lowered.kernel))

    def at(self, kernel: Kernel, sizes: Mapping[str, int]) -> AtSizes | None:
        """What a launch at these sizes needs; `kernel` is the kernel at them. None where the text does not serve them, or where
        the kernel has another grid there, as a dimension of 1 may give it."""
        if 0 in sizes.values() or any(n > MOST_SIZE for n in sizes.values()):
            return None
        place = self.picked.at(dict(sizes))
        if not _is_of(self.programs[place], kernel, sizes):
            return None
        if not serves(self.programs[place], self._values(place), sizes):
            return None
        return AtSizes(resized(self.programs[place], sizes), self.chip, kernel, str(self.source))

    def _values(self, place: int) -> Values:
        form = self.found[place].form
        assert form is not None
        return form.values


def _is_of(program: Program, kernel: Kernel, sizes: Mapping[str, int]) -> bool:
    """Whether a program of any size has the tensors, and the grid, that the kernel has at these; open block sizes have none."""
    held = program.sizes
    assert held is not None
    grid = tuple(evaluate(e, sizes) for e in held.grid)
    shapes = tuple(tuple(evaluate(e, sizes) for e in shape) for shape in held.shapes)
    same = isinstance(kernel, OpenKernel) or grid == tuple(extent for _, extent in kernel.grid)
    return same and shapes == tuple(t.shape for t in kernel.tensors)


def serves(program: Program, values: Values, sizes: Mapping[str, int]) -> bool:
    """Whether a launch at these sizes is one of the program's: it has blocks, and not too many, loops that have to take a trip
    take one in every block, and numbers fit the fields of instructions."""
    held = program.sizes
    assert held is not None
    tiles = prod(evaluate(e, sizes) for e in held.grid)
    launched = evaluate(held.blocks, sizes) * (2 if program.halves and program.kernel_type == "AIV_ONLY" else 1)
    if not 0 < tiles <= MOST_SIZE or launched > MAX_BLOCKS:
        return False
    bytes_of = {t.name: t.dtype.bytes for t in program.tensors}
    if any(evaluate(e, sizes) * bytes_of[name] > MOST_GAP for name, _, e in held.strides):
        return False
    return all(_takes_trips(values, loop, tiles, sizes) for loop in values.counts)


def _takes_trips(values: Values, loop: int, tiles: int, sizes: Mapping[str, int]) -> bool:
    count, least = values.counts[loop], values.fewest[loop]
    blocks = range(tiles) if BLOCK in variables(count) else range(1)
    return not least or all(evaluate(count, {**sizes, BLOCK: b}) >= least for b in blocks)


class OneText:
    """A kernel whose sizes are known at run time, and the texts that serve them.

    `build` gives the kernel at sizes and with numbers; `names` are its sizes. Those that decide what its tiles or loops are have
    to be known: each set of them has a text, which serves all of the others. `priced` are sizes at which the cost model is asked,
    by name.
    """

    def __init__(
        self, build: Build, names: tuple[str, ...], chip: str, options: SearchOptions, priced: Points = NOWHERE
    ) -> None:
        self.build, self.names, self.chip, self.options, self.priced = build, names, chip, options, dict(priced)
        self.known: dict[tuple[object, ...], tuple[tuple[str, ...], dict[str, str]]] = {}
        self.made: dict[tuple[object, ...], AnySize | str] = {}

    def open(self, numbers: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, str]]:
        """The sizes that one text serves, and of each other one the reason why it does not."""
        others = {n: v for n, v in numbers.items() if n not in self.names}
        key = tuple(sorted(others.items()))
        if key not in self.known:
            self.known[key] = which_are_open(lambda sizes: self.build({**others, **sizes}), self.names)
        return self.known[key]

    def text(self, given: Mapping[str, Any]) -> AnySize | str:
        """The text for all sizes but those that have to be known, which are `given`; or why there is none."""
        names = self.open(given)[0]
        fixed = {n: v for n, v in given.items() if n not in names}
        key = tuple(sorted(fixed.items()))
        if key not in self.made:
            self.made[key] = self._compiled(names, fixed)
        return self.made[key]

    def at(self, sizes: Mapping[str, Any], kernel: Kernel) -> AtSizes | None:
        """What a launch at these sizes needs, where one text serves them; `kernel` is the kernel at them."""
        found = self.text(sizes)
        names = self.open(sizes)[0]
        if isinstance(found, str) or not sizes.keys() >= set(names):
            return None
        return found.at(kernel, {n: sizes[n] for n in names})

    def _compiled(self, names: tuple[str, ...], fixed: Mapping[str, Any]) -> AnySize | str:
        if not names:
            return "; ".join(f"{n}: {why}" for n, why in self.open(fixed)[1].items()) or "it has no sizes that a call tells"
        build = lambda sizes: self.build({**fixed, **sizes})  # noqa: E731
        try:
            return self._priced(build, names)
        except NotAlike as why:
            return str(why)
        except (TileError, PlanError) as fault:
            return f"it cannot be compiled for all sizes: {fault.message}"
        except InternalError as fault:
            return f"it could not be compiled for all sizes: {str(fault).splitlines()[0]}"

    def _priced(self, build: Build, names: tuple[str, ...]) -> AnySize:
        """The kernel compiled at each choice of the sizes that were named, and of these as many as are worth it."""
        usual = usual_sizes(build, names, self.priced)
        points = {n: tuple(sorted(set(self.priced.get(n, ())))) or (usual[n],) for n in names}
        choices = [dict(zip(points, numbers, strict=True)) for numbers in product(*points.values())]
        found = [lower_for_any_size(build, choice, self.chip, self.options) for choice in choices]
        return family(found, choices, points)


def usual_sizes(build: Build, names: tuple[str, ...], priced: Points) -> dict[str, int]:
    """The sizes at which a kernel is priced where none are named: the largest that are usual."""
    for number in USUAL:
        sizes = {n: max(priced.get(n, (number,))) for n in names}
        try:
            kernel = build(sizes)
        except (TileError, NoBlocks):
            continue
        if number == USUAL[-1] or sum(prod(t.shape) * t.dtype.bytes for t in kernel.tensors) <= ROOM:
            break
    return sizes


def family(found: Sequence[Lowered], choices: Sequence[Mapping[str, int]], points: Points) -> AnySize:
    """One kernel for all choices of sizes, and further ones for those at which they are clearly faster."""
    times = [[_time(p, p.form, choice) for choice in choices] for p in found]
    kept = [min(range(len(found)), key=lambda n: sum(times[n]))]
    for place in range(len(choices)):
        best = min(range(len(found)), key=lambda n: times[n][place])
        if times[best][place] < CLEARLY * min(times[n][place] for n in kept):
            kept.append(best)
    picks = tuple(min(range(len(kept)), key=lambda n: times[kept[n]][place]) for place in range(len(choices)))
    chosen = tuple(found[n] for n in kept)
    return AnySize(chosen[0].program, chosen[0].chip, chosen, Picked(tuple((n, tuple(p)) for n, p in points.items()), picks))


def _time(lowered: Lowered, form: Form | None, sizes: Mapping[str, int]) -> float:
    """The predicted microseconds of a kernel of any size at some."""
    assert form is not None
    if not serves(lowered.program, form.values, sizes):
        return float("inf")
    return Planned(resized(lowered.program, sizes), lowered.chip).cost.microseconds


def lower_for_any_size(build: Build, sizes: Mapping[str, int], chip: str, options: SearchOptions) -> Lowered:
    """The kernel that `build` gives at sizes, compiled for all of them, and priced at `sizes`.

    Block sizes that are left open are the best there of those that fit. NotAlike where it is another kernel at other sizes;
    TileError as for a kernel whose sizes are known.
    """
    target = compiled_for(chip)
    fault: TileError | None = None
    for build_at in _with_block_sizes(build, sizes, target, options):
        try:
            return _lowered(build_at, sizes, target, options)
        except TileError as error:
            fault = fault or error
    assert fault is not None
    raise fault


def _lowered(build: Build, sizes: Mapping[str, int], chip: Chip, options: SearchOptions) -> Lowered:
    from tile_eg.cost_models import rank_model, roles

    kernel = build(sizes)
    setting = Setting(chip, options, rank_model(roles(options.cost_model, chip).rank, chip), kernel.source)
    with rare_collections(), sharing():
        check_room(kernel, chip)
        return _searched(kernel, values_of_any_size(build, sizes), setting)


def _with_block_sizes(build: Build, sizes: Mapping[str, int], chip: Chip, options: SearchOptions) -> Iterator[Build]:
    """How the kernel is built; with each of the block sizes that the search finds at these sizes, the best ones first."""
    from tile_eg.cost_models import roles

    kernel = build(sizes)
    if not isinstance(kernel, OpenKernel):
        yield build
        return
    with rare_collections(), sharing():
        trials = compiled(kernel, chip, options, roles(options.cost_model, chip).rank).trials
    for trial in trials:
        if trial.predicted is not None:
            yield partial(_at_block_sizes, build, trial.sizes)


def _at_block_sizes(build: Build, blocks: Mapping[str, int], at: Mapping[str, int]) -> Kernel:
    found = build(at)
    return found.build(blocks) if isinstance(found, OpenKernel) else found


def _searched(kernel: Kernel, values: Values, setting: Setting) -> Lowered:
    """The best schedule that is found in the e-graph of the values."""
    start = perf_counter()
    queue = Queue(setting, _moves_from, (TileError,))
    form = searched(kernel, values, setting)
    with setting.step("moves"):
        queue.add(form)
    run_queue(queue)
    form.candidates = _of_any_grid(form.candidates)
    if queue.best == float("inf"):
        with stage("plan", kernel.source):
            raise form.problem or TileError("no schedule of this kernel was found")
    return result_of(queue, start)


def _of_any_grid(found: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """The persistent candidates, where they are about as fast as the others, whose launch has a block for each tile."""
    lasting = tuple(c for c in found if c.schedule.persistent)
    return lasting if lasting and lasting[0].microseconds <= ABOUT * found[0].microseconds else found


def _moves_from(form: Form, candidate: Candidate | None) -> Iterator[Offer]:
    """Persistent grids; the other moves count blocks, or build the kernel anew."""
    allowed = form.setting.options.moves
    return (o for o in (persistent.offers(form, candidate) if candidate else ()) if o.move.name in allowed)
