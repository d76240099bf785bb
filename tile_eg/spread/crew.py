"""Who does the work; and the simplest of them, this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tile_eg.spread.outcome import Outcome, done


class Crew(ABC):
    """Some who do items of work. `count` is how many they do at once."""

    count = 1

    @abstractmethod
    def each(self, function: Callable[[Any], Any], items: Sequence[Any], needs: str = "") -> Iterator[Outcome]:
        """The outcome of each item, as they end. `needs` names a resource of the workers that may do them (`has`)."""

    def has(self, resource: str) -> bool:
        """Whether a worker declares this resource: `dask worker --resources npu=1`."""
        return False

    def close(self) -> None:  # noqa: B027
        """Ends what was started for it."""

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Here(Crew):
    """This process."""

    def each(self, function: Callable[[Any], Any], items: Sequence[Any], needs: str = "") -> Iterator[Outcome]:
        return (done(function, item, n) for n, item in enumerate(items))
