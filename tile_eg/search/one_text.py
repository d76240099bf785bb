"""One compiled kernel for all sizes that are known at run time: how it is found.

The values of the kernel at a few sets of sizes, primes that have nothing to do with one another, are joined to values of any size
(`transforms/any_size.py`); what these mean at small sizes is compared with what the kernel means there. They are searched like
any others: the sizes are leaves of index expressions, of which the rules know nothing.

At sizes that the author names the kernel is also compiled with these given. Where that is clearly faster, the text holds this
kernel too, and a launch at just these sizes takes it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod
from time import perf_counter
from types import MappingProxyType
from typing import Any

from tile_eg.chips import Chip
from tile_eg.emit.any_size_host import Picked
from tile_eg.errors import InternalError, PlanError, TileError, TileWarning, attempted, plannable
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.sharing import once, sharing
from tile_eg.ir.values import Values
from tile_eg.search import deeper_trips, packed_operand, persistent, short_loops, smaller_tiles, turned_loops
from tile_eg.search.alike import ANY_NUMBER, Build, Made, at_sizes, values_of_any_size, which_are_open
from tile_eg.search.any_order import refuse_any_order
from tile_eg.search.any_size import AnySize, AtSizes, Variant, named
from tile_eg.search.candidates import Candidate
from tile_eg.search.chip_types import check_chip_types
from tile_eg.search.collector import rare_collections
from tile_eg.search.driver import compiled, lowered_of, result_of, run_queue
from tile_eg.search.form import Form, Setting, check_room, searched
from tile_eg.search.moves import AT_GIVEN_SIZES
from tile_eg.search.off_bursts import all_copied, on_bursts
from tile_eg.search.options import SearchOptions
from tile_eg.search.planned import compiled_for, stage
from tile_eg.search.queue import Offer, Queue
from tile_eg.search.result import Lowered
from tile_eg.search.text_kernels import Found, TextKernels, family, most_sizes
from tile_eg.search.whole_tiles import whole_sizes
from tile_eg.transforms.any_size import NotAlike

USUAL = (4096, 1024, 256, 64)
"""The size at which a kernel is priced where its author names none: the first at which its tensors together fit 1 GiB."""
ROOM = 1 << 30
ABOUT = 1.1
"""How many times as long as the fastest one a persistent kernel may take to be taken for all grids."""
Points = Mapping[str, Sequence[int]]
NOWHERE: Points = MappingProxyType({})
FAULTS_VARIABLE = "TILE_EG_RAISE_FAULTS"
"""The variable of the environment that lets a fault of tile_eg end a call, whose kernel is else compiled for its sizes alone."""


class NoText(str):
    """Why there is no text for all sizes; `fault` is the fault of tile_eg where it is one, `told`: authors have to know."""

    fault: InternalError | None = None
    told = False

    @classmethod
    def of(cls, why: str, fault: InternalError | None = None) -> NoText:
        """A reason that authors have to know."""
        found = cls(why)
        found.fault, found.told = fault, True
        return found


class OneText:
    """A kernel whose sizes are known at run time, and the texts that serve them.

    `build` gives the kernel at sizes and with numbers; `names` are its sizes. Those that decide what its tiles or loops are have
    to be known: each set of them has a text, which serves all of the others. `priced` are sizes at which the cost model is asked,
    by name.
    """

    def __init__(self, build: Build, names: tuple[str, ...], chip: str, options: SearchOptions, priced: Points = NOWHERE) -> None:
        self.build, self.names, self.chip, self.options, self.priced = build, names, chip, options, dict(priced)
        self.known: dict[tuple[object, ...], tuple[tuple[str, ...], dict[str, str]]] = {}
        self.made: dict[tuple[object, ...], AnySize | NoText] = {}
        self.said: set[str] = set()

    def open(self, numbers: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, str]]:
        """The sizes that one text serves, and of each other one the reason why it does not."""
        others = {n: v for n, v in numbers.items() if n not in self.names}
        key = tuple(sorted(others.items()))
        if key not in self.known:
            self.known[key] = self.opened(others)
        return self.known[key]

    def opened(self, others: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, str]]:
        """`open`, found now."""
        return which_are_open(lambda sizes: self.build({**others, **sizes}), self.names)

    def text(self, given: Mapping[str, Any]) -> AnySize | NoText:
        """The text for all sizes but those that have to be known, which are `given`; or why there is none."""
        names = self.open(given)[0]
        fixed = {n: v for n, v in given.items() if n not in names}
        key = tuple(sorted(fixed.items()))
        if key not in self.made:
            self.made[key] = self.compiled(names, fixed)
        return self.made[key]

    def at(self, sizes: Mapping[str, Any], kernel: Kernel) -> AtSizes | None:
        """What a launch at these sizes needs, where one text serves them; `kernel` is the kernel at them.

        Where a text does not serve sizes that it could be thought to serve, or is missing for a fault, a warning says so once.
        """
        found = self.text(sizes)
        names = self.open(sizes)[0]
        if isinstance(found, NoText):
            if found.told:
                self._say(kernel, f"it is compiled for each set of sizes: {found}")
            return None
        if not sizes.keys() >= set(names):
            return None
        own = {n: sizes[n] for n in names}
        why = found.why_not(kernel, own)
        if why and all(n > 0 for n in own.values()):
            shown = ", ".join(f"{n}={v}" for n, v in own.items())
            self._say(kernel, f"its text for all sizes does not serve {shown}, for which it is compiled alone: {why}", why)
        return None if why else found.at(kernel, own)

    def _say(self, kernel: Kernel, text: str, reason: str = "") -> None:
        """A warning, once for a reason."""
        if (reason or text) not in self.said:
            self.said.add(reason or text)
            warnings.warn_explicit(f"note: {kernel.name}: {text}", TileWarning, kernel.file or "tile_eg", 1)

    def compiled(self, names: tuple[str, ...], fixed: Mapping[str, Any]) -> AnySize | NoText:
        """`text` for these open sizes, found now."""
        if not names:
            reasons = "; ".join(f"{n}: {why}" for n, why in self.open(fixed)[1].items())
            return NoText(reasons or "it has no sizes that a call tells")
        build = lambda sizes: self.build({**fixed, **sizes})  # noqa: E731
        try:
            with sharing():
                found = _none_or(lambda: self._priced(build, names))
        except InternalError as fault:
            if os.environ.get(FAULTS_VARIABLE):
                raise
            why = f"it could not be compiled for all sizes, which is a fault of tile_eg: {str(fault).splitlines()[0]}"
            return NoText.of(why, fault)
        if isinstance(found, NotAlike):
            return NoText(found.why)
        return found if isinstance(found, AnySize) else NoText.of(f"it cannot be compiled for all sizes: {found.message}")

    def _priced(self, build: Build, names: tuple[str, ...]) -> AnySize | NotAlike:
        """The kernel compiled at each choice of the sizes that were named, and of these as many as are worth it."""
        usual = usual_sizes(build, names, self.priced)
        points = {n: tuple(sorted(set(self.priced.get(n, ())))) or (usual[n],) for n in names}
        choices = [dict(zip(points, numbers, strict=True)) for numbers in product(*points.values())]
        found = list[Found]()
        for choice in choices:
            made = lower_for_any_size(build, choice, self.chip, self.options)
            if isinstance(made, NotAlike):
                return made
            found.append(made)
        kept, picks = family([one[-1] for one in found], choices)
        kernels = TextKernels(kept)
        priced = [(one, choice, most_sizes(points, choice)) for one, choice in zip(found, choices, strict=True)][::-1]
        bursts = on_bursts([(one[-1], choice) for one, choice, _ in priced], set(names) - self.priced.keys())
        if bursts:
            kernels.add_off_bursts([(all_copied(one[-1]), choice, most) for one, choice, most in priced], bursts)
        for one, choice, most in priced:
            if len(one) > 1:
                kernels.add_copying(one[0], choice, most, bursts)
        self._add_whole(kernels, build, choices)
        for choice in choices if self.priced.keys() >= set(names) else ():
            if given := _with_sizes_given(build(choice), self.chip, self.options):
                kernels.add_given(given, choice)
        return _text_of(kernels.found, Picked.of(points, picks, kernels.first))

    def _add_whole(self, kernels: TextKernels, build: Build, choices: Sequence[Mapping[str, int]]) -> None:
        """Kernels for sizes that are multiples of their tiles, where they are clearly faster at the largest that were named."""
        form = kernels.found[0].form
        by = whole_sizes(form.source) if form and self.options.effort != "none" else {}
        whole = [c for c in choices if by and all(c[n] % m == 0 for n, m in by.items())]
        made = _none_or(lambda: lower_for_any_size(build, whole[-1], self.chip, self.options, by)) if whole else None
        if isinstance(made, tuple):
            kernels.add_whole(made[-1], whole, by)
            if len(made) > 1:
                kernels.add_copying(made[0], whole[-1], by=by)


def _text_of(kept: Sequence[Lowered], picked: Picked) -> AnySize:
    """The text with these kernels, each under a name of its own."""
    variants = [Variant.of(p) for p in kept]
    programs = named([v.program for v in variants])
    own = tuple(Variant(p, v.trips) for v, p in zip(variants, programs, strict=True))
    told = tuple(dict.fromkeys(m for p in kept for m in p.messages))
    return AnySize(own[0].program, kept[0].chip, kept[0].kernel, own, picked, tuple(kept), told)


def usual_sizes(build: Build, names: tuple[str, ...], priced: Points) -> dict[str, int]:
    """The sizes at which a kernel is priced where none are named: the largest that are usual."""
    for number in USUAL:
        sizes = {n: max(priced.get(n, (number,))) for n in names}
        kernel = at_sizes(partial(build, sizes))
        if kernel is None or isinstance(kernel, TileError):
            continue
        if number == USUAL[-1] or sum(prod(t.shape) * t.dtype.bytes for t in kernel.tensors) <= ROOM:
            break
    return sizes


def _with_sizes_given(kernel: Kernel, chip: str, options: SearchOptions) -> Lowered | None:
    """The kernel compiled at its sizes; None where that cannot be."""
    from tile_eg.search.compiler import lower

    made = attempted(lambda: lower(kernel, chip, search=options))
    return made if isinstance(made, Lowered) else None


def _none_or(way: Callable[[], Made]) -> Made | TileError | PlanError:
    """What `way` gives; where it ends because there is no schedule, that."""
    return plannable(lambda: attempted(way))


def lower_for_any_size(
    build: Build, sizes: Mapping[str, int], chip: str, options: SearchOptions, multiples: Mapping[str, int] = ANY_NUMBER
) -> Found | NotAlike:
    """The kernel that `build` gives at sizes, compiled for all of them that are multiples of these, and priced at `sizes`; where
    the best one copies operands first, also the best that does not.

    Block sizes that are left open are the best there of those that fit. NotAlike where it is another kernel at other sizes;
    TileError as for a kernel whose sizes are known.
    """
    target = compiled_for(chip)
    fault: TileError | None = None
    for build_at in _with_block_sizes(build, sizes, target, options):
        made = attempted(partial(_lowered, build_at, sizes, target, options, multiples))
        if not isinstance(made, TileError):
            return made
        fault = fault or made
    assert fault is not None
    raise fault


def _lowered(
    build: Build, sizes: Mapping[str, int], chip: Chip, options: SearchOptions, multiples: Mapping[str, int]
) -> Found | NotAlike:
    from tile_eg.cost_models import rank_model, roles

    kernel = build(sizes)
    setting = Setting(chip, options, rank_model(roles(options.cost_model, chip).rank, chip), kernel.source)
    with rare_collections(), sharing():
        check_chip_types((kernel.tensors, kernel.body), chip)
        check_room(kernel, chip)
        if options.deterministic:
            refuse_any_order(kernel)
        values = values_of_any_size(build, sizes, multiples)
        return values if isinstance(values, NotAlike) else _searched(kernel, values, setting)


def _with_block_sizes(build: Build, sizes: Mapping[str, int], chip: Chip, options: SearchOptions) -> Iterator[Build]:
    """How the kernel is built; with each of the block sizes that the search finds at these sizes, the best ones first.

    Moves that a kernel for all sizes cannot have do not count for its blocks.
    """
    from tile_eg.cost_models import roles

    kernel, options = build(sizes), replace(options, without=options.without | AT_GIVEN_SIZES)
    if not isinstance(kernel, OpenKernel):
        yield build
        return
    tried = lambda: compiled(kernel, chip, options, roles(options.cost_model, chip).rank).trials  # noqa: E731
    with rare_collections(), sharing():
        trials = once("block sizes", (build, tuple(sorted(sizes.items())), chip.name, options), tried)
    for trial in trials:
        if trial.predicted is not None:
            yield partial(_at_block_sizes, build, trial.sizes)


def _at_block_sizes(build: Build, blocks: Mapping[str, int], at: Mapping[str, int]) -> Kernel:
    """The kernel with these block sizes. A size that it has only here, and not where they were found, is the smallest of them."""
    found = build(at)
    if not isinstance(found, OpenKernel):
        return found
    return found.build({name: blocks.get(name, min(blocks.values())) for name in found.open})


def _searched(kernel: Kernel, values: Values, setting: Setting) -> Found:
    """The best schedule that is found in the e-graph of the values; where it copies operands, also the best that does not."""
    start = perf_counter()
    queue = Queue(setting, _moves_from, (TileError,))
    form = searched(kernel, values, setting)
    with setting.step("moves"):
        queue.add(form)
    run_queue(queue)
    for made in queue.forms:
        made.candidates = _of_any_grid(made.candidates)
    if queue.best == float("inf"):
        with stage("plan", kernel.source):
            raise form.problem or TileError("no schedule of this kernel was found")
    best = result_of(queue, start)
    return (best, _without_copies(queue, start)) if best.chosen.schedule.in_strips else (best,)


def _without_copies(queue: Queue, start: float) -> Lowered:
    """The best schedule that copies no operands: copies are made of such."""
    of_form = [(form, tuple(c for c in form.launchable if not c.schedule.in_strips and not c.unwritable)) for form in queue.forms]
    form, own = min((x for x in of_form if x[1]), key=lambda x: x[1][0].microseconds)
    return lowered_of(queue, form, own, start)


def _of_any_grid(found: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """The persistent candidates, where they are about as fast as the others, whose launch has a block for each tile."""
    lasting = tuple(c for c in found if c.schedule.persistent)
    return lasting if lasting and lasting[0].microseconds <= ABOUT * found[0].microseconds else found


def _moves_from(form: Form, candidate: Candidate | None) -> Iterator[Offer]:
    """The moves that a kernel for all sizes may have."""
    allowed = form.setting.options.moves - AT_GIVEN_SIZES
    return (o for o in _of_any_size(form, candidate) if o.move.name in allowed)


def _of_any_size(form: Form, candidate: Candidate | None) -> Iterator[Offer]:
    if candidate is not None:
        yield from persistent.offers(form, candidate)
        yield from packed_operand.offers(form, candidate)
        return
    yield from smaller_tiles.offers(form)
    yield from deeper_trips.offers(form)
    yield from turned_loops.offers(form)
    yield from short_loops.offers(form)
