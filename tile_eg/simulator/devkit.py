"""The vendor's public headers of the high-level API, taken from a checkout of asc-devkit that the user names.

The functions of the high-level API (`SoftMax`, `LayerNorm`, `TopK`, Matmul objects, ..) are templates over the basic API. With a
checkout at hand a file is compiled with these very templates, and with the simulator in the place of the basic API below them: so
their instructions, their temporary buffers and their roundings are the vendor's. What the host computes for them (tiling) is
compiled from the checkout's sources as well.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from tile_eg.errors import TileError
from tile_eg.ops.records import record
from tile_eg.simulator.build import INCLUDE
from tile_eg.simulator.empty_bodies import refusing
from tile_eg.simulator.launches import blanked

ENTRY = "include/adv_api/kernel_api.h"
TILING = "include/adv_api/tiling_api.h"
_KERNEL_TILING = "kernel_tiling/kernel_tiling.h"
FUNCTIONS, OWN = "kernel_operator.h", "ascend_c/devkit.h"
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.M)
_DATA = tuple(f"impl/basic_api/utils/kernel_utils_{part}.h" for part in ("constants", "struct_norm_sort", "struct_confusion_pad"))
"""Numbers and structures, without instructions, that the high-level API shares with the basic one."""
_CONSTANTS = _DATA[0]
_LAYOUTS = "impl/basic_api/kernel_operator_coord.h"
"""Shapes and strides of tensors, and coordinates in them: numbers alone, as `TransData` and the host's views of GM take them."""
_OF_LAYOUTS = frozenset(("MakeLayout", "MakeShape", "MakeStride", "MakeCoord"))
_MESSAGES = "impl/basic_api/dav_c220/kfc/kfc_comm.h"
_NUMBERS = ("include/utils/std/", "impl/utils/std/", "impl/basic_api/kernel_operator_layout.h", _LAYOUTS)
_TAKEN = ("include/adv_api/", "impl/adv_api/", *_NUMBERS, _MESSAGES, *_DATA)
"""What is taken from the checkout. All else of it that is included is the simulator's part."""
_OWN = ("include/adv_api/utils/types.h", "impl/adv_api/detail/host_log.h", "impl/adv_api/detail/hccl/", "include/adv_api/hccl/")
"""What of these is the simulator's part nevertheless."""
_HOSTS = "impl/adv_api/tiling/"
"""What the host compiles: it has no instructions."""
_SERVER = "impl/adv_api/detail/kfc/kernel_kfc.h"
"""Which serves Matmul objects of vector cores: by messages, that are the simulator's part."""
_TUPLES = "include/utils/std/tuple.h"
_OBJECTS_HEADER = "lib/matmul_intf.h"
_OWN_MESSAGES = "ascend_c/messages.h"
_MESSAGE = re.compile(r"constexpr int32_t MIX_NUM\b[^;]*;|__aicore__ inline void Barrier\(\)\n\{.*?\n\}", re.S)
_SENDING = "struct SysWorkspaceDesc"
"""What the header of the messages has beside their structures and numbers, and where it begins to send and receive them."""
_KINDS = """#ifdef ASCENDC_CUBE_ONLY
#define SPLIT_CORE_CUBE
#elif __NPU_ARCH__ == 3510
#error "Matmul objects of vector cores are simulated on 2201 alone: here those of the cube core are (ASCENDC_CUBE_ONLY)"
#else
#define TILE_SIM_BOTH_KINDS 1
#endif
"""
"""Matmul objects are of the cube core alone, or both kinds of cores run one text, as the vendor's own debugging on a CPU does."""
_OF_BOTH_KINDS = ("include/adv_api/matmul/matmul_intf.h", "include/adv_api/matmul/matmul_client.h", "impl/adv_api/detail/kfc/")
_OBJECTS = (*_OF_BOTH_KINDS, "impl/adv_api/detail/matmul/kfc/")
_HOST = "#pragma once\n#include <ascend_c/devkit_host.h>\n"
ROOTS = ("", "include", "include/adv_api", "include/basic_api", "impl")
"""Where in the checkout its headers look for one another."""
_FUNCTION = re.compile(r"^(?:__aicore__ )?inline (?:__\w+__(?:\([\w, ]+\))? )*(?:constexpr )?[\w:<>]+ (\w+)\(", re.M)
_SPELT = {"BroadCast": "Broadcast"}
"""What the vendor's own samples call of a header, beside the function that its page describes."""
_NUMBER = re.compile(r"(?:static )?const(?:expr)? \w+ (\w+)\s*=[^;]*;")
_OWN_NUMBER = re.compile(r"\b(\w+) = \d+[;,]")
_KEPT = re.compile(rf"#(?!pragma|include)|namespace \w+ {{|}}\s*// namespace|{_NUMBER.pattern}|\s+\(*(?:defined|__NPU_ARCH__)")
_REWRITTEN = (  # an instruction as an argument; where a tensor begins; a number or a field
    (re.compile(r"(,\s*)((?:Add|Sub|Mul|Div|Max|Min|And|Or|Exp)<\w+(?:, \w+)?>\s*[)>])"), r"\1by_pointer::\2"),
    (re.compile(r"\b(gm|\w*[gG]lobal\w*(?:(?:<\w+>)?\(\))?)\.address_\b"), r"\1.GetPhyAddr()"),
    (re.compile(r"\? (\w+) : (params\.\w+);"), r"? int64_t(\1) : int64_t(\2);"),
)
"""What the checkout says of the inside of the basic API's classes, in the words of the simulator's."""
_ANSWERED = (
    (re.compile(r"\bNotifyEvent<PIPE_FIX>\(eventID"), "AnswerVectorCore<PIPE_FIX, A_TYPE::ibShare && B_TYPE::ibShare>(eventID"),
    (re.compile(r"\bWaitEvent\((this->devEvtID|intraId)\)"), r"WaitForCubeCore(\1)"),
    (re.compile(r"\b(cGlobal\.SetGlobalBuffer\(reinterpret_cast<__gm__ DstT\*>\([^;]*\)), size\);"), r"\1);"),
)
"""How the cube core answers one vector core: with flags that no other core counts. What it stores to is as long as the tensor in
GM: a message has its address alone, and rows of the result are further apart than the part of them that one core computes."""
_DEFINED = re.compile(r"^(?!return|else|using|static)\w[\w:<>&*, ]*[ &*](?:(\w+)::)?(\w+)\(", re.M)
_STRUCTURE = re.compile(r"BEGIN_TILING_DATA_DEF\((\w+)\)(.*?)END_TILING_DATA_DEF", re.S)
_FIELD = re.compile(r"TILING_DATA_FIELD_DEF(_ARR|_STRUCT)?\(\s*([^,()]+?)\s*,\s*([^,()]+?)\s*(?:,\s*(\w+)\s*)?\)")


@record
class Devkit:
    """A checkout of asc-devkit at `root`. Raises TileError where there is none."""

    root: Path

    def __post_init__(self) -> None:
        if not (self.root / ENTRY).is_file():
            help = "it is a folder with include/adv_api and impl/adv_api, as a clone of https://gitcode.com/cann/asc-devkit is"
            raise TileError(f"'{self.root}' is not a checkout of asc-devkit: it has no {ENTRY}", help=help)

    @cached_property
    def functions(self) -> dict[str, str]:
        """The header of each function of the high-level API: name -> path in the checkout."""
        found = {name: header for header in self._listed(ENTRY) for name in _FUNCTION.findall(self._read(header))}
        return found | {spelt: found[name] for spelt, name in _SPELT.items() if name in found}

    @cached_property
    def tiling(self) -> dict[str, frozenset[str]]:
        """The functions, and the classes of the methods, that each source of the host's side defines: path -> names."""
        sources = sorted((self.root / "impl/adv_api/tiling").rglob("*.cpp"))
        paths = [file.relative_to(self.root).as_posix() for file in sources]
        return {path: frozenset(class_ or name for class_, name in _DEFINED.findall(self._read(path))) for path in paths}

    def texts(self, sources: Sequence[str]) -> dict[str, str]:
        """The headers with which files of these texts are compiled: path -> text. The simulator's stand for those below them."""
        words = _words(sources)
        named = sorted({header for name, header in self.functions.items() if name in words})
        objects = any(_OBJECTS_HEADER in text for text in sources)
        matmul = "#define TILE_SIM_MATMUL\n" if objects else ""
        beside = [_LAYOUTS] if words & _OF_LAYOUTS and self.text(_LAYOUTS) else []
        found = {
            FUNCTIONS: matmul + _including(f"<{FUNCTIONS}>", f"<{OWN}>", *(f'"{header}"' for header in (*beside, *named))),
            _KERNEL_TILING: self._kernel_tiling(),
            "tiling/tiling_api.h": _HOST + _including(*self._host_headers(words)),
        }
        found |= {path: self._text(path) for path in _DATA}
        found |= self._objects() if objects else {}
        found[_CONSTANTS] = _constants(found[_CONSTANTS])
        return self._with_included(found)

    def host_sources(self, sources: Sequence[str]) -> dict[str, dict[str, str]]:
        """What computes the tiling that files of these texts ask for: each source's path -> it and its headers."""
        words, wanted = _words(sources), set[str]()
        while more := {path for path, names in self.tiling.items() if names & words} - wanted:
            wanted |= more
            words |= _words([self._read(path) for path in more])
        folders = {posixpath.dirname(path) for path in wanted if any(class_ for class_, _ in _DEFINED.findall(self._read(path)))}
        wanted |= {path for path in self.tiling if posixpath.dirname(path) in folders}  # classes are spread over files
        beside = {_KERNEL_TILING: self._kernel_tiling(), "securec.h": _HOST}
        return {path: self._with_included({path: self._text(path), **beside}) for path in sorted(wanted)}

    def text(self, path: str) -> str:
        """The text of a header of the checkout, as it is there; empty where it has none of that path."""
        return self._read(path) if path and _is_taken(path) and (self.root / path).is_file() else ""

    def _with_included(self, found: dict[str, str]) -> dict[str, str]:
        """The texts, and what they include of the checkout: path -> text. What is the simulator's part is empty there."""
        open_ = list(found)
        while open_:
            at = open_.pop()
            for name in _INCLUDED.findall(found[at]):
                inside = self._place(at, name)
                if inside and inside not in found:
                    found[inside] = self._text(inside) if _is_taken(inside) else _HOST if inside in _OWN else "#pragma once\n"
                    open_.append(inside)
        return found

    def _host_headers(self, words: set[str]) -> Iterator[str]:
        for header in self._listed(TILING):
            text = self._read(header)
            if any(word in words for word in re.findall(r"\b(?:Get\w+|\w+Tiling\w*)\b", text)):
                yield f'"{header}"'

    def _listed(self, header: str) -> list[str]:
        """The headers that a header of the checkout includes, where they are taken from it."""
        places = (self._place(header, name) for name in _INCLUDED.findall(self._read(header)))
        return [place for place in places if place and _is_taken(place)]

    def _place(self, at: str, name: str) -> str:
        """The path in the checkout of what the header at `at` includes; empty where the checkout does not have it."""
        tried = (posixpath.normpath(posixpath.join(root, name)) for root in (posixpath.dirname(at), *ROOTS))
        return next((path for path in tried if not path.startswith("..") and (self.root / path).is_file()), "")

    def _read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8", errors="replace")

    def _text(self, path: str) -> str:
        text = self._read(path)
        text = text if path.startswith(_HOSTS) else refusing(text, inside=path.startswith("impl/"))
        for pattern, new in _REWRITTEN if "detail/" in path else ():
            text = pattern.sub(new, text)
        for pattern, new in _ANSWERED if path.startswith(_OBJECTS) else ():
            text = pattern.sub(new, text)
        return re.sub(r"\bASCENDC_CPU_DEBUG\b", "TILE_SIM_BOTH_KINDS", text) if path.startswith(_OF_BOTH_KINDS) else text

    def _objects(self) -> dict[str, str]:
        """The headers of Matmul objects, with the structures of the messages by which those of vector cores are served."""
        cube_alone = _including('"include/adv_api/matmul/matmul.h"')
        both = f"#include <{_OWN_MESSAGES}>\n{self._text(_SERVER) if self.text(_SERVER) else ''}"
        beside = [f'"{_TUPLES}"'] if self.text(_TUPLES) else []
        messages = self.text(_MESSAGES).partition(_SENDING)[0]
        return {
            _OBJECTS_HEADER: _KINDS + _including(f'"../{FUNCTIONS}"', *beside, '"include/adv_api/matmul/matmul_intf.h"'),
            _SERVER: f"#pragma once\n#ifdef ASCENDC_CUBE_ONLY\n{cube_alone}#else\n{both}\n#endif\n",
            _MESSAGES: f"#pragma once\n{_MESSAGE.sub('', messages)}}}\n#endif\n",
        }

    def _kernel_tiling(self) -> str:
        """The structures of numbers that hosts give kernels, as kernels see them."""
        folder = self.root / "include/adv_api"
        texts = [file.read_text(encoding="utf-8") for file in sorted(folder.rglob("*_tilingdata.h"))]
        parts = [part for text in texts for part in _STRUCTURE.findall(text)]
        structs = "\n".join(f"struct {name} {{ {' '.join(_fields(body))} }};" for name, body in _in_order(parts))
        space = "AscendC::tiling"
        return f"#pragma once\n#include <cstdint>\nnamespace {space} {{\n{structs}\n}}\nusing namespace {space};\n"


def _words(sources: Sequence[str]) -> set[str]:
    return {word for text in sources for word in re.findall(r"\w+", blanked(text))}


def _in_order(parts: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The structures, each behind those that it has as fields."""
    left = dict(parts)
    while left:
        ready = [name for name, body in left.items() if not any(other != name and f"({other}," in body for other in left)]
        for name in ready or list(left):
            yield name, left.pop(name)


def _fields(body: str) -> Iterator[str]:
    for kind, type_, second, third in _FIELD.findall(body):
        yield f"{type_} {third}[{second}] = {{}};" if kind == "_ARR" else f"{type_} {second}{{}};"


def _constants(text: str) -> str:
    """The numbers of a header that the simulator's headers do not define, with the conditions that they stand under."""
    headers = "".join(header.read_text(encoding="utf-8") for header in (INCLUDE / "ascend_c").glob("*.h"))
    own = set(_OWN_NUMBER.findall(headers))
    kept = (line for line in text.splitlines() if _KEPT.match(line) and not ((found := _NUMBER.match(line)) and found[1] in own))
    return "#pragma once\n" + "\n".join(kept) + "\n"


def _is_taken(path: str) -> bool:
    return path.startswith(_TAKEN) and not path.startswith(_OWN)


def _including(*names: str) -> str:
    return "#pragma once\n" + "".join(f"#include {name}\n" for name in names)
