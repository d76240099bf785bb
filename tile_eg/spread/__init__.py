"""One function on many items: in this process, in several of this machine, or on the workers of a Dask cluster.

    with crew(workers=4) as them:                          # or crew(dask="tcp://host:8786")
        for outcome in them.each(measure, items):          # as they end
            outcome.value, outcome.error                   # one of them

A process or a worker that dies loses nothing: what it had is done again by another. What an item fails with is its outcome's
`error`, and does not stop the others. The function stands at the top of a module of tile_eg, since it is sent by its name; items
and values are sent by pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tile_eg.errors import TileError
from tile_eg.spread.crew import Crew, Here
from tile_eg.spread.outcome import TRIES, Outcome

__all__ = ["TRIES", "Crew", "Outcome", "crew", "spread"]


def crew(workers: int = 1, dask: str | None = None, tell: Callable[[str], None] = lambda text: None) -> Crew:
    """Who does the work: this process (`workers` is 1), so many processes, or the cluster whose scheduler has the address `dask`.

    `tell` gets a line for each worker that cannot be used, and for each that is lost. TileError for a number below 1, both kinds
    at once, an address that does not answer within seconds, and a cluster with no worker of this version of tile_eg.
    """
    if workers < 1:
        raise TileError(f"{workers} workers: at least one does the work")
    if dask is not None:
        if workers != 1:
            raise TileError("either processes of this machine (workers) or a cluster (dask), not both")
        from tile_eg.spread.cluster import Cluster

        return Cluster(dask, tell)
    if workers == 1:
        return Here()
    from tile_eg.spread.processes import Processes

    return Processes(workers, tell)


def spread(
    function: Callable[[Any], Any],
    items: Sequence[Any],
    *,
    workers: int = 1,
    dask: str | None = None,
    tell: Callable[[str], None] = lambda text: None,
    progress: Callable[[Outcome, int], None] = lambda outcome, done: None,
) -> list[Outcome]:
    """The outcome of every item, in their order. `progress` gets each as it ends, and how many have."""
    found: dict[int, Outcome] = {}
    with crew(workers, dask, tell) as them:
        for outcome in them.each(function, items):
            found[outcome.item] = outcome
            progress(outcome, len(found))
    return [found[n] for n in range(len(items))]
