"""A compiled kernel, and what it would be if one thing were decided otherwise, everything else as good as it gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile_eg.cost_models import predicted, rank_model, roles, search_model
from tile_eg.egraph import Graph, Node
from tile_eg.extract.forced import Answer, Forced
from tile_eg.extract.grid import with_grid
from tile_eg.extract.joined import joined
from tile_eg.extract.kept import kept
from tile_eg.extract.makespan import MEETING
from tile_eg.extract.pricing import Pricer
from tile_eg.extract.schedule import IN_TURN, Schedule
from tile_eg.search import packed_operand, split_k
from tile_eg.search.compiler import Candidate, Lowered, plan_schedule
from tile_eg.search.past_l2 import with_loads_past_l2
from tile_eg.search.prefetch import prefetched, with_own_places
from tile_eg.search.shuffle_k import with_shuffled_sums
from tile_eg.search.steady import rebuilt


class Otherwise:
    """Answers questions about one kernel. Grid and skew, which only the rank model can judge, stay as they were chosen.

    With `plain`, a kernel whose blocks go through several tiles is looked at with a block for each: that is planned much faster.
    """

    def __init__(self, lowered: Lowered, plain: bool = False) -> None:
        self.lowered = lowered
        self.chosen = _plain(lowered) if plain else lowered.candidates[0]
        self.graph: Graph = self.chosen.schedule.graph
        models = roles(lowered.search.cost_model, lowered.chip)
        self.rank = rank_model(models.rank, lowered.chip)
        pricer = Pricer(self.graph, lowered.chip, search_model(models.search, lowered.chip))
        self.forced = Forced(self.graph, lowered.chip, pricer)

    def taking(self, members: Sequence[Node]) -> tuple[Answer, Candidate | None, str]:
        """The best schedule with one of these nodes: the answer of the search, its plan with its time, or why it has no plan."""
        answer = self.forced.one_of(members, () if any(m.op == "Skew" for m in members) else self._held())
        if answer.schedule is None:
            return answer, None, ""
        return (answer, *self.planned(self._ordered(answer.schedule, members)))

    def planned(self, schedule: Schedule) -> tuple[Candidate | None, str]:
        """The schedule with its plan and its time, under the chosen grid; or the reason why it cannot be planned."""
        return self._under(schedule, self.chosen.schedule.grid)

    def _ordered(self, schedule: Schedule, members: Sequence[Node]) -> Schedule:
        """A schedule with one of these nodes in the order, and the places, that moves gave the chosen one; as it is where there
        is no room for that."""
        chosen = self.chosen.schedule
        ways = {name: getattr(chosen, name) for name in ("steady", "grouped", "early", "ahead")}
        form = self.lowered.form
        made = rebuilt(form, schedule, **ways) if form and any(ways.values()) else []
        able = [s for s in made if {*members} & {*s.nodes}]
        for s in able:
            s.few_ids = chosen.few_ids
        anew = kept(self.graph, chosen.nodes) != chosen.nodes
        return able[0 if anew else -1] if able else schedule

    def on_grid(self, grid: Node) -> tuple[Candidate | None, str]:
        """The chosen schedule with its tiles given to the cores in another way; none where it makes its outputs one behind the
        other, each with a grid of its own."""
        if self.chosen.schedule.parted == IN_TURN:
            return None, f"each output has a grid of its own; --without {IN_TURN} looks at one grid for all of them"
        if grid.op in ("Parts", "Added", "Strips"):
            return self._in_phases(grid)
        plain = _plain(self.lowered, whole=True)
        return (plain, "") if grid.op == "Blocks" else self._under(plain.schedule, grid, alone=True)

    def _in_phases(self, grid: Node) -> tuple[Candidate | None, str]:
        """The kernel in two phases, sums in parts or an operand in strips: they are searched, where that was not done yet."""
        known = (c for c in self.lowered.candidates if (p := c.schedule.parts) and (p.op, p.payload) == (grid.op, grid.payload))
        if found := next(known, None):
            return found, ""
        move = packed_operand if grid.op == "Strips" else split_k
        made = move.made_of(grid, self.lowered.form)
        return (made.candidates[0], "") if made.candidates else (None, "; ".join(str(error) for _, error in made.dropped))

    def _under(self, schedule: Schedule, grid: Node | None, alone: bool = False) -> tuple[Candidate | None, str]:
        """The schedule on a grid; with the phases of the chosen one, unless it is to do all tiles `alone`."""
        chosen = self.chosen.schedule
        if schedule.graph is chosen.graph and not alone:
            schedule = replace(schedule, parts=chosen.parts, second=chosen.second, tiles=chosen.tiles, rest=chosen.rest)
            schedule = replace(schedule, behind=chosen.behind, parted=chosen.parted)
        try:
            held = with_grid(schedule, grid, self.lowered.chip) if grid is not None and grid.op != "Blocks" else schedule
            held = self._loaded_ahead(held)
            planned = plan_schedule(held, self.lowered.chip)
            if chosen.shuffled:
                held, planned = with_shuffled_sums(held, planned) or (held, planned)
            if chosen.past_l2:
                held, planned = with_loads_past_l2(held, planned, chosen.past_l2)
        except Exception as error:  # what cannot be planned is the answer to the question, not a fault
            return None, str(error)
        return Candidate(held, planned, predicted(self.rank, [planned.program])[0]), ""

    def _loaded_ahead(self, schedule: Schedule) -> Schedule:
        """With its tiles as one where the chosen schedule has them so. Or with its loads ahead where that has them; into places
        of their own if it has those and there is room."""
        chosen = self.chosen.schedule
        if chosen.joined:
            return joined(schedule, self.lowered.chip) or schedule
        if not chosen.prefetched:
            return schedule
        apart = with_own_places(schedule, self.lowered.chip) if chosen.own_places else None
        return apart or prefetched(schedule)

    def _held(self) -> list[Node]:
        meets = {n.region for n in self.chosen.schedule.nodes if n.op in MEETING}
        return [n for n in self.chosen.schedule.nodes if n.op == "Skew" and n.payload[0] in meets]


def _plain(lowered: Lowered, whole: bool = False) -> Candidate:
    """The chosen schedule with a launch block for each tile, where that was planned too; `whole`: one of a single phase."""
    chosen = next((c for c in lowered.candidates if not whole or c.schedule.one_phase), lowered.candidates[0])
    same = (c for c in lowered.candidates if alike(c.schedule, chosen.schedule))
    return next((c for c in same if not c.schedule.persistent), chosen)


def alike(a: Schedule, b: Schedule) -> bool:
    """Whether two schedules are of the same choice, the steps of products, the depth of buffers and the grid aside."""
    ours, theirs = ({n for n in s.nodes if n.op not in ("L0", "Buffers")} for s in (a, b))
    return a.graph is b.graph and ours == theirs
