"""The lines of a Program's text, which `parser` reads back."""

from __future__ import annotations

from dataclasses import fields
from pathlib import PurePath

from tile_eg.ir.index import ONE, ZERO
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program.buffers import Buffer
from tile_eg.ir.program.instructions import (
    CrossSet,
    CrossWait,
    Formula,
    Gm,
    Instr,
    Let,
    Loop,
    Node,
    Operand,
    PipeBarrier,
    Print,
    Scalar,
    SetFlag,
    SyncAll,
    Tasks,
    WaitFlag,
    When,
    While,
)

WORDS = ("transpose", "relu", "swap")
ATOMIC = {"add": "atomic", "max": "atomic_max", "min": "atomic_min"}
FORMS = ("flat", "rows", "blocks", "halves", "folded", "apart", "strips", "dual", "window", "scales", "padded")
OPTIONS = ("scalar", "init", "bound", "other", "form", "when", "unit")
DEFAULTS = {f.name: f.default for f in fields(Instr)}


def tensor_text(t: Tensor) -> str:
    words = " output" * t.output + " given" * t.given + " past_l2" * t.past_l2
    return f"tensor {t.name}: {t.dtype}[{', '.join(map(str, t.shape))}]{words}"


def buffer_text(b: Buffer) -> str:
    at = f" at {', '.join(map(str, b.addresses))}" if b.addresses else ""
    halved = ", halved" if b.halved else ""
    return f"buffer {b.name}: {b.level} {b.dtype} {b.rows} x {b.cols} {b.layout}, pitch {b.pitch}{halved}, slots {b.slots}{at}"


def nodes_text(nodes: tuple[Node, ...], indent: str) -> list[str]:
    out = []
    for n in nodes:
        if isinstance(n, Loop | When):
            out += [f"{indent}{_head(n)} {{", *nodes_text(n.body, indent + "  "), indent + "}"]
        else:
            out.append(indent + node_text(n))
    return out


def _head(n: Loop | When) -> str:
    if isinstance(n, While):
        return f"while {n.condition}"
    if isinstance(n, When):
        return f"if {n.condition}"
    if not isinstance(n, Tasks):
        return f"for {n.var} in {n.trips}" + (f" until {n.until}" if n.until is not None else "")
    behind = (f" behind {n.behind}" if n.behind else "") + "".join(f" {old} before {now}" for now, old in n.before)
    return f"tasks {n.var} in {n.trips} until {n.until}{behind}" + "".join(f", {let_text(let)}" for let in n.lets)


def let_text(let: Let) -> str:
    return f"{let.name} to {let.most} = {let.value}"


def node_text(n: Node) -> str:
    """One line for an instruction, flag or barrier."""
    match n:
        case SetFlag():
            return f"set {n.src} -> {n.dst} id {n.id}"
        case WaitFlag():
            return f"wait {n.src} -> {n.dst} id {n.id}"
        case PipeBarrier():
            return f"barrier {n.pipe}"
        case CrossSet():
            return f"cross_set {n.pipe} {n.id}{_mode(n.mode)}"
        case CrossWait():
            return f"cross_wait {n.id}{_mode(n.mode)}"
        case SyncAll():
            return "sync_all"
        case Print():
            return f"print {n.text!r}" if n.shown is None else f"print {n.count} of {_operand(n.shown)} as {n.id}"
        case Scalar():
            return f"scalar {n.name} = {formula_text(n.value)}"
        case Instr():
            return _instr(n)
    raise TypeError(n)


def _mode(mode: int) -> str:
    return "" if mode == 2 else f" mode {mode}"


def formula_text(f: Formula) -> str:
    """`add(element x[0; 0, 3], number 1.0)`; a formula of whole numbers begins with `whole`."""
    whole = "whole " if f.whole else ""
    if f.op == "number":
        return f"{whole}number {float(f.args[0])!r}"
    if f.op == "index":
        return f"{whole}index {f.args[0]}"
    if f.op == "element":
        return f"{whole}element {_operand(f.args[0])}"
    if f.op in ("scalar", "argument"):
        return f"{whole}{f.op} {f.args[0]}"
    return f"{whole}{f.op}({', '.join(map(formula_text, f.args))})"


def _operand(o: Operand) -> str:
    if isinstance(o, Gm):
        return f"{o.tensor}{{{o.offset} : {o.stride}}}"
    if o.row == ZERO and o.col == ZERO:
        return o.buffer if o.slot == ZERO else f"{o.buffer}[{o.slot}]"
    return f"{o.buffer}[{o.slot}; {o.row}, {o.col}]"


def _instr(i: Instr) -> str:
    parts = [i.op, _operand(i.dst)]
    if i.srcs:
        parts += ["<-", ", ".join(map(_operand, i.srcs))]
    parts += [":", " x ".join(map(str, (i.rows, i.cols, i.depth)[: 2 if i.depth == ONE else 3]))]
    parts += [w for w in WORDS if getattr(i, w)]
    parts += [ATOMIC[i.atomic]] if i.atomic else []
    parts += [f"{w} {getattr(i, w)}" for w in OPTIONS if getattr(i, w) != DEFAULTS[w]]
    parts += [f"pad {i.pad!r}"] if i.pad is not None else []
    parts += [f"mode {i.mode}"] if i.mode else []
    parts += [f"value {formula_text(i.value)}"] if i.value else []
    parts += [f"steps {', '.join(map(str, i.steps))}"] if i.steps != (0, 0) or i.op == "vramp" else []
    parts += [f"scratch {_operand(i.scratch)}"] if i.scratch else []
    parts += [f"by {', '.join(i.rules)}"] if i.rules else []
    place = f"{PurePath(i.span.file).name}:{i.span.line}" if i.span else ""
    parts += [" # " + "".join(c if c.isprintable() else "?" for c in place)] if place else []
    return " ".join(parts)
