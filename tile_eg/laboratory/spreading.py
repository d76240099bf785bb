"""Work spread over processes of this machine, or over the workers of a Dask cluster; results come in the order of the items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from tile_eg.errors import TileError

A = TypeVar("A")
B = TypeVar("B")


def spread(function: Callable[[A], B], items: Iterable[A], workers: int = 1, dask: str | None = None) -> Iterator[B]:
    """`function` of each item, in order; TileError where there is no such cluster. With one worker, in this process."""
    if dask is not None:
        yield from _on_dask(function, items, dask)
    elif workers <= 1:
        yield from map(function, items)
    else:
        yield from _in_processes(function, items, workers)


def _in_processes(function: Callable[[A], B], items: Iterable[A], workers: int) -> Iterator[B]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        yield from pool.map(function, items)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _on_dask(function: Callable[[A], B], items: Iterable[A], address: str) -> Iterator[B]:
    try:
        from dask.distributed import Client
    except ImportError:
        raise TileError("--dask needs dask", help="pip install 'dask[distributed]', or --workers N on this machine") from None
    try:
        client: Any = Client(address, timeout="10s")
    except (OSError, ValueError, TimeoutError) as error:
        raise TileError(f"there is no Dask cluster at '{address}': {error}") from None
    with client:
        for future in client.map(function, list(items)):
            yield future.result()
