"""The physical terms of the rules: every instruction that a schedule can be made of, and the structure around them.

A term is declared here once, under the name of its constructor in `rules/00_terms.egg`: what it moves or computes, on which core,
whether choosing it is a decision. What it costs (`extract/pricing.py`), how it becomes an instruction of a program
(`emit/lower/`) and which laws of storage it follows (`extract/`) is asked of its entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from tile_eg.ops.records import record

AIC, AIV = "AIC", "AIV"
PIPES = {
    "gm_to_l1": (AIC, "MTE2"), "l1_to_l0a": (AIC, "MTE1"), "l1_to_l0b": (AIC, "MTE1"), "mmad": (AIC, "M"),
    "fixpipe": (AIC, "FIX"), "gm_to_ub": (AIV, "MTE2"), "ub_to_gm": (AIV, "MTE3"),
    "ub_to_l1": (AIV, "MTE3"), "l1_to_ub": (AIC, "MTE1"), "l1_zero": (AIC, "MTE2"), "store_element": (AIV, "S"),
}  # fmt: skip
"""Core and pipe of each instruction of a program; those that are not here run on the V pipe of a vector core."""

Payload = tuple[Any, ...]
"""The arguments of a term that are no classes: strings, numbers, memories, index expressions, in the constructor's order."""
Of = Callable[[Payload], Any]


def argument(n: int) -> Of:
    return lambda payload: payload[n]


def always(value: Any) -> Of:
    return lambda payload: value


@record
class Term:
    """A physical term. `decision`: two choices that differ in it are different schedules, not one in two spellings.

    `overwrites` is the place among its classes of the operand whose buffer it takes over, `begins`: such an operand begins by it.
    `held`: its value lies in a place that holds one already. `word` is what reports call it, where that is not its own name.
    """

    name: str
    decision: bool = False
    overwrites: int | None = None
    word: str = ""
    begins: bool = False
    held: bool = False


@record
class Structure(Term):
    """What holds instructions together: loops, states, versions of tensors, the decisions about a loop. It takes no time."""


@record
class Alias(Term):
    """A value in the buffer where it lies already."""


@record
class Cube(Term):
    """A product, or the L0C that it begins with; its time stands at the cut for L0.

    A product's last two classes are its operands; `scaled`: the two before these are their scales.
    """

    product: bool = False
    scaled: bool = False


@record
class Move(Term):
    """A move from memory `source` to memory `target` (GM, WS for the workspace, L1, L0C, UB) by `instruction`.

    `operand` is the place of what it moves among its classes. In a loop the place that it fills (`staged`), or the one in UB that
    it empties (`empties`), has as many buffers as is decided: the last of its classes.
    `strips`: the source holds strips of 32 bytes. `several_trips`: it brings the tiles of as many trips as its first argument.
    `padded`: it begins at the row that is its first argument and ends behind so many rows as the second; the others are zeros.
    """

    instruction: str = ""
    source: str = ""
    target: str = ""
    operand: int = 0
    staged: bool = False
    empties: bool = False
    strips: bool = False
    several_trips: bool = False
    padded: bool = False

    @property
    def core(self) -> str:
        return PIPES[self.instruction][0]

    @property
    def crosses(self) -> bool:
        """Whether one kind of core fills what the other one reads: from L0C or L1 into WS or UB, or from UB into WS or L1."""
        return self.target == "WS" or {self.source, self.target} == {"L1", "UB"} or (self.source, self.target) == ("L0C", "UB")


@record
class Vector(Term):
    """An instruction of the vector cores.

    `kind` says how it is costed and lowered: elementwise, reduction, choice, position, fill, beyond, spread, copy.
    `instruction` and
    `form` are those of the program, `fields` its other fields (scalar, bound, swap), all from the term's payload. `banks`: it
    reads its operands at the same time, so they are put into different bank groups of UB (None: one after the other). `in_place`
    counts the leading operands whose buffer the result may take (-1: any of them). `row_bytes` is a row of a spread vector.
    `saves_room`: it needs less of UB than another way that takes the same time. `same_window`: of its operand it reads the window
    that it writes of its result. `rereads`: it reads its first operand, a row, again for each row that it writes.
    `says` is what operation its constructor names, and at which argument.
    """

    kind: str = "elementwise"
    instruction: Of = always("")
    form: Of = argument(0)
    fields: Mapping[str, Of] = field(default_factory=dict)
    banks: bool | None = False
    in_place: int = 0
    row_bytes: int = 0
    saves_room: bool = False
    same_window: bool = False
    rereads: bool = False
    says: tuple[str, int] | None = None

    def window(self, payload: Payload) -> tuple[int, int, int]:
        """Of one that writes a window of its result: the element at which it begins, its rows and columns."""
        bound, rows, cols = (self.fields[name](payload) for name in ("bound", "rows", "cols"))
        return bound.value, rows, cols


def _load(name: str, instruction: str, source: str, **more: Any) -> Move:
    target = instruction.rsplit("_", 1)[1].upper()
    return Move(name, True, instruction=instruction, source=source, target=target, staged=True, **more)


def _move(name: str, instruction: str, source: str, target: str, **more: Any) -> Move:
    return Move(name, True, instruction=instruction, source=source, target=target, **more)


def _elementwise(name: str, instruction: Of, in_place: int = -1, **more: Any) -> Vector:
    return Vector(name, instruction=instruction, in_place=in_place, **more)


def _reduction(name: str, instruction: Of, form: str, **more: Any) -> Vector:
    return Vector(name, kind="reduction", instruction=instruction, form=always(form), **more)


def _whole(name: str) -> Vector:
    """An operation on whole tiles; its two numbers are the instruction's steps."""
    steps: dict[str, Of] = {"steps": lambda p: tuple(p[1:3])}
    says = ("operation on whole tiles", 0)
    return Vector(name, kind="whole", instruction=_named(at=0), form=always("flat"), fields=steps, says=says)


def _in_window(name: str, instruction: Of, at: int, **more: Any) -> Vector:
    """What writes a window of its result: where that begins, its rows and columns stand in the payload one behind the other."""
    return Vector(name, kind="in_window", in_place=0, instruction=instruction, form=always("rows"),
                  fields={"bound": argument(at), "rows": argument(at + 1), "cols": argument(at + 2)}, **more)


def _choice(name: str, kind: str, number: str = "", **more: Any) -> Vector:
    """A comparison and a selection by it; `number` is the field that holds what is compared with, where that is no tile."""
    fields: dict[str, Of] = {number: argument(1)} if number else {}
    if kind == "mask":
        fields["other"] = argument(2)
    banks = None if kind == "mask" else False
    return Vector(
        name, kind="choice", instruction=lambda p: f"v{kind}_{p[0]}", fields=fields, banks=banks, says=("comparison", 0),
        **{"in_place": -1, **more},
    )  # fmt: skip


def _named(prefix: str = "", suffix: str = "", at: int = 1) -> Of:
    """The instruction called by the operation that stands in the payload: vexp, vadds, vmul_rows."""
    return lambda payload: f"v{prefix}{payload[at]}{suffix}"


_SWAP: dict[str, Of] = {"swap": lambda p: bool(p[2])}
TERMS: dict[str, Term] = {
    t.name: t
    for t in (
        _load("GmToL1", "gm_to_l1", "GM"),
        _load("GmToL1Coarsened", "gm_to_l1", "GM", several_trips=True),
        _load("GmToL1Padded", "gm_to_l1", "GM", padded=True),
        _load("GmToL1Strips", "gm_to_l1", "GM", strips=True),
        _load("GmToUB", "gm_to_ub", "GM"),
        _load("WsToL1", "gm_to_l1", "WS"),
        _load("WsToL1Strips", "gm_to_l1", "WS", strips=True),
        _load("WsToUB", "gm_to_ub", "WS"),
        _move("FixToGM", "fixpipe", "L0C", "GM", operand=1),
        _move("FixToWS", "fixpipe", "L0C", "WS"),
        _move("FixToL1", "fixpipe", "L0C", "L1"),
        _move("FixToUB", "fixpipe", "L0C", "UB", staged=True),
        _move("UBToL1", "ub_to_l1", "UB", "L1", staged=True),
        _move("L1ToUB", "l1_to_ub", "L1", "UB", staged=True),
        _move("UBToGM", "ub_to_gm", "UB", "GM", operand=1, empties=True),
        _move("UBToWS", "ub_to_gm", "UB", "WS", empties=True),
        Cube("Mmad", decision=True, product=True),
        Cube("MmadAcc", decision=True, overwrites=1, product=True),
        Cube("MmadMx", decision=True, product=True, scaled=True),
        Cube("MmadMxAcc", decision=True, overwrites=1, product=True, scaled=True),
        Cube("ZeroL0C"),
        Structure("L0", decision=True),
        _elementwise("VUn", _named(), says=("unary", 1)),
        _elementwise("VBin", _named(), banks=True, says=("binary", 1)),
        _elementwise("VBinS", _named(suffix="s"), fields={"scalar": argument(2)}, says=("binary", 1)),
        _elementwise("VBinN", _named(suffix="s"), fields={"value": argument(2)}, says=("binary", 1)),
        _elementwise("VBinR", _named(suffix="_rows"), 1, fields=_SWAP, banks=True, says=("binary", 1)),
        _elementwise("VBinC", _named(suffix="_cols"), 1, form=always("rows"), fields=_SWAP, banks=True, says=("binary", 1)),
        _elementwise("VOuter", _named(suffix="_outer"), 0, form=always("rows"), fields=_SWAP, banks=True, says=("binary", 1)),
        _elementwise("VCast", always("vcast"), 0),
        Vector("VCastStrips", kind="strips", instruction=always("vcast"), form=always("strips")),
        _elementwise("VPack", always("vpack"), 0, form=always("rows")),
        _elementwise("VNibbles", always("vnibbles"), 0),
        _elementwise("VBytes", always("vbytes"), 0),
        Vector("VPiece", kind="piece", instruction=always("vpiece"), form=always("rows"), fields={"bound": argument(0)}),
        Vector("VHalf", kind="half", instruction=always("vpiece"), form=always("rows")),
        Vector("VPut", kind="put", instruction=always("vput"), form=always("rows"), fields={"bound": argument(0)}, in_place=1),
        _elementwise("VBinColumns", _named(at=0), 0, form=always("rows"), banks=True, says=("binary", 0)),
        _in_window("VBinIn", _named(at=0), 1, decision=True, overwrites=2, banks=True, says=("binary", 0)),
        _in_window("VBinBegin", _named(at=0), 1, decision=True, banks=True, says=("binary", 0)),
        _in_window("VPutBegin", always("vcopy"), 0, decision=True),
        _in_window("VKeepRows", always("vcopy"), 0, decision=True, same_window=True),
        _whole("VWhole"),
        _whole("VWholes"),
        _reduction("VRed", lambda p: f"v{'row' if p[0] == 1 else 'col'}{p[1]}", "rows", says=("reduction", 1)),
        _reduction("VRedBlock", _named("row", at=0), "blocks", says=("reduction", 0)),
        _reduction("VRedChunks", _named("row", at=0), "halves", says=("reduction", 0)),
        _reduction("VRedHalves", _named("col", at=0), "halves", says=("reduction", 0)),
        _reduction("VRedHalvesRows", _named("col", at=0), "folded", says=("reduction", 0)),
        _reduction("VRedMul", always("vrowdot"), "blocks", saves_room=True),
        Vector("VBrcb", kind="spread", instruction=always("vbrcb"), form=always("flat"), row_bytes=32),
        Vector("VBrcbTwice", kind="spread", instruction=always("vbrcb"), form=always("apart"), row_bytes=64),
        Vector("VDup", kind="fill", instruction=always("vdup"), form=always("flat")),
        Vector("VDupIn", kind="fill", instruction=always("vdup"), form=always("flat"), word="filled", begins=True),
        _elementwise(
            "VAxpy", always("vaxpy"), 0, decision=True, overwrites=1, fields={"scalar": argument(1)}, banks=True
        ),
        _elementwise(
            "VAxpyN", always("vaxpy"), 0, decision=True, overwrites=1, fields={"value": argument(1)}, banks=True
        ),
        _elementwise("VMulAdd", always("vmuladd"), 0, decision=True, overwrites=2),
        _elementwise("VMulAddOuter", always("vmuladd_outer"), 0, form=always("rows"), decision=True, overwrites=2, rereads=True),
        _choice("VCho", "choose"),
        _choice("VChoS", "chooses", "scalar"),
        _choice("VChoI", "chooses", "bound"),
        _elementwise("VChoB", always("vbitselect"), 0, form=always("rows")),
        _choice("VMask", "mask", "scalar"),
        _choice("VMaskI", "mask", "bound"),
        _choice("VMaskOn", "mask", "bound", in_place=0, decision=True, overwrites=1),
        Vector(
            "VBeyond", kind="beyond", instruction=always("vbeyond"), form=always("rows"), decision=True, overwrites=0,
            fields={"bound": argument(1), "scalar": argument(2)},
        ),
        _elementwise("VAddI", always("vadds"), fields={"bound": argument(1)}),
        Vector("VRamp", kind="position", instruction=always("vramp"), form=always("flat")),
        Vector(
            "VCopy", kind="copy", instruction=always("vcopy"), form=always("flat"), decision=True, word="a copy", begins=True
        ),
        Alias("Give", word="taken over", begins=True),
        Alias("Keep", decision=True, word="resident", held=True),
        Alias("PanelOf", word="rows of another tile", held=True),
        Alias("Part", decision=True, word="a part of another tile", held=True),
        Alias("Stays", decision=True, word="what an earlier loop loaded", held=True),
        Alias("Bits", word="read as another type"),
        Alias("Reshaped", decision=True, word="read in rows of another length", held=True),
        Alias("Lies", word="as it lies"),
        Alias("NextIn", word="made in place"),
        Vector(
            "NextCp", kind="copy", instruction=always("vcopy"), form=always("flat"), decision=True, word="copied at the back edge"
        ),
        Structure("State", decision=True),
        Structure("PNil"),
        Structure("PCons"),
        Structure("PTCons"),
        Structure("Buffers", decision=True),
        Structure("Alone"),
        Structure("Skew", decision=True),
        Structure("PLoop"),
        Structure("PProj"),
        Structure("PArg", held=True),
        Structure("GM0"),
        Structure("PTArg"),
        Structure("PTProj"),
        Structure("ONil"),
        Structure("OCons"),
        Alias("Ended", word="as much as exists"),
    )
}  # fmt: skip
"""In the order in which the nodes of an e-graph are numbered."""

MOVES: dict[str, Move] = {n: t for n, t in TERMS.items() if isinstance(t, Move)}
VECTOR: dict[str, Vector] = {n: t for n, t in TERMS.items() if isinstance(t, Vector)}
PRODUCTS = frozenset(n for n, t in TERMS.items() if isinstance(t, Cube) and t.product)
ADDING = frozenset(n for n in PRODUCTS if TERMS[n].overwrites is not None)
"""Products that are added to what L0C holds."""
WITH_SCALES = frozenset(n for n, t in TERMS.items() if isinstance(t, Cube) and t.scaled)
STORES = frozenset(n for n, m in MOVES.items() if m.target == "GM")
TOUCHES = {n: m.core for n, m in MOVES.items() if "GM" in (m.source, m.target)}
"""Which core touches a tensor in GM."""
LOADS = frozenset(TOUCHES.keys() - STORES)
"""What brings a tile of a tensor: into the buffers that an author loads. Those in which cores meet are the compiler's own."""
STAGED = frozenset(n for n, m in MOVES.items() if m.staged)
DEEP = frozenset(n for n, m in MOVES.items() if m.staged or m.empties)
"""What has a decision how many buffers its tile has."""
CROSSING = {core: frozenset(n for n, m in MOVES.items() if m.crosses and m.core == core) for core in (AIC, AIV)}
"""By the core that fills, what the other kind of core reads."""
OVERWRITES = {n: t.overwrites for n, t in TERMS.items() if t.overwrites is not None}
WINDOWS = frozenset(n for n, v in VECTOR.items() if v.kind == "in_window")
"""What writes a window of its result."""
IN_PARTS = WINDOWS | {n for n, v in VECTOR.items() if v.rereads}
"""What may write over a part of a tile before it has read that."""
DECISIONS = frozenset(n for n, t in TERMS.items() if t.decision)
BEGINS = frozenset(t.name for t in TERMS.values() if t.begins)
HELD = frozenset(t.name for t in TERMS.values() if t.held)
ALIASES = frozenset(n for n, t in TERMS.items() if isinstance(t, Alias))
STRUCTURE = frozenset(n for n, t in TERMS.items() if isinstance(t, Structure)) | {"NextCp"}
"""What is no instruction of its own; the copy at a back edge is placed there by the loop."""
