"""Which flags an order can do without: found by replays that begin where a flag first stands, and of several flags at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tile_eg.emit.sync import order as orders
from tile_eg.emit.sync.clock import count, of_counts
from tile_eg.emit.sync.order import Needed, Op, Order, Spared, spared_of
from tile_eg.ir.program import AIC, AIV

PIPES = ("MTE2", "M", "FIX")
Checks = Mapping[int, Sequence[tuple[int, int]]]
Streams = dict[str, list[Op]]


@st.composite
def streams(draw: st.DrawFn) -> Streams:
    """Instructions and flags in which each flag is set and waited for in turns, within a core and between the two."""
    edges = draw(st.lists(st.tuples(st.sampled_from((AIC, AIV)), *[st.sampled_from(PIPES)] * 2), min_size=1, max_size=6))
    out: Streams = {AIC: [], AIV: []}
    for trip in range(draw(st.integers(1, 4))):
        for n, (core, source, target) in enumerate(edges):
            for pipe in draw(st.lists(st.sampled_from(PIPES), max_size=3)):
                instance = sum(map(len, out.values()))
                out[core].append(Op("run", core, pipe, instance=instance))
            owner = ("edge", n)
            if source == target:
                other = AIV if core == AIC else AIC
                out[core].append(Op("cross_set", core, source, ("cross", n), owner))
                out[other].append(Op("cross_wait", other, "", ("cross", n), owner))
            elif draw(st.booleans()) or trip == 0:
                out[core].append(Op("set", core, source, (n, 0), owner))
                out[core].append(Op("wait", core, target, (n, 0), owner))
            else:
                out[core].append(Op("barrier", core, source, owner=("barrier", n)))
    for core in out:
        out[core] += [Op("run", core, pipe, instance=1000 * (core == AIV) + 100 + n) for n, pipe in enumerate(PIPES)]
    return out


def needs(of: Streams, picked: Sequence[int]) -> Checks:
    """Of some instances a part of what all flags let them know."""
    order = Order(of)
    starts = order.replay().starts
    pairs = [(n, at, count(clock, at)) for n, clock in starts.items() for at in range(order.size) if count(clock, at)]
    out: dict[int, list[tuple[int, int]]] = {}
    for k in picked:
        if pairs:
            n, at, least = pairs[k % len(pairs)]
            out.setdefault(n, []).append((at, least))
    return out


def one_by_one(of: Streams, needed: Checks, owners: Sequence[tuple], faultless: bool) -> list[tuple]:
    """The owners that can be left out, each tried by a replay from the beginning."""
    out: list[tuple] = []
    for owner in owners:
        left = {core: [o for o in ops if o.owner not in (*out, owner)] for core, ops in of.items()}
        if _holds(of, left, needed, faultless):
            out.append(owner)
    return out


def _holds(of: Streams, left: Streams, needed: Checks, faultless: bool) -> bool:
    order, whole = Order(left), Order(of)
    place = {whole.index[p] + k: order.index[p] + k for p in order.index for k in (0, 1)}
    place |= {whole.cores[c]: order.cores[c] for c in order.cores}
    verdict = order.replay()
    known = all(
        n in verdict.starts and at in place and count(verdict.starts[n], place[at]) >= least
        for n, found in needed.items()
        for at, least in found
        if at < 2 * len(whole.index) and at % 2 == 0
    )
    return known and verdict.ended and not (faultless and verdict.faults)


def instructions_alone(needed: Checks, of: Streams) -> Checks:
    """The part that tells of finished instructions: how waits are counted depends on which there are."""
    size = 2 * len(Order(of).index)
    kept = {n: [(at, least) for at, least in found if at < size and at % 2 == 0] for n, found in needed.items()}
    return {n: found for n, found in kept.items() if found}


def packed(needed: Checks) -> Needed:
    return {n: of_counts(dict(found).items()) for n, found in needed.items()}


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("soon", [0, 2, 1000])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(of=streams(), picked=st.lists(st.integers(0, 10**6), max_size=6), faultless=st.booleans())
def test_the_owners_that_are_spared_are_those_of_one_replay_each(
    soon: int, of: Streams, picked: Sequence[int], faultless: bool
) -> None:
    needed = instructions_alone(needs(of, picked), of)
    owners = list(dict.fromkeys(o.owner for ops in of.values() for o in ops if o.owner))
    before, orders.SOON = orders.SOON, soon
    try:
        found = spared_of([Spared(Order(of), packed(needed), owners, faultless)], owners)
    finally:
        orders.SOON = before
    assert found == one_by_one(of, needed, owners, faultless)


def test_a_replay_begins_where_a_flag_first_stands() -> None:
    """Of two flags with work before each, the second one's replay has only what is behind it."""
    work = [Op("run", AIC, "MTE2", instance=n) for n in range(20)]
    first, second = ([Op("set", AIC, "MTE2", (n,), ("edge", n)), Op("wait", AIC, "M", (n,), ("edge", n))] for n in (0, 1))
    order = Order({AIC: [*work[:10], *first, *work[10:], *second]})
    spared = Spared(order, {}, [("edge", 0), ("edge", 1)])
    assert [mark.at[AIC] for mark in spared.marks.values()] == [10, 22]
