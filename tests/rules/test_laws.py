"""Every rewrite between values holds by its law: both sides are evaluated on random tensors, straight from the rule's text."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files

import ml_dtypes
import numpy as np
import pytest

from tile_eg.ir import arithmetic as ar
from tile_eg.rules import LAWS, registry, theories
from tile_eg.rules.sexpr import parse

ROWS, COLS = 4, 6
BINARY: dict[str, Callable] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
}  # fmt: skip
UNARY: dict[str, Callable] = {
    "exp": np.exp, "ln": lambda x: np.log(np.abs(x)), "sqrt": lambda x: np.sqrt(np.abs(x)), "abs": np.abs,
    "relu": lambda x: np.maximum(x, np.float32(0)), "neg": np.negative, "reciprocal": lambda x: np.float32(1) / x,
    "rsqrt": lambda x: np.float32(1) / np.sqrt(np.abs(x)), "sigmoid": lambda x: 1 / (1 + np.exp(-x.astype(np.float64))),
    "tanh": lambda x: np.tanh(x.astype(np.float64)),
}  # fmt: skip
REDUCE: dict[str, Callable] = {"max": np.max, "min": np.min, "sum": np.sum}


def rounded(x: np.ndarray, dtype: str) -> np.ndarray:
    """The float32 values nearest to x that an element type can hold."""
    return x.astype({"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}[dtype]).astype(np.float32)


class Meaning:
    """NumPy's meaning of the value constructors; pattern variables are bound to random arrays when they are first met."""

    def __init__(self, seed: int, op: str, holds: str = "f32") -> None:
        self.holds = holds
        self.random, self.env = np.random.default_rng(seed), {"op": op, "d": "f16", "f": 1.5, "r": ROWS, "c": COLS, "n": COLS}

    def tile(self, name: str, shape: tuple[int, int] = (ROWS, COLS)) -> np.ndarray:
        if name not in self.env:
            drawn = self.random.uniform(0.5, 2, shape) * self.random.choice([-1, 1], shape)
            self.env[name] = rounded(drawn.astype(np.float32), self.holds)
        return self.env[name]

    def value(self, form: object, shape: tuple[int, int] = (ROWS, COLS)) -> np.ndarray:
        if isinstance(form, str):
            return self.tile(form, shape)
        head, *args = form
        return getattr(self, f"_{head.lower()}")(shape, *args)

    def text(self, atom: str) -> str:
        return atom.strip('"') if atom.startswith('"') else self.env[atom]

    def number(self, form: object) -> np.float32:
        if isinstance(form, tuple):
            head, *args = form
            return -self.number(args[0]) if head == "neg" else np.float32(self.number(args[0]) / self.number(args[1]))
        return np.float32(self.env.get(form, form))

    def _bin(self, shape, op, x, y):
        return BINARY[self.text(op)](self.value(x, shape), self.value(y, shape))

    def _bins(self, shape, op, x, f):
        return BINARY[self.text(op)](self.value(x, shape), self.number(f))

    def _binr(self, shape, op, swap, x, v):
        a, b = self.value(x, shape), self.value(v, (1, shape[0])).T
        return BINARY[self.text(op)](b, a) if swap == "1" else BINARY[self.text(op)](a, b)

    def _binc(self, shape, op, swap, x, v):
        a, b = self.value(x, shape), self.value(v, (1, shape[1]))
        return BINARY[self.text(op)](b, a) if swap == "1" else BINARY[self.text(op)](a, b)

    def _cho(self, shape, op, a, b, x, y):
        return ar.choose(self.comparison(op), *(self.value(part, shape) for part in (a, b, x, y)))

    def _chos(self, shape, op, a, f, x, y):
        a, x, y = (self.value(part, shape) for part in (a, x, y))
        return ar.choose(self.comparison(op), a, np.full_like(a, self.number(f)), x, y)

    def _choi(self, shape, op, a, n, x, y):
        return self._chos(shape, op, a, 2, x, y)

    def _ramp(self, shape, r, c, p, q):
        i, j = np.ogrid[: shape[0], : shape[1]]
        return (2 * i - 3 * j).astype(np.float32)

    def comparison(self, op: str) -> str:
        return op.strip('"') if op.startswith('"') else {"op": "lt", "m": "gt"}[op]

    def _bcast(self, shape, axis, v, n):
        return np.broadcast_to(self.value(v, (1, shape[0])).T if axis == "1" else self.value(v, (1, shape[1])), shape)

    def _un(self, shape, op, x):
        return UNARY[self.text(op)](self.value(x, shape))

    def _cast(self, shape, d, x):
        return rounded(self.value(x, shape), self.text(d))

    def _fill(self, shape, f, *_):
        return np.full(shape, self.number(f), np.float32)

    def _load(self, shape, version, offset, stride, *_):
        return self.tensor(version)[self.places(shape, offset, stride)]

    def tensor(self, version: object) -> np.ndarray:
        """The elements of a tensor, one behind the other, as of a version."""
        if isinstance(version, str):
            return self.tile(version, (1, 100))[0]
        _, before, offset, stride, value, *_ = version
        out = self.tensor(before).copy()
        out[self.places((ROWS, COLS), offset, stride)] = self.value(value)
        return out

    def places(self, shape: tuple[int, int], offset: str, stride: str) -> np.ndarray:
        start, step = ({"o": 3, "st": 10}[x] for x in (offset, stride))
        return start + step * np.arange(shape[0])[:, None] + np.arange(shape[1])

    def _matmul(self, shape, a, b, ta, tb):
        return self.value(a, (shape[0], shape[0])) @ self.value(b, shape)

    def _red(self, shape, axis, op, x):
        return REDUCE[self.text(op)](self.value(x, (shape[1], COLS)), axis=1)[None, :]

    def _par(self, shape, r, c, s):
        if r == "1":
            return self.scalar(s, (1, ROWS))
        return self.scalar(s, shape)

    def scalar(self, form, shape):
        if isinstance(form, str):
            return self.tile(f"s:{form}", shape)
        head, *args = form
        if head == "Ld":
            return self.value(args[0], shape)
        if head in ("LdR", "LdC"):
            return self._bcast(shape, "1" if head == "LdR" else "0", args[0], None)
        if head == "K":
            return np.full(shape, self.number(args[0]), np.float32)
        if head == "SUn":
            return UNARY[self.text(args[0])](self.scalar(args[1], shape))
        if head == "SCast":
            return rounded(self.scalar(args[1], shape), self.text(args[0]))
        if head == "SBin":
            return BINARY[self.text(args[0])](self.scalar(args[1], shape), self.scalar(args[2], shape))
        if head == "SCho":
            return ar.choose(self.comparison(args[0]), *(self.scalar(part, shape) for part in args[1:]))
        if head == "SChoI":
            x, y = (np.broadcast_to(self.scalar(part, shape), shape) for part in args[4:])
            return ar.choose_at(self.comparison(args[0]), (2, -3), 2, x, y)
        reduced = REDUCE[self.text(args[0])](self.scalar(args[1], (ROWS, COLS)), axis=1)
        return reduced[None, :] if shape[0] == 1 else np.broadcast_to(reduced[:, None], shape)


def equalities() -> list:
    """(left, right, law, element types of its variables and of its result) of each equality in the value theories."""
    out = []
    for theory in ("10_nest", "20_algebra"):
        for form in parse((files("tile_eg.rules") / f"{theory}.egg").read_text()):
            if form[0] == "rewrite":
                left, right = form[1], form[2]
            elif form[0] == "rule":
                bound = {c[1]: c[2] for c in form[1] if c[0] == "="}
                (_, root, right) = form[2][0]
                left = tuple(bound[x] if bound.get(x, " ")[0] == "Store" else x for x in bound[root])
            else:
                continue
            rule = str(form[form.index(":name") + 1]).strip('"')
            holds = "bf16" if ("=", '"bf16"', ("dt", "b")) in form[1] else "f32"
            result = "f16" if ("=", '"f16"', ("dt", "v")) in form[1] else "f32"
            out.append(pytest.param(left, right, registry()[rule].law, holds, result, id=rule))
    return out


@pytest.mark.parametrize(("left", "right", "law", "holds", "result"), equalities())
def test_both_sides_of_a_rule_are_equal(left, right, law, holds, result):
    for seed in range(5):
        for op in UNARY if "op" in str(left) and ("'Un', 'op'" in str(left) or "'SUn', 'op'" in str(left)) else _operators(left):
            meaning = Meaning(seed, op, holds)
            shape = (1, ROWS) if "nest-reduce" in str(left) or (left[0] == "Par" and left[1] == "1") else (ROWS, COLS)
            a, b = rounded(meaning.value(left, shape), result), rounded(meaning.value(right, shape), result)
            if law == "equal":
                np.testing.assert_array_equal(a, b)
            else:
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def _operators(left: object) -> list[str]:
    return ["max", "min", "sum"] if "SRed" in str(left) else list(BINARY)


def test_rules_have_names_of_their_own():
    names = [r.name for t in theories() for r in t.rules]
    assert len(names) == len(set(names))


def test_every_rule_has_a_known_law():
    assert {r.law for r in registry().values()} <= set(LAWS)


def test_rules_that_build_instructions_state_their_law():
    assert not [
        r.name for r in registry().values() if r.ruleset not in ("facts", "loops") and r.law == "fact" and "union" in r.maths
    ]


def test_a_line_of_maths_is_made_from_the_rule():
    assert registry()["div-rows"].maths.startswith("BinR(div, 0, x, l) = BinR(mul, 0, x, ")


def test_a_wrong_rule_is_seen():
    left, right = parse('(Bin "sub" x (Fill f r c d)) (BinS "add" x f)')
    meaning = Meaning(0, "add")
    assert not np.array_equal(meaning.value(left), meaning.value(right))
