"""Random kernels as `.tile` text: legal by construction, odd in every way that the language allows.

A kernel has named dimensions, each with a tile, a size and a place on the grid, in a loop or whole in the tile; buffers and
tensors are made of dimensions, so that everything that meets has the same valid extents. Values stay small: what could
overflow or lose all digits (a quotient, a root, an exponential) is guarded where it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

TILES = (16, 16, 32, 32, 48, 64, 24, 40, 5, 17, 8, 1, 96)
NUMBERS = ("0.5", "2.0", "-1.5", "0.0", "1.0", "0.125")
SAFE = ("{}", "abs({})", "relu({})", "tanh({})", "sigmoid({})", "-{}", "exp(min({}, 1.5))", "sqrt(abs({}))")
GUARDED = ("reciprocal(abs({}) + 0.5)", "rsqrt(abs({}) + 0.5)", "ln(abs({}) + 0.5)", "{} / 4", "1 / (abs({}) + 1.0)", "1 - {}")
PAIRS = ("{} + {}", "{} - {}", "{} * {}", "max({}, {})", "min({}, {})", "{} / (abs({}) + 0.5)")
CHOICES = {"max({}, {})": "select({0} >= {1}, {0}, {1})", "min({}, {})": "select({0} < {1}, {0}, {1})"}
"""How every fourth kernel writes them: choices without a jump, as rounding may turn a comparison of close values."""
REDUCTIONS = ("max", "min", "sum")
NAME = re.compile(r"\w+")


@dataclass(frozen=True)
class Dim:
    """A dimension: elements in a tile, elements in a tensor, and where the tile starts, as text."""

    name: str
    tile: int
    size: int
    start: str


@dataclass(frozen=True)
class Buffer:
    name: str
    dtype: str
    dims: tuple[Dim, ...]


@dataclass(frozen=True)
class Leaves:
    """What an expression is made of: operands of its own shape, and operands that are repeated to it."""

    full: list[str]
    repeated: list[str]


class Maker:
    """Makes one kernel from a seed; `text()` gives it."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.pairs = tuple(CHOICES.get(p, p) if seed % 4 == 0 else p for p in PAIRS)
        self.low = self.rng.choice(["f16", "f16", "bf16"])
        self.inputs: dict[str, str] = {}
        self.outputs: dict[str, str] = {}
        self.windows: list[tuple[str, tuple[Dim, ...], str]] = []
        self.stored: list[tuple[tuple[Dim, ...], str]] = []
        self.buffers: list[Buffer] = []
        self.live: list[Buffer] = []
        self.lines: list[str] = []
        self.count = 0
        self.loops: list[tuple[str, int]] = []
        self.grid: list[tuple[str, int]] = []
        self.dims = [self.dimension("mn"[n], n) for n in range(2)] + [self.dimension("d", 2)]
        if self.rng.random() < 0.2:
            self.grid.append(("h", self.rng.randint(1, 3)))
        self.budget = self.rng.randint(3, 9)

    # parts

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def say(self, line: str) -> None:
        self.lines.append("  " * (1 + len(self.loops)) + line)

    def dimension(self, name: str, n: int) -> Dim:
        """One on the grid, or whole in a tile, which may be larger than the tensor."""
        tile = self.rng.choice(TILES)
        if n == 2 or self.chance(0.4):
            return Dim(name, tile, tile if self.chance(0.6) else self.rng.randint(1, tile), "0")
        size = self.rng.choice([tile, 2 * tile, tile + self.rng.randint(1, tile), self.rng.randint(1, tile)])
        self.grid.append((f"b{name}", -(-size // tile)))
        return Dim(name, tile, size, f"b{name}*{tile}")

    def dtype(self) -> str:
        return self.rng.choice([self.low, "f32", "f32"])

    def buffer(self, dims: tuple[Dim, ...], dtype: str | None = None) -> Buffer:
        """A buffer to write to: a new one, or one that holds something already."""
        old = [b for b in self.live if b.dims == dims and dtype in (None, b.dtype)]
        if old and self.chance(0.4):
            return self.rng.choice(old)
        made = Buffer(self.fresh("t" if len(dims) == 2 else "v"), dtype or self.dtype(), dims)
        self.buffers.append(made)
        return made

    def wrote(self, b: Buffer) -> None:
        self.live = [other for other in self.live if other != b] + [b]

    def some_dims(self, rank: int) -> tuple[Dim, ...]:
        return tuple(self.rng.sample(self.dims, rank))

    # tensors

    def place(self, dims: tuple[Dim, ...], lead: list[tuple[str, int]]) -> tuple[str, str]:
        """The shape of a tensor and the window in it."""
        shape = ", ".join([str(n) for _, n in lead] + [str(d.size) for d in dims])
        return shape, ", ".join([v for v, _ in lead] + [d.start for d in dims])

    def window(self, dims: tuple[Dim, ...]) -> str:
        """A window of an input tensor, as text: a tensor that is there, or a new one of one to four dimensions."""
        known = [w for _, have, w in self.windows if have == dims]
        if known and (self.chance(0.5) or len(self.inputs) >= 3):
            return self.rng.choice(known)
        if self.stored and self.chance(0.25):
            back = [w for have, w in self.stored if have == dims]
            if back:
                return self.rng.choice(back)
        lead = [self.rng.choice([*self.grid, *self.loops, ("0", 2)]) for _ in range(self.rng.choice([0, 0, 0, 1, 2]))]
        shape, at = self.place(dims, lead)
        name = self.fresh("X")
        self.inputs[name] = f"{self.dtype()}[{shape}]"
        self.windows.append((name, dims, f"{name}[{at}]"))
        return f"{name}[{at}]"

    def load(self) -> None:
        b = self.buffer(self.some_dims(self.rng.choice([2, 2, 2, 1])))
        self.say(f"{b.name} = {self.window(b.dims)}")
        self.wrote(b)

    def store(self) -> None:
        """A tile or an expression goes to an output whose shape has all loops and grid dimensions around it."""
        b = self.rng.choice(self.live[-3:])
        used = NAME.findall(" ".join(d.start for d in b.dims))
        lead = [(v, n) for v, n in [*self.grid, *self.loops] if v not in used]
        self.rng.shuffle(lead)
        shape, at = self.place(b.dims, lead)
        name = self.fresh("Y")
        self.outputs[name] = f"{self.dtype()}[{shape}]"
        value = b.name if self.chance(0.6) else f"f32({self.tile_expression(b.dims, 1)})"
        self.say(f"{name}[{at}] = {value}")
        self.stored.append((b.dims, f"{name}[{at}]"))
        if self.chance(0.15):
            self.say(f"{name}[{at}] = {b.name}")

    # expressions

    def leaves(self, dims: tuple[Dim, ...]) -> Leaves:
        full = [b.name for b in self.live if b.dims == dims]
        if len(dims) == 1:
            return Leaves(full, [])
        rows = [f"{b.name}[:, None]" for b in self.live if b.dims == dims[:1]]
        cols = [f"{b.name}[None, :]" for b in self.live if b.dims == dims[1:]]
        return Leaves(full, rows + cols)

    def expression(self, leaves: Leaves, depth: int) -> str:
        """A number does not stand alone, and a repeated operand stands beside a full one where there is one."""
        if depth == 0:
            return self.rng.choice(leaves.full or leaves.repeated)
        x = self.expression(leaves, depth - 1)
        kind = self.rng.random()
        if kind < 0.35:
            return "(" + self.rng.choice(SAFE + GUARDED).format(x) + ")"
        if kind < 0.42:
            return f"{self.dtype()}({x})"
        y = self.rng.choice(NUMBERS) if self.chance(0.25) else self.expression(leaves, self.rng.randrange(depth))
        if leaves.repeated and self.chance(0.4):
            y = self.rng.choice(leaves.repeated)
        x, y = (x, y) if self.chance(0.5) else (y, x)
        return "(" + self.rng.choice(self.pairs).format(*((x, y) if y not in NUMBERS else (y, x))) + ")"

    def tile_expression(self, dims: tuple[Dim, ...], depth: int) -> str:
        leaves = self.leaves(dims)
        if self.chance(0.15) and leaves.full:
            leaves.full.append(self.sliced(dims))
        return self.expression(leaves, depth)

    def sliced(self, dims: tuple[Dim, ...]) -> str:
        """A window that tells its own extents."""
        name, at = self.window(dims)[:-1].split("[")
        starts = at.split(", ")
        starts[-len(dims) :] = [f"{d.start}:{d.start} + {d.tile}" for d in dims]
        return f"{name}[{', '.join(starts)}]"

    def arithmetic(self) -> None:
        dims = self.rng.choice(self.live).dims
        value = self.tile_expression(dims, self.rng.randint(1, 3))
        b = self.buffer(dims)
        self.say(f"{b.name} = {value}")
        self.wrote(b)

    def spread(self) -> None:
        """A tile out of vectors alone."""
        dims = self.some_dims(2)
        leaves = self.leaves(dims)
        if not leaves.repeated:
            self.arithmetic()
            return
        b = self.buffer(dims)
        self.say(f"{b.name} = {self.expression(Leaves([], leaves.repeated), self.rng.randint(0, 1))}")
        self.wrote(b)

    def reduction(self) -> None:
        tiles = [b for b in self.live if len(b.dims) == 2]
        if not tiles:
            self.load()
            return
        x = self.rng.choice(tiles)
        axis = self.rng.choice([0, 1])
        op = self.rng.choice(REDUCTIONS)
        target = self.buffer((x.dims[1 - axis],))
        value = f"{('col', 'row')[axis]}{op}({x.name if self.chance(0.7) else self.tile_expression(x.dims, 1)})"
        value = f"{value} / {x.dims[axis].tile}" if op == "sum" else value
        if target in self.live and self.chance(0.4):
            value = self.rng.choice(["max({}, {})", "{} + {}", "{} - {}"]).format(target.name, value)
        self.say(f"{target.name} = {value}")
        self.wrote(target)

    # products

    def operand(self, dims: tuple[Dim, ...], dtype: str) -> str:
        """A tile of this type, of the two dimensions in either order: its name, or an expression of its shape."""
        flip = self.chance(0.5)
        dims = dims[::-1] if flip else dims
        if self.leaves(dims).full and self.chance(0.15):
            return f"{dtype}({self.tile_expression(dims, 1)})" + ".T" * flip
        old = [b for b in self.live if b.dims == dims and b.dtype == dtype]
        if old and self.chance(0.7):
            return self.rng.choice(old).name + ".T" * flip
        b = Buffer(self.fresh("t"), dtype, dims)
        self.buffers.append(b)
        made = self.chance(0.4) and self.leaves(dims).full
        self.say(f"{b.name} = {self.tile_expression(dims, 1) if made else self.window(dims)}")
        self.wrote(b)
        return b.name + ".T" * flip

    def product(self) -> None:
        m, k, n = self.rng.sample(self.dims, 3) if self.chance(0.85) else (self.rng.choice(self.dims) for _ in range(3))
        if m == n or k in (m, n):
            m, k, n = self.rng.sample(self.dims, 3)
        dtype = self.low if self.chance(0.85) else "f32"
        a, b = self.operand((m, k), dtype), self.operand((k, n), dtype)
        value = f"{a} @ {b}"
        target = self.buffer((m, n), self.rng.choice(["f32", "f32", "f32", None]))
        style = self.rng.random()
        if target in self.live and style < 0.5:
            self.say(f"{target.name} += {value}")
        elif style < 0.6:
            self.say(f"{target.name} = relu({value})")
        elif style < 0.75:
            around = self.leaves((m, n))
            other = self.rng.choice([*around.full, *around.repeated, "0.25"])
            form = self.rng.choice(["({}) * {}", "({}) + {}", "{1} - {0}", "max({}, {})"])
            self.say(f"{target.name} = {form.format(value, other)}")
        else:
            self.say(f"{target.name} = {value}")
        self.wrote(target)

    # loops over elements and rows

    def parallel(self) -> None:
        dims = self.rng.choice(self.live).dims
        i, j = self.fresh("i"), self.fresh("j")
        at = f"[{i}, {j}]" if len(dims) == 2 else f"[{i}]"
        full = [b.name + at for b in self.live if b.dims == dims]
        rows = [f"{b.name}[{i}]" for b in self.live if len(dims) == 2 and b.dims == dims[:1]]
        cols = [f"{b.name}[{j}]" for b in self.live if len(dims) == 2 and b.dims == dims[1:]]
        head = f"({i}, {j}) in ({dims[0].tile}, {dims[1].tile})" if len(dims) == 2 else f"{i} in {dims[0].tile}"
        body = []
        for _ in range(self.rng.choice([1, 1, 2])):
            b = self.buffer(dims)
            body.append(f"{b.name}{at} = {self.expression(Leaves(full, rows + cols), self.rng.randint(1, 2))}")
            self.wrote(b)
            full.append(b.name + at)
        self.say(f"parallel {head} {{ {'; '.join(body)} }}".replace(";", "\n" + "  " * (2 + len(self.loops))))

    def rows(self) -> None:
        tiles = [b for b in self.live if len(b.dims) == 2]
        if not tiles:
            self.load()
            return
        dims = self.rng.choice(tiles).dims
        i = self.fresh("i")
        self.say(f"for {i} in serial({dims[0].tile}) {{")
        for _ in range(self.rng.randint(1, 4)):
            self.row_statement(dims, i)
        self.say("}")

    def row_statement(self, dims: tuple[Dim, ...], i: str) -> None:
        tiles = [f"{b.name}[{i}, :]" for b in self.live if b.dims == dims]
        ones = [f"{b.name}[{i}]" for b in self.live if b.dims == dims[:1]]
        kind = self.rng.random()
        if kind < 0.4:
            b = self.buffer(dims[:1])
            value = f"{self.rng.choice(REDUCTIONS[:2])}({self.rng.choice(tiles)})"
            if b in self.live and self.chance(0.6):
                value = f"max({b.name}[{i}], {value})"
            target = f"{b.name}[{i}]"
        elif kind < 0.6 and ones:
            b = self.buffer(dims[:1])
            target, value = f"{b.name}[{i}]", self.expression(Leaves(ones, []), 2)
        else:
            b = self.buffer(dims)
            target, value = f"{b.name}[{i}, :]", self.expression(Leaves(tiles, ones), 2)
        self.say(f"  {target} = {value}")
        self.wrote(b)

    # loops

    @contextmanager
    def looped(self, variable: str, trips: int) -> Iterator[None]:
        self.loops.append((variable, trips))
        yield
        self.loops.pop()

    def loop(self) -> None:
        """A loop over tiles of a dimension of its own, or over nothing in particular."""
        if len(self.loops) == 2:
            self.arithmetic()
            return
        trips, var = self.rng.choice([1, 2, 2, 3, 3, 4, 6]), self.fresh("k")
        kind = self.rng.choice(["serial", "pipelined", "pipelined"])
        stages = f", stages={self.rng.randint(1, 3)}" if kind == "pipelined" and self.chance(0.3) else ""
        self.say(f"for {var} in {kind}({trips}{stages}) {{")
        outside_dims, outside = list(self.dims), set(self.live)
        if self.chance(0.75):
            tile = self.rng.choice(TILES)
            cut = self.rng.randrange(tile) if self.chance(0.5) else 0
            self.dims.append(Dim(var, tile, trips * tile - cut, f"{var}*{tile}"))
        with self.looped(var, trips):
            for _ in range(self.rng.randint(1, 4)):
                self.statement()
            if self.chance(0.6):
                self.update(outside)
        self.say("}")
        gone = [d for d in self.dims if d not in outside_dims]
        self.dims = outside_dims
        self.live = [b for b in self.live if not set(b.dims) & set(gone)]
        self.windows = [w for w in self.windows if not set(w[1]) & set(gone) and var not in NAME.findall(w[2])]
        self.stored = [w for w in self.stored if not set(w[0]) & set(gone) and var not in NAME.findall(w[1])]

    def update(self, outside: set[Buffer]) -> None:
        """A state of the loop changes: a step of a recurrence, a swap of two states, or a loop that shifts them on."""
        states = sorted((b for b in outside if b in self.live), key=lambda b: b.name)
        if not states:
            return
        x = self.rng.choice(states)
        pair = [b for b in states if b.dims == x.dims and b != x]
        if pair and self.chance(0.5):
            y, t = self.rng.choice(pair), Buffer(self.fresh("t"), x.dtype, x.dims)
            self.buffers.append(t)
            mixed = f"{x.name} + {y.name} / 2" if self.chance(0.5) else y.name
            for line in (f"{t.name} = {x.name}", f"{x.name} = {mixed}", f"{y.name} = {t.name}"):
                self.say(line)
        else:
            self.say(f"{x.name} = {x.name} / 2 + {self.tile_expression(x.dims, 1)}")

    def first_trip(self) -> None:
        """What one trip does and the others do not, or a choice by the trip."""
        if not self.loops or not self.live:
            self.arithmetic()
            return
        b, var = self.rng.choice(self.live), self.loops[-1][0]
        x, y = (self.tile_expression(b.dims, 1) for _ in range(2))
        if self.chance(0.5):
            self.say(f"{b.name} = select({var} == 0, {x}, {y})")
        else:
            self.say(f"if {var} == 0 {{ {b.name} = {x} }} else {{ {b.name} = {y} }}")

    # the whole

    def statement(self) -> None:
        kinds: list[tuple[Callable[[], None], int]] = [
            (self.load, 3), (self.arithmetic, 5), (self.spread, 1), (self.reduction, 3), (self.product, 4), (self.parallel, 2),
            (self.rows, 2), (self.loop, 3), (self.store, 2), (self.first_trip, 1 if self.loops else 0),
        ]  # fmt: skip
        if not self.live:
            self.load()
        self.rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0]()

    def text(self) -> str:
        self.load()
        for _ in range(self.budget):
            self.statement()
        while not self.outputs or self.chance(0.5) and len(self.outputs) < 3:
            self.store()
        grid = f"grid ({', '.join(v for v, _ in self.grid)}) = ({', '.join(str(n) for _, n in self.grid)})"
        grid = grid if len(self.grid) > 1 else f"grid {self.grid[0][0]} = {self.grid[0][1]}" if self.grid else "grid one = 1"
        scopes = [f"  {self.rng.choice(['shared', 'fragment'])} {b.name}: {b.dtype}{_shape(b)}" for b in self.buffers]
        listed = [", ".join(f"{n}: {t}" for n, t in tensors.items()) for tensors in (self.inputs, self.outputs)]
        head = f"kernel fuzz({listed[0]}) -> ({listed[1]}) {{"
        return "\n".join([head, "  " + grid, *scopes, *self.lines, "}"]) + "\n"


def _shape(b: Buffer) -> str:
    return f"[{', '.join(str(d.tile) for d in b.dims)}]"


def random_kernel(seed: int) -> str:
    """The `.tile` text of a kernel that follows from the seed."""
    return Maker(seed).text()
