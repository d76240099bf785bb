"""The host part of a kernel: its launch, its shapes and its workspace, for CANN 8.3 and newer.

8.3 builds a kernel with its CMake macros, which make a header with `ACLRT_LAUNCH_KERNEL(name)`; from 8.5 on an `.asc` file
launches with `<<<>>>`: it includes the kernel's text, defines TILE_EG_ASC, and includes this one (docs/npu.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tile_eg.emit.names import argument_names, kernel_symbol, number_names, number_types, refused_numbers
from tile_eg.ir.index import ONE, Expr, const
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.machine import LINE_BYTES
from tile_eg.ir.program import Program
from tile_eg.ir.sizes import usual

TEXT = """\
// Host part of kernel {name}: launch, shapes and workspace. Written by tile_eg.
// Build the kernel with --cce-auto-sync=off: it holds every flag and barrier that it needs, and none should be added.
#include <cstddef>
#include <cstdint>
#include "acl/acl.h"
#ifndef TILE_EG_ASC  // the kernel is built by the CMake macros of CANN 8.3; else its text stands before this one in an .asc file
#include "aclrtlaunch_{name}.h"
#endif

namespace {name}_host {{

{shapes}
constexpr uint32_t blocks = {launch};
constexpr size_t workspaceBytes = {workspace};

// Starts the kernel on device pointers; `workspace` holds workspaceBytes (nullptr where that is 0).
inline aclError launch(aclrtStream stream, {parameters}, void* workspace{floats})
{{
{refused}#ifdef TILE_EG_ASC
    ::{name}<<<blocks, 0, stream>>>({asc});
    return ACL_SUCCESS;
#else
    return ACLRT_LAUNCH_KERNEL({name})(blocks, stream, {arguments}, workspace{numbers});
#endif
}}

}}  // namespace {name}_host
"""


def launch_blocks(p: Program) -> int:
    """The block count of the launch: cube or mixed kernels one a block, vector kernels in halves two."""
    return p.blocks * (2 if p.halves and p.kernel_type == "AIV_ONLY" else 1)


def launched(p: Program, blocks: Sequence[int]) -> list[int]:
    """The numbers in the launch of these blocks of the program."""
    each = launch_blocks(p) // p.blocks
    return [b * each + i for b in blocks for i in range(each)]


def workspace_bytes(p: Program) -> int:
    """Bytes of the workspace: a part for each block, then the tensors that the blocks share."""
    return usual(shared_at(p)[1])


def shared_at(p: Program) -> tuple[dict[str, Expr], Expr]:
    """Where each tensor that the blocks share begins in the workspace, in bytes, and where the last one ends."""
    at, out, shapes = const(p.workspace * p.blocks), {}, dict(p.sizes.shared) if p.sizes else {}
    for t in p.shared:
        out[t.name] = (at + (LINE_BYTES - 1)) // LINE_BYTES * LINE_BYTES
        at = out[t.name] + prod(shapes.get(t.name, t.shape), start=ONE) * t.dtype.bytes
    return out, at


def host_text(program: Program) -> str:
    """A C++ header with `launch(stream, tensors.., workspace, numbers..)`, the shapes and the bytes of the workspace."""
    p, names, numbers = program, argument_names(program).values(), number_names(program).values()
    return TEXT.format(
        name=kernel_symbol(p),
        shapes="\n".join(_shape(t, t.name in p.added_to and not t.given) for t in p.tensors),
        launch=launch_blocks(p),
        workspace=workspace_bytes(p),
        parameters=", ".join(f"void* {n}" for n in names),
        arguments=", ".join(names),
        asc=", ".join([*(f"static_cast<uint8_t*>({n})" for n in (*names, "workspace")), *numbers]),
        floats="".join(f", {n}" for n in number_types(program)),
        refused=refused_numbers(program),
        numbers="".join(f", {n}" for n in numbers),
    )


def _shape(t: Tensor, added_to: bool) -> str:
    dims = ", ".join(map(str, t.shape))
    written = "output, read too" if t.given else "output"
    role = "output, added to what it holds: zero it first" if added_to else written if t.output else "input"
    return f"constexpr int64_t {t.name}_shape[] = {{{dims}}};  // {t.dtype}, {role}"
