"""Some blocks of a program: which ones, and whether they compute alone what they compute among all."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tile_eg.errors import TileError
from tile_eg.ir.index import BLOCK, evaluate
from tile_eg.ir.program import Program, SyncAll, Tasks, walk

WAY_OUT = "smaller sizes, or another schedule: `tile-eg alternatives` lists some for `--schedule`"


def sampled_blocks(number: int, program: Program, grid: Sequence[int]) -> tuple[int, ...]:
    """That many blocks, spread over the kernel's `grid` where the program has a block for each of its tiles; none where it has no
    more than these: all are to run."""
    from tile_eg.simulator.sample import sampled

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
    return _by_turns(next(iter(loops)), program.blocks) if alike else {}


def _by_turns(tasks: Tasks, blocks: int) -> dict[int, int]:
    """The block that takes each tile: the last of the names of a turn is its tile."""
    found = {}
    for block in range(blocks):
        env = {BLOCK: block}
        for turn in range(evaluate(tasks.until, env) if tasks.lets else 0):
            env[tasks.var] = turn
            for let in tasks.lets:
                env[let.name] = evaluate(let.value, env)
            found[env[tasks.lets[-1].name]] = block
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
