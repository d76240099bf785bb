"""Random Developer kernels that are run as the search schedules them, and in the order of their statements.

Blocks go over tiles of columns of tensors that end within a tile. Neither run is the other's meaning: each reads the program by
itself, with its own idea of what of a tile counts that a tensor's end cuts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np

from tests.fuzz import in_numpy

BM, BN = 16, 32
IN_ORDER = 'T.printf("")'
"""A statement for which a kernel is done in the order of its statements."""
TILES, ROWS, COLS = ("x", "y", "z"), ("u", "v"), ("r", "s")
SHAPES = dict.fromkeys(TILES, (BM, BN)) | dict.fromkeys(ROWS, (BM,)) | dict.fromkeys(COLS, (BN,))
EVERY = f"for i, k in T.Parallel({BM}, {BN}): "


Typed = dict[str, tuple[tuple[object, ...], str]]
"""Names with shapes and element types."""


@dataclass(frozen=True)
class Program:
    """A kernel of `A`, `B` [M, N], the operands `H` [M, K] and `W` [N, K] of a product, rows `I` [M], and the outputs `O` [M, N]
    and `V` [M]. The lines are the body's."""

    sizes: tuple[int, int, int]
    lines: tuple[str, ...]

    def outputs(self, m: object, n: object) -> Typed:
        return {"O": ((m, n), "float32"), "V": ((m,), "float32")}

    def buffers(self) -> Typed:
        k = self.sizes[2]
        floats: Typed = {b: (shape, "float32") for b, shape in SHAPES.items()}
        return floats | {"h": ((BM, k), "float16"), "w": ((BN, k), "float16")}

    def text(self, before: str = "pass", *, dyn: bool = False) -> str:
        """The function `f`, with a statement before the first one; `dyn`: M and N are known when it is launched."""
        (m, n, k) = ("M", "N", self.sizes[2]) if dyn else self.sizes
        tensors: Typed = dict.fromkeys("AB", ((m, n), "float32"))
        tensors |= {"H": ((m, k), "float16"), "W": ((n, k), "float16"), "I": ((m,), "int32")} | self.outputs(m, n)
        blocks = f"T.ceildiv(M, {BM})" if dyn else -(-self.sizes[0] // BM)
        return "\n".join([
            *(["M, N = T.dynamic('M'), T.dynamic('N')"] if dyn else []),
            "@T.prim_func", f"def f({', '.join(f'{t}: T.Tensor({of(s)}, {dtype!r})' for t, (s, dtype) in tensors.items())}):",
            f"    with T.Kernel({blocks}, threads=2, is_npu=True) as cid:",
            *(f"        {b} = T.alloc_shared({shape}, {dtype!r})" for b, (shape, dtype) in self.buffers().items()),
            f'        c = T.alloc_fragment(({BM}, {BN}), "float32")',
            *(f"        {line}" for line in (before, *self.lines)),
        ]) + "\n"  # fmt: skip

    def meaning(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """What it stores by NumPy, NaN where that does not exist."""
        return in_numpy.run(self.text(), inputs, self.outputs(*self.sizes[:2]).values())

    def inputs(self, seed: int) -> list[np.ndarray]:
        """One tensor has negative numbers alone, so that zeros where it ends would be its largest ones; a product has, too."""
        (m, n, k), rng = self.sizes, np.random.default_rng(seed)
        quarters = lambda low, high, *shape: rng.integers(4 * low, 4 * high, shape, endpoint=True).astype(np.float32) / 4  # noqa: E731
        a, b = quarters(-2, -1, m, n), quarters(-2, 1, m, n)
        h, w = quarters(1, 2, m, k).astype(np.float16), -quarters(1, 2, n, k).astype(np.float16)
        return [a, b, h, w, rng.integers(0, m, m).astype(np.int32)]


def of(shape: tuple[object, ...]) -> str:
    """A shape as a kernel says it."""
    return "(" + "".join(f"{n}, " for n in shape) + ")"


class Maker:
    """`held` are the buffers that hold something at this place, `at` the first column of the tile."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.m, self.n, self.k = self.pick(16, 21, 40), self.pick(32, 40, 75), self.pick(32, 48)
        self.held: set[str] = set()
        self.at = "0"

    def pick(self, *among):  # type: ignore[no-untyped-def]
        return self.rng.choice(among)

    def one(self, kinds: tuple[str, ...]) -> str | None:
        """A buffer of these that holds something."""
        held = [b for b in kinds if b in self.held]
        return self.pick(*held) if held else None

    def into(self, kinds: tuple[str, ...]) -> str:
        """A buffer that holds something from now on."""
        name = self.pick(*kinds)
        self.held.add(name)
        return name

    # statements; None where nothing holds what they need

    def load(self) -> str:
        tensor, pad = self.pick(*"AB"), self.pick("", "", "", ", pad_value=1.5")
        return f"T.copy({tensor}[cid * {BM}, {self.at}], {self.into(TILES)}{pad})"

    def gather(self) -> str | None:
        """Rows that are picked, where there is a row for each."""
        if self.m % BM:
            return None
        return f"for i in T.serial({BM}): T.copy({self.pick(*'AB')}[I[cid * {BM} + i], {self.at}], {self.into(TILES)}[i, :])"

    def pair(self) -> str | None:
        if (a := self.one(TILES)) is None:
            return None
        b = self.pick(self.one(TILES), 0.75, -1.25)
        return f"T.tile.{self.pick('add', 'mul', 'max', 'sub', 'min')}({self.into(TILES)}, {a}, {b})"

    def single(self) -> str | None:
        if (a := self.one(TILES)) is None:
            return None
        o = self.into(TILES)
        return self.pick(f"T.tile.abs({o}, {a})", f"T.tile.relu({o}, {a})", f"T.copy({a}, {o})")

    def reduction(self) -> str | None:
        """Along rows or columns, now and then onto what is there."""
        if (a := self.one(TILES)) is None:
            return None
        dim, kinds = self.pick((1, ROWS), (0, COLS))
        v = self.pick(*kinds)
        onto = self.pick("", ", clear=False") if v in self.held else ""
        self.held.add(v)
        return f"T.reduce_{self.pick('sum', 'max', 'min')}({a}, {v}, dim={dim}{onto})"

    def beside(self) -> str | None:
        """A number for each row, or for each column, with all of it."""
        a, b, at = self.one(TILES), self.one(TILES), self.pick("i", "k")
        if a is None or (v := self.one(ROWS if at == "i" else COLS)) is None:
            return None
        term = self.pick(f"{a}[i, k] - {v}[{at}]", f"{a}[i, k] * {v}[{at}] + {b}[i, k]", f"T.max({a}[i, k], {v}[{at}])")
        return EVERY + f"{self.into(TILES)}[i, k] = {term}"

    def rows(self) -> str | None:
        if (v := self.one(ROWS)) is None:
            return None
        return f"for i in T.Parallel({BM}): {self.into(ROWS)}[i] = T.max({v}[i], -3.0) * 0.5"

    def fill(self) -> str:
        return f"T.fill({self.into(self.pick(TILES, ROWS, COLS))}, {self.pick(0.0, 1.0, -2.0)})"

    def choice(self) -> str | None:
        """By a value, or by a position in the tile or in the tensors."""
        a, b = self.one(TILES), self.one(TILES)
        if a is None:
            return None
        above = f"{self.at} + k <= cid * {BM} + i"
        test = self.pick(f"{a}[i, k] > -1.0", above, "k < 7", f"{self.at} + k < {self.n - 3}", "i == k")
        return EVERY + f"{self.into(TILES)}[i, k] = T.if_then_else({test}, {a}[i, k], {self.pick(f'{b}[i, k]', '-1.0')})"

    def part(self) -> str | None:
        """Some rows or columns of a tile that holds something, from elsewhere in another one."""
        a, o = self.one(TILES), self.one(TILES)
        if a is None or a == o:
            return None
        half_rows, half_cols = f"for i, k in T.Parallel({BM // 2}, {BN}): ", f"for i, k in T.Parallel({BM}, {BN // 2}): "
        return self.pick(
            half_rows + f"{o}[i, k] = {a}[i + {BM // 2}, k]", half_cols + f"{o}[i, k + {BN // 2}] = {a}[i, k]",
            f"T.copy({a}[0:{BM // 2}, 0:{BN}], {o}[{BM // 2}:{BM}, 0:{BN}])",
        )  # fmt: skip

    def elsewhere(self) -> str | None:
        """Elements from other places of a tile: turned about, of one row or column, of the diagonal."""
        if (a := self.one(TILES)) is None:
            return None
        if self.pick(True, False):
            of_row, of_column = f"i, {self.pick('i', '3', 'i + 5')}", f"{self.pick('2', 'i // 2')}, i"
            kinds, each, at = self.pick((ROWS, BM, of_row), (COLS, BN, of_column))
            return f"for i in T.Parallel({each}): {self.into(kinds)}[i] = {a}[{at}]"
        turned = f"{BM - 1} - i, k" if self.m % BM == 0 else "0, k"  # rows beyond the end hold nothing
        at = self.pick(f"i, {BN - 1} - k", turned, "i, 0", "0, k", "i, k // 2", "i, i")
        return EVERY + f"{self.into(tuple(t for t in TILES if t != a))}[i, k] = {a}[{at}]"

    def scan(self) -> str | None:
        a = self.one(TILES)
        return a and f"T.cumsum({a}, {self.into(tuple(t for t in TILES if t != a))}, dim={self.pick(0, 1)})"

    def product(self) -> str:
        onto = self.pick("init=True", "init=True", "init=(j == 0)" if self.at != "0" else "init=True")
        return "\n".join([
            f"T.copy(W[{self.at}, 0], w)", f"T.gemm_v0(h, w, c, transpose_B=True, {onto})", f"T.copy(c, {self.into(TILES)})",
        ])  # fmt: skip

    def under(self) -> str | None:
        """A statement in some blocks or trips alone; what it writes held something before."""
        before = set(self.held)
        made = self.statement()
        if "\n" in made or self.held != before:
            self.held = before
            return None
        return f"if {self.pick('cid == 0', *(() if self.at == '0' else ('j > 0', 'j == 0')))}:\n    {made}"

    def kinds(self) -> list[Callable[[], str | None]]:
        return [
            self.load, self.gather, self.pair, self.pair, self.single, self.reduction, self.reduction, self.beside, self.beside,
            self.rows, self.fill, self.choice, self.part, self.elsewhere, self.scan,
        ]  # fmt: skip

    def statement(self) -> str:
        while (made := self.pick(*self.kinds())()) is None:
            pass
        return made

    # the whole

    def loop(self, multiplies: bool) -> list[str]:
        self.at = f"j * {BN}"
        made = [self.load(), *([self.product()] if multiplies else [])]
        ways = (self.statement, self.statement, self.statement, self.under)
        made += [self.pick(*ways)() or self.load() for _ in range(self.pick(2, 3, 4, 5))]
        made.append(f"T.copy({self.one(TILES)}, O[cid * {BM}, {self.at}])")
        self.at = "0"
        how = self.pick("T.serial({})", "T.Pipelined({}, num_stages=2)", "range({})").format(-(-self.n // BN))
        return [f"for j in {how}:", *("    " + line for text in made for line in text.split("\n"))]

    def program(self) -> Program:
        multiplies = self.rng.random() < 0.3
        lines = [self.statement() for _ in range(self.pick(1, 2, 3))]
        lines += [f"T.copy(H[cid * {BM}, 0], h)"] if multiplies else []
        lines += self.loop(multiplies)
        if self.n % BN and self.rng.random() < 0.8:  # how much of a tile a loop leaves differs from trip to trip
            self.held -= set(TILES)
            lines.append(self.load())
        lines += [self.statement() for _ in range(self.pick(0, 1, 2))]
        if self.one(ROWS) is None:
            lines.append(f"T.reduce_sum({self.one(TILES)}, u, dim=1)")
            self.held.add("u")
        return Program((self.m, self.n, self.k), (*lines, f"T.copy({self.one(ROWS)}, V[cid * {BM}])"))


def drawn(seed: int) -> Program:
    return Maker(seed).program()
