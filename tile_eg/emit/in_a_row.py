"""Kernels that are launched one behind the other, as one file, and the host part that launches them."""

from __future__ import annotations

from collections.abc import Sequence

from tile_eg.emit.host import workspace_bytes
from tile_eg.emit.names import RESERVED, kernel_symbol, spelled
from tile_eg.ir.program import Program

FIRST_LINE = 'extern "C" __global__'
TEXT = """\
{hosts}

namespace {name}_host {{

// Bytes of the workspace, which the launches have one after the other.
constexpr size_t workspaceBytes = {workspace};

// Starts the launches in their order; each begins when the one before it is done.
inline aclError launch(aclrtStream stream, {parameters}, void* workspace)
{{
{launches}
}}

}}  // namespace {name}_host
"""
LAUNCH = """\
    if (const aclError error = {symbol}_host::launch(stream, {arguments}, workspace); error != ACL_SUCCESS)
        return error;
"""


def in_one_file(texts: Sequence[str]) -> str:
    """One file with the kernels of all texts, whose heads (what stands before the first kernel) it has once."""
    heads, kernels = zip(*(_parted(t) for t in texts), strict=True)
    first = dict.fromkeys(line for head in heads for line in head[0].splitlines())
    titles = [line for line in first if line.startswith("//")]
    others = [line for line in first if not line.startswith("//")]
    further = dict.fromkeys(part for head in heads for part in head[1:])
    return "\n\n".join(["\n".join([*titles, *others]), *_helpers(further), *kernels])


def _parted(text: str) -> tuple[list[str], str]:
    """The paragraphs before the first kernel, and the rest."""
    at = text.index(FIRST_LINE)
    return text[:at].strip("\n").split("\n\n"), text[at:]


def _helpers(paragraphs: Sequence[str] | dict[str, None]) -> list[str]:
    """Paragraphs of functions that fill a line each as one, in which each stands once; the others as they are."""
    lines = [p.splitlines() for p in paragraphs]
    short = dict.fromkeys(line for p in lines if all(line.endswith("}") for line in p) for line in p)
    return [*(["\n".join(short)] if short else []), *("\n".join(p) for p in lines if not all(x.endswith("}") for x in p))]


def host_in_a_row(name: str, programs: Sequence[Program], hosts: Sequence[str], tensors: Sequence[str]) -> str:
    """The host parts of all kernels, and a launch of all of them: of all the function's `tensors`, in their order."""
    used = {t.name for p in programs for t in p.tensors}
    names = spelled([t for t in tensors if t in used], RESERVED)
    given = [", ".join(names[t.name] for t in p.tensors) for p in programs]
    calls = [LAUNCH.format(symbol=kernel_symbol(p), arguments=a) for p, a in zip(programs, given, strict=True)]
    return TEXT.format(
        hosts="\n".join(hosts).rstrip("\n"),
        name=name,
        workspace=max(workspace_bytes(p) for p in programs),
        parameters=", ".join(f"void* {n}" for n in names.values()),
        launches="".join(calls) + "    return ACL_SUCCESS;",
    )
