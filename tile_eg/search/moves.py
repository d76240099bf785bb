"""The moves of the search: each makes a candidate from another one. Every one is declared here, once.

A move that a rule of the e-graph offers has that rule's law, and goes with it; the others are laws of their own.
"""

from __future__ import annotations

from tile_eg.ops.records import record

FIRST, REFINING, SEARCHING, WIDENING, EVENING, FINISHING = range(6)
"""When a move is made: as soon as there is a schedule; behind those, on the best of them; then what needs a search of its own;
then larger tiles, where loads still hold the best one up; then what loads less where they do even so, and what makes the cores'
shares of the best equal; at the end what is done to the best of all."""
ON_GRIDS = ("persistent", "bands-across", "bands-down")


@record
class Move:
    """A move: `says` is its line of maths or its idea, `rules` those of the e-graph that offer it.

    `tries` is how many of its offers are made for one form of a kernel, best bound first, by the effort (none, quick, full): a
    budget in counts. Of a packed operand it is how often each operand is packed. Persistent grids are counted for each number of
    cores that they take; that of a schedule with loops counts twice: its blocks overlap their own trips, and gain less. Of loads
    for the next tile it is the schedules that are planned so.
    `any_order`: it makes sums whose order changes from run to run. `any_size`: a kernel for all sizes may have it, as it need not
    count blocks or trips in numbers.
    """

    name: str
    law: str
    when: int
    tries: tuple[int, int, int]
    says: str
    rules: tuple[str, ...] = ()
    any_order: bool = False
    any_size: bool = False

    @property
    def line(self) -> str:
        """What it says, and what offers it."""
        return f"{self.says}   (offered by {', '.join(self.rules)})" if self.rules else self.says


MOVES = {
    move.name: move
    for move in (
        Move("persistent-grid", "equal", FIRST, (0, 6, 64),
             "a block for each tile = a block for each core, which goes through tiles", ON_GRIDS, any_size=True),
        Move("split-result", "equal", FIRST, (0, 2, 32),
             "a product = its halves of columns, one behind the other: L0C empties one while the other fills", any_size=True),
        Move("tile-order", "equal", REFINING, (0, 2, 16),
             "the tiles of a persistent grid in another order", ON_GRIDS, any_size=True),
        Move("steady-trips", "equal", REFINING, (0, 1, 64),
             "a skewed loop = the same with each trip in the order, and the places, of one that runs while the loop is full"),
        Move("slots-ahead", "equal", REFINING, (0, 1, 64),
             "a steady loop whose loads are read in later trips too = the same with more slots, into which loads run ahead"),
        Move("fewer-ids", "equal", REFINING, (0, 4, 64),
             "rings that give up slots for lack of flag ids = the same with all their slots, and fewer ids than slots"),
        Move("fewer-barriers", "equal", REFINING, (0, 1, 8),
             "what vector cores do = the same in groups that do not need each other, with a barrier between two groups"),
        Move("row-panels", "equal", SEARCHING, (0, 2, 16),
             "a store of a tile = a loop of the stores of its row panels", any_size=True),
        Move("column-parts", "rounding", SEARCHING, (0, 1, 2),
             "a product in a loop = products with parts of its right operand; a sum of its rows = the sum of the parts' sums",
             any_size=True),
        Move("sums-in-columns", "rounding", SEARCHING, (0, 1, 2),
             "a sum of products over trips, in wide tiles = the sums of its column parts, whose operands are loaded in parts",
             any_size=True),
        Move("epilogue-panels", "equal", SEARCHING, (0, 2, 16),
             "a store of what follows a product = a loop of the stores of its row panels, behind the product", any_size=True),
        Move("column-tiles", "equal", SEARCHING, (0, 2, 16),
             "a store of rows = a loop of the stores of their column tiles; a maximum = the fold of the tiles' maxima",
             any_size=True),
        Move("column-tiles-of-sums", "rounding", SEARCHING, (0, 2, 16),
             "a sum along rows = the fold of their column tiles' sums; beside a maximum, each rescaled by it", any_size=True),
        Move("last-trip", "equal", SEARCHING, (0, 1, 1),
             "a loop of whole tiles and a short last one = the loop of the whole ones, and the last one behind it"),
        Move("deeper-trips", "equal", SEARCHING, (0, 3, 3),
             "a sum over trips whose number sizes decide = the sum over groups of them, each one trip that is as deep",
             any_size=True),
        Move("split-k", "rounding", SEARCHING, (0, 2, 16),
             "a sum over depth = the sum of its parts' sums, which a second phase adds in their order",
             ("split-depth", "split-folds")),
        Move("split-k-atomic", "rounding", SEARCHING, (0, 1, 16),
             "a sum over depth = the sum of its parts' sums, added where they are stored", ("split-depth-added",), True),
        Move("sums-from-zero", "rounding", SEARCHING, (0, 1, 1),
             "a sum of products that begins with a value = that value added to the sum from zero on"),
        Move("solved-by-columns", "rounding", SEARCHING, (0, 1, 1),
             "a row less a sum over the rows before it, row by row = each row that is done taken off all rows behind it"),
        Move("turned-loops", "equal", SEARCHING, (0, 1, 1),
             "a loop that takes rows of its tiles apart = the same of turned tiles, whose rows are what was taken",
             any_size=True),
        Move("loop-in-steps", "equal", SEARCHING, (0, 1, 1),
             "a fold over few trips that only computes = the steps of its trips, which take turns with the places of its states",
             any_size=True),
        Move("trips-in-blocks", "equal", SEARCHING, (0, 1, 1),
             "a loop whose trips store at places of their own = blocks that each do some of its trips"),
        Move("tile-a-vector-core", "equal", SEARCHING, (0, 1, 1),
             "a tile on which both vector cores do the same work = two tiles, of which each has one"),
        Move("rows-behind", "equal", SEARCHING, (0, 2, 16),
             "what needs whole rows of a product = the same behind a meeting of all cores, which make it in other tiles"),
        Move("operand-first", "equal", SEARCHING, (0, 1, 4),
             "an operand that several blocks compute = the same, computed once before all cores meet"),
        Move("results-apart", "equal", SEARCHING, (0, 1, 1),
             "outputs that have only inputs in common = each in tiles of its own, one behind the other in one launch"),
        Move("packed-operand", "equal", SEARCHING, (0, 1, 1),
             "tiles of an operand = those of its copy in strips of 32 bytes, which is made first", ("operand-in-strips",),
             any_size=True),
        Move("open-sizes", "equal", SEARCHING, (1, 7, 15),
             "block sizes that the author left open = numbers at which the kernel can be built", any_size=True),
        Move("cores-meeting", "equal", SEARCHING, (0, 1, 1),
             "a loop in which cube and vector cores do not meet = the same, skewed, with what they hand over made in its trips"),
        Move("at-the-margin", "equal", SEARCHING, (0, 1, 2),
             "the best schedule = that of the least loads, where each costs what it adds to the best by a context model"),
        Move("more-schedules", "equal", SEARCHING, (0, 0, 1),
             "further schedules of the e-graph, the cheapest first"),
        Move("other-decision", "equal", SEARCHING, (0, 0, 2),
             "the best schedule = the same with one decision taken otherwise"),
        Move("blocks-together", "equal", WIDENING, (0, 1, 4),
             "the tiles of some neighbouring blocks = those of one block, which loads once what they share"),
        Move("shared-windows", "equal", EVENING, (0, 1, 1),
             "trips whose products take windows of one tile, each some rows further = one trip with all their products"),
        Move("rest-in-parts", "rounding", EVENING, (0, 1, 1),
             "tiles that fill no turn of all cores = parts of their sums on all cores, added while the next tiles are computed"),
        Move("shuffle-k", "rounding", FINISHING, (0, 1, 1),
             "a sum over depth = the sum of the same products from another one on in each core, so that they read other lines"),
        Move("loads-ahead", "equal", FINISHING, (0, 1, 1),
             "a loop of vector cores = the same with each trip's loads issued before the work of the trip before it"),
        Move("prefetch-tile", "equal", FINISHING, (0, 4, 4),
             "the loads of a persistent kernel's tile = the same, issued during the work on the tile before it"),
        Move("tiles-as-one", "equal", FINISHING, (0, 1, 1),
             "the skewed loops of a persistent kernel's tiles = one, in which a tile begins before the last one has ended"),
        Move("places-apart", "equal", FINISHING, (0, 1, 1),
             "tiles that wait for a place which they share = the same with fewer buffers, and a place for each"),
        Move("past-l2", "equal", FINISHING, (0, 1, 1),
             "a load of what L2 does not serve = the same past L2, which then keeps what is written"),
        Move("panels-in-turns", "equal", FINISHING, (0, 1, 1),
             "a tile whose pipes wait for each other = its row panels, of which one is loaded while another is worked on"),
        Move("side-by-side", "equal", FINISHING, (0, 1, 1),
             "trips, or blocks, that only store = two of them as one, whose instructions take turns"),
    )
}  # fmt: skip
IN_ANY_ORDER = frozenset(name for m in MOVES.values() if m.any_order for name in (m.name, *m.rules))
"""What a deterministic kernel goes without."""
AT_GIVEN_SIZES = frozenset(name for name, m in MOVES.items() if not m.any_size)
"""What a kernel for all sizes goes without."""
LEFT = "beyond the budget of the effort"
"""What is said of an offer that could have won, and was not made."""
WITHOUT_ROOM = 4
"""How many forms with smaller tiles are searched, at any effort, where a kernel's own tiles do not fit."""
