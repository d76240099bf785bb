"""Runs the rules phase by phase. Phases only go forward: nests and algebra on values, then physical terms, loops last."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tile_eg.chips import Chip
from tile_eg.egraph.bases import run, scratch
from tile_eg.egraph.diagnosis import merging_rule
from tile_eg.egraph.encode import Encoder
from tile_eg.egraph.graph import Graph
from tile_eg.egraph.members import Members, read_members
from tile_eg.egraph.not_implementable import described
from tile_eg.egraph.view import view
from tile_eg.errors import NotSearched, TileError
from tile_eg.ir.values import Values, first_version
from tile_eg.ops.records import record
from tile_eg.ops.types import Level
from tile_eg.rules import Theory, native, registry, theories
from tile_eg.transforms.k_tiling import with_k_tilings
from tile_eg.transforms.packed_operand import RowCuts, copyable, together, with_all_strips, without_strips
from tile_eg.transforms.split_k import addable, divisible, least_trips, loop_of_sums

Read = TypeVar("Read")

PHASES = {
    "facts": ("facts",),
    "vectorise nests": ("facts", "nest"),
    "algebra": ("facts", "algebra"),
    "tiling": ("facts", "tiling"),
    "facts of new values": ("facts",),
    "partition, placement, pipelining": ("cube", "vec", "place", "loops", "facts"),
}
VALUE_PHASES = tuple(PHASES)[:-1]
SATURATED = ("facts", "nest", "tiling")  # rulesets that run to their end each time
ONCE = {"algebra": 3}  # rounds of phases that would not end by themselves


@record
class Budget:
    """Where a phase stops even if it is not saturated: rows that it adds to the e-graph, and rounds beside one for each value.
    Never seconds: one input has one text, on any machine.

    The rows are counted after every `every` rounds, and whenever rules have matched `matches` times since.
    """

    rows: int = 60_000
    rounds: int = 60
    every: int = 8
    matches: int = 5_000

    def for_values(self, count: int) -> Budget:
        """That of a kernel with so many values: where each is made of the one before, a round may place one alone."""
        return replace(self, rounds=self.rounds + count)


@dataclass
class Phase:
    """What one phase did: seconds, rows after it and those it added, rounds, matches and seconds by rule, what ended it early."""

    name: str
    seconds: float = 0.0
    rows: int = 0
    added: int = 0
    rounds: int = 0
    matches: dict[str, int] = field(default_factory=dict)
    rule_seconds: dict[str, float] = field(default_factory=dict)
    stopped_by: str = ""


def rows_of(egraph: Any) -> int:
    """The rows of all tables of an e-graph."""
    return sum(n for _, n in run(egraph, "(print-size)")[0].sizes)


def _run_phases(egraph: Any, names: Iterable[str], budget: Budget) -> list[Phase]:
    """The phases one after the other: each begins with the rows that the one before it left."""
    rows, out = rows_of(egraph), list[Phase]()
    for name in names:
        out.append(_run_phase(egraph, name, budget, rows))
        rows = out[-1].rows
    return out


def _run_phase(egraph: Any, name: str, budget: Budget, before: int) -> Phase:
    start, run = time.perf_counter(), _Run(egraph, Phase(name), budget, before)
    phase, rounds = run.phase, ONCE.get(name, budget.rounds)
    while phase.rounds < rounds and run.round() and not run.full:
        pass
    if run.full:
        phase.stopped_by = f"{budget.rows} new rows"
    elif phase.rounds == rounds and run.changed and name not in ONCE:
        phase.stopped_by = f"{rounds} rounds"
    phase.rows = rows_of(egraph) if run.changed or phase.rounds > 1 else before
    phase.added = phase.rows - before
    phase.seconds = time.perf_counter() - start
    return phase


class _Run:
    """The rounds of a phase. `full` says that it added more rows than it may, `changed` that its last round changed anything."""

    def __init__(self, egraph: Any, phase: Phase, budget: Budget, before: int) -> None:
        self.egraph, self.phase, self.budget = egraph, phase, budget
        self.before, self.unseen = before, 0
        self.full = self.changed = False

    def round(self) -> bool:
        """Every ruleset of the phase once, or to its end; whether any of them changed anything."""
        changed = [self._to_its_end(r) if r in SATURATED else self._once(r) for r in PHASES[self.phase.name] if not self.full]
        self.phase.rounds += 1
        self.changed = any(changed)
        if self.changed and self.phase.rounds % self.budget.every == 0:
            self._count()
        return self.changed

    def _to_its_end(self, ruleset: str) -> bool:
        """egglog's own `saturate` knows no end but this one, and rules of a user's may have none."""
        changed = again = self._once(ruleset)
        while again and not self.full:
            again = self._once(ruleset)
        return changed

    def _once(self, ruleset: str) -> bool:
        report = run(self.egraph, f"(run-schedule (run {ruleset}))")[0].report
        matches, seconds = self.phase.matches, self.phase.rule_seconds
        for rule, n in report.num_matches_per_rule.items():
            matches[rule] = matches.get(rule, 0) + n
            self.unseen += n
        for rule, t in report.search_and_apply_time_per_rule.items():
            seconds[rule] = seconds.get(rule, 0.0) + t.total_seconds()
        if self.unseen > self.budget.matches:
            self._count()
        return bool(report.updated)

    def _count(self) -> None:
        self.unseen = 0
        self.full = rows_of(self.egraph) - self.before > self.budget.rows


class Watch:
    """Seconds by what was done, in order."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.last = time.perf_counter()

    def lap(self, name: str) -> None:
        """What was done since the last lap was `name`."""
        now = time.perf_counter()
        self.seconds[name], self.last = self.seconds.get(name, 0.0) + now - self.last, now


def saturate(values: Values, chip: Chip, budget: Budget | None = None, held: tuple[Theory, ...] | None = None) -> Graph:
    """All schedules that the rules of `held` (None: all of the project's) find for `values` on `chip`, as a flat view.

    TileError where they find none, or where a rule of the user's joined two values that cannot be equal.
    """
    rules = theories() if held is None else held
    watch = Watch()
    encoder, commands = commands_of(values, chip)
    values = without_strips(encoder.values)
    watch.lap("write values")
    try:
        with scratch(rules, commands) as egraph:
            watch.lap("load rules")
            for i in range(0, len(commands), native.CHUNK):
                run(egraph, "\n".join(commands[i : i + native.CHUNK]))
            watch.lap("write values")
            phases = _run_phases(egraph, PHASES, (budget or Budget()).for_values(len(encoder.names)))
            watch.lap("phases")
            graph = view(egraph, encoder, values, registry(rules))
            watch.lap("view")
    except RuntimeError as e:
        raise _explained(e, commands, rules) from e
    graph.phases, graph.seconds, graph.theories = phases, watch.seconds, rules
    if graph.root not in graph.classes:
        raise _nothing(graph)
    return graph


def commands_of(values: Values, chip: Chip) -> tuple[Encoder, list[str]]:
    """The values as egglog commands, with what the rules must know of the chip."""
    values, tilings = with_k_tilings(values)
    cuts = RowCuts(chip.rows.long, chip.paths["gm_to_l1_nd2nz"].request)
    packs = not (values.tile_each or _of_a_first_phase(values))
    packable = copyable(values, cuts, few=values.blocks <= chip.cube_cores) if packs else []
    encoder = Encoder(with_all_strips(values, packable), tilings)
    commands = encoder.encode()
    commands.append(f"(set (l0a) {8 * chip.level_bytes(Level.L0A)})")
    commands.append(f"(set (l0b) {8 * chip.level_bytes(Level.L0B)})")
    commands.append(f"(set (long-row) {chip.rows.long})")
    cores = _cores(encoder, chip)
    commands += [f"(Cores {n})" for n in cores]
    if not values.sizes and not values.shared and values.blocks < 2 * cores[0] and (trips := divisible(values)):
        relation = "Divisible" if loop_of_sums(values) else "Foldable"
        commands += [f"({relation} {trips} {least_trips(values)})", f"(MostParts {cores[0]})"]
        commands += ["(Addable)"] if addable(values) else []
    commands += [f'(Copyable "{tensors}")' for tensors in together(packable)]
    direct = () if values.tile_each else ("l0c_to_ub", "ub_to_l1", "l1_to_ub")
    commands += [f'(Way "{way}")' for way in direct if way in chip.paths]
    return encoder, commands


def _of_a_first_phase(values: Values) -> bool:
    """Whether a kernel stores what a second phase reads."""
    return any(first_version(o).args[0] in values.shared for o in values.outputs)


def _cores(encoder: Encoder, chip: Chip) -> list[int]:
    """How many blocks may run at a time: one a cube core where there are products, else one a vector core or a pair of them."""
    if any(t.op == "matmul" for t in encoder.names):
        return [chip.cube_cores]
    return [chip.vector_cores, chip.vector_cores // 2]


def with_values(
    values: Values, held: tuple[Theory, ...], read: Callable[[Any, Encoder], Read], budget: Budget | None = None
) -> tuple[Read, list[Phase]]:
    """What `read` finds in the e-graph after the phases of values, before anything is placed, and how they went."""
    encoder, commands = _value_commands(values)
    try:
        with scratch(held, commands) as egraph:
            run(egraph, "\n".join(commands))
            phases = _run_phases(egraph, VALUE_PHASES, (budget or Budget()).for_values(len(encoder.names)))
            return read(egraph, encoder), phases
    except RuntimeError as e:
        raise _explained(e, commands, held) from e


def _value_commands(values: Values) -> tuple[Encoder, list[str]]:
    """The values as egglog commands, on no chip: a row of any length counts as long, so that all equalities are there."""
    encoder = Encoder(*with_k_tilings(values))
    return encoder, [*encoder.encode(), "(set (long-row) 0)"]


def value_members(values: Values, held: tuple[Theory, ...], budget: Budget | None = None) -> tuple[Members, list[Phase]]:
    """The classes of values that the rules of `held` find, and how the phases went."""
    return with_values(values, held, read_members, budget)


def proves(values: Values, held: tuple[Theory, ...], first: str, second: str) -> bool:
    """Whether the rules of `held` find two terms of the kernel equal."""
    encoder, commands = _value_commands(values)
    commands += [f"(let $first {first})", f"(let $second {second})"]
    with scratch(held, commands) as egraph:
        run(egraph, "\n".join(commands))
        _run_phases(egraph, VALUE_PHASES, Budget().for_values(len(encoder.names)))
        try:
            run(egraph, "(check (= $first $second))")
        except RuntimeError:
            return False
        return True


def _explained(error: RuntimeError, commands: list[str], held: tuple[Theory, ...]) -> Exception:
    """Names the rule where two facts disagreed; any other error as it is."""
    _, disagreed, fact = str(error).partition("Illegal merge attempted for function ")
    if not disagreed:
        return error
    name = merging_rule(lambda: native.load().EGraph(), commands, held)
    what = f"rule '{name}' joined two values of different '{fact.strip()}'"
    theory = next((t for t in held if t.source and any(r.name == name for r in t.rules)), None)
    if theory:
        return TileError(what, help=f"its two sides have to be equal in every kernel; --without {name} leaves it out")
    return RuntimeError(what if name else str(error))


def _busiest(phase: Phase) -> str:
    """The rule of a phase that has most to do with the rows that it added."""
    name, times = max(phase.matches.items(), key=lambda m: m[1])
    return f"rule '{name}' matched most often, {times} times"


def _nothing(graph: Graph) -> TileError:
    """The error for a graph without a schedule: the first value without instructions, or the budget that was too small."""
    if graph.misplaced is not None:
        return graph.misplaced
    stopped = [p for p in graph.phases if p.stopped_by]
    notes = tuple((f"the phase '{p.name}' was stopped at {p.stopped_by}, before all rules had run", None) for p in stopped)
    if stopped:
        fuel = [p for p in stopped if "rows" in p.stopped_by]
        help = f"let the phases add more rows: a larger --fuel, or none; {_busiest(fuel[0])}" if fuel else ""
        return NotSearched("no instruction sequence was found that computes this kernel", help=help, notes=notes)
    stuck = list(dict.fromkeys(described(t, graph.values) for t in graph.not_implementable))
    help = f"no rule gives instructions for {stuck[0]}" if stuck else "no rule answers the kernel's outputs"
    help += f" (and {len(stuck) - 1} more)" if len(stuck) > 1 else ""
    span = graph.values.spans.get(graph.not_implementable[0]) if stuck else None
    return NotSearched("no instruction sequence computes this kernel", span, help=help)
