"""A synchronised Program as one kernel file of plain Ascend C that CANN 8.3 and newer accept.

Local tensors lie at planned addresses (one TBuf over each memory), loops stay loops, and every instruction line ends with the
source line and the rules that it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePath

from tile_eg.chips import load_chip
from tile_eg.emit.ascend_c.beyond import beyond
from tile_eg.emit.ascend_c.cpp import BESIDE_SUMS, ROUNDED, integer
from tile_eg.emit.ascend_c.cube import CUBE_AND_COPIES, ON_3510
from tile_eg.emit.ascend_c.direct import UB, UB_ROWS
from tile_eg.emit.ascend_c.index import EmitError, Scope, adds_nothing, block, counted, not_empty
from tile_eg.emit.ascend_c.no_depth import or_zeros
from tile_eg.emit.ascend_c.parts import PARTS
from tile_eg.emit.ascend_c.reduce import REDUCTIONS
from tile_eg.emit.ascend_c.repeats import REPEATS
from tile_eg.emit.ascend_c.scalar import declared_scalar, printed, scalar_lines
from tile_eg.emit.ascend_c.select import SELECTIONS
from tile_eg.emit.ascend_c.size_names import indices_named, learn, sizes_named
from tile_eg.emit.ascend_c.used import expressions_of
from tile_eg.emit.ascend_c.vector import VECTOR_OPS
from tile_eg.emit.ascend_c.whole_tiles import WHOLE
from tile_eg.emit.host import shared_at
from tile_eg.emit.names import argument_names, kernel_symbol, number_types, size_names
from tile_eg.ir import index as ix
from tile_eg.ir.index import BLOCK, ONE, SUB, ZERO, Expr
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ir.program import (
    AIC,
    AIV,
    Buffer,
    CrossSet,
    CrossWait,
    Gm,
    Instr,
    Let,
    Loop,
    Node,
    PipeBarrier,
    Print,
    Program,
    Scalar,
    SetFlag,
    SyncAll,
    Tasks,
    WaitFlag,
    When,
    While,
    walk,
)
from tile_eg.ir.program.tasks import counted_by, numbers_of_trips, tile_of
from tile_eg.ops.types import Level

OPS: dict[str, Callable[[Scope, Instr], list[str]]] = {
    **CUBE_AND_COPIES, **VECTOR_OPS, "vbeyond": beyond, **REDUCTIONS, **SELECTIONS, **PARTS, **WHOLE, **REPEATS
}  # fmt: skip
POSITIONS = {Level.L1: "A1", Level.L0A: "A2", Level.L0B: "B2", Level.L0C: "CO1", Level.UB: "VECCALC"}
SIZES = {"rows": "validRows", "cols": "validCols", "depth": "validDepth"}

Path = tuple[int, ...]

HEAD = """\
// {title}
#include "kernel_operator.h"

__aicore__ inline int32_t Min(int32_t a, int32_t b) {{ return a < b ? a : b; }}
__aicore__ inline int32_t Max(int32_t a, int32_t b) {{ return a > b ? a : b; }}
"""
ROUNDED_DOWN = """\
__aicore__ inline int32_t FloorDiv(int32_t a, int32_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
__aicore__ inline int32_t FloorMod(int32_t a, int32_t b) { return a - FloorDiv(a, b) * b; }
"""
IN_64 = """\
__aicore__ inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
__aicore__ inline int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }
"""


def kernel_text(*programs: Program) -> str:
    """The kernel file, of one kernel or of several for one launch to take one of.

    EmitError names an instruction that has no text or a field that does not fit.
    """
    kernels = [_kernel(p) for p in programs]
    title = f"Kernel {programs[0].name} for {programs[0].chip}, written by tile_eg."
    if sums := sorted({name for p in programs for name in p.sums_in_any_order}):
        title += f"\n// Blocks add to {', '.join(sums)} in any order: the last bits of these sums may differ from run to run."
    head, lines = HEAD.format(title=title), [line for kernel in kernels for line in kernel]
    if any(f"{word}(static_cast<int64_t>" in line for word in ("Min", "Max") for line in lines):
        head += IN_64
    if any(f"{word}(" in line for word in ROUNDED.values() for line in lines):
        head += ROUNDED_DOWN + ROUNDED_DOWN.replace("int32_t", "int64_t")
    if any(f"{UB}>" in line for line in lines):
        head += f"\n{UB_ROWS}\n"
    return head + "\n".join("\n".join(["", *kernel]) + "\n" for kernel in kernels)


def _kernel(p: Program) -> list[str]:
    """The lines of one kernel's function."""
    mixed = p.kernel_type.startswith("MIX")
    addresses = [f"GM_ADDR {name}" for name in (*argument_names(p).values(), "workspace")]
    arguments = ", ".join([*addresses, *(f"int32_t {name}" for name in size_names(p).values()),
                           *number_types(p)])  # fmt: skip
    body = [f"KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_{p.kernel_type});"]
    for core in (AIC, AIV):
        if p.core(core):
            lines = _core(p, core)
            body += ["", *(block(f"if ASCEND_IS_{core}", lines) if mixed else lines)]
    if load_chip(p.chip).architecture != "dav-2201":  # with no TPipe nothing else waits for what is under way
        body.append("AscendC::PipeBarrier<PIPE_ALL>();")
    signature = f'extern "C" __global__ __aicore__ void {kernel_symbol(p)}({arguments})'
    return [signature, "{", *_indented(body), "}"]


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line if line and not line.startswith("#") else line for line in lines]


def _core(p: Program, core: str) -> list[str]:
    s = Scope(p, core)
    head = [*_place(p, core, s), *_tensors(s), *_memory(s)]
    if any(isinstance(n, Instr) and n.unit != ZERO for n in walk(p.core(core))):
        head.append("AscendC::SetMMRowMajor();  // blocks come in the order in which the fixpipe takes them")
    sizes = _sizes(s) if p.sizes else {}
    lets = [_named(s, let) for let in s.lets]
    hoisted = _hoisted(s)
    s.indices = {path[0]: lines for path, lines in sizes.items() if path}
    changing = [declared_scalar(s.cpp.scalars[name], whole) for name, whole in s.changing.items()]
    return [*head, *sizes.get((), []), *lets, *changing, *hoisted.get((), []), "", *_nodes(s, p.core(core), (), hoisted)]


def _sizes(s: Scope) -> dict[Path, list[str]]:
    """What follows from sizes known at run time: declarations at the start of the core, and of its loop over tiles."""
    nodes = s.program.core(s.core)
    found = [e for n in walk(nodes) for e in (*expressions_of(n), *_strides(n))] + [let.value for let in s.lets]
    learn(s, found)
    out: dict[Path, list[str]] = {(): sizes_named(s, found)}
    if not any(isinstance(n, Tasks) for n in nodes):
        out[()] += indices_named(s, found, BLOCK)
    for k, n in enumerate(nodes):
        if isinstance(n, Tasks):
            out[(k,)] = indices_named(s, found, tile_of(n, s.program).name)
    return out


def _strides(n: Node) -> list[Expr]:
    """Distances of rows that sizes decide."""
    windows = (n.dst, *n.srcs) if isinstance(n, Instr) else ()
    return [o.stride for o in windows if isinstance(o, Gm) and isinstance(o.stride, Expr)]


def _place(p: Program, core: str, s: Scope) -> list[str]:
    """`block` and `sub` of this core (machine contract: a vector core of a mixed kernel counts vector cores)."""
    used = s.variables | ({BLOCK} if _workspace(s) or s.lets else set())
    index = "static_cast<int32_t>(AscendC::GetBlockIdx())"
    out = []
    mixed = p.kernel_type.startswith("MIX")
    if BLOCK in used:
        divided = {True: " / static_cast<int32_t>(AscendC::GetSubBlockNum())"}.get(mixed and core == AIV, "")
        out.append(f"const int32_t block = {index}{' / 2' if p.halves and not mixed else divided};")
    if SUB in used:
        half = "static_cast<int32_t>(AscendC::GetSubBlockIdx())" if mixed else f"{index} % 2"
        out.append(f"const int32_t sub = {half};")
    return out


def _workspace(s: Scope) -> list[Buffer]:
    touched = s.touched
    return [b for b in s.program.buffers if b.level is Level.WS and b.name in touched]


def _tensors(s: Scope) -> list[str]:
    touched, out, arguments = s.touched, [], argument_names(s.program)
    for t in s.program.tensors:
        if t.name in touched:
            name = s.names[f"GM {t.name}"]
            of = "uint16_t" if t.dtype.scale else t.dtype.ascend  # moved by twos
            out += [f"AscendC::GlobalTensor<{of}> {name};"]
            out += [f"{name}.SetGlobalBuffer((__gm__ {of}*){arguments[t.name]});"]
            out += [f"{name}.SetL2CacheHint(AscendC::CacheMode::CACHE_MODE_DISABLE);"] if t.past_l2 else []
    starts, shapes = shared_at(s.program)[0], dict(s.program.sizes.shared) if s.program.sizes else {}
    for t in s.program.shared:
        if t.name in touched:
            start = s.cpp(starts[t.name], outer=BESIDE_SUMS)
            name, where = s.names[f"GM {t.name}"], f"workspace + {start}" if starts[t.name] != ZERO else "workspace"
            shape = " x ".join(map(str, shapes.get(t.name, t.shape)))
            out += [f"AscendC::GlobalTensor<{t.dtype.ascend}> {name};  // {shape}, of all blocks"]
            out += [f"{name}.SetGlobalBuffer((__gm__ {t.dtype.ascend}*)({where}));"]
    for b in _workspace(s):
        name, at = s.names[b.name], min(b.addresses)
        where = f"workspace + static_cast<uint64_t>(block) * {s.program.workspace}" + (f" + {at}" if at else "")
        out += [f"AscendC::GlobalTensor<{b.dtype.ascend}> {name};"]
        out += [f"{name}.SetGlobalBuffer((__gm__ {b.dtype.ascend}*)({where}));"]
    return out


def _memory(s: Scope) -> list[str]:
    """One TBuf over what is used of each memory, and a tensor for each buffer, its slots included."""
    touched = s.touched
    buffers = [b for b in s.program.buffers if b.name in touched and b.level in POSITIONS]
    if s.architecture != "dav-2201":
        return [_static(s, b) for b in buffers]
    out = ["AscendC::TPipe pipe;"]
    for level, position in POSITIONS.items():
        ends = [a + b.slot_bytes for b in buffers if b.level is level for a in b.addresses]
        if ends:
            memory = level.lower()
            out += [f"AscendC::TBuf<AscendC::TPosition::{position}> {memory};"]
            out += [f"pipe.InitBuffer({memory}, {-(-max(ends) // 32) * 32});"]
    for b in buffers:
        first, last = min(b.addresses), max(b.addresses) + b.slot_bytes
        n, size = (last - first) // b.dtype.bytes, b.dtype.ascend
        slots = f", {b.slots} slots" if b.slots > 1 else ""
        get = f"{b.level.lower()}.GetWithOffset<{size}>({n}, {first});  // {b.rows} x {b.cols}{slots}"
        out.append(f"AscendC::LocalTensor<{size}> {s.names[b.name]} = {get}")
    return out


def _static(s: Scope, b: Buffer) -> str:
    """A tensor at its address without a TPipe, which would give a core room in its own memories only."""
    first, last = min(b.addresses), max(b.addresses) + b.slot_bytes
    slots = f", {b.slots} slots" if b.slots > 1 else ""
    at = f"AscendC::TPosition::{POSITIONS[b.level]}, {first}, {(last - first) // b.dtype.bytes * b.dtype.together}"
    return f"AscendC::LocalTensor<{b.dtype.ascend}> {s.names[b.name]}({at});  // {b.rows} x {b.cols}{slots}"


def _hoisted(s: Scope) -> dict[Path, list[str]]:
    """Run-time sizes as locals: path of a loop (the whole core: ()) -> declarations that follow its start."""
    out: dict[Path, list[str]] = {}
    for i, loops in _instructions(s.program.core(s.core), (), {}):
        for role, wish in SIZES.items():
            e = getattr(i, role)
            read = {r.args[0] for r in all_elements_in(e)}.difference(s.program.wholes)
            if e.op in ("const", "var", "size") or any(name in s.cpp.scalars for name in read):
                continue
            where = max((path for var, path in loops.items() if var in ix.variables(e)), default=())
            if e not in s.cpp.named:
                name = s.fresh(wish)
                s.values[e] = s.cpp.declared(name, e, s.bounds(e))
                s.cpp.named[e] = name
            line = s.values[e]
            if line not in out.setdefault(where, []):
                out[where].append(line)
    return out


def _instructions(nodes: tuple[Node, ...], at: Path, loops: dict[str, Path]) -> Iterator[tuple[Instr, dict[str, Path]]]:
    """Every instruction with the loops around it: variable -> path."""
    for k, n in enumerate(nodes):
        here = (*at, k)
        if isinstance(n, Instr):
            yield n, loops
        elif isinstance(n, Loop | When):
            names = [n.var] if isinstance(n, Loop) else []
            names += [let.name for let in n.lets] if isinstance(n, Tasks) else []
            yield from _instructions(n.body, here, loops | dict.fromkeys(names, here))


def _nodes(s: Scope, nodes: tuple[Node, ...], at: Path, hoisted: dict[Path, list[str]]) -> list[str]:
    out = []
    for k, n in enumerate(nodes):
        here = (*at, k)
        if isinstance(n, Tasks):
            out += _tasks(s, n, s.indices.get(k, []), [*hoisted.get(here, []), *_nodes(s, n.body, here, hoisted)])
        elif isinstance(n, Loop):
            body = [*hoisted.get(here, []), *_nodes(s, n.body, here, hoisted)]
            out += _counted(s, n, str(n.trips) if n.until is None else s.limit(n.until), body)
        elif isinstance(n, While):
            out += block(f"while ({s.cpp(n.condition)})", _nodes(s, n.body, here, hoisted))
        elif isinstance(n, When):
            with s.cpp.where(n.condition):
                body = _nodes(s, n.body, here, hoisted)
            out += block(f"if ({s.cpp(n.condition)})", body)
        else:
            out += node_lines(s, n)
    return out


def _tasks(s: Scope, n: Tasks, indices: list[str], body: list[str]) -> list[str]:
    """The loop over a block's tiles, with what its names stand for at its start: the tile, its indices, the trips of loops."""
    counted = counted_by(s.program)
    limit, head = str(n.trips), []
    if n.until.value is None:
        limit = s.fresh("tasks")
        head = [s.cpp.declared(limit, n.until, (0, max(n.trips, s.high(ix.var(n.var)) + 1)))]
    return [*head, *_counted(s, n, limit, [*_of(s, n, counted, False), *indices, *_of(s, n, counted, True), *body])]


def _of(s: Scope, n: Tasks, counted: list[Let], trips: bool) -> list[str]:
    """The names of a tile that count the trips of loops, or the others."""
    own = numbers_of_trips(n)
    late = {let for let in n.lets if let in counted or let.name in own or ix.variables(let.value) & own}
    names = {n.var, *(let.name for let in n.lets)}
    with s.cpp.without([e for e in s.values if ix.variables(e) & names]):
        return [_named(s, let) for let in n.lets if (let in late) == trips]


def _named(s: Scope, let: Let) -> str:
    name = ix.var(let.name)
    return s.cpp.declared(s.cpp(name), let.value, s.bounds(name))


def _counted(s: Scope, n: Loop, count: str, body: list[str]) -> list[str]:
    """The loop; its variable goes up to the count itself."""
    return counted(s.cpp(ix.var(n.var)), count, body, integer((0, max(n.trips, s.high(ix.var(n.var)) + 1))))


def node_lines(s: Scope, n: Node) -> list[str]:
    """The text of a flag, a barrier or an instruction. Flags that an author wrote have his line behind them."""
    if isinstance(n, Instr):
        return _instr(s, n)
    place = getattr(n, "span", None)
    return [line + (f"  // {PurePath(place.file).name}:{place.line}" if place else "") for line in _synchronised(s, n)]


def _synchronised(s: Scope, n: Node) -> list[str]:
    match n:
        case Scalar():
            return scalar_lines(s, n)
        case SetFlag():
            return [f"AscendC::SetFlag<AscendC::HardEvent::{n.src}_{n.dst}>({_event(s, n.id)});"]
        case WaitFlag():
            return [f"AscendC::WaitFlag<AscendC::HardEvent::{n.src}_{n.dst}>({_event(s, n.id)});"]
        case PipeBarrier():
            return [f"AscendC::PipeBarrier<PIPE_{n.pipe}>();"]
        case CrossSet():
            return [f"AscendC::CrossCoreSetFlag<{n.mode}, PIPE_{n.pipe}>({_cross(s, n.id)});"]
        case CrossWait():
            return [f"AscendC::CrossCoreWaitFlag({_cross(s, n.id)});"]
        case SyncAll():
            return [f"AscendC::SyncAll<{'true' if s.program.kernel_type == 'AIV_ONLY' else 'false'}>();"]
        case Print():
            return printed(s, n)
    raise TypeError(n)


def _cross(s: Scope, flag: int | Expr) -> str:
    return str(flag) if isinstance(flag, int) else s.cpp(flag)


def _event(s: Scope, e: Expr) -> str:
    return f"EVENT_ID{e.value}" if e.value is not None else s.cpp(e)


def _writer(s: Scope, i: Instr) -> Callable[[Scope, Instr], list[str]]:
    ops = OPS if s.architecture == "dav-2201" else {**OPS, **ON_3510}
    if i.op not in ops:
        raise EmitError(f"no Ascend C is known for {i.op} on {s.architecture}", i.span)
    return ops[i.op]


def _instr(s: Scope, i: Instr) -> list[str]:
    taken = set(s.taken)
    lines = _writer(s, i)(s, i)
    if i.op != "mmad" and adds_nothing(s, i):
        lines = or_zeros(s, i, lines)
    s.taken = taken
    line = f"{PurePath(i.span.file).name}:{i.span.line}" if i.span else ""
    remark = "  ".join(part for part in (line, ", ".join(i.rules)) if part)
    remark = "".join(c if c.isprintable() and c != "\\" else "?" for c in remark)  # one line, whatever a file is called
    if remark:
        at = next(k for k, line in enumerate(lines) if line.endswith(";"))
        lines[at] += f"  // {remark}"
    if i.atomic:
        lines = [f"AscendC::SetAtomic{i.atomic.capitalize()}<{s.dtype(i.dst).ascend}>();", *lines, "AscendC::SetAtomicNone();"]
    guards = [s.cpp(i.when)] if i.when != ONE else []
    guards += not_empty(s, i) if i.op not in ("vput", "vbeyond") else []  # of which a part is done at any size
    return block(f"if ({' && '.join(guards)})", lines) if guards else lines
