"""What stands on the command line, as values: sizes by name, arrays by tensor name, files to write."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from contextlib import suppress
from copy import copy
from itertools import product
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from tile_eg.chips import load_chip
from tile_eg.errors import TileError
from tile_eg.ir.arrays import as_bytes, check_argument, numpy_dtype, signature
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.open_kernel import AUTO
from tile_eg.simulator.limits import USUAL

if TYPE_CHECKING:
    import numpy as np


def _named(chip: str | None) -> str | None:
    """A chip as it is given. TileError where its name is empty, as a variable of a shell's may be."""
    if chip == "":
        load_chip(chip)
    return chip


OnChip = Annotated[
    str | None, typer.Option("--chip", metavar="NAME", callback=_named, help="The chip; `tile-eg chips` lists them.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=NUMBER,...", help="Sizes of the kernel, and numbers of its call. Repeatable."),
]
SEARCH = "search"
X = TypeVar("X")
Schedule = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER|search",
        help="A number of `alternatives`; or `search`: search a kernel with flags or scopes without them.",
    ),
]
Searched = Annotated[
    str | None, typer.Option("--schedule", metavar="search", help="Search a kernel with flags or scopes without them.")
]
MEMORY = USUAL.bytes / 2**30
Memory = Annotated[
    float,
    typer.Option(
        "--memory", min=0.001, metavar="GIB", help="GiB that the simulator may use; a run needs 1.6 times what it touches."
    ),
]


def command_of(app: typer.Typer, arguments: Sequence[str]) -> Any:
    """The command that is asked for alone, as to set up all takes long; all of them where it is none."""
    asked = [c for c in app.registered_commands if (c.name or getattr(c.callback, "__name__", "")) in arguments[:1]]
    one = copy(app)
    one.registered_commands = asked or app.registered_commands
    return typer.main.get_command(one)


UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""A command line that cannot be read. Newer releases of typer bring a click of their own, so it is reached by way of typer."""


def unreadable(error: Any) -> TileError:
    """A `UsageError` as the user's mistake."""
    command = error.ctx.command_path if error.ctx else "tile-eg"
    return TileError(error.format_message(), help=f"see {command} --help")


def memory_bytes(gib: float) -> int:
    """The bytes of `--memory`. TileError where they are no number."""
    if not isfinite(gib):
        raise TileError(f"--memory {gib}: it is a number of GiB", help=f"--memory {MEMORY:g} is the usual one")
    return int(gib * 2**30)


SECONDS = USUAL.seconds
Seconds = Annotated[
    float, typer.Option(min=0.1, metavar="NUMBER", help="Seconds of processor time that the simulated run may take.")
]
Unconfined = Annotated[
    bool, typer.Option("--unconfined", help="Let the simulated code do all that you may do: files, network, programs.")
]


def pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE arguments of a repeated option; the last one of a name wins."""
    out = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not (name.isidentifier() and sign and value):
            example = _EXAMPLE.get(option, _EXAMPLE["--set"])
            raise TileError(f"{option} {text}: expected NAME=VALUE", help=f"for example: {option} {example}")
        out[name] = value
    return out


_EXAMPLE = {"--set": "M=512", "--at": "M=1,128,4096", "--input": "A=a.npy"}


def sizes(given: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """The sizes and numbers of `--set NAME=NUMBER`, or of another such option, several of them in `M=64,N=128`: each is a number,
    or `auto`, which the search is to find. Whether it has to be whole, and how large, its parameter says."""
    each = [piece for text in given for piece in _apart(text)]
    return {name: AUTO if value == AUTO else _number(name, value, option) for name, value in pairs(option, each).items()}


def _apart(text: str) -> list[str]:
    """The pieces between commas, where each has a name; else the text, of which a message is to say what it is."""
    pieces = text.split(",")
    return pieces if all("=" in p for p in pieces) else [text]


def _number(name: str, value: str, option: str) -> int | float:
    try:
        return int(value)
    except ValueError:
        with suppress(ValueError):
            if isfinite(found := float(value)):
                return found
        raise TileError(f"{option} {name}={value}: '{value}' is no number", help=f"{option} {name}=512, or {name}=0.5") from None


def check_sizes(given: Mapping[str, int | float | str], of_calls: Container[str] = ()) -> None:
    """TileError for a size that is no positive whole number; those `of_calls` may be 0."""
    for name, value in given.items():
        if value != AUTO and not (value == 0 and name in of_calls):
            _size(name, str(value))


def points(given: Sequence[str], option: str = "--at") -> dict[str, tuple[int, ...]]:
    """The sizes of `--at NAME=NUMBER,NUMBER` by name, or of another such option: all that are given, in one argument or in
    several; `M=1,128,N=64` has the numbers of two names."""
    return _points(given, option, _size)


def choices(given: Sequence[str], option: str = "--set") -> dict[str, tuple[int | float, ...]]:
    """The same of numbers; whether one has to be whole, and how large, its parameter says."""
    return _points(given, option, _number)


def _points(given: Sequence[str], option: str, number: Callable[[str, str, str], X]) -> dict[str, tuple[X, ...]]:
    found: dict[str, dict[X, None]] = {}
    for text in given:
        name = ""
        for piece in text.split(","):
            if "=" in piece or not name:
                ((name, piece),) = pairs(option, [piece]).items()
            found.setdefault(name, {})[number(name, piece, option)] = None
    return {name: tuple(numbers) for name, numbers in found.items()}


def several_sizes(given: Sequence[str]) -> list[dict[str, int]]:
    """Every choice of one number for each name of `--at NAME=NUMBER,NUMBER`, the last name varying fastest."""
    each = [[(name, n) for n in numbers] for name, numbers in points(given).items()]
    return [dict(choice) for choice in product(*each)]


def check_clash(sizes: Collection[str], several: Collection[str]) -> None:
    """TileError where a name has one size of `--set` and several of `--at`."""
    if clash := sorted(set(sizes) & set(several)):
        raise TileError(f"{', '.join(clash)}: either one size (--set) or several to be priced at (--at)")


def _size(name: str, value: str, option: str = "--set") -> int:
    try:
        number = int(value)
    except ValueError:
        raise TileError(f"{option} {name}={value}: a size is a whole number, and '{value}' is none") from None
    if number <= 0:
        raise TileError(f"{option} {name}={value}: a size is at least 1")
    return number


def shapes(given: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays of `--input`, as far as the files can be read; `arrays` says what is wrong with the others."""
    import numpy as np

    out = {}
    for name, file in pairs("--input", given).items():
        with suppress(OSError, ValueError, EOFError, AttributeError):
            out[name] = np.load(file, mmap_mode="r", allow_pickle=False).shape
    return out


def given_arrays(tensors: Sequence[Tensor], given: Sequence[str]) -> dict[str, np.ndarray]:
    """The arrays of the files that `--input NAME=FILE` names."""
    inputs = {t.name: t for t in tensors if not t.output}
    files = pairs("--input", given)
    for name in files:
        if name not in inputs:
            known = "its inputs: " + signature(inputs.values())
            raise TileError(f"--input {name}: the kernel has no such input", help=known)
    return {name: read_array(Path(file), inputs[name]) for name, file in files.items()}


def read_array(path: Path, tensor: Tensor) -> np.ndarray:
    """A tensor's array from a .npy file. NumPy stores bf16 as raw pairs of bytes; they are read as what they were."""
    import numpy as np

    try:
        array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise TileError(f"--input {tensor.name}: there is no file '{path}'") from None
    except OSError as error:
        raise TileError(f"--input {tensor.name}: cannot read '{path}': {error.strerror or error}") from None
    except (ValueError, EOFError):
        help = f"write one with numpy.save('{path.stem}.npy', array)"
        raise TileError(f"--input {tensor.name}: '{path}' is not a .npy array file", help=help) from None
    if not isinstance(array, np.ndarray):
        raise TileError(f"--input {tensor.name}: '{path}' holds several arrays; one .npy file holds one")
    if array.dtype.kind == "V" and array.dtype.itemsize == tensor.dtype.bytes:
        array = array.view(numpy_dtype(tensor.dtype))
    array = as_bytes(tensor, array) if array.dtype == "bool" else array
    check_argument(tensor, array)
    return array


def schedule(given: str | None) -> int | str | None:
    """What `--schedule` says: a number, or "search"."""
    if given is None or given == SEARCH:
        return given
    if not given.isdecimal() or int(given) < 1:
        raise TileError(f"--schedule {given}: a schedule's number, or {SEARCH}", help="tile-eg alternatives FILE numbers them")
    return int(given)


def searched(given: str | None) -> bool:
    """Whether `--schedule search` is given. TileError for anything else."""
    if given not in (None, SEARCH):
        raise TileError(f"--schedule {given}: here it is {SEARCH}", help="tile-eg diff FILE NUMBER NUMBER compares two schedules")
    return given == SEARCH


def save_arrays(folder: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes each array as FOLDER/NAME.npy; the folder is made."""
    import numpy as np

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)


def to_write(path: Path | None) -> Path | None:
    """A file that a command is to write. TileError where it cannot be one, which is told before the work that fills it."""
    if path is not None:
        _check_place(path)
        if path.is_dir():
            raise TileError(f"cannot write '{path}': it is a folder", help=f"name a file in it: {path / 'NAME'}")
    return path


def to_fill(folder: Path | None) -> Path | None:
    """A folder that a command is to make, with those above it. TileError where a file is in the way."""
    if folder is not None:
        there = next(p for p in (folder, *folder.parents) if p.exists())
        if not there.is_dir():
            raise TileError(f"cannot write '{folder}': '{there}' is a file, not a folder")
        _check_place(there / folder.name)
    return folder


def _check_place(path: Path) -> None:
    """TileError where no file can be made beside it, or it cannot be written itself."""
    if not path.parent.is_dir():
        why = "is a file, not a folder" if path.parent.exists() else "does not exist"
        raise TileError(f"cannot write '{path}': '{path.parent}' {why}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise TileError(f"cannot write '{path}': nothing can be written there")


class writing:
    """A context in which a file that cannot be written is the user's error."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise TileError(f"cannot write '{self.path}': {error.strerror or error}") from None
