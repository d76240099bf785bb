"""Reads chip tables from the TOML files of this folder; a file may name another as its `base` and override parts of it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from copy import deepcopy
from functools import lru_cache, reduce
from math import inf
from operator import getitem
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any

from tile_eg.chips.marks import KEYS, Mark, at_end, marks, plain
from tile_eg.chips.model import Chip, Cube, Launch, Limits, Memory, Path, Rows, Shared, Sync, Vector, VectorCost
from tile_eg.errors import WITH_OR_WITHOUT_MARK, TileError
from tile_eg.ops.types import Level

DEFAULT_CHIP = "910B2"
NO_TABLES = {
    "950dt": "the 950 with other memory", "9105591": "the 3510 with one vector core for each cube core",
    "310p": "architecture 2002", "310b": "architecture 3002", "910a": "the first 910", "9109362": "the smaller die of 910C",
}  # fmt: skip
COMPILED = "dav-2201"
OWN = ".toml"
_KNOWN: dict[str, Chip] = {}
_OWN_TABLES: dict[str, Mapping[str, Any]] = {}
"""Chips of files of a user's, by name."""
_ELEMENT_BYTES = {"half": 2, "float": 4}


@lru_cache(maxsize=4)
def known_chips(architecture: str | None = COMPILED) -> tuple[str, ...]:
    """The short names of the chips of an architecture: of the one that kernels are compiled for, or of all (None)."""
    chips = (stem for stem in _stems() if "name" in _tables(stem))
    return tuple(stem for stem in chips if architecture in (None, _tables(stem)["architecture"]))


@lru_cache(maxsize=1)
def _stems() -> tuple[str, ...]:
    """The names of all tables: those of chips, and those that are the base of others."""
    return tuple(sorted(f.name[:-5] for f in FilePath(__file__).parent.iterdir() if f.name.endswith(".toml")))


def load_chip(name: str = DEFAULT_CHIP) -> Chip:
    """The chip called `name` ("910B2", "Ascend910B2", "910_9391"; upper or lower case). TileError lists the known ones.

    A name that ends in .toml is a file of one's own, whose `base` is one of these; this process then knows its chip by name.
    """
    if name.endswith(OWN):
        return _own(FilePath(name))
    key = _key(name)
    if key in _KNOWN:
        return _KNOWN[key]
    for stem in _stems():  # by its own name a chip is found without reading the others' tables
        if key == _key(stem) and "name" in _tables(stem):
            return _load(stem)
    for known in known_chips(None):
        if key in map(_key, _load(known).names):
            return _load(known)
    raise _unknown(name, key)


def _key(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "").removeprefix("ascend")


def _unknown(name: str, key: str) -> TileError:
    known = "known chips: " + ", ".join(known_chips(None))
    for prefix, what in NO_TABLES.items():
        if key.startswith(prefix):
            return TileError(f"chip '{name}' is known but not supported: tile_eg has no tables for {what}", help=known)
    return TileError(f"unknown chip '{name}'", help=f"{known}; not supported yet: 950DT, 310P")


@lru_cache(maxsize=32)
def _load(name: str) -> Chip:
    return _chip(_tables(name))


@lru_cache(maxsize=16)
def ends(chip: Chip) -> tuple[Chip, Chip] | None:
    """The chip with everything that its tables assume at the quick and at the slow end of its range; None where it is not the one
    that its name stands for."""
    tables = _OWN_TABLES.get(_key(chip.name)) if _KNOWN.get(_key(chip.name)) is chip else None
    if tables is None and chip.name in _stems() and _load(chip.name) is chip:
        tables = _tables(chip.name)
    return (_chip(at_end(tables, True)), _chip(at_end(tables, False))) if tables else None


def with_numbers(name: str, numbers: Mapping[str, float]) -> Chip:
    """The chip of this short name with other numbers, by names like "path.gm_to_l1.issue". KeyError for one that it lacks."""
    tables = deepcopy(dict(_tables(name)))
    for dotted, value in numbers.items():
        *way, key = dotted.split(".")
        table = reduce(getitem, way, tables)
        table[key]  # noqa: B018
        table[key] = value
    return _chip(tables)


def chip_marks(name: str) -> list[Mark]:
    """What every number of a chip rests on. TileError as `tables_of` gives it."""
    return marks(_tables(_stem(name)))


@lru_cache(maxsize=32)
def _tables(name: str) -> Mapping[str, Any]:
    """A chip's tables over those of its base; shared by all who ask, so nobody changes them."""
    tables = tomllib.loads(FilePath(__file__).parent.joinpath(f"{name}.toml").read_text("utf-8"))
    return _merge(_tables(tables.pop("base")), tables) if "base" in tables else tables


def tables_of(name: str) -> dict[str, Any]:
    """The numbers of a known chip as its file has them, over those of its base, without marks: a copy that may be changed.

    TileError for an unknown name, and for a chip of a file of one's own: it is no base of others.
    """
    return _copied(_tables(_stem(name)))


def _stem(name: str) -> str:
    """The name of a known chip's file."""
    chip = load_chip(name)
    for stem in known_chips(None):
        if _load(stem) is chip:
            return stem
    help = "begin with one of " + ", ".join(known_chips(None))
    raise TileError(f"{chip.name} is a chip of a file of your own, and cannot be the base of another", help=help)


def _copied(table: Mapping[str, Any]) -> dict[str, Any]:
    return {k: _copied(v) if isinstance(v, Mapping) else v for k, v in table.items() if k not in KEYS}


def chip_of(tables: Mapping[str, Any]) -> Chip:
    """A chip with these numbers. KeyError or TypeError where some are missing or unknown."""
    return _chip(tables)


def _own(path: FilePath) -> Chip:
    """The chip of a file of a user's. TileError where it cannot be read, or is none."""
    try:
        tables = tomllib.loads(path.read_text(WITH_OR_WITHOUT_MARK))
        base = tables.pop("base")
        whole = _merge(_tables(_stem(base)), tables)
        found = _chip(whole)
    except OSError as error:
        raise TileError(f"cannot read the chip '{path}': {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        help = "a chip of your own has base, name, names, source, and the tables of tile_eg/chips that differ from its base's"
        raise TileError(f"'{path}' is not a chip: {type(error).__name__}: {error}", help=help) from None
    if any(_key(found.name) in map(_key, _load(k).names) or _key(found.name) == _key(k) for k in known_chips(None)):
        raise TileError(f"'{path}' is called {found.name}, as a chip of tile_eg is", help="give it a name of its own")
    held = _KNOWN.get(_key(found.name))
    if held is not None and _numbers(held) == _numbers(found):
        return held  # two loads of one name give the same object
    _KNOWN[_key(found.name)], _OWN_TABLES[_key(found.name)] = found, whole
    return found


def _numbers(chip: Chip) -> str:
    return repr({f: getattr(chip, f) for f in chip.__dataclass_fields__})


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
    out = dict(below)
    for key, value in above.items():  # marks are replaced whole: what was assumed of the base may be known of this chip
        merged = isinstance(value, dict) and key in out and key not in KEYS
        out[key] = _merge(out[key], value) if merged else value
    return out


def _chip(t: Mapping[str, Any]) -> Chip:
    t = plain(t)
    hertz = t["clock_mhz"] * 1e6
    return Chip(
        **{
            k: t[k]
            for k in ("name", "architecture", "cube_cores", "vector_cores", "clock_mhz", "l2_bytes", "hbm_bytes", "source")
        },
        names=tuple(t["names"]),
        memories=_frozen({Level(k): Memory(level=Level(k), **v) for k, v in t["memory"].items()}),
        paths=_frozen({k: _path(k, v, hertz) for k, v in t["path"].items()}),
        rows=Rows(**t["rows"] | {"bursts": tuple(t["rows"]["bursts"])}),
        cube=Cube(**t["cube"] | {"macs": _frozen(t["cube"]["macs"])}),
        vector=_vector(t["vector"]),
        limits=Limits(**t["limits"]),
        sync=Sync(**t["sync"] | {"refill": tuple(t["sync"]["refill"])}),
        launch=Launch(**t["launch"]),
        shared=Shared(**t["shared"]),
        sources=_frozen(t["sources"]),
    )


def _path(name: str, t: dict[str, Any], hertz: float) -> Path:
    curve = tuple(sorted((int(size), rate) for size, rate in t["curve"].items()))
    rates = {key: t[key] / hertz if t[key] else inf for key in ("shared", "hbm") if key in t}
    return Path(name=name, **t | rates | {"curve": curve})


def _vector(t: dict[str, Any]) -> Vector:
    ops = {
        (name, size): VectorCost(**op[kind], floor=op["floor"])
        for name, op in t["ops"].items()
        for kind, size in _ELEMENT_BYTES.items()
    }
    return Vector(**t | {"ops": _frozen(ops)})


def _frozen(table: Mapping[Any, Any]) -> Mapping[Any, Any]:
    return MappingProxyType(dict(table))
