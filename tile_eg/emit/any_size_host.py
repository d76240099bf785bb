"""The host part of a kernel for all sizes: which of its texts a launch takes, its blocks and its workspace, from the sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, product
from math import isqrt, prod

from tile_eg.emit.host import launch_blocks, shared_at, workspace_bytes
from tile_eg.emit.names import argument_names, kernel_symbol, number_names, number_types, refused_numbers, size_names
from tile_eg.ir.index import MOST_SIZE, ONE, Expr, variables
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.machine import MAX_BLOCKS
from tile_eg.ir.program import Program
from tile_eg.ir.program.tasks import counted_by
from tile_eg.ir.sizes import MOST_GAP, Sizes
from tile_eg.ops.records import record

TEXT = """\
// Host part of kernel {name} for all sizes: launch and workspace. Written by tile_eg.
// Build the kernel with --cce-auto-sync=off: it holds every flag and barrier that it needs, and none should be added.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include "acl/acl.h"
#ifndef TILE_EG_ASC  // the kernel is built by the CMake macros of CANN 8.3; else its text stands before this one in an .asc file
{includes}
#endif

namespace {name}_host {{

{shapes}

// Which of the kernels a launch at these sizes takes.
inline int variant({sizes})
{{
{variant}
}}

{counts}
// Launch blocks: 0 where there is nothing to do, -1 where the sizes are none that the kernel serves.
inline int64_t blocks({sizes})
{{
{blocks}
}}

// Bytes of the workspace.
inline size_t workspaceBytes({sizes})
{{
{workspace}
}}

// Starts the kernel on device pointers; `workspace` holds workspaceBytes (nullptr where that is 0).
inline aclError launch(aclrtStream stream, {parameters}, void* workspace, {sizes}{floats})
{{
{refused}    const int64_t count = blocks({names});
    if (count <= 0)
        return count == 0 ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM;
{launches}
}}

}}  // namespace {name}_host
"""
LAUNCH = """\
#ifdef TILE_EG_ASC
    ::{symbol}<<<static_cast<uint32_t>(count), 0, stream>>>({asc});
    return ACL_SUCCESS;
#else
    return ACLRT_LAUNCH_KERNEL({symbol})(static_cast<uint32_t>(count), stream, {arguments});
#endif"""


Range = tuple[str, int, int, int]
"""A size, its least and its greatest number, and what it is a multiple of."""

BY_POINTS = -1
"""In the stead of a program's place: launches take what the sizes that they are nearest to take."""


def exactly(sizes: Mapping[str, int]) -> tuple[Range, ...]:
    """Just these sizes."""
    return tuple((name, n, n, 1) for name, n in sizes.items())


def multiples_of(numbers: Mapping[str, int]) -> tuple[Range, ...]:
    """Sizes that are multiples of these numbers."""
    return tuple((name, n, MOST_SIZE, n) for name, n in numbers.items() if n > 1)


@record
class Picked:
    """Which of several programs a launch takes: by each size the numbers at which it was priced, and for each choice of these,
    the last size varying fastest, the place of the program. Before that, launches whose sizes all lie in the ranges of one of
    `first` (name, least, most, and what it is a multiple of) take the program at its place; where that is `BY_POINTS`, the one
    by the numbers all the same."""

    points: tuple[tuple[str, tuple[int, ...]], ...] = ()
    picks: tuple[int, ...] = (0,)
    first: tuple[tuple[tuple[Range, ...], int], ...] = ()

    def at(self, sizes: dict[str, int]) -> int:
        """The place of the program for these sizes: that of the numbers that they are nearest to, by their ratio."""
        place = 0
        own = (n for ranges, n in self.first if all(a <= sizes[size] <= z and sizes[size] % by == 0 for size, a, z, by in ranges))
        if (found := next(own, BY_POINTS)) != BY_POINTS:
            return found
        for name, numbers in self.points:
            place = place * len(numbers) + sum(sizes[name] > most for most in bounds(numbers))
        return self.picks[place]

    def shown(self, place: int) -> str:
        """The launches that take the program at this place, in words."""
        near = self._near(place) if place in self.picks else ""
        ranged = [_all_in_words(ranges) for ranges, found in self.first if found == place]
        nearby = [_all_in_words(ranges) for ranges, found in self.first if found == BY_POINTS and near]
        among = f", {near}" if len(set(self.picks)) > 1 else ""
        return "; ".join([*ranged, *(n + among for n in nearby), *([near] if near else [])])

    def _near(self, place: int) -> str:
        """The launches that take it for the sizes that they are near to, in words."""
        named = product(*(numbers for _, numbers in self.points))
        own = [numbers for numbers, taken in zip(named, self.picks, strict=True) if taken == place]
        if len(set(self.picks)) == 1:
            return "all other sizes" if self.first else "all sizes"
        shown = (", ".join(f"{n}={v}" for (n, _), v in zip(self.points, numbers, strict=True)) for numbers in own)
        return f"sizes near {' and '.join(shown)}"

    @classmethod
    def of(
        cls, points: Mapping[str, Sequence[int]], picks: Sequence[int], first: Iterable[tuple[Iterable[Range], int]] = ()
    ) -> Picked:
        own = tuple((tuple(ranges), place) for ranges, place in first)
        return cls(tuple((n, tuple(p)) for n, p in points.items()), tuple(picks), own)


def _all_in_words(ranges: Iterable[Range]) -> str:
    return ", ".join(" ".join(_in_words(*own)) for own in ranges)


def _in_words(name: str, least: int, most: int, by: int) -> list[str]:
    if least == most:
        return [f"{name}={least}"]
    ends = [f"from {least} on"] * (least > by) + [f"up to {most}"] * (most < MOST_SIZE)
    return [name, *([f"a multiple of {by}"] if by > 1 else ["any"] * (not ends)), *ends]


def bounds(numbers: Sequence[int]) -> list[int]:
    """The largest sizes that are nearer to a number than to the next one."""
    return [isqrt(a * b) for a, b in pairwise(numbers)]


def any_size_host(programs: Sequence[Program], picked: Picked) -> str:
    """A C++ header with `launch(stream, tensors.., workspace, sizes..)`, and the blocks and bytes of the workspace by sizes."""
    first = programs[0]
    names, sizes = list(argument_names(first).values()), list(size_names(first).values())
    shapes = zip(first.tensors, sizes_of(first).shapes, strict=True)
    return TEXT.format(
        name=kernel_symbol(first),
        includes="\n".join(f'#include "aclrtlaunch_{kernel_symbol(p)}.h"' for p in programs),
        shapes="\n".join(_shape(t, shape, t.name in first.added_to) for t, shape in shapes),
        sizes=", ".join(f"int64_t {n}" for n in sizes),
        names=", ".join(sizes),
        variant=_variant(first, picked),
        counts="".join(_counted(p, sizes) for p in programs),
        blocks=_cases([f"blocks_of_{kernel_symbol(p)}({', '.join(sizes)})" for p in programs], sizes),
        workspace=_cases([_workspace(p) for p in programs], sizes),
        parameters=", ".join(f"void* {n}" for n in names),
        launches=_launches(programs, names, sizes),
        refused=refused_numbers(first),
        floats="".join(f", {n}" for n in number_types(first)),
    )


def sizes_of(p: Program) -> Sizes:
    """The sizes that are known at run time."""
    assert p.sizes is not None
    return p.sizes


def _shape(t: Tensor, shape: Sequence[Expr], added_to: bool) -> str:
    role = "output, added to what it holds: zero it first" if added_to else "output" if t.output else "input"
    return f"// {t.name}: {t.dtype}[{', '.join(map(text, shape))}], {role}"


def _variant(p: Program, picked: Picked) -> str:
    """Ranges of sizes that have a kernel of their own; then the place by thresholds, and the table of what is taken at it."""
    spelled = size_names(p)
    table, near = _by_points(picked, spelled)
    own = [
        f"    if ({_inside(ranges, spelled)})\n        return {near if found == BY_POINTS else found};"
        for ranges, found in picked.first
    ]
    return "\n".join([*table, *own, f"    return {near};"])


def _by_points(picked: Picked, spelled: Mapping[str, str]) -> tuple[list[str], str]:
    """The table of the places that the numbers take, where there are several, and the one that sizes are nearest to, in C++."""
    if len(set(picked.picks)) == 1:
        return [], str(picked.picks[0])
    place = "0"
    for name, numbers in picked.points:
        above = " + ".join(f"({spelled[name]} > {most})" for most in bounds(numbers)) or "0"
        place = above if place == "0" else f"({place}) * {len(numbers)} + {above}"
    return [f"    static const int picks[] = {{{', '.join(map(str, picked.picks))}}};"], f"picks[{place}]"


def _inside(ranges: Iterable[Range], spelled: Mapping[str, str]) -> str:
    """Whether sizes lie in their ranges, in C++."""
    return " && ".join(part for name, *own in ranges for part in _in_range(spelled[name], *own))


def _in_range(size: str, least: int, most: int, by: int) -> list[str]:
    if least == most:
        return [f"{size} == {least}"]
    bounds = [f"{size} >= {least}"] * (least > by or by == 1) + [f"{size} <= {most}"] * (most < MOST_SIZE)
    return bounds + [f"{size} % {by} == 0"] * (by > 1)


def _cases(found: Sequence[str], sizes: Sequence[str]) -> str:
    """What is returned by the variant."""
    if len(found) == 1:
        return f"    return {found[0]};"
    lines = [f"    case {n}:\n        return {e};" for n, e in enumerate(found[1:], 1)]
    head, last = f"    switch (variant({', '.join(sizes)})) {{", f"    default:\n        return {found[0]};"
    return "\n".join([head, *lines, last, "    }"])


COUNT = """
inline int64_t blocks_of_{symbol}({sizes})
{{
    const int64_t tiles = {tiles};
    if (tiles <= 0)
        return 0;
    if ({wrong})
        return -1;
    return {blocks};
}}
"""


GIVEN = """
inline int64_t blocks_of_{symbol}({sizes})
{{
    return {blocks};
}}
"""


def _counted(p: Program, all_sizes: Sequence[str]) -> str:
    """The function that counts the launch blocks of a kernel; -1 for sizes that it does not serve (`search.any_size`)."""
    given = ", ".join(f"int64_t {n}" for n in all_sizes)
    if p.sizes is None:
        return GIVEN.format(symbol=kernel_symbol(p), sizes=", ".join("int64_t" for _ in all_sizes), blocks=launch_blocks(p))
    held, names = sizes_of(p), size_names(p).values()
    tiles = text(prod(held.grid, start=ONE))
    blocks = f"({text(held.blocks)}) * 2" if p.halves and p.kernel_type == "AIV_ONLY" else text(held.blocks)
    wrong = [f"{n} > {MOST_SIZE}" for n in names]
    spelled = size_names(p)
    wrong += [f"{spelled[held.order[0]]} > {spelled[held.order[1]]}"] if held.order else []
    gaps = ((e, MOST_GAP // _bytes(p, tensor)) for tensor, _, e in held.strides)
    wrong += [f"{text(e)} > {most}" for e, most in gaps if most < MOST_SIZE or e.op != "size"]
    wrong += [f"{text(let.value)} < {let.least}" for let in counted_by(p) if let.least and not variables(let.value)]
    wrong += [f"tiles > {MOST_SIZE if held.blocks.op in ('min', 'const') else MAX_BLOCKS // (2 if '* 2' in blocks else 1)}"]
    shown = " || ".join(dict.fromkeys(wrong))
    return COUNT.format(symbol=kernel_symbol(p), sizes=given, tiles=tiles, wrong=shown, blocks=blocks)


def _bracketed(e: Expr) -> str:
    return text(e) if e.op in ("const", "size") else f"({text(e)})"


def _bytes(p: Program, tensor: str) -> int:
    return next(t.dtype.bytes for t in p.in_gm if t.name == tensor)


def _workspace(p: Program) -> str:
    """Each block has a part of its own; what blocks share lies behind these."""
    if p.sizes is None:
        return str(workspace_bytes(p))
    if p.shared:
        return f"static_cast<size_t>({text(shared_at(p)[1])})"
    return f"static_cast<size_t>({_bracketed(sizes_of(p).blocks)} * {p.workspace})" if p.workspace else "0"


def _launches(programs: Sequence[Program], names: Sequence[str], sizes: Sequence[str]) -> str:
    found = [_launch(p, names) for p in programs]
    if len(found) == 1:
        return found[0]
    chosen = f"    const int chosen = variant({', '.join(sizes)});"
    cases = [f"    if (chosen == {n}) {{\n{launch}\n    }}" for n, launch in enumerate(found[1:], 1)]
    return "\n".join([chosen, *cases, found[0]])


def _launch(p: Program, names: Sequence[str]) -> str:
    """The launch of a kernel, which takes the sizes that it does not know."""
    numbers = [*(f"static_cast<int32_t>({n})" for n in size_names(p).values()), *number_names(p).values()]
    asc = ", ".join([*(f"static_cast<uint8_t*>({n})" for n in (*names, "workspace")), *numbers])
    return LAUNCH.format(symbol=kernel_symbol(p), asc=asc, arguments=", ".join([*names, "workspace", *numbers]))


def text(e: Expr) -> str:
    """An expression of sizes in C++, in int64_t."""
    if e.op in ("const", "size"):
        return str(e.args[0])
    parts = [text(a) for a in e.args]
    if e.op in ("min", "max"):
        return f"std::{e.op}<int64_t>({parts[0]}, {parts[1]})"
    sign = {"add": "+", "mul": "*", "div": "/", "mod": "%"}[e.op]
    return f" {sign} ".join(f"({p})" if a.op in ("add", "mul", "div", "mod") else p for a, p in zip(e.args, parts, strict=True))

