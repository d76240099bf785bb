"""A Dask cluster of processes on this machine: a scheduler, and workers that tests start and kill."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]


class DaskCluster:
    def __init__(self, folder: Path) -> None:
        self.folder, self.started = folder, list[subprocess.Popen[bytes]]()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self._start("dask_scheduler", "--host", self.address, "--no-dashboard", "--no-show")

    def worker(self, *options: str) -> subprocess.Popen[bytes]:
        """A worker of one thread, in a process of its own that is not started anew when it dies."""
        own = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self.folder)]
        return self._start("dask_worker", self.address, *own, *options)

    def _start(self, command: str, *options: str) -> subprocess.Popen[bytes]:
        line = [sys.executable, "-m", f"distributed.cli.{command}", *options]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        with (self.folder / "log").open("ab") as log:
            started = subprocess.Popen(line, env=environment, cwd=self.folder, stdout=log, stderr=log)
        self.started.append(started)
        return started

    def wait_for(self, workers: int) -> None:
        from distributed import Client

        with Client(self.address, timeout=30, set_as_default=False) as client:
            end = time.monotonic() + 60
            while len(client.nthreads()) != workers:
                assert time.monotonic() < end, (self.folder / "log").read_text()
                time.sleep(0.1)

    def close(self) -> None:
        for process in reversed(self.started):
            process.kill()
            process.wait()
