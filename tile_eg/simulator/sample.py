"""Some blocks of a launch: which ones a sampled run takes, and whether they compute alone what they compute among all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from tile_eg.errors import TileError
from tile_eg.ir.index import BLOCK, evaluate
from tile_eg.ir.program import Program, SyncAll, Tasks, walk
from tile_eg.ir.program.tasks import tile_of

WAY_OUT = "smaller sizes, or another schedule: `tile-eg alternatives` lists some for `--schedule`"


def sampled(number: int, grid: Sequence[int]) -> tuple[int, ...]:
    """The numbers of `number` blocks of a grid, whose first dimension varies fastest; all of them where it has no more."""
    total = prod(grid)
    if number >= total:
        return tuple(range(total))
    chosen = dict.fromkeys(_corners(grid)[:number])
    others = [b for b in range(total) if b not in chosen]
    missing = number - len(chosen)
    return tuple(sorted([*chosen, *(others[(2 * i + 1) * len(others) // (2 * missing)] for i in range(missing))]))


def sampled_blocks(number: int, program: Program, grid: Sequence[int]) -> tuple[int, ...]:
    """That many blocks, spread over the kernel's `grid` where the program has a block for each of its tiles; none where it has no
    more than these: all are to run."""
    if number >= program.blocks:
        return ()
    return sampled(number, grid if prod(grid) == program.blocks else [program.blocks])


def blocks_with(tiles: Sequence[int], program: Program, total: int) -> tuple[int, ...]:
    """The blocks of a program that compute these of the `total` tiles of a grid; none where all of them are to run: they need
    each other, or it is not known which do."""
    if not can_be_sampled(program):
        return ()
    taken = _taken(program, total)
    return tuple(sorted({taken[tile] for tile in tiles})) if taken.keys() >= {*tiles} else ()


def tiles_of(blocks: Sequence[int], program: Program, total: int) -> tuple[int, ...]:
    """The tiles of a grid of `total` that these blocks of a program compute; all of them where that is not known."""
    taken, chosen = _taken(program, total), {*blocks}
    return tuple(tile for tile in range(total) if taken.get(tile, tile) in chosen or not taken)


def _taken(program: Program, total: int) -> dict[int, int]:
    """The block that takes each of the `total` tiles of a grid; empty where that is not known."""
    if program.blocks == total:
        return {tile: tile for tile in range(total)}
    loops = {n for n in walk((*program.cube, *program.vector)) if isinstance(n, Tasks)}
    alike = len({(t.var, t.until, t.lets) for t in loops}) == 1
    found = _by_turns(next(iter(loops)), program) if alike else {}
    return found if found.keys() == {*range(total)} else {}  # its tiles may be several of the kernel's


def _by_turns(tasks: Tasks, program: Program) -> dict[int, int]:
    """The block that takes each tile."""
    found = {}
    for block in range(program.blocks):
        env = {BLOCK: block}
        turns = evaluate(tasks.until, env) - bool(tasks.behind) if tasks.lets else 0
        env[tasks.behind] = turns
        for turn in range(turns):
            env[tasks.var] = turn
            for let in tasks.lets:
                env[let.name] = evaluate(let.value, env)
            found[env[tile_of(tasks, program).name]] = block
    return found


def check_sample(program: Program, blocks: Sequence[int]) -> None:
    """TileError where these blocks need the others. None of them: all are to run."""
    if blocks and (why := _together(program)):
        raise TileError(f"no blocks of {program.name} run alone: {why}", help=WAY_OUT)


def can_be_sampled(program: Program) -> bool:
    """Whether some blocks compute without the others what they compute among them."""
    return not _together(program)


def _together(program: Program) -> str:
    """Why blocks need each other; empty where they do not."""
    if any(isinstance(n, SyncAll) for n in walk((*program.cube, *program.vector))):
        return "all of them meet, and go on with what the others have computed"
    if program.added_to:
        return f"they add to {', '.join(sorted(program.added_to))}, as others may"
    return ""


def _corners(grid: Sequence[int]) -> list[int]:
    """The blocks that are first or last in each dimension, each once: the first of all, the last of all, and the others."""
    ends = product(*((0, extent - 1) for extent in reversed(grid)))
    numbers = sorted({_number(tuple(reversed(at)), grid) for at in ends})
    return [numbers[0], numbers[-1], *numbers[1:-1]] if len(numbers) > 1 else numbers


def _number(at: Sequence[int], grid: Sequence[int]) -> int:
    return sum(place * prod(grid[:i]) for i, place in enumerate(at))
