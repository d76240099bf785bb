"""What each rule of a search costs: the same phases once more, with each rule run by itself and timed.

egglog tells times in steps that are longer than most rules take, so the clock stands outside. It is that of the thread: what
other processes take meanwhile does not count.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tile_eg.chips import Chip
from tile_eg.egraph.diagnosis import alone, ruleset_of
from tile_eg.egraph.saturate import ONCE, PHASES, SATURATED, Budget, commands_of, rows_of
from tile_eg.ir.values import Values
from tile_eg.rules import Theory, native

NOTHING = "nothing"
TRIES = 200


@dataclass
class RuleProfile:
    """Processor seconds of search, application and rebuilding in all rounds; matches; rows that the e-graph grew by."""

    name: str
    seconds: float = 0.0
    matches: int = 0
    rows: int = 0


def profile(values: Values, chip: Chip, held: tuple[Theory, ...], budget: Budget | None = None) -> list[RuleProfile]:
    """Every rule of `held` with its costs on `values`, the longest first; what a call into egglog costs is taken off."""
    egraph = native.load().EGraph()
    names = {r.name: r.ruleset for t in held for r in t.rules}
    encoder, own = commands_of(values, chip)
    commands = [alone(text, names) for t in held for text in t.text] + [f"(ruleset {NOTHING})"] + own
    native.run_all(egraph, commands)
    run = _Run(egraph, names)
    for phase in PHASES:
        run.phase(phase, (budget or Budget()).for_values(len(encoder.names)))
    return sorted(run.rules.values(), key=lambda r: (-r.seconds, r.name))


class _Run:
    def __init__(self, egraph: Any, names: dict[str, str]) -> None:
        self.egraph = egraph
        self.rules = {name: RuleProfile(name) for name in names}
        self.rulesets: dict[str, list[str]] = {}
        for name, ruleset in names.items():
            self.rulesets.setdefault(ruleset, []).append(name)
        self.rows = rows_of(egraph)
        self.call = min(self._timed(NOTHING)[0] for _ in range(TRIES))

    def phase(self, name: str, budget: Budget) -> None:
        """The rounds of a phase, until no rule changes anything or its budget is reached."""
        most = self.rows + budget.rows
        for _ in range(ONCE.get(name, budget.rounds)):
            changed = [self._ruleset(r, most) for r in PHASES[name]]
            if not any(changed) or self.rows > most:
                break

    def _ruleset(self, ruleset: str, most: int) -> bool:
        changed = self._once(self.rulesets.get(ruleset, ()))
        again = changed and ruleset in SATURATED
        while again and self.rows <= most:
            again = self._once(self.rulesets[ruleset])
        return changed

    def _once(self, names: Sequence[str]) -> bool:
        changed = [self._rule(name) for name in names]
        return any(changed)

    def _rule(self, name: str) -> bool:
        seconds, report = self._timed(ruleset_of(name))
        rule = self.rules[name]
        rule.seconds += max(0.0, seconds - self.call)
        rule.matches += sum(report.num_matches_per_rule.values())
        if report.updated:
            rows = rows_of(self.egraph)
            rule.rows += rows - self.rows
            self.rows = rows
        return bool(report.updated)

    def _timed(self, ruleset: str) -> tuple[float, Any]:
        start = time.thread_time()
        report = native.run(self.egraph, f"(run-schedule (run {ruleset}))")[0].report
        return time.thread_time() - start, report
