"""A concrete kernel as `.tile` text. Parsing the text gives an equal kernel."""

from __future__ import annotations

from collections.abc import Iterator
from math import isinf

from tile_eg.frontend.index_text import index_text
from tile_eg.frontend.windows import known_shape
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import Expr
from tile_eg.ir.seen import indexed
from tile_eg.ops.elementwise import BINARY, COMPARE, UNARY
from tile_eg.ops.types import F16
from tile_eg.ops.whole_tiles import WHOLE_TILES

OPERATORS = {"add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2), "div": ("/", 2)}
REDUCTIONS = {(op, axis): f"{side}{op}" for op in ("max", "min", "sum") for axis, side in ((1, "row"), (0, "col"))}
INDENT = "  "


def print_kernel(kernel: kn.Kernel) -> str:
    """The kernel as text, all sizes as numbers."""
    return "\n".join(Printer(kernel).lines()) + "\n"


def number_text(value: float) -> str:
    if isinf(value):
        return "inf" if value > 0 else "-inf"
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 and str(value) != "-0.0" else repr(value)


class Printer:
    """Prints one kernel. `elements` tells that the statements stand in an element loop."""

    def __init__(self, kernel: kn.Kernel) -> None:
        self.kernel = kernel
        self.tensors = {t.name: indexed(t) for t in kernel.tensors}
        self.buffers: dict[str, kn.Alloc] = {}

    def lines(self) -> Iterator[str]:
        k = self.kernel
        inputs = ", ".join(map(_tensor, (t for t in k.tensors if not t.output)))
        outputs = ", ".join(map(_tensor, (t for t in k.tensors if t.output)))
        several = sum(t.output for t in k.tensors) > 1
        yield f"kernel {k.name}({inputs}) -> {f'({outputs})' if several else outputs} {{"
        if k.grid:
            yield f"{INDENT}grid {_tuple([n for n, _ in k.grid])} = {_tuple([str(e) for _, e in k.grid])}"
        yield from self.block(k.body, INDENT)
        yield "}"

    def block(self, body: tuple[kn.Stmt, ...], indent: str) -> Iterator[str]:
        n = 0
        while n < len(body):
            first, second = body[n], body[n + 1] if n + 1 < len(body) else None
            if isinstance(first, kn.Alloc) and isinstance(second, kn.Assign) and second.target == _whole(first):
                self.buffers[first.name] = first
                yield f"{indent}{_buffer(first)} = {self.expression(second.value, 0)}"
                n += 2
            else:
                yield from self.statement(first, indent)
                n += 1

    def statement(self, s: kn.Stmt, indent: str) -> Iterator[str]:
        match s:
            case kn.Alloc():
                self.buffers[s.name] = s
                yield indent + _buffer(s)
            case kn.Assign() if s.atomic:
                start = _trailing(s.target, known_shape(s.value))
                target = self.start(s.target) if start else self.region(s.target)
                yield f"{indent}atomic {target} += {self.expression(s.value, 0)}"
            case kn.Assign():
                yield f"{indent}{self.assignment(s)}"
            case kn.For():
                yield from self.nested(f"for {s.var} in {self.loop_range(s)}", s.body, indent)
            case kn.Parallel():
                extents = _tuple([str(e) for e in s.extents])
                yield from self.nested(f"parallel {_tuple(list(s.vars))} in {extents}", s.body, indent)
            case kn.If():
                yield f"{indent}if {index_text(s.condition)} {{"
                yield from self.block(s.then, indent + INDENT)
                if s.otherwise:
                    yield indent + "} else {"
                    yield from self.block(s.otherwise, indent + INDENT)
                yield indent + "}"

    def assignment(self, s: kn.Assign) -> str:
        """A window that takes its extent from the other side is printed as its start."""
        target, value = s.target, s.value
        if target.name in self.tensors and _trailing(target, known_shape(value)):
            return f"{self.start(target)} = {self.expression(value, 0)}"
        if isinstance(value, kn.Region) and value.name in self.tensors and _trailing(value, target.shape):
            return f"{self.region(target)} = {self.start(value)}"
        if isinstance(value, kn.Binary) and value.x == target and value.op in OPERATORS:
            return f"{self.region(target)} {OPERATORS[value.op][0]}= {self.expression(value.y, 0)}"
        return f"{self.region(target)} = {self.expression(value, 0)}"

    def start(self, r: kn.Region) -> str:
        counts = r.counts or (None,) * len(r.starts)
        ends = (f":{index_text(s + c)}" if c is not None else "" for s, c in zip(r.starts, counts, strict=True))
        items = (index_text(s) + end for s, end in zip(r.starts, ends, strict=True))
        return f"{r.name}[{', '.join(items)}]"

    def nested(self, head: str, body: tuple[kn.Stmt, ...], indent: str) -> Iterator[str]:
        yield f"{indent}{head} {{"
        yield from self.block(body, indent + INDENT)
        yield indent + "}"

    def loop_range(self, s: kn.For) -> str:
        end = index_text(s.start + s.count) if s.count is not None else s.start + s.extent
        ends = f"{s.start}, {end}" if s.start else end
        return f"{s.kind}({ends}{f', stages={s.stages}' if s.stages else ''})"

    def region(self, r: kn.Region) -> str:
        """A buffer by its name where all of it is meant, else with an index or a slice for each dimension."""
        buffer = self.buffers.get(r.name)
        if buffer is not None and r == _whole(buffer):
            return r.name
        shape = (buffer or self.tensors[r.name]).shape
        counts = r.counts or (None,) * len(shape)
        lengths = (c if c is not None else e for c, e in zip(counts, r.extents, strict=True))
        parts = (_slice(s, e, n) for s, e, n in zip(r.starts, lengths, shape, strict=True))
        return f"{r.name}[{', '.join(parts)}]"

    def expression(self, e: kn.TileExpr, tight: int) -> str:
        """An expression; `tight` is how strongly the text around it binds: 0 nothing, 1 a sum, 2 a product, 3 an operand."""
        match e:
            case kn.Region():
                return self.region(e)
            case kn.Number():
                text = number_text(e.value)
                return f"({text})" if text.startswith("-") and tight else text
            case kn.Index():
                return index_text(e.value) if e.value.op == "var" else f"({index_text(e.value)})"
            case kn.Binary() if e.op in OPERATORS:
                sign, strength = OPERATORS[e.op]
                text = f"{self.expression(e.x, strength)} {sign} {self.expression(e.y, strength + 1)}"
                return f"({text})" if strength < tight else text
            case kn.MatMul():
                text = f"{self.factor(e.a, e.transpose_a, 2)} @ {self.factor(e.b, e.transpose_b, 3)}"
                return f"({text})" if tight > 2 else text
            case kn.Unary(op="neg"):
                return f"({'-' + self.expression(e.x, 3)})" if tight else "-" + self.expression(e.x, 3)
            case kn.Broadcast():
                return self.expression(e.x, 4) + ("[:, None]" if e.axis == 1 else "[None, :]")
        return self.call(e)

    def call(self, e: kn.TileExpr) -> str:
        match e:
            case kn.Unary():
                return f"{UNARY[e.op].tile[0]}({self.expression(e.x, 0)})"
            case kn.Binary() if BINARY[e.op].sign:
                return f"({self.expression(e.x, 3)} {BINARY[e.op].sign} {self.expression(e.y, 3)})"
            case kn.Binary():
                return f"{e.op}({self.expression(e.x, 0)}, {self.expression(e.y, 0)})"
            case kn.Whole():
                numbers = map(str, e.numbers[: len(WHOLE_TILES[e.op].numbers)])
                return f"{e.op}({', '.join((*(self.expression(x, 0) for x in e.xs), *numbers))})"
            case kn.Pad() if e.ends:
                return self.expression(e.x, 0)
            case kn.Pad():
                return f"pad({self.expression(e.x, 0)}, {number_text(e.value)})"
            case kn.Scaled():
                return f"scaled({self.expression(e.x, 0)}, {self.expression(e.scale, 0)})"
            case kn.Pack():
                return f"pack({self.expression(e.x, 0)})"
            case kn.Bytes() if e.dtype is F16:
                return f"nibbles({self.expression(e.x, 0)})"
            case kn.Cast():
                return f"{e.dtype}({self.expression(e.x, 0)})"
            case kn.Select():
                parts = (index_text(e.condition), self.expression(e.x, 0), self.expression(e.y, 0))
                return f"select({', '.join(parts)})"
            case kn.Choose(op=kn.BIT):
                return f"select(bits({self.expression(e.a, 0)}), {self.expression(e.x, 0)}, {self.expression(e.y, 0)})"
            case kn.Choose():
                test = f"{self.expression(e.a, 1)} {COMPARE[e.op].sign} {self.expression(e.b, 1)}"
                return f"select({test}, {self.expression(e.x, 0)}, {self.expression(e.y, 0)})"
            case kn.Reduce():
                name = e.op if e.axis == 1 and len(known_shape(e.x) or ()) == 1 else REDUCTIONS[e.op, e.axis]
                return f"{name}({self.expression(e.x, 0)})"
        raise TypeError(f"{type(e).__name__} has no text")

    def factor(self, e: kn.TileExpr, transposed: bool, tight: int) -> str:
        return self.expression(e, 4) + ".T" if transposed else self.expression(e, tight)


def _whole(b: kn.Alloc) -> kn.Region:
    return kn.Region(b.name, (ix.ZERO,) * len(b.shape), b.shape)


def _buffer(b: kn.Alloc) -> str:
    return f"{b.scope} {b.name}: {b.dtype}[{', '.join(map(str, b.shape))}]"


def _tensor(t: kn.Tensor) -> str:
    shape, held = (', '.join(map(str, s)) for s in (t.shape, t.seen))
    return f"{t.name}: {'bool' if t.truth else t.dtype}[{shape}]{f' as [{held}]' if t.seen else ''}"


def _trailing(r: kn.Region, shape: tuple[int, ...] | None) -> bool:
    """Whether a region has this shape in its last dimensions and plain indices before them."""
    return bool(shape) and r.extents == (None,) * (len(r.starts) - len(shape or ())) + (shape or ())


def _tuple(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _slice(start: Expr, extent: Expr | int | None, size: int) -> str:
    if extent is None:
        return index_text(start)
    if start == ix.ZERO and extent == size:
        return ":"
    return f"{index_text(start)}:{index_text(start + extent)}"
