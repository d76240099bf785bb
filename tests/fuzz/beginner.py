"""Random Beginner kernels: expressions of whole tensors, of a size that is known now or at each call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.fuzz.written import MOST, Line, Program

NEAR = 3
"""Inputs are whole numbers from -NEAR to NEAR."""
Shape = tuple[str, ...]
Env = dict[str, np.ndarray]
PAIRS: dict[str, tuple[Callable[..., Any], Callable[[int, int], int]]] = {
    "{} + {}": (np.add, lambda a, b: a + b), "{} - {}": (np.subtract, lambda a, b: a + b),
    "{} * {}": (np.multiply, lambda a, b: a * b), "T.maximum({}, {})": (np.maximum, max), "T.minimum({}, {})": (np.minimum, max),
}  # fmt: skip
SIGNS: dict[str, Callable[..., Any]] = {"<": np.less, "<=": np.less_equal, ">": np.greater, "==": np.equal, "!=": np.not_equal}
FOLDS: dict[str, Callable[..., Any]] = {"sum": np.sum, "amax": np.max, "amin": np.min}


LIMITS = (
    "tiles of three dimensions", "do not lie side by side", "no block runs at these sizes",
)  # fmt: skip


class BeginnerProgram(Program):
    """A function of tensors that returns values."""

    def text(self) -> str:
        listed = ", ".join(f'{name}: T.Tensor({shape}, "{dtype}")' for name, shape, dtype in self.arguments)
        body = [line.text for line in self.lines]
        return "\n".join([
            "import tile_eg", "import tile_eg.language as T", *self.head, '@tile_eg.jit(effort="none")', f"def made({listed}):",
            *(f"    {line}" for line in body), f"    return {', '.join(self.outputs)}",
        ]) + "\n"  # fmt: skip


@dataclass(frozen=True)
class Made:
    """What is known of a value: its shape, with "M" for the size of a call, and the largest magnitude in it."""

    shape: Shape
    bound: int


class Maker:
    """Makes one program; `draw` picks from a strategy."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.dynamic = self.pick(True, False)
        self.size = self.pick(*((0,) if self.dynamic else ()), 1, 2, 7, 16, 17, 31, 65)
        self.wide, self.count = self.pick(1, 8, 16, 33, 64), self.pick(1, 2, 3)
        self.values: dict[str, Made] = {}
        self.arguments: list[tuple[str, Shape, str]] = []
        self.lines: list[Line] = []
        self.steps: list[Callable[[Env], None]] = []

    def pick(self, *among: Any) -> Any:
        return self.draw(st.sampled_from(among))

    def any(self, able: Callable[[Made], bool] = lambda v: True) -> str | None:
        found = [n for n, v in self.values.items() if able(v)]
        return self.pick(*found) if found else None

    def say(self, text: str, shape: Shape, bound: int, does: Callable[[Env], Any]) -> None:
        """One more value, where its numbers stay exact."""
        if bound > MOST["float32"]:
            return
        name = f"v{len(self.values)}"
        self.lines.append(Line(f"{name} = {text}"))
        self.steps.append(lambda e: e.update({name: does(e)}))
        self.values[name] = Made(shape, bound)

    def number_of(self, size: str) -> int:
        return self.size if size == "M" else int(size)

    # values

    def tensor(self) -> None:
        m, n, b = "M", str(self.wide), str(self.count)
        shape = self.pick((m, n), (m, n), (b, m, n), (n,), (m,), (b, n), (m, "1"), (b, "1", n), (b, m))
        name, dtype = f"X{len(self.arguments)}", self.pick("float32", "float16")
        self.arguments.append((name, shape, dtype))
        self.say(f'{name}.astype("float32")', shape, NEAR, lambda e: e[name].astype(np.float64))

    def pair(self) -> None:
        a = self.any()
        b = self.any(lambda v: joined(v.shape, self.values[a].shape) is not None) if a else None
        if a is None or b is None:
            return self.tensor()
        text = self.pick(*PAIRS)
        does, grows = PAIRS[text]
        shape = joined(self.values[b].shape, self.values[a].shape)
        assert shape is not None
        self.say(text.format(a, b), shape, grows(self.values[a].bound, self.values[b].bound), lambda e: does(e[a], e[b]))
        return None

    def number(self) -> None:
        a, n = self.any(), self.pick(-2, -1, 2, 3)
        if a is None:
            return self.tensor()
        text = self.pick("{} + {}", "{} * {}", "{1} - {0}", "T.maximum({}, {})")
        does: Callable[[Any], Any] = {
            "{} + {}": lambda x: x + n, "{} * {}": lambda x: x * n, "{1} - {0}": lambda x: n - x,
            "T.maximum({}, {})": lambda x: np.maximum(x, n),
        }[text]  # fmt: skip
        self.say(text.format(a, n), self.values[a].shape, (self.values[a].bound + 1) * 3, lambda e: does(e[a]))
        return None

    def choose(self) -> None:
        """By the values, by their places, or by a condition that counts as 0 and 1."""
        a, sign, kind = self.any(), self.pick(*SIGNS), self.pick("value", "place", "number")
        if a is None or (kind == "place" and len(self.values[a].shape) < 2):
            return self.tensor()
        x, does = self.values[a], SIGNS[sign]
        if kind == "value":
            self.say(f"T.where({a} {sign} 1, {a}, -{a})", x.shape, x.bound, lambda e: np.where(does(e[a], 1), e[a], -e[a]))
        elif kind == "number":
            self.say(f"({a} {sign} 0) * {a}", x.shape, x.bound, lambda e: does(e[a], 0) * e[a])
        else:
            rows, cols = x.shape[-2:]
            text = f"T.where(T.arange({rows})[:, None] {sign} T.arange({cols}), {a}, 0)"
            if self.number_of(rows) and self.number_of(cols):
                places = does(np.arange(self.number_of(rows))[:, None], np.arange(self.number_of(cols)))
                self.say(text, x.shape, x.bound, lambda e: np.where(places, e[a], 0))
        return None

    def places(self) -> None:
        """Positions as a value."""
        n = self.pick("M", str(self.wide)) if any("M" in shape for _, shape, _ in self.arguments) else str(self.wide)
        if self.number_of(n):
            self.say(f"T.arange({n}) * 1.0", (n,), 65, lambda e: np.arange(self.number_of(n), dtype=np.float64))

    def choose_by_two(self) -> None:
        """By how two values compare, which may be masked or positions themselves."""
        a, sign = self.any(), self.pick(*SIGNS)
        b = self.any(lambda v: joined(v.shape, self.values[a].shape) is not None) if a else None
        if a is None or b is None:
            return self.tensor()
        x, y = self.values[a], self.values[b]
        shape = joined(y.shape, x.shape)
        assert shape is not None
        self.say(f"T.where({a} {sign} {b}, {b}, -{a})", shape, max(x.bound, y.bound),
                 lambda e: np.where(SIGNS[sign](e[a], e[b]), e[b], -e[a]))  # fmt: skip
        return None

    def fold(self) -> None:
        a, word, keep = self.any(lambda v: bool(v.shape)), self.pick(*FOLDS), self.pick(True, False)
        if a is None:
            return self.tensor()
        shape = self.values[a].shape
        axis = self.pick(*range(-len(shape), len(shape)))
        size = self.number_of(shape[axis])
        if not size:
            return None
        left = tuple("1" if n == axis % len(shape) else d for n, d in enumerate(shape) if keep or n != axis % len(shape))
        bound = self.values[a].bound * (65 if word == "sum" else 1)
        self.say(f"T.{word}({a}, axis={axis}, keepdims={keep})", left, bound,
                 lambda e: FOLDS[word](e[a], axis=axis, keepdims=keep))  # fmt: skip
        return None

    def moved(self) -> None:
        a = self.any(lambda v: len(v.shape) in (1, 2))
        if a is None:
            return self.tensor()
        x = self.values[a]
        if len(x.shape) == 1:
            text, shape = self.pick((f"{a}[:, None]", (*x.shape, "1")), (f"{a}[None, :]", ("1", *x.shape)))
            at: Any = (slice(None), None) if text.endswith("None]") else (None, slice(None))
            self.say(text, shape, x.bound, lambda e: e[a][at])
        else:
            self.say(f"{a}.T", x.shape[::-1], x.bound, lambda e: e[a].T)
        return None

    def part(self) -> None:
        a = self.any(lambda v: bool(v.shape) and v.shape[-1] not in ("M", "1"))
        if a is None:
            return self.tensor()
        x, first = self.values[a], self.pick(0, 1, 3)
        n = int(x.shape[-1])
        if first >= n:
            return None
        self.say(f"{a}[..., {first}:]", (*x.shape[:-1], str(n - first)), x.bound, lambda e: e[a][..., first:])
        return None

    def joined(self) -> None:
        """Values of one shape along an axis of a known size, or along a new one."""
        a = self.any(lambda v: 1 <= len(v.shape) <= 2)
        b = self.any(lambda v: v.shape == self.values[a].shape) if a else None
        if a is None or b is None:
            return self.tensor()
        x, bound = self.values[a], max(self.values[a].bound, self.values[b].bound)
        axis = self.pick(*range(len(x.shape)))
        if x.shape[axis] == "M" or self.pick(True, False):
            shape = (*x.shape[:axis], "2", *x.shape[axis:])
            self.say(f"T.stack([{a}, {b}], axis={axis})", shape, bound, lambda e: np.stack([e[a], e[b]], axis=axis))
        else:
            shape = (*x.shape[:axis], str(3 * int(x.shape[axis])), *x.shape[axis + 1 :])
            self.say(f"T.concatenate([{a}, {b}, {a}], axis={axis})", shape, bound,
                     lambda e: np.concatenate([e[a], e[b], e[a]], axis=axis))  # fmt: skip
        return None

    def placed(self) -> None:
        """The same elements elsewhere, along an axis of a known size."""
        a = self.any(lambda v: any(n not in ("M", "1") for n in v.shape))
        if a is None:
            return self.tensor()
        x = self.values[a]
        axis = self.pick(*(n for n, d in enumerate(x.shape) if d not in ("M", "1")))
        size, word = int(x.shape[axis]), self.pick("roll", "flip", "pad", "repeat", "diff", "step")
        now = {"pad": size + 3, "repeat": 2 * size, "diff": size - 1, "step": -(-size // 2)}.get(word, size)
        ends = ", ".join("(1, 2)" if n == axis else "(0, 0)" for n in range(len(x.shape)))
        at = tuple(slice(None, None, 2) if n == axis else slice(None) for n in range(len(x.shape)))
        text, does = {
            "roll": (f"T.roll({a}, 3, axis={axis})", lambda e: np.roll(e[a], 3, axis=axis)),
            "flip": (f"T.flip({a}, axis={axis})", lambda e: np.flip(e[a], axis)),
            "pad": (f"T.pad({a}, ({ends},))", lambda e: np.pad(e[a], [(n == axis, 2 * (n == axis)) for n in range(e[a].ndim)])),
            "repeat": (f"T.repeat({a}, 2, axis={axis})", lambda e: np.repeat(e[a], 2, axis=axis)),
            "diff": (f"T.diff({a}, axis={axis})", lambda e: np.diff(e[a], axis=axis)),
            "step": (f"{a}[{', '.join('::2' if n == axis else ':' for n in range(len(x.shape)))}]", lambda e: e[a][at]),
        }[word]  # fmt: skip
        shape = (*x.shape[:axis], str(now), *x.shape[axis + 1 :])
        self.say(text, shape, 2 * x.bound, does)
        return None

    def product(self) -> None:
        a = self.any(lambda v: len(v.shape) >= 2 and v.shape[-1] != "M" and v.bound <= MOST["float16"])
        if a is None:
            return self.tensor()
        x, n, name = self.values[a], self.pick(8, 16, 33), f"X{len(self.arguments)}"
        bound = x.bound * NEAR * int(x.shape[-1])
        if bound > MOST["float32"]:
            return None
        self.arguments.append((name, (x.shape[-1], str(n)), "float16"))
        self.say(f'{a}.astype("float16") @ {name}', (*x.shape[:-1], str(n)), bound, lambda e: e[a] @ e[name].astype(np.float64))
        return None

    # the whole

    def program(self) -> Program:
        self.tensor()
        kinds = [self.tensor, self.pair, self.pair, self.number, self.choose, self.places, self.choose_by_two, self.fold,
                 self.fold, self.moved, self.part, self.product, self.joined, self.placed]  # fmt: skip
        for _ in range(self.draw(st.integers(1, 6))):
            self.pick(*kinds)()
        last = list(self.values)[-1]
        outputs = [last, *(n for n in self.values if n != last and self.pick(True, False, False, False))]
        m = "T.symbolic('M')" if self.dynamic else str(self.size)
        return BeginnerProgram(
            [f"M = {m}"], [(n, written(shape), dtype) for n, shape, dtype in self.arguments], outputs, "", [], self.lines,
            lambda sizes, arrays: self.meaning(arrays, outputs), self.inputs, {"M": self.size},
            limits=LIMITS,
        )  # fmt: skip

    def inputs(self, sizes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {
            name: rng.integers(-NEAR, NEAR + 1, tuple(sizes["M"] if d == "M" else int(d) for d in shape)).astype(dtype)
            for name, shape, dtype in self.arguments
        }

    def meaning(self, arrays: dict[str, np.ndarray], outputs: list[str]) -> dict[str, np.ndarray]:
        e: Env = dict(arrays)
        for step in self.steps:
            step(e)
        return {n: np.asarray(e[n]).reshape(e[n].shape or (1,)) for n in outputs}


def written(shape: Shape) -> str:
    return "(" + "".join(f"{d}, " for d in shape) + ")"


def joined(a: Shape, b: Shape) -> Shape | None:
    """The shape to which two broadcast, whatever M is."""
    n = max(len(a), len(b))
    pairs = list(zip(("1",) * (n - len(a)) + a, ("1",) * (n - len(b)) + b, strict=True))
    return tuple(q if p == "1" else p for p, q in pairs) if all(p == q or "1" in (p, q) for p, q in pairs) else None


@st.composite
def beginner_programs(draw: Callable[[Any], Any]) -> Program:
    return Maker(draw).program()
