"""Runs the rules phase by phase. Phases only go forward: nests and algebra on values, then physical terms, loops last."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tile_eg.chips import Chip
from tile_eg.egraph import native
from tile_eg.egraph.blame import blame
from tile_eg.egraph.encode import Encoder
from tile_eg.egraph.snapshot import Graph, snapshot
from tile_eg.errors import TileError
from tile_eg.ir.types import Level
from tile_eg.ir.values import Values
from tile_eg.rules import theories

CHUNK = 20  # one call with thousands of statements is twenty times slower than small ones

PHASES = {
    "facts": ("facts",),
    "vectorise nests": ("nest",),
    "algebra": ("facts", "algebra"),
    "facts of new values": ("facts",),
    "partition, placement, pipelining": ("cube", "vec", "place", "loops", "facts"),
}
ONCE = {"algebra": 3}  # rounds of phases that would not end by themselves


@dataclass(frozen=True)
class Budget:
    """Where a phase stops even if it is not saturated: rows of the e-graph, rounds, seconds."""

    rows: int = 60_000
    rounds: int = 60
    seconds: float = 20.0


@dataclass
class Phase:
    """What one phase did: seconds, rows after it, rounds, matches and seconds by rule, and whether a budget ended it."""

    name: str
    seconds: float = 0.0
    rows: int = 0
    rounds: int = 0
    matches: dict[str, int] = field(default_factory=dict)
    rule_seconds: dict[str, float] = field(default_factory=dict)
    stopped_by: str = ""


_lock = threading.Lock()
_base: Any = None


def _run(egraph: Any, commands: str) -> list:
    try:
        return egraph.run_program(*egraph.parse_program(commands))
    except BaseException as e:  # egglog's errors can be Rust panics
        if isinstance(e, KeyboardInterrupt):
            raise
        raise RuntimeError(f"the e-graph refused {commands[:200]!r}: {e}") from e


def _base_egraph() -> Any:
    global _base
    if _base is None:
        _base = native.load().EGraph()
        for theory in theories():
            for i in range(0, len(theory.text), CHUNK):
                _run(_base, "\n".join(theory.text[i : i + CHUNK]))
        _run(_base, "(relation Source (V i64))")
    return _base


@contextmanager
def _scratch() -> Iterator[Any]:
    """The e-graph with all rules loaded and nothing else; what is added is gone afterwards."""
    global _base
    with _lock:
        egraph = _base_egraph()
        _run(egraph, "(push)")
        try:
            yield egraph
        except BaseException:
            _base = None  # a panic leaves it in an unknown state
            raise
        _run(egraph, "(pop)")


def _rows(egraph: Any) -> int:
    return sum(len(f.rows) for f in egraph.freeze().functions.values())


def _run_phase(egraph: Any, name: str, budget: Budget) -> Phase:
    phase = Phase(name)
    start = time.perf_counter()
    schedule = " ".join(f"(saturate (run {r}))" if r in ("facts", "nest") else f"(run {r})" for r in PHASES[name])
    rounds = ONCE.get(name, budget.rounds)
    while phase.rounds < rounds:
        report = _run(egraph, f"(run-schedule (seq {schedule}))")[0].report
        phase.rounds += 1
        for rule, n in report.num_matches_per_rule.items():
            phase.matches[rule] = phase.matches.get(rule, 0) + n
        for rule, t in report.search_and_apply_time_per_rule.items():
            phase.rule_seconds[rule] = phase.rule_seconds.get(rule, 0.0) + t.total_seconds()
        phase.seconds = time.perf_counter() - start
        if not report.updated:
            break
        if phase.seconds > budget.seconds:
            phase.stopped_by = f"{budget.seconds:g} s"
            break
        if phase.rounds % 8 == 0 and _rows(egraph) > budget.rows:
            phase.stopped_by = f"{budget.rows} rows"
            break
    else:
        phase.stopped_by = "" if name in ONCE else f"{rounds} rounds"
    phase.rows = _rows(egraph)
    phase.seconds = time.perf_counter() - start
    return phase


def saturate(values: Values, chip: Chip, budget: Budget | None = None) -> Graph:
    """All schedules that the rules find for `values` on `chip`, as a flat snapshot."""
    encoder = Encoder(values)
    commands = encoder.encode()
    commands.append(f"(set (l0a) {chip.level_bytes(Level.L0A)})")
    commands.append(f"(set (l0b) {chip.level_bytes(Level.L0B)})")
    try:
        with _scratch() as egraph:
            for i in range(0, len(commands), CHUNK):
                _run(egraph, "\n".join(commands[i : i + CHUNK]))
            phases = [_run_phase(egraph, name, budget or Budget()) for name in PHASES]
            graph = snapshot(egraph, encoder, values)
    except RuntimeError as e:
        raise _explained(e, commands) from e
    graph.phases = phases
    if graph.root not in graph.classes:
        raise TileError("no instruction sequence computes this kernel", help=_missing(graph))
    return graph


def _explained(error: RuntimeError, commands: list[str]) -> RuntimeError:
    """Names the rule where two facts disagreed; any other error as it is."""
    _, disagreed, fact = str(error).partition("Illegal merge attempted for function ")
    if not disagreed:
        return error
    rule = blame(lambda: native.load().EGraph(), commands, theories())
    return RuntimeError(f"rule '{rule}' joined two values of different '{fact.strip()}'" if rule else str(error))


def _missing(graph: Graph) -> str:
    stuck = sorted(graph.unanswered)[:5]
    return "no rule answers: " + "; ".join(stuck) if stuck else "no rule answers the kernel's outputs"
