"""One search from a kernel to its fastest program: its forms and candidates, and the moves from each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter

from tile_eg.chips import Chip
from tile_eg.errors import InternalError, TileError
from tile_eg.extract.schedule import IN_TURN
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.machine import MAX_BLOCKS
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.values import Values
from tile_eg.search import (
    apart,
    blocks_together,
    fewer_ids,
    further,
    grouped,
    joined,
    last_trip,
    loads_ahead,
    operand_first,
    packed_operand,
    panels_in_turns,
    past_l2,
    persistent,
    prefetch,
    rest,
    results_apart,
    rows_behind,
    shared_windows,
    short_loops,
    shuffle_k,
    side_by_side,
    slots_ahead,
    smaller_tiles,
    solved_by_columns,
    split_k,
    steady,
    sums_from_zero,
    tile_each,
    trips_in_blocks,
    turned_loops,
)
from tile_eg.search.candidates import Candidate, fastest_first
from tile_eg.search.form import Form, Setting, search_again, searched, values_of
from tile_eg.search.guided import Guide
from tile_eg.search.open_sizes import OpenSizes
from tile_eg.search.options import SearchOptions
from tile_eg.search.planned import stage
from tile_eg.search.queue import Offer, Queue
from tile_eg.search.result import Lowered


def compiled(kernel: Kernel | OpenKernel, chip: Chip, options: SearchOptions, rank: str) -> Lowered:
    """The kernel with its fastest candidate, as `rank` predicts, of all that the options' budget takes up.

    TileError for a mistake in it, and where no candidate is found; block sizes that are left open are found, too.
    """
    from tile_eg.cost_models import context_model, rank_model, roles

    start = perf_counter()
    orders = context_model(roles(options.cost_model, chip).context, chip)
    setting = Setting(chip, options, rank_model(rank, chip), kernel.source, guide=Guide(orders, chip) if orders else None)
    if isinstance(kernel, OpenKernel):
        return _at_open_sizes(kernel, setting, start)
    queue = Queue(setting, moves_from, (TileError,))
    form = as_written(kernel, setting, resort=False)
    with setting.step("moves"):
        queue.add(form)
    run_queue(queue)
    _ask_the_put_off(queue)
    if queue.best == float("inf"):
        raise _none_launchable(queue, form)
    return result_of(queue, start)


def _ask_the_put_off(queue: Queue) -> None:
    """Where no form has a candidate, has those searched again, one after the other, for which an extractor was put off."""
    for form in list(queue.forms):
        if queue.best == float("inf") and form.extraction and form.extraction.put_off:
            search_again(form)
            queue.forms.remove(form)
            queue.add(form)
            run_queue(queue)


def as_written(kernel: Kernel, setting: Setting, *, resort: bool = True) -> Form:
    return searched(kernel, values_of(kernel, setting), setting, resort=resort)


def run_queue(queue: Queue) -> None:
    """All efforts up to the one that was asked for, one behind the other."""
    level = queue.setting.options.level
    for effort in range(min(1, level), level + 1):
        queue.run(effort)


def _at_open_sizes(kernel: OpenKernel, setting: Setting, start: float) -> Lowered:
    """The kernel at the best of the block sizes that were tried; each is a form whose moves are in the one queue."""
    if "open-sizes" not in setting.options.moves:
        names = ", ".join(f"{name}=..." for name in kernel.open)
        raise TileError("sizes are left open, and 'open-sizes' is left out of the search", help=f"give numbers: {names}")
    sizes = _sizes(kernel, setting)
    queue = _tried(sizes)
    tried = queue.close()
    if queue.best == float("inf"):
        with stage("open-sizes", kernel.source):
            raise sizes.problem(tried, queue.forms)
    return result_of(queue, start, sizes)


def _sizes(kernel: OpenKernel, setting: Setting) -> OpenSizes:
    return OpenSizes(kernel, setting, lambda k, at: as_written(k, replace(setting, at=at), resort=False))


def _tried(sizes: OpenSizes) -> Queue:
    """The queue that has tried the sizes of a kernel that look best, and its outputs apart."""
    queue = Queue(sizes.setting, moves_from, (TileError, InternalError))
    with stage("open-sizes", sizes.kernel.source, sizes.setting.timings):
        queue.put(sizes.offers())
        queue.put(results_apart.offers(sizes.kernel, sizes.setting, _sizes, _result))
    run_queue(queue)
    if queue.best == float("inf"):
        queue.put(sizes.resorts())
        run_queue(queue)
        _ask_the_put_off(queue)
    return queue


def _result(sizes: OpenSizes) -> tuple[Form | None, tuple[Candidate, ...]]:
    """The best form of a kernel that is one of several in a launch, and all candidates, the fastest first."""
    forms = _tried(sizes).forms
    found = fastest_first([c for f in forms for c in f.launchable])
    return min(forms, key=lambda f: f.microseconds, default=None), found


def moves_from(form: Form, candidate: Candidate | None) -> Iterator[Offer]:
    """The moves from a form, or from one of its candidates, that the options allow; none where its values are those of some of
    the outputs."""
    allowed = form.setting.options.moves if IN_TURN not in form.moves else frozenset[str]()
    return (offer for offer in _all_moves(form, candidate) if offer.move.name in allowed)


def _all_moves(form: Form, candidate: Candidate | None) -> Iterator[Offer]:
    yield from fewer_ids.offers(form, candidate)
    if candidate is None:
        for offers in OF_FORMS:
            if not form.values.tile_each or offers not in BY_BLOCK:
                yield from offers(form)
    else:
        yield from persistent.offers(form, candidate)
        yield from steady.offers_of(form, candidate)
        yield from packed_operand.offers(form, candidate)


def _rows_behind(form: Form) -> Iterator[Offer]:
    return rows_behind.offers(form, phase_of)


def _operand_first(form: Form) -> Iterator[Offer]:
    return operand_first.offers(form, phase_of)


def phase_of(values: Values, form: Form, setting: Setting) -> tuple[Candidate, ...]:
    """All candidates of a phase of a form's kernel, the fastest first, by a search of its own."""
    queue = Queue(setting, moves_from, (TileError,))
    queue.add(searched(form.kernel, values, setting, values))
    run_queue(queue)
    return fastest_first([c for f in queue.forms for c in f.launchable])


def result_of(queue: Queue, start: float, sizes: OpenSizes | None = None) -> Lowered:
    """The form with the best candidate, and all that was tried."""
    form = min(queue.forms, key=lambda f: f.microseconds)
    return lowered_of(queue, form, tuple(form.launchable), start, sizes)


def lowered_of(
    queue: Queue, form: Form, candidates: tuple[Candidate, ...], start: float, sizes: OpenSizes | None = None
) -> Lowered:
    """A form with its candidates, the one that is taken first, and all that was tried."""
    from tile_eg.frontend.checks.notes import notes

    assert form.graph is not None and form.extraction is not None
    setting, tried = queue.setting, queue.close()
    return Lowered(
        program=candidates[0].planned.program,
        chip=setting.chip,
        kernel=form.kernel,
        extraction=form.extraction,
        ranked=candidates,
        refused=form.dropped,
        phases=form.graph.phases,
        timings=setting.timings,
        seconds=perf_counter() - start,
        search=setting.options,
        trials=sizes.trials(tried, queue.forms) if sizes else (),
        told=notes(form.kernel),
        tried=tried,
        form=form,
    )


def _none_launchable(queue: Queue, form: Form) -> Exception:
    """Why there is no candidate: no form has one, no rule gives blocks their tiles, or there are too many blocks."""
    from tile_eg.emit.host import launch_blocks

    made = [c for f in queue.forms for c in f.candidates]
    if not made:
        with stage("plan", form.kernel.source):
            raise form.problem or TileError("no schedule of this kernel was found")
    on_cores = [c for c in made if c.on_cores]
    if not on_cores:
        return TileError("no rule says which launch block takes which tile", help="the rule 'block-a-tile' is left out")
    blocks = min(launch_blocks(c.planned.program) for c in on_cores)
    return TileError(
        f"a launch has at most {MAX_BLOCKS} blocks, and this kernel would have {blocks}",
        help="larger tiles, or a search that tries blocks which go through several tiles (--effort quick)",
    )


OF_FORMS: tuple[Callable[[Form], Iterator[Offer]], ...] = (
    smaller_tiles.offers, last_trip.offers, split_k.offers, sums_from_zero.offers, solved_by_columns.offers, turned_loops.offers,
    short_loops.offers, shared_windows.offers, trips_in_blocks.offers, tile_each.offers, _rows_behind, _operand_first,
    blocks_together.offers, further.offers, rest.offers, shuffle_k.offers, steady.offers, slots_ahead.offers, grouped.offers,
    loads_ahead.offers, prefetch.offers, joined.offers, apart.offers, past_l2.offers, panels_in_turns.offers, side_by_side.offers,
)  # fmt: skip
BY_BLOCK = (
    smaller_tiles.offers, split_k.offers, trips_in_blocks.offers, _rows_behind, _operand_first, blocks_together.offers,
    rest.offers,
)  # fmt: skip
"""Those that take a block's number for its tile's: not of a kernel whose blocks have a tile for each vector core."""
