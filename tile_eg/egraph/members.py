"""The value part of a saturated e-graph: every class of values with all terms that the rules say are equal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_eg.egraph.encode import Encoder
from tile_eg.ir.index import Expr, const
from tile_eg.ir.passed import Passed
from tile_eg.ops.records import record
from tile_eg.ops.types import VALUE_TYPES, DType
from tile_eg.rules import native

VALUES = ("V", "T", "S", "St", "Lp")
Class = tuple[str, Any]


@record
class Member:
    """One term of a class: `args` are numbers, texts, index expressions and classes."""

    op: str
    args: tuple[Any, ...]


@record
class Shape:
    """What holds for every term of a class of tiles."""

    rows: int
    cols: int
    dtype: DType
    vrows: Expr
    vcols: Expr


@dataclass
class Members:
    """Classes by (sort, identity), in the order in which the kernel's own terms come first."""

    classes: dict[Class, list[Member]]
    shapes: dict[Class, Shape]
    encoder: Encoder
    chosen: dict[Class, Member] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chosen = _well_founded(self.classes)

    def text(self, m: Member, depth: int = 1000) -> str:
        """A term as the rule language writes it, each operand by the smallest term of its class, down to a depth."""
        if not depth and any(isinstance(x, tuple) for x in m.args):
            return "..."
        return f"({' '.join([m.op, *(self._argument(x, depth) for x in m.args)])})"

    def _argument(self, x: Any, depth: int) -> str:
        if isinstance(x, Expr):
            return f"(IC {x.value})" if x.value is not None else f'(Ix "{x}")'
        if isinstance(x, tuple):
            return self.text(self.chosen[x], depth - 1)
        if isinstance(x, Passed):
            return f'(Nm "{x}")'
        return f'"{x}"' if isinstance(x, str) else repr(x)


def read_members(egraph: Any, encoder: Encoder) -> Members:
    """All terms of values, versions, loops and scalar expressions in an e-graph."""
    functions = native.functions(egraph)
    decode = _decoders(egraph, encoder, functions)
    classes: dict[Class, list[Member]] = defaultdict(list)
    for op in sorted(functions):
        f = functions[op]
        if f.output_sort not in VALUES or f.is_let_binding:
            continue
        for row in f.rows:
            args = tuple(
                (sort, x) if sort in VALUES else decode[sort](x) for x, sort in zip(row.inputs, f.input_sorts, strict=True)
            )
            classes[f.output_sort, row.output].append(Member(op, args))
    return Members(dict(classes), _shapes(egraph, functions, decode), encoder)


def _decoders(egraph: Any, encoder: Encoder, functions: Any) -> dict[str, Callable[[Any], Any]]:
    i64, string = egraph.value_to_i64, egraph.value_to_string
    index: dict[Any, Expr] = {}
    if "IC" in functions:
        index |= {r.output: const(i64(r.inputs[0])) for r in functions["IC"].rows}
    if "Ix" in functions:
        index |= {r.output: encoder.index[string(r.inputs[0])] for r in functions["Ix"].rows}
    rows = functions["Nm"].rows if "Nm" in functions else ()
    passed = {r.output: encoder.passed[string(r.inputs[0])] for r in rows}
    return {"i64": i64, "String": string, "f64": egraph.value_to_f64, "I": index.__getitem__, "Num": passed.__getitem__}


def _shapes(egraph: Any, functions: Any, decode: dict[str, Callable[[Any], Any]]) -> dict[Class, Shape]:
    def table(name: str, sort: str) -> dict[Any, Any]:
        return {r.inputs[0]: decode[sort](r.output) for r in functions[name].rows}

    rows, cols, types = table("rows", "i64"), table("cols", "i64"), table("dt", "String")
    vrows, vcols = table("vr", "I"), table("vc", "I")
    known = [v for v in rows if v in cols and v in types and v in vrows and v in vcols]
    return {("V", v): Shape(rows[v], cols[v], VALUE_TYPES[types[v]], vrows[v], vcols[v]) for v in known}


def _well_founded(classes: Mapping[Class, Sequence[Member]]) -> dict[Class, Member]:
    """A term for each class such that no class is made of itself: the smallest, by relaxation."""
    size: dict[Class, int] = {}
    best: dict[Class, Member] = {}
    changed = True
    while changed:
        changed = False
        for cls, members in classes.items():
            for m in members:
                inner = [x for x in m.args if isinstance(x, tuple)]
                if any(x not in size for x in inner):
                    continue
                total = 1 + sum(size[x] for x in inner)
                if total < size.get(cls, 1 << 60):
                    size[cls], best[cls], changed = total, m, True
    return best
