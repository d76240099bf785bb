"""What a C++ compiler says of a kernel, told at the author's own line, without the insides of our headers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from tile_eg.errors import Span, TileError, did_you_mean
from tile_eg.simulator.build import INCLUDE
from tile_eg.simulator.high_level import API, INSTEAD, function_of

_PLACE = re.compile(
    r"(?:In file included from |\s+from )?(?P<file>[^\s:][^:\n]*):(?P<line>\d+)(?::(?P<column>\d+))?[:,]\s*(?P<text>.*)"
)
# Names of the vendor's that begin with a small letter or with underscores: number types, words of the register and thread models.
_SMALL = r"(__[a-zA-Z_]+__|asc_\w+|(?:fp4|fp8|hif8|hifloat)\w*_t)"
_UNKNOWN = (
    re.compile(r"'(\w+)' is not a member of '(?:AscendC|platform_ascendc)"),
    re.compile(r"no member named '(\w+)' in (?:namespace )?'AscendC"),
    re.compile(r"has no member named '(\w+)'"),
    re.compile(r"'([A-Z]\w+)' (?:was not declared|has not been declared|does not name a type)"),
    re.compile(rf"'{_SMALL}' (?:was not declared|has not been declared|does not name a type)"),
    re.compile(r"(?:use of undeclared identifier|unknown type name) '([A-Z]\w+)'"),
    re.compile(rf"(?:use of undeclared identifier|unknown type name) '{_SMALL}'"),
    re.compile(r"fatal error: '?([\w./]+\.h)'?(?:: No such file| file not found)"),
)
_QUALIFIERS = ("__global__", "__aicore__", "__gm__", "__ubuf__", "__cbuf__")
_OTHER_APIS = {
    **dict.fromkeys(("lib/", "adv_api/", "kernel_tiling/", "register/", "Matmul", "REGIST_MATMUL"), API),
    "tensor_api/": "the Tensor API",
    "simt_api/": "the SIMT API",
    "torch/": "PyTorch's C++ side",
    "graph/": "the graph engine's C++ side",
    "pybind11/": "pybind11's C++ side",
}
"""What is not simulated, by how its headers and names begin."""


def explained(
    output: str, path: Path, source: str, unit: str, included: Mapping[str, tuple[str, str]] = MappingProxyType({})
) -> TileError:
    """The first mistake as an error at its line of the file, or of one that it includes; the next ones (at most 4) as notes.

    `unit` is the name under which the file was compiled, `included` the paths and texts that it includes, by their names.
    """
    paths = {unit: str(path), **{name: place for name, (place, _) in included.items()}}
    found = list(dict.fromkeys(_mistakes(output, paths)))
    found = sorted(found, key=lambda one: _distance(_unknown(one[1])))[:5]
    if not found:
        return TileError(f"'{path}' does not compile: {output.strip().splitlines()[-1] if output.strip() else 'no message'}")
    (span, message), *rest = found
    unknown = _unknown(message)
    texts = (source, *(text for _, text in included.values()))
    declared = any(re.search(r'#\s*include\s*[<"].*kernel_\w*\.h', text) for text in texts)
    help = _help(unknown) if declared else "the file does not include kernel_operator.h, which declares the words of Ascend C"
    error = TileError(_told(message, unknown), span, help=help, notes=tuple((text, at) for at, text in rest))
    error.source, error.texts = source, dict(included.values())
    return error


def _unknown(message: str) -> str:
    """The name that a compiler's message says is not known (empty: it says something else)."""
    return next((m.group(1) for pattern in _UNKNOWN if (m := pattern.search(message))), "")


def _distance(unknown: str) -> int:
    """A call of a function of the high-level API is told first, then what belongs to one: all else follows from them."""
    return 0 if unknown in INSTEAD else 1 if function_of(unknown) else 2


def _told(message: str, unknown: str) -> str:
    if not unknown:
        return re.sub(r'^#error "(.*)"$', r"\1", message)
    if function := function_of(unknown):
        of = "" if unknown == function else f" (here: '{unknown}')"
        return f"{function} of the high-level API is not simulated{of}"
    api = next((api for start, api in _OTHER_APIS.items() if unknown.startswith(start)), "")
    if unknown in _QUALIFIERS:
        return f"nothing says what '{unknown}' is"
    if api:
        of_the_devkit = "; --devkit DIR takes it from a checkout of asc-devkit" if api == API else ""
        return f"{api} is not simulated ('{unknown}'): the basic API is, down from DataCopy, Mmad and Add{of_the_devkit}"
    return f"'{unknown}' is not simulated" + ("" if unknown.endswith(".h") else f" ({message})")


def _help(unknown: str) -> str:
    if function := function_of(unknown):
        return f"--devkit DIR takes it from a checkout of asc-devkit; what does its work: {INSTEAD[function]}"
    if not unknown or unknown.endswith(".h"):
        return "docs/simulator.md lists what the simulator knows" if unknown else ""
    if unknown in known_names():
        return "the simulator knows it for another architecture; --chip chooses one (950 is of 3510)"
    hint = did_you_mean(unknown, known_names())
    if unknown.isupper() and not hint.startswith("did you mean"):
        return f"where its build defines it, pass that: -D {unknown}=VALUE; docs/simulator.md lists what the simulator knows"
    return hint if hint.startswith("did you mean") else "docs/simulator.md lists what the simulator knows"


def _mistakes(output: str, paths: Mapping[str, str]) -> Iterator[tuple[Span | None, str]]:
    """Each error at the last place in the author's text that the compiler named for it."""
    here: Span | None = None
    for line in output.splitlines():
        place = _PLACE.match(line)
        if not place:
            if line.startswith("In file included"):
                here = None
            continue
        at = _span(place, paths)
        text = place["text"]
        if re.match(r"(fatal )?error:", text):
            yield at or here, text if text.startswith("fatal") else text.partition("error:")[2].strip()
            here = None
        elif at is not None:
            here = at


def _span(place: re.Match[str], paths: Mapping[str, str]) -> Span | None:
    """The place in one of the author's files; `paths`: name as the compiler knows it -> path."""
    path = paths.get(place["file"].removeprefix("./"))
    if path is None:
        return None
    line, column = int(place["line"]), int(place["column"] or 1)
    return Span(path, line, column, line, column + 1)


@cache
def known_names() -> frozenset[str]:
    """The names that the headers give a kernel: functions, classes, constants."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in sorted((INCLUDE / "ascend_c").glob("*.h")))
    names = re.findall(r"(?m)\b([A-Z]\w+)\s*\(", text) + re.findall(r"\b(?:class|struct|using)\s+([A-Z]\w+)", text)
    names += re.findall(r"(?m)^TILE_SIM_\w+\((\w+)", text)
    return frozenset(n for n in names if not n.startswith("TILE_SIM"))
