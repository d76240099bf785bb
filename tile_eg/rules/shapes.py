"""Do both sides of an equality of values have one shape and element type? Tried with small tiles for its variables.

A rule is tried with every well-formed left side that the tiles of `TILES` give. What this cannot follow (loops, states) passes:
the facts of the e-graph catch it when a kernel meets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice, product
from typing import Any

from tile_eg.rules.sexpr import Form
from tile_eg.rules.theory import signatures

Tile = tuple[int, int, str]
SIZES = (16, 48)
DTYPES = ("f16", "bf16", "f32")
TILES: tuple[Tile, ...] = tuple(
    (r, c, d) for d in DTYPES for r, c in ((SIZES[0], SIZES[1]), (SIZES[1], SIZES[0]), (1, SIZES[0]), (1, SIZES[1]))
)
TRIALS = 20_000
OPTIONS: dict[str, tuple] = {
    "V": TILES, "T": DTYPES, "S": DTYPES, "I": ("i",), "i64": (0, 1, *SIZES), "f64": (1.5,), "Num": ("n",),
    "String": (*DTYPES, "add"),
}  # fmt: skip


class IllFormed(Exception):
    """A term that no kernel has: an operand that does not fit."""


class Unknown(Exception):
    """A term that this module cannot follow."""


def difference(form: tuple) -> str:
    """How the two sides of a rewrite or rule differ in shape or element type; empty where they agree in all trials."""
    conditions, unions = _parts(form)
    for left, right in unions:
        if _sort(left) == "V" or _sort(right) == "V":
            found = _tried(conditions, left, right)
            if found:
                return found
    return ""


def _parts(form: tuple) -> tuple[list[Form], list[tuple[Form, Form]]]:
    """The conditions, and the pairs that become equal."""
    if form[0] == "rule":
        return list(form[1]), [(a[1], a[2]) for a in form[2] if a[0] == "union"]
    when = form[form.index(":when") + 1] if ":when" in form else ()
    return [("=", "the left side", form[1]), *when], [("the left side", form[2])]


def _sort(form: Form) -> str:
    return signatures()[form[0]][1] if isinstance(form, tuple) and form and form[0] in signatures() else ""


def _tried(conditions: list[Form], left: Form, right: Form) -> str:
    for env in islice(_assignments(conditions), TRIALS):
        try:
            if not all(_holds(c, env) for c in conditions):
                continue
            one = _value(left, env)
        except (IllFormed, Unknown, KeyError):
            continue
        try:
            other = _value(right, env)
        except IllFormed as fault:
            return f"{fault}{_shown(env)}"
        except (Unknown, KeyError):
            continue
        if one != other:
            return f"{_tile(one)} on the left, {_tile(other)} on the right{_shown(env)}"
    return ""


def _tile(value: Any) -> str:
    return f"{value[0]} x {value[1]} of {value[2]}" if isinstance(value, tuple) else str(value)


def _shown(env: Mapping[str, Any]) -> str:
    tiles = [f"{n} is {_tile(v)}" for n, v in env.items() if isinstance(v, tuple) and n != "the left side"]
    return f", where {', '.join(tiles)}" if tiles else ""


# ---- variables ----------------------------------------------------------------------------------------------------------------


def _assignments(conditions: list[Form]) -> Iterator[dict[str, Any]]:
    """Every choice of a tile, a size or a type for the variables of the patterns."""
    sorts: dict[str, str] = {}
    for c in conditions:
        for part in c[1:] if isinstance(c, tuple) else ():
            _collect(part, sorts)
    bound = {c[1] for c in conditions if c[0] == "=" and isinstance(c[1], str) and isinstance(c[2], tuple)}
    free = [name for name, sort in sorts.items() if sort in OPTIONS and name not in bound]
    for values in product(*(OPTIONS[sorts[name]] for name in free)):
        yield dict(zip(free, values, strict=True))


def _collect(form: Form, sorts: dict[str, str]) -> None:
    """The sorts of the variables in a pattern, by where they stand."""
    if not isinstance(form, tuple) or not form or form[0] not in signatures():
        return
    for sort, argument in zip(signatures()[form[0]][0], form[1:], strict=False):
        if isinstance(argument, str) and not _literal(argument):
            sorts.setdefault(argument, sort)
        _collect(argument, sorts)


def _literal(atom: str) -> bool:
    return atom[0] in '"-.0123456789'


# ---- conditions ---------------------------------------------------------------------------------------------------------------

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
_FACTS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda t: t[0], "cols": lambda t: t[1], "dt": lambda t: t[2], "tdt": lambda t: t,
    "eb": lambda t: 2 if t[2] == "f16" else 4,
}  # fmt: skip


def _holds(condition: Form, env: dict[str, Any]) -> bool:
    """Whether a condition may hold; an equality gives its unbound variable a value. Relations are taken to hold."""
    head, args = condition[0], list(condition[1:])
    if head == "=":
        a, b = args
        if isinstance(a, str) and not _literal(a) and a not in env:
            return _bind(a, b, env)
        if isinstance(b, str) and not _literal(b) and b not in env:
            return _bind(b, a, env)
        try:
            return bool(_value(a, env) == _value(b, env))
        except (Unknown, KeyError):
            return True
    if head in _COMPARED:
        try:
            return _COMPARED[head](_value(args[0], env), _value(args[1], env))
        except (Unknown, KeyError):
            return True
    return True


def _bind(name: str, form: Form, env: dict[str, Any]) -> bool:
    try:
        env[name] = _value(form, env)
    except (Unknown, KeyError):
        if _sort(form) == "V":
            raise Unknown from None
    return True


# ---- shapes of terms ----------------------------------------------------------------------------------------------------------


def _value(form: Form, env: Mapping[str, Any]) -> Any:
    """A tile of sort V, an element type of T or S, a number or a word of the rest."""
    if isinstance(form, str):
        if not _literal(form):
            return env[form]
        return form.strip('"') if form[0] == '"' else float(form) if "." in form else int(form)
    head, *args = form
    if head in _FACTS:
        return _FACTS[head](_value(args[0], env))
    if head not in _TERMS:
        raise Unknown(head)
    return _TERMS[head](args, env)


def _need(fits: bool, what: str) -> None:
    if not fits:
        raise IllFormed(what)


def _tile_of(form: Form, env: Mapping[str, Any]) -> Tile:
    out = _value(form, env)
    return out if isinstance(out, tuple) else _unknown()


def _unknown() -> Any:
    raise Unknown


def _binary(args: list, env: Mapping[str, Any]) -> Tile:
    x, y = _tile_of(args[1], env), _tile_of(args[2], env)
    _need(x == y, f"an operation on {_tile(x)} and {_tile(y)}")
    return x


def _beside(axis: int) -> Callable[[list, Mapping[str, Any]], Tile]:
    """BinR, BinC: a tile and a vector as long as its rows, or its columns."""

    def shape(args: list, env: Mapping[str, Any]) -> Tile:
        x, v = _tile_of(args[2], env), _tile_of(args[3], env)
        _need(v == (1, x[axis], x[2]), f"{_tile(x)} with a vector of {_tile(v)}")
        return x

    return shape


def _matmul(args: list, env: Mapping[str, Any]) -> Tile:
    a, b = _tile_of(args[0], env), _tile_of(args[1], env)
    (m, k), (k2, n) = _turned(a, _value(args[2], env)), _turned(b, _value(args[3], env))
    _need(k == k2 and a[2] == b[2], f"a product of {_tile(a)} and {_tile(b)}")
    return m, n, "f32"


def _turned(tile: Tile, transposed: int) -> tuple[int, int]:
    _need(transposed in (0, 1), "a transposition is 0 or 1")
    return (tile[1], tile[0]) if transposed else (tile[0], tile[1])


def _bcast(args: list, env: Mapping[str, Any]) -> Tile:
    axis, v, n = _value(args[0], env), _tile_of(args[1], env), _value(args[2], env)
    _need(v[0] == 1 and axis in (0, 1) and n > 0, f"a broadcast of {_tile(v)} along axis {axis}")
    return (v[1], n, v[2]) if axis == 1 else (n, v[1], v[2])


def _reduced(args: list, env: Mapping[str, Any]) -> Tile:
    axis, x = _value(args[0], env), _tile_of(args[2], env)
    _need(axis in (0, 1), f"a reduction over axis {axis}")
    return 1, x[0] if axis == 1 else x[1], x[2]


def _typed(r: Any, c: Any, d: Any) -> Tile:
    _need(isinstance(r, int) and isinstance(c, int) and r > 0 and c > 0, "a tile without elements")
    _need(d in ("f16", "bf16", "f32"), f"an element type {d}")
    return r, c, d


def _load(args: list, env: Mapping[str, Any]) -> Tile:
    return _typed(_value(args[3], env), _value(args[4], env), _value(args[0], env))


def _store(args: list, env: Mapping[str, Any]) -> Any:
    dtype, value = _value(args[0], env), _tile_of(args[3], env)
    _need(value[2] == dtype, f"a store of {_tile(value)} to a tensor of {dtype}")
    return dtype


def _nest(args: list, env: Mapping[str, Any]) -> Tile:
    r, c = _value(args[0], env), _value(args[1], env)
    return _typed(r, c, _scalar(args[2], env, (r, c)))


def _scalar(form: Form, env: Mapping[str, Any], shape: tuple[int, int]) -> str:
    """The element type of a scalar expression at (i, j) of a tile; what it reads has to fit that tile."""
    if isinstance(form, str):
        return str(env[form])
    head, *args = form
    if head in ("Ld", "LdR", "LdC"):
        read = _tile_of(args[0], env)
        want = {"Ld": shape, "LdR": (1, shape[0]), "LdC": (1, shape[1])}[head]
        _need(read[:2] == want, f"an element of {_tile(read)} in a nest of {shape[0]} x {shape[1]}")
        return read[2]
    if head in ("K", "KN"):
        return str(_value(args[1], env))
    if head == "SCast":
        _scalar(args[1], env, shape)
        return str(_value(args[0], env))
    if head == "SUn":
        return _scalar(args[1], env, shape)
    if head == "SBin":
        x, y = _scalar(args[1], env, shape), _scalar(args[2], env, shape)
        _need(x == y, f"an operation on {x} and {y}")
        return x
    if head == "SRed":
        over = _value(args[2], env)
        _need(over > 0, "a reduction over nothing")
        return _scalar(args[1], env, (shape[1] if shape[0] == 1 else shape[0], over))
    raise Unknown(head)


_TERMS: dict[str, Callable[[list, Mapping[str, Any]], Any]] = {
    "Un": lambda a, env: _tile_of(a[1], env),
    "BinS": lambda a, env: _tile_of(a[1], env),
    "BinN": lambda a, env: _tile_of(a[1], env),
    "Cast": lambda a, env: _typed(*_tile_of(a[1], env)[:2], _value(a[0], env)),
    "Fill": lambda a, env: _typed(*(_value(x, env) for x in a[1:])),
    "FillN": lambda a, env: _typed(*(_value(x, env) for x in a[1:])),
    "Bin": _binary,
    "BinR": _beside(0),
    "BinC": _beside(1),
    "MatMul": _matmul,
    "Bcast": _bcast,
    "Red": _reduced,
    "Load": _load,
    "Store": _store,
    "Accumulate": _store,
    "Par": _nest,
    "neg": lambda a, env: -_value(a[0], env),
    "+": lambda a, env: _value(a[0], env) + _value(a[1], env),
    "*": lambda a, env: _value(a[0], env) * _value(a[1], env),
    "/": lambda a, env: _divided(_value(a[0], env), _value(a[1], env)),
}


def _divided(a: Any, b: Any) -> Any:
    _need(bool(b), "a division by zero")
    return a // b if isinstance(a, int) and isinstance(b, int) else a / b
