"""Where the seconds of a search went: by stage, by phase of the rules, by rule; and what no line accounts for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tile_eg.egraph import Graph, Phase
from tile_eg.egraph.profile import RuleProfile
from tile_eg.report.text import duration, table

RULES_SHOWN = 10
UNATTRIBUTED = "unattributed"


def seconds_text(timings: Mapping[str, float], total: float, graph: Graph | None = None) -> str:
    """Seconds by stage of a compilation; those of saturation also by what it did. They add up to `total`."""
    rows: list[tuple[str, str]] = []
    for name, seconds in timings.items():
        rows.append((name, duration(seconds)))
        if name == "saturate" and graph is not None:
            inside = dict(graph.seconds)
            inside[UNATTRIBUTED] = max(0.0, seconds - sum(inside.values()))
            rows += [(f"  {part}", duration(s)) for part, s in inside.items()]
    rest = max(0.0, total - sum(timings.values()))
    return table([*rows, (UNATTRIBUTED, duration(rest)), ("together", duration(total))], ("", "time"), right=(1,))


def phases_text(phases: Sequence[Phase]) -> str:
    """Each phase of the rules: rounds, the rows that it added, matches, its time, and the budget that ended it."""
    rows = [(p.name, p.rounds, p.added, sum(p.matches.values()), duration(p.seconds), _stopped(p)) for p in phases]
    return table(rows, ("phase", "rounds", "new rows", "matches", "time", ""), right=(1, 2, 3, 4))


def rules_text(phases: Sequence[Phase], made: Mapping[str, int]) -> str:
    """The rules that matched most, with the physical nodes that each of them `made`; the rest in one line."""
    matches: Counter[str] = Counter()
    for p in phases:
        matches.update(p.matches)
    order = sorted((r for r in matches if matches[r]), key=lambda r: (-matches[r], r))
    rows = [(r, matches[r], made.get(r, 0) or "") for r in order[:RULES_SHOWN]]
    if rest := order[RULES_SHOWN:]:
        rows.append((f"{len(rest)} other rules", sum(matches[r] for r in rest), sum(made.get(r, 0) for r in rest)))
    return table(rows, ("rule", "matches", "nodes"), right=(1, 2))


def profile_text(rules: Sequence[RuleProfile]) -> str:
    """Every rule that matched something, by the time that it took when it was run by itself."""
    rows = [(r.name, duration(r.seconds), r.matches, r.rows or "") for r in rules if r.matches]
    rest = [r for r in rules if not r.matches]
    rows.append((f"{len(rest)} rules without a match", duration(sum(r.seconds for r in rest)), 0, ""))
    rows.append(("together", *_together(rules)))
    return table(rows, ("rule, by itself", "time", "matches", "new rows"), right=(1, 2, 3))


def _together(rules: Sequence[RuleProfile]) -> tuple[str, int, int]:
    return duration(sum(r.seconds for r in rules)), sum(r.matches for r in rules), sum(r.rows for r in rules)


def nodes_by_rule(graph: Graph) -> dict[str, int]:
    """How many physical nodes of the view each rule made."""
    return Counter(rule for node in graph.nodes for rule in node.rules)


def _stopped(phase: Phase) -> str:
    return f"stopped at {phase.stopped_by}" if phase.stopped_by else ""
