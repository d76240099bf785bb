"""Reads a spec: which kernel of a file to run, on what arguments, and what it should compute. TOML:

kernel = "add"            # where the file has several; with template arguments, if it is a template: "add<float, 64>"
blocks = 8                # as the host counts them
type = "AIV_ONLY"         # where the file does not say it
meaning = "kernel ..."    # a kernel as `.tile` text: its inputs are drawn where they have no file, its outputs are compared
inputs = ["uniform"]      # what is drawn: a run for each of uniform, wide, nan (default: uniform and wide)
seed = 0                  # from which it follows
[defines]                 # macros
[[arguments]]             # in the kernel's order; one of:
shape = [8, 2048]         #   a tensor: with `file` (.npy), or `generator`: uniform (`low`, `high`), normal, zeros, arange; `seed`
dtype = "f32"             #   `output = true`: it comes back; `expect` (.npy) and `tolerance` compare it, `save` keeps it
                          #   `alike = true`: blocks may store to one place of it, as long as the bytes stay the same
value = 2048              #   a scalar
fields = {total = 2048}   #   a structure by value, its fields in their order
bytes = 65536             #   a workspace
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tile_eg.errors import WITH_OR_WITHOUT_MARK, Span, TileError, did_you_mean, why_unread
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ops.records import record
from tile_eg.ops.types import dtype_of
from tile_eg.simulator.launches import TYPES

DTYPES = ("f16", "bf16", "f32", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f8e4m3", "f8e5m2", "e8m0")
GENERATORS = ("uniform", "normal", "zeros", "arange")
TOP = ("kernel", "blocks", "type", "defines", "arguments", "auto_sync", "meaning", "inputs", "seed")
KEYS = ("name", "shape", "dtype", "file", "generator", "seed", "low", "high", "output", "expect", "tolerance", "save", "value",
        "fields", "bytes", "alike")  # fmt: skip
_KINDS = {
    "a tensor (`shape`, or `file`)": ("shape", "file"),
    "a scalar (`value`)": ("value",),
    "a structure (`fields`)": ("fields",),
    "a workspace (`bytes`)": ("bytes",),
}


@record
class Argument:
    """A tensor (`array`), a workspace (`bytes`), or a scalar or structure (`text`, as C++ writes it).

    A tensor that is `drawn` has an array of zeros until it gets another one.
    """

    name: str
    array: np.ndarray | None = None
    given: bool = False
    drawn: bool = False
    output: bool = False
    expect: np.ndarray | None = None
    tolerance: float = 1e-3
    save: Path | None = None
    text: str = ""
    bytes: int = 0
    alike: bool = False


@record
class Spec:
    """How to launch one kernel of a file. `kernel` and `type` are empty where the spec leaves them to the file.

    `meaning` is `.tile` text or empty; `inputs` are names of drawn sets, as they are written.
    """

    arguments: tuple[Argument, ...]
    kernel: str = ""
    type: str = ""
    blocks: int = 1
    auto_sync: bool = True
    defines: Mapping[str, str] = field(default_factory=dict)
    meaning: str = ""
    inputs: tuple[str, ...] = ()
    seed: int = 0

    def with_arrays(self, arrays: Mapping[str, np.ndarray]) -> Spec:
        """The spec with these arrays, by name, for the tensors that are drawn."""
        filled = (replace(a, array=arrays[a.name], given=True) if a.drawn else a for a in self.arguments)
        return replace(self, arguments=tuple(filled))


def read_spec(path: Path) -> Spec:
    """The spec in a TOML file; the files that it names are looked for beside it. TileError says what is wrong with it."""
    try:
        text = path.read_text(encoding=WITH_OR_WITHOUT_MARK)
        data = tomllib.loads(text)
    except FileNotFoundError:
        raise TileError(f"there is no file '{path}'") from None
    except (OSError, UnicodeDecodeError) as error:
        raise TileError(f"cannot read '{path}': {why_unread(error)}") from None
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(path, text, str(error)) from None
    return _spec(data, path)


def _not_toml(path: Path, text: str, message: str) -> TileError:
    place = re.search(r"\(at line (\d+), column (\d+)\)", message)
    line, column = (int(place.group(1)), int(place.group(2))) if place else (max(1, text.count("\n")), 1)
    error = TileError(f"'{path}' is not TOML: {message.partition(' (at')[0]}", Span(str(path), line, column, line, column + 1))
    error.source = text
    return error


def _spec(data: Mapping[str, Any], path: Path) -> Spec:
    _known(data, TOP, f"'{path}'")
    given = data.get("arguments", [])
    if not isinstance(given, list) or not all(isinstance(a, dict) for a in given):
        raise TileError(f"'{path}': the arguments are tables", help="write each under [[arguments]]")
    blocks, type_ = data.get("blocks", 1), data.get("type", "")
    if not _whole(blocks) or blocks < 1:
        raise TileError(f"'{path}': `blocks` is a whole number of at least 1, and {blocks!r} is given")
    if type_ and type_ not in TYPES:
        raise TileError(f"'{path}': unknown kernel type {type_!r}", help=f"one of {', '.join(TYPES)}")
    meaning = _text(data, "meaning", f"'{path}'")
    arguments = tuple(_argument(a, i, path, bool(meaning)) for i, a in enumerate(given))
    defines = {k: str(v) for k, v in data.get("defines", {}).items()}
    drawn = meaning, _sets(data, f"'{path}'"), _size(data.get("seed", 0), "seed", f"'{path}'")
    return Spec(arguments, str(data.get("kernel", "")), type_, blocks, bool(data.get("auto_sync", True)), defines, *drawn)


def _text(data: Mapping[str, Any], key: str, where: str) -> str:
    if not isinstance(data.get(key, ""), str):
        raise TileError(f"{where}: `{key}` is text, and {data[key]!r} is given")
    return str(data.get(key, ""))


def _sets(data: Mapping[str, Any], where: str) -> tuple[str, ...]:
    names = data.get("inputs", [])
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        example = 'for example: inputs = ["uniform", "wide"]'
        raise TileError(f"{where}: `inputs` is a list of names, and {names!r} is given", help=example)
    if names and "meaning" not in data:
        one = 'generator = "uniform" draws one tensor'
        raise TileError(f"{where}: `inputs` are drawn for the kernel of a `meaning`, and there is none", help=one)
    return tuple(names)


def _known(table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in keys:
            raise TileError(f"{where} has an unknown key `{key}`", help=did_you_mean(key, keys))


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _argument(data: Mapping[str, Any], index: int, path: Path, drawn: bool) -> Argument:
    name = str(data.get("name", f"argument {index + 1}"))
    where = f"'{path}', {name}"
    _known(data, KEYS, where)
    kinds = [keys for keys in _KINDS.values() if any(k in data for k in keys)]
    if len(kinds) != 1:
        raise TileError(f"{where} says {'nothing' if not kinds else 'too much'}", help="an argument is " + ", or ".join(_KINDS))
    if "value" in data:
        return Argument(name, text=_literal(data["value"], where))
    if "fields" in data:
        return Argument(name, text=_structure(data["fields"], where))
    if "bytes" in data:
        return Argument(name, bytes=_size(data["bytes"], "bytes", where))
    return _tensor(data, name, where, path.parent, drawn)


def _size(value: object, key: str, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TileError(f"{where}: `{key}` is a whole number, and {value!r} is given")
    return value


def _literal(value: object, where: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return "{" + ", ".join(_literal(v, where) for v in value) + "}"
    raise TileError(f"{where}: a value is a number, true or false, and {value!r} is given")


def _structure(fields: object, where: str) -> str:
    if not isinstance(fields, dict):
        raise TileError(f"{where}: `fields` is a table of names and values", help="for example: fields = {length = 2048}")
    return "{" + ", ".join(f".{k} = {_literal(v, where)}" for k, v in fields.items()) + "}"


def _tensor(data: Mapping[str, Any], name: str, where: str, folder: Path, drawn: bool) -> Argument:
    output = bool(data.get("output", False))
    if "file" in data:
        array = load(folder / str(data["file"]), where)
        _agrees(array, data, where)
    else:
        array = _generated(data, where)
    expect = load(folder / str(data["expect"]), where) if "expect" in data else None
    save = folder / str(data["save"]) if "save" in data else None
    given = "file" in data or "generator" in data
    drawn = drawn and not output and not given
    if not output and not given and not drawn:
        raise TileError(f"{where}: an input needs `file` or `generator`", help="an output has `output = true`")
    if expect is not None and expect.shape != array.shape:
        raise TileError(f"{where}: `expect` has the shape {list(expect.shape)}, and the tensor {list(array.shape)}")
    alike = bool(data.get("alike", False))
    return Argument(name, array, given, drawn, output, expect, float(data.get("tolerance", 1e-3)), save, alike=alike)


def load(path: Path, where: str) -> np.ndarray:
    """The array of a .npy file; TileError where there is none."""
    try:
        array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise TileError(f"{where}: there is no file '{path}'") from None
    except (OSError, ValueError, EOFError):
        raise TileError(f"{where}: '{path}' is not a .npy array file") from None
    if array.dtype.kind == "V" and array.dtype.itemsize == 2:  # as NumPy stores bf16
        array = array.view(dtype("bf16"))
    return np.asarray(array)


def _agrees(array: np.ndarray, data: Mapping[str, Any], where: str) -> None:
    if "shape" in data and list(array.shape) != data["shape"]:
        raise TileError(f"{where}: the file holds the shape {list(array.shape)}, and `shape` says {data['shape']}")
    if "dtype" in data and array.dtype != dtype(str(data["dtype"]), where):
        raise TileError(f"{where}: the file holds {array.dtype}, and `dtype` says {data['dtype']}")


def dtype(name: str, where: str = "") -> np.dtype:
    """The NumPy type of an element type: f16, bf16, f32, i8 to i64, u8 to u64, f8e4m3, f8e5m2, e8m0."""
    if name not in DTYPES:
        raise TileError(f"{where}: unknown dtype `{name}`", help=f"one of {', '.join(DTYPES)}")
    if of := dtype_of(name):
        return numpy_dtype(of)
    return np.dtype(f"{name[0]}{int(name[1:]) // 8}")


def _generated(data: Mapping[str, Any], where: str) -> np.ndarray:
    shape = data["shape"]
    if not isinstance(shape, list) or not all(_whole(n) and n > 0 for n in shape):
        raise TileError(f"{where}: `shape` is a list of whole numbers, and {shape!r} is given")
    kind, name = data.get("generator", "zeros"), data.get("dtype", "f32")
    if kind not in GENERATORS:
        raise TileError(f"{where}: unknown generator `{kind}`", help=f"one of {', '.join(GENERATORS)}")
    random = np.random.default_rng(_size(data.get("seed", 0), "seed", where))
    low, high = data.get("low", -1), data.get("high", 1)
    type_ = dtype(str(name), where)
    if kind == "uniform":
        whole = type_.kind in "iu" and "low" not in data
        drawn = random.integers(0 if type_.kind == "u" else -8, 9, shape) if whole else random.uniform(low, high, shape)
    else:
        drawn = {"normal": random.standard_normal(shape), "zeros": np.zeros(shape)}.get(
            kind, np.arange(np.prod(shape)).reshape(shape)
        )
    return np.asarray(drawn).astype(type_)
