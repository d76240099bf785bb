"""How many trips later each instruction of a cube-vector loop is issued, so that work stands before every cross-core wait.

Each core crossing on the way from a trip's start counts as many half trips as the skew says; an instruction is issued
`halves // 2` trips later. All readers and the writer of a state, and destructive chains, share one lag.
"""

from __future__ import annotations

from tile_eg.extract.selection import Selection
from tile_eg.ops.physical import LOADS, OVERWRITES, STORES

LIMIT = 12
"""Half trips beyond which a loop is not skewed: the skew of four that is offered, for three crossings on the way of a trip."""


def lags(chosen: Selection, loop: int, items: list[int], edges: set[tuple[int, int]], core: dict[int, str]) -> dict[int, int]:
    """Lag by item, all zero where the loop has no skew or cannot have any."""
    none = dict.fromkeys(items, 0)
    skew = chosen.skews.get(loop, 0)
    if not skew or any(x < 0 for x in items) or _permuted(chosen, loop):
        return none
    groups = [g for g in (*_state_groups(chosen, loop), *_tensor_groups(chosen, loop), *_chains(chosen, loop, none)) if g]
    halves = dict(none)
    for _ in range(200):
        if not _push(halves, edges, core, groups, skew):
            spread = {x for x in items if chosen.pick[x].op == "VBrcb"}
            return {x: h // 2 for x, h in (halves | _late(halves, edges, core, groups, spread, skew)).items()}
        if max(halves.values()) > LIMIT:
            break
    return none


def loads_first(chosen: Selection, loop: int, items: list[int]) -> dict[int, int]:
    """Lag by item where each trip issues the loads of the next one before its work; nothing where they are not ahead of it."""
    if any(x < 0 for x in items) or _permuted(chosen, loop):
        return {}
    written = set().union(*_tensor_groups(chosen, loop))
    loads = {x for x in items if chosen.pick[x].op in LOADS and x not in written}
    return {x: int(x not in loads) for x in items} if loads else {}


def _late(
    halves: dict[int, int], edges: set[tuple[int, int]], core: dict[int, str], groups: list[set[int]], spread: set[int], skew: int
) -> dict[int, int]:
    """What waits for nothing in its trip goes with the first that needs it: a ring of loads is no deeper than it has to be.

    So does what only takes more room than what it is made of, `spread`.
    """
    tied = set[int]().union({b for _, b in edges} - spread, *groups)
    latest: dict[int, int] = {}
    for a, b in edges:
        if a not in tied:
            latest[a] = min(latest.get(a, LIMIT), halves[b] - skew * (core[a] != core[b]))
    return latest


def _push(
    halves: dict[int, int], edges: set[tuple[int, int]], core: dict[int, str], groups: list[set[int]], skew: int
) -> bool:
    changed = False
    for a, b in edges:
        least = halves[a] + skew * (core[a] != core[b])
        if halves[b] < least:
            halves[b], changed = least, True
    for group in groups:
        top = max(halves[x] // 2 for x in group)
        for x in group:
            if halves[x] // 2 < top:
                halves[x], changed = 2 * top, True
    return changed


def _state_groups(chosen: Selection, loop: int) -> list[set[int]]:
    out = []
    for (at, k), state in chosen.states.items():
        if at == loop:
            group = {x for r in chosen.state_reads(loop, k) for x, where in chosen.readers[r.cls] if where == loop}
            made = chosen.producer(chosen.after(state).children[0])
            if made and made[1] == loop:
                group.add(made[0])
            out.append(group)
    return out


def _tensor_groups(chosen: Selection, loop: int) -> list[set[int]]:
    out = []
    for node in chosen.tensor_states[loop].values():
        cell = chosen.cells.find(node.children[0])
        writers = {n.cls for n in chosen.nodes if n.op in STORES and n.region == loop and chosen.cells.find(n.cls) == cell}
        readers = {
            x
            for n in chosen.nodes
            if n.op in ("PTArg", *STORES) and chosen.cells.find(n.cls) == cell
            for x, where in chosen.readers[n.cls]
            if where == loop
        }
        out.append(writers | readers)
    return out


def _chains(chosen: Selection, loop: int, items: dict[int, int]) -> list[set[int]]:
    out = []
    for n in chosen.nodes:
        if n.op in OVERWRITES and n.region == loop:
            base = chosen.base(n.children[OVERWRITES[n.op]])
            group = {x for x, where in chosen.readers[base] if where == loop} | {n.cls}
            out.append(group | ({base} if base in items else set()))
    return out


def _permuted(chosen: Selection, loop: int) -> bool:
    """Whether a state gets its next value by a copy of another state or of something made outside."""
    for (at, _), state in chosen.states.items():
        after = chosen.after(state)
        if at == loop and after.op == "NextCp":
            made = chosen.producer(after.children[0])
            if made is None or made[1] != loop:
                return True
    return False
