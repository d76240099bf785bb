"""The readable form of a Program: what `tile-eg emit --program` writes, and what can be edited and run again.

    program gemm on 910B2 as AIC_ONLY, blocks 4, workspace 0
    tensor A: f16[512, 512]
    tensor C: f32[512, 512] output
    buffer a: L1 f16 128 x 64 nz, pitch 64, slots 2 at 0, 16384
    cube {
      for k in 8 {
        wait MTE1 -> MTE2 id (k % 2)
        gm_to_l1 a[(k % 2)] <- A{(k * 64) : 512} : 128 x 64 by m-gm-l1  # gemm.tile:8
      }
    }

`a[slot; row, col]` is a window of a slot, `A{offset : stride}` a window of a GM tensor; `: rows x cols x depth` is what is valid.
`sync_all` is where all cores of the launch meet; a `shared tensor` lies in the workspace of all of them.
`for k in 8 until trips {` runs at most 8 times, `let trips to 8 = (block + 1)` above the streams is a name that both know.
`tasks task in 3 until ((70 - block) / 24), tile to 47 = ((task * 24) + block) {` is the loop over a block's tiles.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_eg.errors import TileError
from tile_eg.ir.index import ONE, ZERO, Expr
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import (
    PIPES,
    VECTOR,
    Buffer,
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
    Program,
    Scalar,
    SetFlag,
    SyncAll,
    Tasks,
    Tile,
    WaitFlag,
    When,
    While,
)
from tile_eg.ir.program.check import check_program
from tile_eg.ir.program.text import ATOMIC, FORMS, WORDS
from tile_eg.ir.program.tokens import Tokens
from tile_eg.ops.elementwise import ON_SCALARS
from tile_eg.ops.types import VALUE_TYPES, Level

OPS = (*PIPES, *VECTOR)
FORMULAS = ("number", "argument", "index", "element", "scalar", "cast", "nearest", "half", *ON_SCALARS)
"""What formulas of the scalar unit are made of (`ir.program.Formula`)."""


class _Parser(Tokens):
    """Recursive descent over one program text."""

    def program(self) -> Program:
        self.need("program")
        name = self.name("the kernel's name")
        self.need("on")
        chip = self.word("the chip's name")
        self.need("as")
        kernel_type = self.name("the kernel type")
        blocks, workspace = self._field("blocks"), self._field("workspace")
        halves = bool(self.take(",") and self.need("halves"))
        tensors = self._many("tensor", self.tensor)
        shared = self._many("shared", self._shared)
        buffers = self._many("buffer", self.buffer)
        self.names = {t.name for t in (*tensors, *shared)} | {b.name for b in buffers}
        lets = self._many("let", self._let)
        kinds = self._many(("number", "whole"), lambda: (self.tokens[self.at - 1][1], self.name()))
        numbers, wholes = tuple(n for _, n in kinds), tuple(n for kind, n in kinds if kind == "whole")
        cube, vector = self._stream("cube"), self._stream("vector")
        if self.tokens[self.at][0] != "end":
            self.expected("the end of the program")
        return Program(
            name, chip, kernel_type, tensors, blocks, halves, workspace, buffers, cube, vector, shared, lets,
            numbers=numbers, wholes=wholes,
        )

    def _field(self, word: str) -> int:
        self.need(",")
        self.need(word)
        return self.integer()

    def _many(self, words: str | tuple[str, ...], one: Callable) -> tuple:
        out = []
        while self.take(*([words] if isinstance(words, str) else words)):
            out.append(one())
        return tuple(out)

    def _integers(self) -> tuple[int, ...]:
        out = [self.integer()]
        while self.take(","):
            out.append(self.integer())
        return tuple(out)

    def tensor(self) -> Tensor:
        name = self.name()
        self.need(":")
        dtype = VALUE_TYPES[self.need(*VALUE_TYPES)]
        self.need("[")
        shape = () if self.peek("]") else self._integers()
        self.need("]")
        output, given, past_l2 = (bool(self.take(word)) for word in ("output", "given", "past_l2"))
        return Tensor(name, dtype, shape, output, given=given, past_l2=past_l2)

    def _shared(self) -> Tensor:
        self.need("tensor")
        return self.tensor()

    def buffer(self) -> Buffer:
        name = self.name()
        self.need(":")
        level, dtype = Level(self.need(*Level)), VALUE_TYPES[self.need(*VALUE_TYPES)]
        rows = self.integer()
        self.need("x")
        cols = self.integer()
        layout, pitch = self.need("nd", "nz", "zz", "zn", "pairs"), self._field("pitch")
        self.need(",")
        halved = bool(self.take("halved") and self.need(","))
        self.need("slots")
        slots = self.integer()
        addresses = self._integers() if self.take("at") else ()
        return Buffer(name, level, dtype, rows, cols, pitch, layout, slots, addresses, halved)

    def _stream(self, title: str) -> tuple[Node, ...]:
        self.need(title)
        return self.block()

    def block(self) -> tuple[Node, ...]:
        self.need("{")
        out = []
        while not self.take("}"):
            out.append(self.node())
        return tuple(out)

    def node(self) -> Node:
        start = self.tokens[self.at][2]
        word = self.name("an instruction or `}`")
        special: dict[str, Callable[[], Node]] = {
            "for": self._loop,
            "tasks": self._tasks,
            "if": self._when,
            "set": self._set,
            "wait": self._wait,
            "barrier": self._barrier,
        }
        special |= {"while": self._while, "scalar": self._scalar}
        special |= {"cross_set": self._cross_set, "cross_wait": self._cross_wait, "sync_all": SyncAll}
        if word in special:
            return special[word]()
        if word not in OPS:
            self.fail(f"no instruction is called {word!r}", start, len(word))
        return self._instr(word, start)

    def _loop(self) -> Loop:
        var = self.name("a loop variable")
        self.need("in")
        trips = self.integer()
        until = self.expr() if self.take("until") else None
        return Loop(var, trips, self.block(), until=until)

    def _tasks(self) -> Tasks:
        var = self.name("a loop variable")
        self.need("in")
        trips = self.integer()
        self.need("until")
        until, lets, before = self.expr(), [], []
        behind = self.name("a name") if self.take("behind") else ""
        while behind and self.tokens[self.at][0] == "name":
            old = self.name("a name")
            self.need("before")
            before.append((self.name("a name"), old))
        while self.take(","):
            lets.append(self._let())
        return Tasks(var, trips, self.block(), until=until, lets=tuple(lets), behind=behind, before=tuple(before))

    def _let(self) -> Let:
        name = self.name("a name")
        self.need("to")
        most = self.integer()
        self.need("=")
        return Let(name, self.expr(), most)

    def _when(self) -> When:
        return When(self.expr(), self.block())

    def _while(self) -> While:
        return While(self.expr(), self.block())

    def _scalar(self) -> Scalar:
        name = self.name("a name")
        self.need("=")
        return Scalar(name, self._formula())

    def _formula(self) -> Formula:
        """What the scalar unit computes, as `text.formula_text` writes it."""
        whole = bool(self.take("whole"))
        op = self.need(*FORMULAS)
        leaves: dict[str, Callable] = {"number": self.real, "index": self.expr, "element": self.operand, "scalar": self.name,
                                       "argument": self.name}  # fmt: skip
        if op in leaves:
            return Formula(op, (leaves[op](),), whole)
        self.need("(")
        args = [self._formula()]
        while self.take(","):
            args.append(self._formula())
        self.need(")")
        return Formula(op, tuple(args), whole)

    def _event(self) -> tuple[str, str, Expr]:
        src = self.name("a pipe")
        self.need("->")
        dst = self.name("a pipe")
        self.need("id")
        return src, dst, self.expr()

    def _set(self) -> SetFlag:
        return SetFlag(*self._event())

    def _wait(self) -> WaitFlag:
        return WaitFlag(*self._event())

    def _barrier(self) -> PipeBarrier:
        return PipeBarrier(self.name("a pipe"))

    def _cross_set(self) -> CrossSet:
        return CrossSet(self.name("a pipe"), self._cross(), mode=self._mode())

    def _cross_wait(self) -> CrossWait:
        return CrossWait(self._cross(), mode=self._mode())

    def _mode(self) -> int:
        """Which cores a flag joins: 2 where nothing is said."""
        if not self.take("mode"):
            return 2
        if (mode := self.expr().value) not in (0, 1, 2):
            self.expected("mode 0, 1 or 2")
        return mode  # type: ignore[return-value]

    def _cross(self) -> int | Expr:
        """A number, or an expression in brackets."""
        e = self.expr()
        return e if e.value is None else e.value

    def _instr(self, op: str, start: int) -> Instr:
        dst = self.operand()
        srcs = [self.operand()] if self.take("<-") else []
        while srcs and self.take(","):
            srcs.append(self.operand())
        self.need(":")
        shape = [self.expr()]
        while len(shape) < 3 and self.take("x"):
            shape.append(self.expr())
        rows, cols, depth = [*shape, ONE, ONE][:3]
        options = self._options()
        last = self.tokens[self.at - 1]
        options["span"] = self.span(start, last[2] + len(last[1]) - start)
        return Instr(op, dst, tuple(srcs), rows, cols, depth, **options)

    def _options(self) -> dict:
        read: dict[str, Callable] = {"scalar": self.real, "other": self.real, "steps": self._steps, "scratch": self._tile}
        read |= {"pad": self.real, "value": self._formula, "mode": lambda: self.word("a mode")}
        read |= dict.fromkeys(("init", "bound", "when", "unit"), self.expr)
        read |= {"form": lambda: self.need(*FORMS), **{w: (lambda: True) for w in WORDS}}
        kinds = {word: kind for kind, word in ATOMIC.items()}
        out: dict = {}
        while word := self.take(*read, *kinds):
            out |= {"atomic": kinds[word]} if word in kinds else {word: read[word]()}
        if self.take("by"):
            rules = [self.word("a rule's name")]
            while self.take(","):
                rules.append(self.word("a rule's name"))
            out["rules"] = tuple(rules)
        return out

    def _steps(self) -> tuple[int, ...]:
        found = [self.integer()]
        while self.take(","):
            found.append(self.integer())
        return tuple(found)

    def operand(self) -> Operand:
        _, text, start = self.tokens[self.at]
        name = self.name("a buffer or a tensor")
        if name not in self.names:
            self.fail(f"no tensor or buffer is called {text!r}", start, len(text))
        if self.take("{"):
            offset = self.expr()
            self.need(":")
            stride = self.integer()
            self.need("}")
            return Gm(name, offset, stride)
        return self._window(name)

    def _window(self, name: str) -> Tile:
        slot, row, col = ZERO, ZERO, ZERO
        if self.take("["):
            slot = self.expr()
            if self.take(";"):
                row = self.expr()
                self.need(",")
                col = self.expr()
            self.need("]")
        return Tile(name, slot, row, col)

    def _tile(self) -> Tile:
        return self._window(self.name("a buffer"))


def parse_program(text: str, file: str = "<program>", *, check: bool = True) -> Program:
    """The Program that `text` describes; its spans point into `text`.

    TileError (with a caret) where it is not one, or where `check_program` finds that it makes no sense.
    """
    p = _Parser(text, file).program()
    try:
        if check:
            check_program(p)
    except TileError as error:
        error.source = text
        raise
    return p
