"""Finds the kernels of an Ascend C file, and rewrites their launches, `kernel<<<blocks, memory, stream>>>(...)`, into calls."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tile_eg.errors import Span, TileError
from tile_eg.ops.records import record

TYPES = ("AIC_ONLY", "AIV_ONLY", "MIX_AIC_1_1", "MIX_AIC_1_2", "MIX_AIC_1_0", "MIX_AIV_1_0")
_QUALIFIERS = r"__(?:vector|cube|aicore|global)__|__mix__\s*\([^)]*\)|extern\s*\" *\"|void|inline|static"
_QUALIFIERS += r"|__attribute__\s*\(\([^()]*\)\)"
_CHOICE = r"#[ \t]*(?:if|ifdef|ifndef|elif|else|endif)\b[^\n]*"
"""A line of the preprocessor between the words before a kernel's name."""
_NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.M)


@record
class KernelText:
    """One `__global__` function: its name, its parameters as they are written, its type, and where it starts (line, 1-based)."""

    name: str
    parameters: tuple[str, ...]
    type: str
    line: int


def blanked(source: str) -> str:
    """The text with its comments and the insides of its strings as spaces, every other character where it was."""

    def blank(found: re.Match[str]) -> str:
        text = found.group()
        inside = re.sub(r"[^\n]", " ", text[1:-1])
        return text[0] + inside + text[-1] if text[0] in "\"'" else " " + inside + " " if "\n" not in text[-1] else inside

    return _NOISE.sub(lambda m: blank(m) if len(m.group()) > 1 else m.group(), source)


def kernels(
    source: str,
    macros: Sequence[str] = (),
    working: Mapping[str, frozenset[str]] = {},
    preprocess: Callable[[str], str] = lambda text: text,
) -> list[KernelText]:
    """The kernels that a text defines, in its order; `macros` stand for `__global__`, among others, and `working` says of classes
    which kinds of cores they have work for. `preprocess` tells what is left of a text where `#if`s stand in a kernel's head."""
    text, words = blanked(source), "|".join(["__global__", *macros])
    word = "|".join([_QUALIFIERS, *macros])
    head = re.compile(rf"((?:{word})\s*(?:(?:{word}|{_CHOICE})\s*)*)\b(?!__)(\w+)\s*\(")
    heads = [found for found in head.finditer(text) if re.search(rf"\b(?:{words})\b", found.group(1))]
    taken: dict[str, str] = {}
    if any("#" in found.group(1) for found in heads):
        taken = {found.group(2): found.group(1) for found in head.finditer(blanked(preprocess(source)))}
    return [_kernel(text, found, taken.get(found.group(2), found.group(1)), working) for found in heads]


def _kernel(text: str, found: re.Match[str], head: str, working: Mapping[str, frozenset[str]]) -> KernelText:
    open_, close = found.end() - 1, closing(text, found.end() - 1)
    parameters = tuple(p for p in split(text[open_ + 1 : close]) if p != "void")
    body = text.find("{", close)
    inside = text[body : closing(text, body) + 1] if body >= 0 else ""
    line = text.count("\n", 0, found.start(2)) + 1
    return KernelText(found.group(2), parameters, _type(head, inside, working, _cube_alone(text)), line)


def _type(head: str, body: str, working: Mapping[str, frozenset[str]], cube_alone: bool) -> str:
    """From the attribute, else from KERNEL_TASK_TYPE_DEFAULT, else from what the body calls and from the classes that it names;
    vector cores otherwise. `cube_alone`: Matmul objects are those of the cube core."""
    if mix := re.search(r"__mix__\s*\(\s*(\d+)\s*,\s*(\d+)", head):
        return "MIX_AIV_1_0" if mix.group(1) == "0" else f"MIX_AIC_1_{mix.group(2)}"
    if one_kind := re.search(r"__(cube|vector)__|\(\s*(aic|aiv)\s*\)", head):
        return "AIC_ONLY" if one_kind[0] == "__cube__" or one_kind[2] == "aic" else "AIV_ONLY"
    if said := re.search(r"KERNEL_TASK_TYPE_DEFAULT\s*\(\s*KERNEL_TYPE_(\w+)", body):
        return said.group(1) if said.group(1) in TYPES else "MIX_AIC_1_2"
    if "ASCEND_IS_AI" in body:
        return "MIX_AIC_1_2"
    if re.search(r"\bREGIST_(?:MATMUL|CUBE)_OBJ\w*\s*\(", body):
        return "AIC_ONLY" if cube_alone else "MIX_AIC_1_2"
    if cores := frozenset().union(*(working[name] for name in re.findall(r"\w+", body) if name in working)):
        return f"{next(iter(cores))}_ONLY" if len(cores) == 1 else "MIX_AIC_1_2"
    return "AIC_ONLY" if re.search(r"\b(Mmad|LoadData|Fixpipe)\b", body) else "AIV_ONLY"


def _cube_alone(text: str) -> bool:
    """Whether a text says, whatever its macros are, that its Matmul objects are those of the cube core."""
    before, defined, _ = text.partition("#define ASCENDC_CUBE_ONLY")
    return bool(defined) and len(re.findall(r"^[ \t]*#[ \t]*if", before, re.M)) == before.count("#endif")


def has_main(source: str) -> bool:
    return re.search(r"\bmain\s*\(", blanked(source)) is not None


def rewrite(source: str, types: Mapping[str, str], file: str = "") -> str:
    """The text with its launches as calls of the runtime; every line stays where it was.

    `types` maps kernel names to kernel types. TileError for a launch that cannot be read.
    """
    text = blanked(source)
    out, end = [], 0
    for start, at in _launches(text):
        call, stop = _rewritten(source, text, start, at, types, file)
        out += [source[end:start], call]
        end = stop
    return "".join(out) + source[end:]


def _launches(text: str) -> Iterator[tuple[int, int]]:
    """Where the name of a launched kernel starts, and where its `<<<` is."""
    for found in re.finditer("<<<", text):
        head = text[: found.start()].rstrip()
        if head.endswith(">"):
            head = head[: _opening(head)].rstrip()
        name = re.search(r"[\w:]+$", head)
        if name:
            yield name.start(), found.start()


def _rewritten(source: str, text: str, start: int, at: int, types: Mapping[str, str], file: str) -> tuple[str, int]:
    line = text.count("\n", 0, start) + 1
    close = text.find(">>>", at)
    open_ = text.find("(", close)
    stop = closing(text, open_) + 1 if open_ >= 0 else 0
    if close < 0 or stop <= 0 or text[close + 3 : open_].strip():
        column = start - text.rfind("\n", 0, start)
        raise TileError("this launch cannot be read", Span(file, line, column, line, column + 1))
    function = source[start:at].strip()
    name = re.match(r"[\w:]+", function)
    base = name.group().split("::")[-1] if name else function
    type_ = f"::tile_sim::KernelType::{types.get(base) or next(iter(types.values()), 'AIV_ONLY')}"
    if name and (given := split(function[name.end() :].strip()[1:-1])):
        type_ = f"::tile_sim::type_by_cores<{given[0]}>({type_})"
    blocks = split(text[at + 3 : close])[0]
    call = f"{function}{source[open_:stop]}"
    replaced = f'::tile_sim::launch("{base}", {type_}, ({blocks}), {line}, [=]() mutable {{ {call}; }})'
    return replaced + "\n" * (source.count("\n", start, stop) - replaced.count("\n")), stop


def closing(text: str, open_: int) -> int:
    """The place of the bracket that closes the one at `open_`; -1 where none does."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    want = pairs[text[open_]]
    depth = 0
    for i in range(open_, len(text)):
        depth += (text[i] == text[open_]) - (text[i] == want)
        if not depth:
            return i
    return -1


def _opening(text: str) -> int:
    """The place of the `<` that the last character of the text closes."""
    depth = 0
    for i in range(len(text) - 1, -1, -1):
        depth += (text[i] == ">") - (text[i] == "<")
        if not depth:
            return i
    return 0


def split(text: str) -> list[str]:
    """The parts between the commas of the outermost level."""
    parts, depth, last = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and not depth:
            parts.append(text[last:i].strip())
            last = i + 1
    return [*parts, text[last:].strip()] if text.strip() else []


def included_files(path: Path, source: str, folders: Sequence[Path] = (), own: Path | None = None) -> dict[str, str]:
    """The files that a text includes from its own folder and below, or from one of `folders`, also by way of one another: name
    from that folder -> text. Those that `own` has are left out."""
    found: dict[str, str] = {}
    open_ = [("", source)]
    while open_:
        at, text = open_.pop()
        for name in _INCLUDED.findall(text):
            for inside in dict.fromkeys((posixpath.normpath(posixpath.join(at, name)), name)):
                where = next((folder / inside for folder in (path.parent, *folders) if _is_below(folder, inside)), None)
                if where is None or inside in found or (own and (own / name).is_file()):
                    continue
                found[inside] = where.read_text(encoding="utf-8", errors="replace")
                open_.append((posixpath.dirname(inside), found[inside]))
                break
    return found


def _is_below(folder: Path, name: str) -> bool:
    return ".." not in Path(name).parts and not Path(name).is_absolute() and (folder / name).is_file()
