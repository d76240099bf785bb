"""A core's stream as a list of steps, each a function without arguments: whether it could be issued, and what that did.

All that does not change while the stream runs is looked up here, once: pipes, flags with a constant id, uses of constant sizes.
So the steps of a stream serve it at other prices, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tile_eg.ir.index import ZERO, Expr, evaluate, variables
from tile_eg.ir.program import CrossSet, CrossWait, Instr, Loop, Node, Print, Tasks, Tile, When, walk
from tile_eg.ir.sharing import Itself, once
from tile_eg.timeline.cores import Core, Mark, Pipe, Place, Span, Step, Unit, Use
from tile_eg.timeline.expressions import compiled, largest
from tile_eg.timeline.flags import sync_step
from tile_eg.timeline.rings import rings_of
from tile_eg.timeline.shapes import shapes_of
from tile_eg.timeline.steady import LEAST_TRIPS, Watch
from tile_eg.timeline.works import Price


def add_steps(core: Core, nodes: tuple[Node, ...], *, exact: bool) -> None:
    """Appends the steps of `nodes` to those of `core`; `exact` runs every trip of every loop."""
    for node in nodes:
        if isinstance(node, Loop):
            _add_loop(core, node, exact)
        elif isinstance(node, When):
            _add_guarded(core, node, node.condition, lambda body=node.body: add_steps(core, body, exact=exact))
        elif isinstance(node, Instr):
            _add_guarded(core, node, node.when, lambda n=node: append(core, n, instruction(core, n)))
        elif not isinstance(node, Print):
            append(core, node, sync_step(core, node))


def append(core: Core, node: Node, step: Step) -> None:
    """One more step; `node` is what it stands for."""
    core.code.append(step)
    core.nodes.append(node)


def _add_guarded(core: Core, node: Node, condition: Expr, add: Any) -> None:
    """What `add` appends, behind a step that jumps over it where the condition does not hold."""
    condition = core.settle(condition)
    if condition.op == "const":
        if condition.args[0]:
            add()
        return
    holds, env, at = compiled(condition), core.env, len(core.code)
    append(core, node, bool)
    add()
    end = len(core.code)

    def step() -> bool:
        if not holds(env):
            core.at = end
        return True

    core.code[at] = step


def _add_loop(core: Core, node: Loop, exact: bool) -> None:
    var, env, cost = node.var, core.env, core.chip.sync.scalar_loop
    until = node.until if node.until is not None and variables(node.until) <= env.keys() else None
    counted = compiled(core.settle(node.until)) if node.until is not None and until is None else None
    trips = node.trips if until is None else min(node.trips, evaluate(until, env))
    if trips <= 0:
        return
    some = core.tiles if isinstance(node, Tasks) else ()
    nested = any(isinstance(n, Loop) for n in walk(node.body))
    place = Place(var, trips, some=bool(some), nested=nested)
    if not exact and not some:
        looked_at = lambda: (shapes_of(node, core.settle, core.prices.turn), rings_of(node, core.settle))  # noqa: E731
        seen = once("shapes", (Itself(node), Itself(core.settle), type(core.prices)), looked_at)
        place = Place(var, trips, *seen, nested=nested)
    core.places.append(place)
    alone = not any(isinstance(n, CrossSet | CrossWait) for n in walk(node.body))
    watch = Watch(core, place) if alone and not exact and not some and trips > LEAST_TRIPS else None

    left = iter(some)

    def enter() -> bool:
        nonlocal left
        left = iter(some)
        if counted:
            place.trips = counted(env)
            if place.trips <= 0:
                core.at = end
                return True
        env[var] = next(left) if some else 0
        core.loops.append(place)
        if watch:
            watch.start()
        return True

    def trip() -> bool:
        if watch:
            watch.trip()
        if some:
            core.marks.append(Mark(core.end, core.busy, core.bytes))
        core.clock += cost
        place.turn += 1
        return True

    def again() -> bool:
        then = next(left, place.trips) if some else env[var] + 1
        if then < place.trips:
            env[var] = then
            core.at = head
        else:
            del env[var]
            core.loops.pop()
        return True

    append(core, node, enter)
    head = len(core.code)
    append(core, node, trip)
    core.loops.append(place)
    add_steps(core, node.body, exact=exact)
    core.loops.pop()
    append(core, node, again)
    end = len(core.code)


# ---- instructions -----------------------------------------------------------------------------------------------------------


def instruction(core: Core, node: Instr, on: str = "") -> Step:
    """Issues an instruction to pipe `on`, or to its own: it waits for room in the queue, and runs when the pipe is free."""
    pipe, issue = core.pipe(on or node.pipe, node), core.chip.sync.scalar_issue
    depth, starts, waiting = core.chip.limits.queue_depth, pipe.starts, pipe.waiting
    use_of, one_use = _uses(core, node, pipe)
    runner_of = _runners(core, node, pipe)
    fixed = runner_of() if node.unit == ZERO else None

    def step() -> bool:
        if len(waiting) >= depth:
            return False
        clock = core.clock
        if len(starts) == depth and starts[0] > clock:
            clock = starts[0]
        core.clock = clock = clock + issue
        use, run = one_use or use_of(), fixed or runner_of()
        use.times += 1
        more = use.price.places - 1
        if waiting or run(use.price, clock) is False:
            waiting.append((partial(run, use.price, clock), node, dict(core.env)))
            waiting.extend((_taken, node, {}) for _ in range(min(more, depth - len(waiting))))
        elif more:
            core.clock = max(clock + more * issue, pipe.room)
        return True

    return step


def _taken() -> bool:
    """A place in the queue of an instruction that is written as many, and waits: they start with the first."""
    return True


def _runners(core: Core, node: Instr, pipe: Pipe) -> Any:
    """What gives, when an instruction is issued, what runs it: under a unit flag that depends on its blocks."""
    if node.unit == ZERO:
        return lambda: _runner(core, node, pipe)
    product = pipe.name == "M"
    tile = node.dst if product else node.srcs[0]
    assert isinstance(tile, Tile)
    slot, row, col, flag = (compiled(core.settle(e)) for e in (tile.slot, tile.row, tile.col, node.unit))
    along, env, record = (_fill if product else _drain), core.env, core.record

    def runner() -> Any:
        unit, hands_over, trips = core.units[tile.buffer, slot(env), row(env), col(env)], flag(env) == 3, dict(env)

        def run(price: Price, issued: float) -> bool:
            found = along(core, unit, pipe, price, issued, hands_over)
            if found and record is not None:
                record.spans.append(Span(core.name, pipe.name, node, *found, found[1] + price.fill, trips))
            return found is not None

        return run

    return runner


def _fill(core: Core, unit: Unit, pipe: Pipe, price: Price, issued: float, last: bool) -> tuple[float, float] | None:
    """An mmad: it writes block by block where the fixpipe has read; the last one hands the blocks over."""
    if unit.filled is not None:
        return None
    found = pipe.run_along(price, issued, unit.drained)
    if last:
        unit.filled = found[0] + price.fill, found[1] + price.fill
        core.pipes["FIX"].wake()
    return found


def _drain(core: Core, unit: Unit, pipe: Pipe, price: Price, issued: float, last: bool) -> tuple[float, float] | None:
    """A fixpipe: it reads block by block where the last mmad has written, and hands the blocks back."""
    if unit.filled is None:
        return None
    found = pipe.run_along(price, issued, unit.filled)
    if last:
        unit.filled, unit.drained = None, found
        core.pipes["M"].wake()
    return found


def _runner(core: Core, node: Instr, pipe: Pipe) -> Any:
    """What runs an issued instruction; where there is a record, it is written down."""
    record, run = core.record, pipe.run
    if record is None:
        return run

    def recorded(price: Price, issued: float) -> bool:
        start = run(price, issued)
        end = start + price.busy
        record.spans.append(Span(core.name, pipe.name, node, start, end, end + price.fill, dict(core.env)))
        return True

    return recorded


def _uses(core: Core, node: Instr, pipe: Pipe) -> tuple[Callable[[], Use], Use | None]:
    """The use that an instruction is counted under: one for each of the sizes that it comes in, and for each turn; and the only
    one that it has."""
    env, sizes = core.env, [core.settle(e) for e in (node.rows, node.cols, node.depth, core.prices.turn(node))]
    rows, cols, depth, turn = (largest(e) for e in sizes)
    known: dict[tuple[int, int, int, int], Use] = {}

    def priced() -> Use:
        key = rows(env), cols(env), depth(env), turn(env)
        if key not in known:
            known[key] = core.use((node, *key), pipe.name)
        return known[key]

    names = frozenset[str]().union(*map(variables, sizes))
    changing = [place for place in core.loops if place.var in names]
    if changing:
        return _kept(priced, changing[-1]), None
    return priced, priced()


def _kept(priced: Any, place: Place) -> Any:
    """`priced`, asked anew in every trip of the innermost loop that it depends on."""
    turn, kept = -1, [priced]

    def use_of() -> Use:
        nonlocal turn
        if turn != place.turn:
            turn, kept[0] = place.turn, priced()
        return kept[0]

    return use_of
