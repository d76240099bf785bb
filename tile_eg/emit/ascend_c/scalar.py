"""What the scalar unit computes before an instruction, and the elements that it writes itself."""

from __future__ import annotations

import json
from dataclasses import replace

from tile_eg.emit.ascend_c.index import Scope, number
from tile_eg.emit.names import number_names
from tile_eg.ir.index import ONE, ZERO
from tile_eg.ir.program import Formula, Instr, Print, Scalar, Tile
from tile_eg.ops.elementwise import BINARY, BITS_OF_SCALARS, COMPARE
from tile_eg.ops.types import F16, F32, DType

CONDITIONS = {c.name: c.sign for c in COMPARE.values()} | {"and": "&&", "or": "||", "not": "!"}
BITS = {name: BINARY[op].sign for op, name in BITS_OF_SCALARS.items()}
SIGNS = dict(zip(("add", "sub", "mul", "div"), "+-*/", strict=True)) | BITS


def formula_text(s: Scope, f: Formula) -> str:
    """What the scalar unit computes, in float or in int32_t."""
    kind = "int32_t" if f.whole else "float"
    if f.op in CONDITIONS:
        return f"({_condition(f.op, *(formula_text(s, a) for a in f.args))})"
    match f.op:
        case "scalar":
            return s.cpp.scalars[f.args[0]]
        case "argument":
            return number_names(s.program)[f.args[0]]
        case "number":
            return str(int(f.args[0])) if f.whole else number(f.args[0], F32)
        case "index":
            return f"static_cast<{kind}>({s.cpp(f.args[0])})"
        case "element":
            text = f"{s.at(f.args[0])}.GetValue(0)"
            return text if s.dtype(f.args[0]).ascend == kind else f"static_cast<{kind}>({text})"
        case "cast":
            return f"static_cast<{kind}>({formula_text(s, f.args[0])})"
        case "nearest":
            return f"AscendC::ScalarCast<float, int32_t, AscendC::RoundMode::CAST_RINT>({formula_text(s, f.args[0])})"
        case "half":
            return f"static_cast<float>({_half(s, f)})"
        case "select":
            condition, x, y = (formula_text(s, a) for a in f.args)
            return f"({condition} ? {x} : {y})"
    return f"({_operated(f.op, *(formula_text(s, a) for a in f.args))})"


def _half(s: Scope, f: Formula) -> str:
    return f"static_cast<half>({formula_text(s, f.args[0])})"


def _condition(op: str, x: str, y: str = "") -> str:
    return f"!{x}" if op == "not" else f"{x} {CONDITIONS[op]} {y}"


def _operated(op: str, x: str, y: str = "") -> str:
    """An operation of a formula, in C++."""
    if op in SIGNS:
        return f"{x} {SIGNS[op]} {y}"
    match op:
        case "max":
            return f"{x} > {y} ? {x} : {y}"
        case "min":
            return f"{x} < {y} ? {x} : {y}"
        case "floordiv":
            return f"FloorDiv({x}, {y})"
        case "floormod":
            return f"FloorMod({x}, {y})"
        case "neg":
            return f"-{x}"
        case "abs":
            return f"{x} < 0 ? -{x} : {x}"
        case _:
            return f"{op}({x})"


def declared_scalar(name: str, whole: bool) -> str:
    """A number that the scalar unit keeps, and that it changes."""
    return f"int32_t {name} = 0;" if whole else f"float {name} = 0.0f;"


def scalar_lines(s: Scope, n: Scalar) -> list[str]:
    """A number that the scalar unit keeps."""
    name, text = s.cpp.scalars[n.name], formula_text(s, n.value)
    text = text[1:-1] if n.value.op in SIGNS or n.value.op in CONDITIONS else text
    kind = "int32_t" if n.value.whole else "float"
    return [f"{name} = {text};" if n.name in s.changing else f"const {kind} {name} = {text};"]


def scalar_operand(s: Scope, i: Instr, dtype: DType) -> str:
    """The number of an instruction: a constant, an index as the element type has it, or what the scalar unit computes."""
    if i.value is not None and i.value.op == "half" and dtype is F16:
        return _half(s, i.value)
    if i.value is not None and i.value.op == "index" and dtype.whole:
        return scalar_operand(s, replace(i, value=None, bound=i.value.args[0]), dtype)
    if i.value is not None:
        text = formula_text(s, i.value)
        return text if dtype.ascend == ("int32_t" if i.value.whole else "float") else f"static_cast<{dtype.ascend}>({text})"
    if i.bound == ZERO:
        return number(i.scalar, dtype)
    whole = f"static_cast<float>({s.cpp(i.bound)})"
    if dtype.whole:
        return f"static_cast<{dtype.ascend}>({s.cpp(i.bound)})"
    return whole if dtype is F32 else f"static_cast<{dtype.ascend}>({whole})"


def store_element(s: Scope, i: Instr) -> list[str]:
    """One element, written by the scalar unit."""
    dst = i.dst
    assert isinstance(dst, Tile)
    if i.value is not None and i.value.op == "element" and s.dtype(i.value.args[0]) == s.dtype(dst):
        return [f"{s.at(dst)}.SetValue(0, {s.at(i.value.args[0])}.GetValue(0));"]
    return [f"{s.at(dst)}.SetValue(0, {scalar_operand(s, i, s.buffer(dst).dtype)});"]


def printed(s: Scope, n: Print) -> list[str]:
    """What is printed; elements once all that came before is done."""
    if n.watched:
        values = f"{{{', '.join(formula_text(s, f) for f in n.args)}}}"
        shown = [s.slot(n.shown), str(n.count)] if isinstance(n.shown, Tile) else []
        return [f"tile_sim::watch({', '.join((str(n.id), *shown, values))});"]
    if n.shown is not None:
        return ["AscendC::PipeBarrier<PIPE_ALL>();", f"AscendC::DumpTensor({s.at(n.shown)}, {n.id}, {n.count});"]
    told = (json.dumps(n.text), *(formula_text(s, f) for f in n.args))
    if n.holds != ONE:
        return [f"ascendc_assert({', '.join((s.cpp(n.holds), *told))});"]
    return [f"AscendC::PRINTF({', '.join(told)});"]
