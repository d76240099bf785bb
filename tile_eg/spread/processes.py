"""Several processes of this machine. One that dies is replaced, and what it had is done again."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

from tile_eg.spread.crew import Crew
from tile_eg.spread.outcome import TRIES, Outcome, given_up

COMMAND = (sys.executable, "-m", "tile_eg.spread.worker")


class Worker:
    """One process, and what it is at."""

    def __init__(self) -> None:
        # a session of its own: Ctrl-C reaches the one who started it, who ends it
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
        self.process = subprocess.Popen(COMMAND, **pipes)  # type: ignore[call-overload]
        self.begun = False

    def do(self, position: int, function: Callable[[Any], Any], item: Any) -> Outcome | None:
        """The outcome of an item; None where the process died."""
        come, go = self.process.stdout, self.process.stdin
        paths = b"" if self.begun else pickle.dumps(sys.path)
        data = paths + pickle.dumps((position, function, item))
        try:
            go.write(data)
            go.flush()
            self.begun = True
            found: Outcome = pickle.load(come)
            return found
        except (OSError, EOFError, pickle.UnpicklingError):
            self.end()
            return None

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):  # it had not read all that was written
                pipe.close()


class Processes(Crew):
    """So many processes; they start with the first items, and stay until the crew is closed."""

    def __init__(self, count: int, tell: Callable[[str], None]) -> None:
        self.count, self.tell = count, tell
        self.workers: list[Worker] = []

    def each(self, function: Callable[[Any], Any], items: Sequence[Any], needs: str = "") -> Iterator[Outcome]:
        left, tries, ended = deque(range(len(items))), [0] * len(items), SimpleQueue[tuple[Worker, int, Any]]()
        while len(self.workers) < min(self.count, len(items)):
            self.workers.append(Worker())
        idle, busy = list(self.workers), 0
        while left or busy:
            while left and idle:
                position, busy = left.popleft(), busy + 1
                _start(idle.pop(), function, items[position], position, ended)
            worker, position, found = ended.get()
            busy -= 1
            if isinstance(found, Exception):
                idle.append(worker)
                yield Outcome(position, error=f"it cannot be sent: {type(found).__name__}: {found}", fault=True)
            elif found is not None:
                idle.append(worker)
                yield found
            else:
                idle.append(self._replaced(worker))
                tries[position] += 1
                if tries[position] < TRIES:
                    left.append(position)
                    self.tell(f"note: process {worker.process.pid} died; what it had is done again")
                else:
                    yield given_up(position)

    def _replaced(self, worker: Worker) -> Worker:
        self.workers.remove(worker)
        self.workers.append(Worker())
        return self.workers[-1]

    def close(self) -> None:
        for worker in self.workers:
            worker.end()
        self.workers = []


def _start(worker: Worker, function: Callable[[Any], Any], item: Any, position: int, ended: SimpleQueue[Any]) -> None:
    """Lets a worker do an item; (worker, position, what came of it) is put behind `ended`."""

    def wait() -> None:
        try:
            found: Any = worker.do(position, function, item)
        except Exception as error:
            found = error
        ended.put((worker, position, found))

    Thread(target=wait, daemon=True).start()
