"""Random Expert kernels: kept as they are written, with barriers and flags where one pipe waits for another. How many rows there
are is known now or at each call; some are gathered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.fuzz.written import MOST, Line, Program

NEAR = 3
TABLE = 11
"""Rows of what is gathered from."""
WORDS: dict[str, tuple[Callable[..., Any], Callable[[int, int], int]]] = {
    "add": (np.add, lambda a, b: a + b), "sub": (np.subtract, lambda a, b: a + b), "mul": (np.multiply, lambda a, b: a * b),
    "max": (np.maximum, max), "min": (np.minimum, max),
}  # fmt: skip
SINGLE: dict[str, Callable[..., Any]] = {"abs": np.abs, "relu": lambda x: np.maximum(x, 0)}


class Vectors:
    """Makes a kernel of the vector cores; each of the two has `rows` rows of a block's tile."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.rows, self.cols, self.blocks = self.pick(1, 2, 8, 16), self.pick(16, 64, 128), self.pick(1, 2, 5)
        self.dtype, self.dynamic = self.pick("float32", "float16"), self.pick(True, False)
        self.bounds: dict[str, int] = {}
        self.buffers: list[str] = []
        self.vectors: dict[str, int] = {}
        self.arguments: list[tuple[str, str, str]] = []
        self.outputs: list[str] = []
        self.lines: list[Line] = []
        self.steps: list[Callable[[dict[str, Any]], None]] = []
        self.last = ""
        self.flags = 0
        self.total = self.pick(0, 1, 2, 3, 7, 13, 16, 17, 31, 48, 97) if self.dynamic else 2 * self.rows * self.blocks
        self.height = "M" if self.dynamic else str(self.total)
        self.indices: list[str] = []

    def pick(self, *among: Any) -> Any:
        return self.draw(st.sampled_from(among))

    def say(self, text: str, pipe: str, step: Callable[[dict[str, Any]], None], depth: int = 1) -> None:
        """A statement, and before it what makes its pipe wait for the last one."""
        self.wait(pipe, depth)
        self.lines.append(Line(text, depth, pipe))
        self.steps.append(step)

    def wait(self, pipe: str, depth: int) -> None:
        if self.last and self.last == pipe:
            self.lines.append(Line(f'T.pipe_barrier("{pipe}")', depth))
        elif self.last and self.pick("flag", "flag", "barrier") == "flag":
            n, self.flags = self.flags % 4, self.flags + 1
            self.lines += [Line(f'T.{word}_flag("{self.last}", "{pipe}", {n})', depth) for word in ("set", "wait")]
        elif self.last:
            self.lines.append(Line("T.barrier_all()", depth))
        self.last = pipe

    @property
    def first(self) -> str:
        return f"cid * {2 * self.rows} + vid * {self.rows}"

    def window(self) -> str:
        return f"{self.first}, 0"

    def buffer(self) -> str:
        if self.bounds and self.pick(True, False):
            return self.pick(*self.bounds)
        name = f"t{len(self.buffers)}"
        self.buffers.append(name)
        return name

    def tensor(self, prefix: str) -> str:
        return f"{prefix}{len(self.arguments) + len(self.outputs)}"

    def load(self) -> None:
        x, t = self.tensor("X"), self.buffer()
        self.arguments.append((x, f"({self.height}, {self.cols})", self.dtype))
        self.say(f"T.copy({x}[{self.window()}], {t})", "mte2", lambda e: e.update({t: e["arrays"][x].copy()}))
        self.bounds[t] = NEAR

    def pair(self) -> None:
        a, b, word = self.pick(*self.bounds), self.pick(*self.bounds), self.pick(*WORDS)
        does, grows = WORDS[word]
        bound = grows(self.bounds[a], self.bounds[b])
        if bound > MOST[self.dtype]:
            return self.load()
        t = self.buffer()
        self.say(f"T.tile.{word}({t}, {a}, {b})", "v", lambda e: e.update({t: does(e[a], e[b])}))
        self.bounds[t] = bound
        return None

    def number(self) -> None:
        a, n, word = self.pick(*self.bounds), self.pick(-2, 1, 3), self.pick("add", "mul", "max", "min")
        does, grows = WORDS[word]
        bound = grows(self.bounds[a], abs(n))
        if bound > MOST[self.dtype]:
            return self.load()
        t = self.buffer()
        self.say(f"T.tile.{word}({t}, {a}, {n}.0)", "v", lambda e: e.update({t: does(e[a], n)}))
        self.bounds[t] = bound
        return None

    def single(self) -> None:
        a, word = self.pick(*self.bounds), self.pick(*SINGLE)
        t = self.buffer()
        self.say(f"T.tile.{word}({t}, {a})", "v", lambda e: e.update({t: SINGLE[word](e[a])}))
        self.bounds[t] = self.bounds[a]

    def fill(self) -> None:
        t, n = self.buffer(), self.pick(0, 1, -2)
        self.say(f"T.tile.fill({t}, {n}.0)", "v", lambda e: e.update({t: np.full((e["total"], self.cols), float(n))}))
        self.bounds[t] = abs(n)

    def loop(self) -> None:
        """Tiles of columns, one a trip, added up."""
        trips, x = self.pick(1, 2, 3), self.tensor("X")
        s, t = f"t{len(self.buffers)}", f"t{len(self.buffers) + 1}"
        self.buffers += [s, t]
        self.arguments.append((x, f"({self.height}, {trips * self.cols})", self.dtype))
        self.say(f"T.tile.fill({s}, 1.0)", "v", lambda e: e.update({s: np.ones((e["total"], self.cols))}))
        self.lines += [Line("T.barrier_all()", 1), Line(f"for k in {self.pick('T.serial', 'range')}({trips}):", 1)]
        self.last = ""
        self.say(f"T.copy({x}[{self.first}, k * {self.cols}], {t})", "mte2", lambda e: None, 2)

        def step(e: dict[str, Any]) -> None:
            e[s] = e[s] + e["arrays"][x].reshape(e["total"], trips, self.cols).sum(axis=1)

        self.say(f"T.tile.add({s}, {s}, {t})", "v", step, 2)
        self.lines.append(Line("T.barrier_all()", 2))
        self.last = ""
        self.bounds[s] = 1 + trips * NEAR

    def gather(self) -> None:
        """Rows of a table, at indices that the scalar unit reads from UB."""
        i, t, n = self.tensor("I"), self.buffer(), f"n{len(self.indices)}"
        self.arguments.append((i, f"({self.height},)", "int32"))
        w = self.tensor("W")
        self.arguments.append((w, f"({TABLE}, {self.cols})", self.dtype))
        self.indices.append(n)
        self.say(f"T.copy({i}[{self.first}], {n})", "mte2", lambda e: None)
        self.lines += [Line("T.barrier_all()", 1), Line(f"for r in {self.pick('T.serial', 'range')}({self.rows}):", 1)]
        if self.pick(True, False):
            self.lines += [Line(f"at = {n}[r]", 2), Line(f"T.copy({w}[at, 0], {t}[r, :])", 2)]
        else:
            self.lines.append(Line(f"T.copy({w}[{n}[r], 0], {t}[r, :])", 2))
        self.steps.append(lambda e: e.update({t: e["arrays"][w][e["arrays"][i].astype(int)]}))
        self.lines.append(Line("T.barrier_all()", 1))
        self.last = ""
        self.bounds[t] = NEAR

    def store(self, t: str) -> None:
        y = f"Y{len(self.outputs)}"
        self.outputs.append(y)
        self.say(f"T.copy({t}, {y}[{self.window()}])", "mte3", lambda e: e["stored"].update({y: e[t].astype(np.float64)}))

    def program(self) -> Program:
        self.load()
        for _ in range(self.draw(st.integers(1, 7))):
            self.pick(self.load, self.pair, self.pair, self.number, self.single, self.fill, self.loop, self.gather)()
        for name in list(self.bounds):
            if name == list(self.bounds)[-1] or self.pick(True, False, False):
                self.store(name)
        declared = [f'{t} = T.alloc_ub(({self.rows}, {self.cols}), "{self.dtype}")' for t in self.buffers]
        declared += [f'{n} = T.alloc_ub(({self.rows},), "int32")' for n in self.indices]
        arguments = [*self.arguments, *((y, f"({self.height}, {self.cols})", self.dtype) for y in self.outputs)]
        blocks, sizes = f"T.ceildiv({self.height}, {2 * self.rows})", {"M": self.total} if self.dynamic else {}
        return Program(
            ["M = T.symbolic('M')"] if self.dynamic else [], arguments, self.outputs,
            f"T.Kernel({blocks if self.dynamic else self.blocks}, is_npu=True) as (cid, vid)", declared,
            [Line('with T.Scope("V"):'), *self.lines], self.meaning, self.inputs, sizes,
        )  # fmt: skip

    def inputs(self, sizes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
        found = {}
        for name, shape, dtype in self.arguments:
            extents = tuple(sizes["M"] if n == "M" else int(n) for n in shape.strip("(,)").split(", "))
            low, high = (0, TABLE) if name[0] == "I" else (-NEAR, NEAR + 1)
            found[name] = rng.integers(low, high, extents).astype(dtype)
        return found

    def meaning(self, sizes: dict[str, int], arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """All rows at once: no row knows of another."""
        e: dict[str, Any] = {"arrays": {n: a.astype(np.float64) for n, a in arrays.items()}, "stored": {}}
        e["total"] = sizes.get("M", self.total)
        for step in self.steps:
            step(e)
        return e["stored"]


def product(draw: Callable[[Any], Any]) -> Program:
    """A product on the cube core, tile by tile of its inner size, with flags or barriers between its pipes."""
    pick = lambda *among: draw(st.sampled_from(among))  # noqa: E731
    m, n, k, trips, rows = pick(16, 32, 64), pick(16, 64), pick(16, 64, 128), pick(1, 2, 3), pick(1, 2)
    flags, turned = pick(True, False), pick(True, False)
    between = [[f'T.set_flag("{a}", "{b}", 0)', f'T.wait_flag("{a}", "{b}", 0)'] if flags else ["T.barrier_all()"]
               for a, b in (("mte2", "mte1"), ("mte1", "mte2"), ("m", "fix"))]  # fmt: skip
    b_at, b_shape = (f"0, t * {k}", (n, k)) if turned else (f"t * {k}, 0", (k, n))
    loop = [f"T.copy(A[cid * {m}, t * {k}], a)", f"T.copy(B[{b_at}], b)", *between[0],
            f"T.gemm_v0(a, b, c, transpose_B={turned}, init=(t == 0))", *between[1]]  # fmt: skip
    lines = [Line('with T.Scope("C"):'), Line(f"for t in T.serial({trips}):", 1), *(Line(text, 2) for text in loop)]
    lines += [Line(text, 1) for text in (*between[2], f"T.copy(c, C[cid * {m}, 0])")]
    shapes = {"A": (rows * m, trips * k), "B": (n, trips * k) if turned else (trips * k, n), "C": (rows * m, n)}
    dtypes = {"A": "float16", "B": "float16", "C": "float32"}

    def inputs(sizes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {x: rng.integers(-NEAR, NEAR + 1, shapes[x]).astype(dtypes[x]) for x in "AB"}

    def meaning(sizes: dict[str, int], arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        a, b = (arrays[x].astype(np.float64) for x in "AB")
        return {"C": a @ (b.T if turned else b)}

    buffers = [f'a = T.alloc_L1(({m}, {k}), "float16")', f'b = T.alloc_L1({b_shape}, "float16")']
    buffers.append(f'c = T.alloc_L0C(({m}, {n}), "float32")')
    arguments = [(x, str(shape), dtypes[x]) for x, shape in shapes.items()]
    return Program([], arguments, ["C"], f"T.Kernel({rows}, is_npu=True) as (cid, vid)", buffers, lines, meaning, inputs, {})


@st.composite
def expert_programs(draw: Callable[[Any], Any]) -> Program:
    return product(draw) if draw(st.integers(0, 4)) == 0 else Vectors(draw).program()
