"""The queue of the search: what could be done next, best bound first, until nothing is left that could win and may be tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from heapq import heapify, heappop, heappush
from time import perf_counter

from tile_eg.cost_models import ModelFault
from tile_eg.errors import TileError
from tile_eg.ops.records import record
from tile_eg.search.candidates import Candidate, Dropped
from tile_eg.search.form import Form, Setting
from tile_eg.search.moves import LEFT, Move
from tile_eg.search.planned import stage

NO_BETTER = "its bound is no better than the best"


@record
class Made:
    """What a move gives: candidates of the form that it was made on, or a form of its own; and what could not be planned.

    `why` says of a move that gives nothing what stands against it.
    """

    candidates: tuple[Candidate, ...] = ()
    dropped: Dropped = ()
    form: Form | None = None
    why: str = ""

    @property
    def microseconds(self) -> float | None:
        """The predicted time of the best that was found, if there is one."""
        times = [c.microseconds for c in (self.form.candidates if self.form else self.candidates)]
        return min(times, default=None)


@record(eq=False)
class Offer:
    """A move that may be made on a form. `what` tells it from the move's other offers. `group` are those that are
    counted together (None: all of the move), of which `least` are made at any effort; `weight` is as how many it counts.

    `bound` are microseconds that what it makes will take at the least: from the timeline's busy pipes, or from the quick estimate
    less what that may be wrong by. `closer` gives a bound that costs more to know: it is asked when the offer's turn has come;
    without end where the move has nothing to do.
    """

    move: Move
    what: str
    bound: float
    make: Callable[[], Made]
    form: Form | None = None
    group: Hashable = None
    least: int = 0
    weight: int = 1
    closer: Callable[[], float] | None = None

    @property
    def key(self) -> tuple[Hashable, ...]:
        return self.group or self.move.name, id(self.form)


@record(eq=False)
class Tried:
    """What became of an offer: made, with the predicted microseconds (None: nothing can be planned, `why`); or dropped, `why`.
    `fault` is the mistake in the kernel that making it found."""

    offer: Offer
    made: bool
    microseconds: float | None = None
    why: str = ""
    fault: TileError | None = None


Moves = Callable[[Form, Candidate | None], Iterable[Offer]]


class Queue:
    """Offers and what became of them. `offers_of` gives the moves from a new form or candidate on."""

    def __init__(self, setting: Setting, offers_of: Moves, faults: tuple[type[Exception], ...]) -> None:
        """`faults` are the errors that rule an offer out."""
        self.setting, self.offers_of, self.faults = setting, offers_of, faults
        self.heap: list[tuple[int, float, int, Offer]] = []
        self.of: dict[int, Candidate] = {}
        self.forms: list[Form] = []
        self.tried: list[Tried] = []
        self.waiting: list[Offer] = []
        self.spent: Counter[tuple[Hashable, ...]] = Counter()
        self.failed: Counter[tuple[Hashable, ...]] = Counter()
        self.count = 0

    @property
    def best(self) -> float:
        """The predicted microseconds of the best candidate that can be launched."""
        return min((form.microseconds for form in self.forms), default=float("inf"))

    def wins(self, bound: float) -> bool:
        """Whether what takes so many microseconds is faster than the best."""
        return bound < float("inf") and all(form.slower_than(bound) for form in self.forms)

    def add(self, form: Form) -> None:
        """A form that was searched, and what can be made of it."""
        self.forms.append(form)
        self.put(self.offers_of(form, None))
        for candidate in form.candidates:
            self.put(self.offers_of(form, candidate), candidate)

    def put(self, offers: Iterable[Offer], candidate: Candidate | None = None) -> None:
        """Offers to be taken up; those made of a candidate are remembered as its own where a model orders candidates."""
        for offer in offers:
            self.count += 1
            if candidate and self.setting.guide:
                self.of[id(offer)] = candidate
            heappush(self.heap, (offer.move.when, offer.bound, self.count, offer))

    def run(self, effort: int) -> None:
        """Takes up every offer: makes it, or drops it because it cannot win or because the effort's budget is spent."""
        for _ in self.steps(effort):
            pass

    def steps(self, effort: int) -> Iterator[None]:
        """As `run`, with a pause behind each offer."""
        waiting, self.waiting = self.waiting, []
        self.put(waiting)
        while self.heap:
            offer = self._next()
            if not self.wins(offer.bound):
                self.tried.append(Tried(offer, False, why=NO_BETTER))
            elif self._beyond(offer, max(offer.move.tries[effort], offer.least)):
                self.waiting.append(offer)
            else:
                self._take_up(offer)
                yield

    def _beyond(self, offer: Offer, tries: int) -> bool:
        """Whether as many of its kind were made, or could not be planned."""
        return self.spent[offer.key] + offer.weight > tries or self.failed[offer.key] >= tries

    def _next(self) -> Offer:
        """The best bound of what comes first; where a model orders candidates, the offer of the one that it now likes best."""
        guide, now = self.setting.guide, self.heap[0][0]
        several = [item for item in self.heap if item[0] == now and id(item[-1]) in self.of] if guide else []
        if guide is None or len(several) < 2:
            return heappop(self.heap)[-1]
        with self.setting.step("order"):
            place = guide.order(list(dict.fromkeys(self.of[id(item[-1])] for item in several)))
        chosen = min(several, key=lambda item: (place[id(self.of[id(item[-1])])], item[:3]))
        self.heap.remove(chosen)
        heapify(self.heap)
        return chosen[-1]

    def _take_up(self, offer: Offer) -> None:
        """Makes a move, unless the closer look at its bound shows that it cannot win."""
        bound = offer.bound
        if offer.closer:
            with self.setting.step(offer.move.name):
                bound = offer.closer()
        if bound == float("inf"):
            self.tried.append(Tried(offer, False, why="there is nothing for it to do"))
        elif not self.wins(bound):
            self.tried.append(Tried(replace(offer, bound=bound), False, why=NO_BETTER))
        else:
            self._make(offer)

    def close(self) -> tuple[Tried, ...]:
        """All that was tried; what still waits was left to the budget."""
        return (*self.tried, *(Tried(offer, False, why=LEFT) for offer in self.waiting))

    def _make(self, offer: Offer) -> None:
        """Makes a move. A form that cannot be computed or planned is told, and the search goes on without it."""
        timings, start = self.setting.timings, perf_counter()
        before = sum(timings.values())
        try:
            with stage(offer.move.name, self.setting.source):
                made = offer.make()
        except ModelFault:
            raise
        except self.faults as error:
            mistake = error if isinstance(error, TileError) else None
            self.tried.append(Tried(offer, True, why=mistake.message if mistake else str(error), fault=mistake))
            self.spent[offer.key] += offer.weight
            return
        self._found(offer, made)
        inside = sum(timings.values()) - before
        timings[offer.move.name] = timings.get(offer.move.name, 0.0) + perf_counter() - start - inside

    def _found(self, offer: Offer, made: Made) -> None:
        """Takes what a move gave. One that gave nothing, as no flags or no room are left for it, leaves its try to the next; but
        where as many fail as may be made, the others would, too."""
        if made.form or made.candidates:
            self.spent[offer.key] += offer.weight
        elif made.dropped:
            self.failed[offer.key] += 1
        why = next((str(error) for _, error in made.dropped), made.why)
        self.tried.append(Tried(offer, True, made.microseconds, "" if made.microseconds else why))
        if made.form is not None:
            self.add(made.form)
        elif offer.form is not None:
            offer.form.add(made.candidates, made.dropped)
            for candidate in made.candidates:
                self.put(self.offers_of(offer.form, candidate), candidate)
