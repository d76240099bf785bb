"""Random Developer kernels: rows of tensors in blocks, of a size that is known now or at each call, gathers among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.fuzz.written import MOST, Env, Line, Program

NEAR = 3
"""Inputs are whole numbers from -NEAR to NEAR."""
TABLE = 11
"""Rows of what is gathered from."""
PAIRS: dict[str, tuple[str, Callable[..., Any], Callable[[int, int], int]]] = {
    "add": ("{} + {}", np.add, lambda a, b: a + b), "sub": ("{} - {}", np.subtract, lambda a, b: a + b),
    "mul": ("{} * {}", np.multiply, lambda a, b: a * b), "max": ("T.max({}, {})", np.maximum, max),
    "min": ("T.min({}, {})", np.minimum, max),
}  # fmt: skip
SIGNS: dict[str, Callable[..., Any]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
Step = Callable[[Env], None]


class Maker:
    """Makes one program; `draw` picks from a strategy. `bounds` has the largest magnitude in each buffer that holds something."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.rows, self.cols = self.pick(16, 32, 48), self.pick(16, 64, 128)
        self.wide = self.cols - self.pick(0, 0, 0, 1, 3, self.cols // 2)
        self.dynamic = self.pick(True, False)
        self.size = self.pick(*((0,) if self.dynamic else ()), 1, 2, 3, 7, 13, 16, 17, 31, 48, 97)
        self.dtypes: dict[str, str] = {}
        self.bounds: dict[str, int] = {}
        self.arguments: list[tuple[str, str, str]] = []
        self.outputs: list[tuple[str, str, str]] = []
        self.shapes: dict[str, tuple[Any, ...]] = {}
        self.lines: list[Line] = []
        self.steps: list[Step] = []
        self.paired: set[str] = set()
        self.of_product: dict[str, tuple[int, int]] = {}
        self.depth = 0

    def pick(self, *among: Any) -> Any:
        return self.draw(st.sampled_from(among))

    def say(self, text: str, step: Step) -> None:
        self.lines.append(Line(text, self.depth))
        self.steps.append(step)

    def tile(self, bound: int, kind: str = "t") -> str:
        """A buffer to write to that may hold numbers up to the bound: "t", a tile, or "v", a number a row."""
        old = [n for n in self.dtypes if n[0] == kind and bound <= MOST[self.dtypes[n]]]
        if old and self.pick(True, False):
            return self.pick(*old)
        name = f"{kind}{len(self.dtypes)}"
        small = kind == "t" and bound <= MOST["float16"]
        self.dtypes[name] = self.pick("float32", "float16") if small else "float32"
        return name

    def live(self, kind: str = "t") -> list[str]:
        return [n for n in self.bounds if n[0] == kind]

    def tensor(self, shape: tuple[Any, ...], dtype: str, prefix: str = "X") -> str:
        name = f"{prefix}{len(self.arguments)}"
        self.arguments.append((name, "(" + "".join(f"{n}, " for n in shape) + ")", dtype))
        self.shapes[name] = shape
        return name

    # statements

    def load(self) -> None:
        dtype = self.pick("float32", "float16")
        x, t = self.tensor(("M", self.wide), dtype), self.tile(NEAR)
        self.say(f"T.copy({x}[b * {self.rows}, 0], {t})", lambda e: e.update({t: e["rows_of"](x)}))
        self.bounds[t] = NEAR

    def gather(self) -> None:
        i = self.tensor(("M",), "int32", "I")
        w, t, r = self.tensor((TABLE, self.wide), "float32", "W"), self.tile(NEAR), self.rows
        self.say(f"for i, j in T.Parallel({r}, {self.cols}):", lambda e: None)
        step = lambda e: e.update({t: e["arrays"][w][e["rows_of"](i).astype(int)]})  # noqa: E731
        self.say(f"    {t}[i, j] = {w}[{i}[b * {r} + i], j]", step)
        self.bounds[t] = NEAR

    def pair(self) -> None:
        a, b, word = self.pick(*self.live()), self.pick(*self.live()), self.pick(*PAIRS)
        text, does, grows = PAIRS[word]
        bound = grows(self.bounds[a], self.bounds[b])
        if bound > MOST["float32"]:
            return self.load()
        t, form = self.tile(bound), self.pick("word", "slice", "loop")
        if form == "word" and len({self.dtypes[n] for n in (a, b, t)}) == 1:
            line = f"T.tile.{word}({t}, {a}, {b})"
        elif form != "loop":
            line = f"{t}[:, :] = {text.format(a, b)}"
        else:
            self.say(f"for i, j in T.Parallel({self.rows}, {self.cols}):", lambda e: None)
            line = f"    {t}[i, j] = " + text.format(f"{a}[i, j]", f"{b}[i, j]")
        self.say(line, lambda e: e.update({t: does(e[a], e[b])}))
        self.paired |= {a} if form != "loop" and len({a, b, t}) == 3 else set()
        self.bounds[t] = bound
        return None

    def number(self) -> None:
        a, n = self.pick(*self.live()), self.pick(-2, -1, 2, 3)
        word = self.pick("add", "mul", "max")
        text, does, grows = PAIRS[word]
        bound = grows(self.bounds[a], abs(n))
        if bound > MOST["float32"]:
            return self.load()
        t = self.tile(bound)
        self.say(f"{t}[:, :] = {text.format(a, f'{n}.0')}", lambda e: e.update({t: does(e[a], n)}))
        self.bounds[t] = bound
        return None

    def single(self) -> None:
        a, (word, does) = self.pick(*self.live()), self.pick(("abs", np.abs), ("relu", lambda x: np.maximum(x, 0)))
        t = self.tile(self.bounds[a])
        self.say(f"{t}[:, :] = T.{word}({a})", lambda e: e.update({t: does(e[a])}))
        self.bounds[t] = self.bounds[a]

    def choose(self) -> None:
        a, b, sign = self.pick(*self.live()), self.pick(*self.live()), self.pick(*SIGNS)
        bound = max(self.bounds[a], self.bounds[b])
        t, at = self.tile(bound), self.pick(None, 5, self.cols // 2)
        self.say(f"for i, j in T.Parallel({self.rows}, {self.cols}):", lambda e: None)
        test = f"{a}[i, j] {sign} {b}[i, j]" if at is None else f"j {sign} {at}"

        def step(e: Env) -> None:
            holds = SIGNS[sign](e[a], e[b]) if at is None else np.broadcast_to(SIGNS[sign](np.arange(self.wide), at), e[a].shape)
            e[t] = np.where(holds, e[a], e[b])

        self.say(f"    {t}[i, j] = T.if_then_else({test}, {a}[i, j], {b}[i, j])", step)
        self.bounds[t] = bound

    def reduction(self) -> None:
        a, word = self.pick(*self.live()), self.pick("max", "min", "sum")
        bound = self.bounds[a] * (self.cols if word == "sum" else 1)
        if bound > MOST["float32"]:
            return self.single()
        v, does = self.tile(bound, "v"), {"max": np.max, "min": np.min, "sum": np.sum}[word]
        self.say(f"T.reduce_{word}({a}, {v}, dim=1)", lambda e: e.update({v: does(e[a], axis=1)}))
        self.bounds[v] = bound
        return None

    def beside(self) -> None:
        if not self.live("v"):
            return self.reduction()
        a, v, word = self.pick(*self.live()), self.pick(*self.live("v")), self.pick(*PAIRS)
        text, does, grows = PAIRS[word]
        bound = grows(self.bounds[a], self.bounds[v])
        if bound > MOST["float32"]:
            return self.load()
        t = self.tile(bound)
        self.say(f"{t}[:, :] = {text.format(a, f'{v}[:, None]')}", lambda e: e.update({t: does(e[a], e[v][:, None])}))
        self.bounds[t] = bound
        return None

    def sums(self) -> None:
        """A loop over tiles of columns that adds what it loads, or the largest of it."""
        if self.wide < self.cols:
            return self.number()
        trips, word = self.pick(1, 2, 3, 5), self.pick("add", "max")
        x = self.tensor(("M", trips * self.cols), "float32")
        text, does, grows = PAIRS[word]
        bound = trips * NEAR + NEAR
        s, t = self.tile(bound), f"t{len(self.dtypes)}"
        self.dtypes[t] = "float32"
        self.say(f"T.fill({s}, 1.0)", lambda e: e.update({s: np.ones_like(e["rows_of"](x)[:, : self.cols])}))
        loop = self.pick("T.serial({})", "T.Pipelined({})", "T.Pipelined({}, num_stages=2)", "range({})").format(trips)
        self.say(f"for k in {loop}:", lambda e: None)
        self.say(f"    T.copy({x}[b * {self.rows}, k * {self.cols}], {t})", lambda e: None)

        def step(e: Env) -> None:
            for k in range(trips):
                e[s] = does(e[s], e["rows_of"](x)[:, k * self.cols : (k + 1) * self.cols])

        self.say(f"    {s}[:, :] = {text.format(s, t)}", step)
        self.bounds[s] = bound
        return None

    def first_trip(self) -> None:
        """A loop that begins with a value in its first trip, and goes on from there."""
        a, trips = self.pick(*self.live()), self.pick(1, 2, 4)
        bound = self.bounds[a] * (trips + 1)
        if bound > MOST["float32"]:
            return self.load()
        s = f"t{len(self.dtypes)}"
        self.dtypes[s] = "float32"

        def step(e: Env) -> None:
            e[s] = e[a] * (trips + 1)

        self.say(f"for k in T.serial({trips}):", lambda e: None)
        self.say("    if k == 0:", lambda e: None)
        self.say(f"        {s}[:, :] = {a} + 0.0", lambda e: None)
        self.say(f"    for i, j in T.Parallel({self.rows}, {self.cols}):", lambda e: None)
        self.say(f"        {s}[i, j] = {s}[i, j] + {a}[i, j]", step)
        self.bounds[s] = bound
        return None

    def row_loop(self) -> None:
        """Rows one by one, each with its own number."""
        if not self.live("v"):
            return self.reduction()
        a, v = self.pick(*self.live()), self.pick(*self.live("v"))
        bound = self.bounds[a] + self.bounds[v]
        if bound > MOST["float32"]:
            return self.load()
        t = f"t{len(self.dtypes)}"
        self.dtypes[t] = "float32"
        self.say(f"for i in {self.pick('range', 'T.serial')}({self.rows}):", lambda e: None)
        self.say(f"    {t}[i, :] = {a}[i, :] - {v}[i]", lambda e: e.update({t: e[a] - e[v][:, None]}))
        self.bounds[t] = bound
        return None

    def product(self) -> None:
        """A tile times weights, stored at once: its columns are others."""
        a, n = self.pick(*self.live()), self.pick(16, 32, 64)
        if self.wide < self.cols or self.bounds[a] > MOST["float16"] or self.bounds[a] * NEAR * self.cols > MOST["float32"]:
            return self.load()
        w, y, k = self.tensor((self.cols, n), "float16", "W"), f"Y{len(self.outputs)}", len(self.dtypes)
        self.dtypes |= {f"a{k}": "float16", f"w{k}": "float16", f"c{k}": "float32"}
        self.of_product |= {f"a{k}": (self.rows, self.cols), f"w{k}": (self.cols, n), f"c{k}": (self.rows, n)}
        self.outputs.append((y, f"(M, {n})", "float32"))
        self.say(f"T.copy({a}, a{k})", lambda e: None)
        self.say(f"T.copy({w}, w{k})", lambda e: None)
        self.say(f"T.gemm(a{k}, w{k}, c{k}, init=True)", lambda e: None)
        self.say(f"T.copy(c{k}, {y}[b * {self.rows}, 0])", lambda e: e["stored"][y].append(e[a] @ e["arrays"][w]))
        return None

    def store(self, name: str) -> None:
        y, vector = f"Y{len(self.outputs)}", name[0] == "v"
        shape, at = ("(M,)", f"b * {self.rows}") if vector else (f"(M, {self.wide})", f"b * {self.rows}, 0")
        self.outputs.append((y, shape, "float32"))
        self.say(f"T.copy({name}, {y}[{at}])", lambda e: e["stored"][y].append(np.asarray(e[name], np.float64)))

    # the whole

    def program(self) -> Program:
        self.load()
        kinds = [self.load, self.gather, self.pair, self.pair, self.number, self.single, self.choose, self.reduction,
                 self.beside, self.sums, self.first_trip, self.row_loop, self.product]  # fmt: skip
        for _ in range(self.draw(st.integers(1, 7))):
            self.pick(*kinds)()
        last = list(self.bounds)[-1]
        self.store(last)
        for name in self.bounds:
            if name != last and self.pick(True, False, False):
                self.store(name)
        m = "T.symbolic('M')" if self.dynamic else str(self.size)
        buffers = [self.declared(name) for name in self.dtypes]
        return Program(
            [f"M = {m}"], [*self.arguments, *self.outputs], [y for y, _, _ in self.outputs],
            f"T.Kernel(T.ceildiv(M, {self.rows})) as b", buffers, self.lines, self.meaning, self.inputs, {"M": self.size},
            self.paired,
        )  # fmt: skip

    def width_of(self, y: str) -> int:
        return int(next(shape for name, shape, _ in self.outputs if name == y).split(", ")[1][:-1])

    def declared(self, name: str) -> str:
        shape = f"({self.rows},)" if name[0] == "v" else str(self.of_product.get(name, (self.rows, self.cols)))
        return f'{name} = T.{self.pick("alloc_shared", "alloc_fragment")}({shape}, "{self.dtypes[name]}")'

    def inputs(self, sizes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
        found = {}
        for name, _, dtype in self.arguments:
            shape = tuple(sizes.get(n, n) for n in self.shapes[name])
            low, high = (0, TABLE) if name[0] == "I" else (-NEAR, NEAR + 1)
            found[name] = rng.integers(low, high, shape).astype(dtype)
        return found

    def meaning(self, sizes: dict[str, int], arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Block by block, statement by statement, on the rows that there are."""
        stored: dict[str, list[np.ndarray]] = {y: [] for y, _, _ in self.outputs}
        wide = {n: a.astype(np.float64) for n, a in arrays.items()}
        for first in range(0, sizes["M"], self.rows):
            e: Env = {"arrays": wide, "stored": stored, "rows_of": lambda n, at=first: wide[n][at : at + self.rows]}
            for step in self.steps:
                step(e)
        empty = {y: np.zeros((0,) if shape == "(M,)" else (0, self.width_of(y))) for y, shape, _ in self.outputs}
        return {y: np.concatenate(parts) if parts else empty[y] for y, parts in stored.items()}


@st.composite
def developer_programs(draw: Callable[[Any], Any]) -> Program:
    return Maker(draw).program()
