"""The workers of a Dask cluster. Those of another version of tile_eg are named, and get nothing to do."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tile_eg.errors import TileError
from tile_eg.ops.records import record
from tile_eg.spread.crew import Crew
from tile_eg.spread.outcome import TRIES, Outcome, done, given_up
from tile_eg.state import State, state

ANSWER = 5
"""Seconds within which a scheduler answers, or is taken to be absent."""
LOOK = 1.0
"""Seconds after which the list of workers is read again while nothing ends."""
GRACE = 60.0
"""Seconds that a cluster may be without any worker before the work is ended."""
AHEAD = 2
"""Items that lie ready for each thread of a worker."""


@record
class About:
    """What a worker says of itself."""

    state: State
    resources: tuple[str, ...]


def about(dask_worker: Any = None) -> About:
    """Runs on a worker, which Dask passes to it."""
    return About(state(), tuple(dask_worker.state.total_resources))


@dataclass
class Sent:
    """An item that is at work, and the workers that may do it."""

    position: int
    workers: frozenset[str]


class Cluster(Crew):
    """The workers of the cluster at an address that have this version of tile_eg, those that join later among them."""

    def __init__(self, address: str, tell: Callable[[str], None]) -> None:
        self.tell, self.address = tell, address
        self.client = _connected(address)
        self.usable: dict[str, tuple[str, ...]] = {}
        """The workers that can be used, with their resources."""
        self.refused: dict[str, str] = {}
        self._look()
        if not self.usable:
            self.close()
            told = [f"{worker}: {why}" for worker, why in self.refused.items()]
            help = "start some: dask worker ADDRESS, in an environment with the same tile_eg"
            notes = tuple((text, None) for text in told)
            raise TileError(f"the Dask cluster at {address} has no worker that can be used", help=help, notes=notes)

    def _look(self) -> None:
        """Asks workers that are new, and forgets those that are gone."""
        there = self.client.nthreads()
        for worker in [w for w in self.usable if w not in there]:
            del self.usable[worker]
            self.tell(f"note: worker {worker} is gone; what it had is done again")
        new = [w for w in there if w not in self.usable and w not in self.refused]
        for worker, found in (self.client.run(about, workers=new, on_error="return") if new else {}).items():
            if isinstance(found, About) and not (why := state().unlike(found.state)):
                self.usable[worker] = found.resources
            elif worker in self.client.nthreads():  # else it died meanwhile
                self.refused[worker] = f"it has {why}" if isinstance(found, About) else _why_not(found)
                self.tell(f"note: worker {worker} is not used: {self.refused[worker]}")
        threads = self.client.nthreads()
        self.count = max(1, sum(threads.get(w, 0) for w in self.usable))

    def has(self, resource: str) -> bool:
        return bool(self._with(resource))

    def _with(self, resource: str) -> frozenset[str]:
        return frozenset(w for w, resources in self.usable.items() if not resource or resource in resources)

    def each(self, function: Callable[[Any], Any], items: Sequence[Any], needs: str = "") -> Iterator[Outcome]:
        if needs and not self.has(needs):
            help = f"start one with it: dask worker ADDRESS --resources {needs}=1"
            raise TileError(f"no worker of the cluster at {self.address} has the resource {needs!r}", help=help)
        left, tries, sent = deque(range(len(items))), [0] * len(items), dict[Any, Sent]()
        try:
            while left or sent:
                self._send(function, items, needs, left, sent)
                for future in self._ended(sent):
                    position = sent.pop(future).position
                    found = _outcome(future, position)
                    if found is None:
                        tries[position] += 1
                        left.append(position)
                    if found is not None:
                        yield found
                    elif tries[position] == TRIES:
                        left.remove(position)
                        yield given_up(position)
                self._take_back(left, sent, needs)
        finally:
            self.client.cancel(list(sent))

    def _send(self, function: Any, items: Sequence[Any], needs: str, left: deque[int], sent: dict[Any, Sent]) -> None:
        """Gives out as many items as the workers may have ready."""
        workers = self._with(needs)
        while left and workers and len(sent) < AHEAD * self.count:
            position = left.popleft()
            where = {"workers": sorted(workers), "resources": {needs: 1} if needs else None, "pure": False}
            future = self.client.submit(done, function, items[position], position, **where)
            sent[future] = Sent(position, workers)

    def _ended(self, sent: dict[Any, Sent]) -> list[Any]:
        """The futures that have ended; waits for one, for as long as the list of workers holds."""
        from distributed import wait

        if not sent:
            return []
        try:
            with self.client.as_current():
                return list(wait(list(sent), timeout=LOOK, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            return []

    def _take_back(self, left: deque[int], sent: dict[Any, Sent], needs: str) -> None:
        """What only workers that are gone may do is to be sent again. TileError where no worker comes for long."""
        self._look()
        end = time.monotonic() + GRACE
        while not self._with(needs):
            if time.monotonic() > end:
                raise TileError(f"the cluster at {self.address} has lost all its workers, and none came for {GRACE:.0f} seconds")
            time.sleep(LOOK)
            self._look()
        for future, item in list(sent.items()):
            if not item.workers & self.usable.keys():
                del sent[future]
                self.client.cancel([future])
                left.appendleft(item.position)

    def close(self) -> None:
        self.client.close()


def _connected(address: str) -> Any:
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise TileError("--dask needs dask, which is not installed", help="pip install 'tile_eg[dask]'") from None
    for name in ("distributed.core", "distributed.client", "distributed.comm", "distributed.utils"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what they log is told by us, or is no fault
    try:
        get_address_host_port(address)  # a client of what is no address fails once more, later, when it is collected
        return Client(address, timeout=ANSWER, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        why = f"no answer within {ANSWER} seconds" if isinstance(error, OSError) else str(error)
        help = "is it the address that `dask scheduler` printed, such as tcp://10.0.0.1:8786?"
        raise TileError(f"there is no Dask scheduler at {address}: {why}", help=help) from None


def _outcome(future: Any, position: int) -> Outcome | None:
    """What a future holds; None where its worker was lost."""
    if future.status == "finished":
        found: Outcome = future.result()
        return found
    if future.status in ("cancelled", "lost"):
        return None
    error = future.exception()
    if type(error).__name__ == "KilledWorker":
        return given_up(position)
    return Outcome(position, error=f"{type(error).__name__}: {error}", fault=True)


def _why_not(error: Any) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "it has no tile_eg, or an older one" if "tile_eg" in str(error) else f"it lacks a module: {error}"
    return f"{type(error).__name__}: {error}"
