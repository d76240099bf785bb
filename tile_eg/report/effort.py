"""Where the seconds of a search went: by stage, by phase of the rules, by rule; and what no line accounts for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tile_eg.egraph import Graph, Phase
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
    """Each phase of the rules: rounds, rows that it added, matches, seconds, those that no rule accounts for, and its end."""
    rows = [
        (p.name, p.rounds, p.added, sum(p.matches.values()), duration(p.seconds), duration(unattributed(p)), _stopped(p))
        for p in phases
    ]
    return table(rows, ("phase", "rounds", "new rows", "matches", "time", UNATTRIBUTED, ""), right=(1, 2, 3, 4, 5))


def unattributed(phase: Phase) -> float:
    """Seconds of a phase in no rule's search or application: rebuilding, and the way to egglog and back."""
    return max(0.0, phase.seconds - sum(phase.rule_seconds.values()))


def rules_text(phases: Sequence[Phase], made: Mapping[str, int]) -> str:
    """The rules that took longest, with their matches and the physical nodes that they `made`; the rest in one line."""
    seconds: Counter[str] = Counter()
    matches: Counter[str] = Counter()
    for p in phases:
        seconds.update(p.rule_seconds)  # type: ignore[arg-type]
        matches.update(p.matches)
    order = sorted(seconds, key=lambda r: (-seconds[r], r))
    rows = [(r, duration(seconds[r]), matches[r], made.get(r, 0) or "") for r in order[:RULES_SHOWN]]
    rest = order[RULES_SHOWN:]
    if rest:
        together = duration(sum(seconds[r] for r in rest)), sum(matches[r] for r in rest), sum(made.get(r, 0) for r in rest)
        rows.append((f"{len(rest)} other rules", *together))
    return table(rows, ("rule", "time", "matches", "nodes"), right=(1, 2, 3))


def nodes_by_rule(graph: Graph) -> dict[str, int]:
    """How many physical nodes of the snapshot each rule made."""
    return Counter(rule for node in graph.nodes for rule in node.rules)


def _stopped(phase: Phase) -> str:
    return f"stopped at {phase.stopped_by}" if phase.stopped_by else ""
