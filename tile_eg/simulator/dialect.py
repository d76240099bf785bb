"""What CANN's compiler takes of a text and a C++ compiler does not, written as C++; every line stays where it was.

CANN compiles a text twice, for the cube core (`g_coreType` is `AscendC::AIC`) and for the vector cores (`AIV`). Here it is
compiled once, and a core asks at run time which it is. So of a function that is specialised for the two, the one for the core at
hand is called (`template <int C = g_coreType> void f(P p);` with `template <> void f<AscendC::AIC>(P p) {}`), and a choice by
`if constexpr (g_coreType == ..)` is one at run time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tile_eg.simulator.launches import blanked, closing, split

CORE, CORES = "g_coreType", ("AIC", "AIV")
_SIDES = re.compile(r"\[\s*(?:host|aicore)\s*(?:,\s*(?:host|aicore)\s*)*\]")
_IF = re.compile(rf"\bif\s+constexpr\s*(?=\([^()]*\b{CORE}\b)")
_ASKED = re.compile(rf"(?:\bAscendC::)?\b{CORE}\b\s*(==|!=)\s*(?:AscendC::)?(AIC|AIV)\b")
_CHOSEN = re.compile(rf"\bconstexpr(\s+[\w:]+\s+\w+\s*=)\s*([\w:]+<[^<>;]*\b{CORE}\b[^<>;]*>::\w+);")
_PRIMARY = re.compile(rf"template\s*<\s*(\w+)\s+(\w+)\s*=\s*(?:AscendC::)?{CORE}\s*>")
_SPECIAL = re.compile(r"template\s*<\s*>")
_CLASS = re.compile(r"template\s*<\s*>\s*(?:struct|class)\s+(\w+)\s*<")
_DEFAULT = re.compile(r"(?<=[;{}:])(\s*(?:\w+\s+)*)(?<!~)\b(\w+)\s*\(\s*\)\s*=\s*default\s*;")
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\([^()]*\)\)")
_ASKS = "ASCEND_IS_"
_CALLED = re.compile(r"\boperator\s*\(\s*\)\s*(?=\()")
_FOR = re.compile(r"<\s*(?:AscendC::)?(AIC|AIV)\s*>\s*(?=\()")


def as_cpp(source: str) -> str:
    """The text as a C++ compiler takes it."""
    if not any(word in source for word in (CORE, "default", _ASKS)) and not any(p.search(source) for p in (_SIDES, _SPECIAL)):
        return source
    text = blanked(source)
    edits = [*_plain(text), *_specialised(text), *_asking(text), *_member_classes(text), *_aggregates(text)]
    out, end = [], 0
    for start, stop, new in sorted(edits):
        out += [source[end:start], new]
        end = stop
    return "".join(out) + source[end:]


Edit = tuple[int, int, str]


def _plain(text: str) -> Iterator[Edit]:
    """Qualifiers that say where a function runs, and questions for the core."""
    for found in _SIDES.finditer(text):
        yield found.start(), found.end(), _lines(found.group())
    for found in _IF.finditer(text):
        yield found.start(), found.end(), "if "
    for found in _ASKED.finditer(text):
        asked = f"::tile_sim::is_{found[2].lower()}()"
        yield found.start(), found.end(), asked if found[1] == "==" else f"!{asked}"
    for found in _CHOSEN.finditer(text):
        one, other = (re.sub(rf"(?:AscendC::)?\b{CORE}\b", f"AscendC::{core}", found[2]) for core in CORES)
        yield found.start(), found.end(), f"const{found[1]} ::tile_sim::is_aic() ? {one} : {other};"


def _specialised(text: str) -> Iterator[Edit]:
    """Functions with a specialisation for each kind of core. A class cannot hold specialisations in C++ of some compilers: they
    become overloads that only their core's number takes, and the function that they are of calls the one for the core at hand."""
    for found, stop in _primaries(text):
        specials = list(_specials(text, found.end(), stop))
        end = _end_of_head(text, found.end())
        if not specials or end < 0:
            continue
        after = end + 1 if text[end] == ";" else closing(text, end) + 1
        parameter = f"{found[1]} {found[2]}"
        yield found.start(), found.end(), f"template <{parameter} = {CORE}, {_only(found[2], 'AscendC::MIX')}>"
        calls = _calls(text[found.end() : end], {core: empty for _, _, core, empty in specials})
        yield end, after, calls + _lines(text[end:after])
        for start, name_end, core, _ in specials:
            head = _SPECIAL.match(text, start)
            assert head
            yield start, head.end(), f"template <{parameter}, {_only(found[2], f'AscendC::{core}')}>"
            at = _FOR.search(text, start)
            assert at and at.end() <= name_end
            yield at.start(), at.end(), ""


def working_cores(source: str) -> dict[str, frozenset[str]]:
    """The classes of a text with a function that is specialised for kinds of cores, by name: those for which it does anything."""
    text = blanked(source) if CORE in source else ""
    found = {}
    for primary, stop in _primaries(text):
        specials = _specials(text, primary.end(), stop)
        if name := _class_around(text, primary.start()):
            found[name] = frozenset(core for _, _, core, empty in specials if not empty)
    return found


def _primaries(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Each function of which a text may hold specialisations for the kinds of cores, and where the search for them ends."""
    found = list(_PRIMARY.finditer(text))
    yield from zip(found, [*(following.start() for following in found[1:]), len(text)], strict=False)


def _asking(text: str) -> Iterator[Edit]:
    """Functions for which a class is called, and in which the core is asked for its kind: what tells a launch which cores they
    have work for. One that is left at once on a kind of core has none for it."""
    told = {_brace_around(text, primary.start()) for primary, _ in _primaries(text)}
    for found in _CALLED.finditer(text) if _ASKS in text else ():
        body = text.find("{", found.end())
        inside = text[body : closing(text, body)] if body >= 0 and ";" not in text[found.end() : body] else ""
        asked = {core for core in CORES if f"{_ASKS}{core}" in inside}
        left = re.match(rf"\{{\s*if\s+{_ASKS}(AIC|AIV)\s*\{{\s*return\s*;", inside)
        if asked and _in_class(text, found.start()) and (brace := _brace_around(text, found.start())) not in told:
            told.add(brace)
            bits = sum(1 << CORES.index(c) for c in CORES if not (left and asked == {c} == {left[1]}))
            after = closing(text, body) + 1
            yield after, after, f" static constexpr int tile_sim_cores = {bits};"


def _end_of_head(text: str, start: int) -> int:
    """Where the head of a function ends that does nothing of its own, at its `;` or its empty `{}`; -1 for any other."""
    found = re.compile(r"[;{]").search(text, start)
    if not found or (found.group() == "{" and text[found.end() : closing(text, found.start())].strip()):
        return -1
    return found.start()


def _only(parameter: str, core: str) -> str:
    return f"std::enable_if_t<{parameter} == {core}, int> = 0"


def _specials(text: str, start: int, stop: int) -> Iterator[tuple[int, int, str, bool]]:
    """Each specialisation for a core: where it starts, where its parameters do, the core, and whether it does nothing."""
    for found in _SPECIAL.finditer(text, start, stop):
        body = text.find("{", found.end())
        at = _FOR.search(text, found.end(), body)
        if at and ";" not in text[found.end() : body]:
            yield found.start(), at.end(), at[1], not text[body + 1 : closing(text, body)].strip()


def _member_classes(text: str) -> Iterator[Edit]:
    """Specialisations of classes within a class, which C++ of some compilers has as partial ones alone: each gets a parameter
    that nothing decides."""
    done: set[int] = set()
    for found in _CLASS.finditer(text):
        if not _in_class(text, found.start()):
            continue
        primary = re.search(rf"template\s*<([^<>]+)>\s*(?:struct|class)\s+{found[1]}\b(?!\s*<)", text[: found.start()])
        if primary is None:
            continue
        if primary.start() not in done:
            done.add(primary.start())
            yield primary.end(1), primary.end(1), ", class tile_sim_any = void"
        yield text.index("<", found.start()), text.index(">", found.start()) + 1, "<class tile_sim_any>"
        at = closing_angle(text, found.end() - 1)
        yield at, at, ", tile_sim_any"


def _aggregates(text: str) -> Iterator[Edit]:
    """Default constructors without a word of their own, of classes that have no other: up to C++17 these are aggregates."""
    for found in _DEFAULT.finditer(text):
        rest = text[: found.start()] + text[found.end() :]
        others = re.search(rf"\b{found[2]}\s*\((?!\s*\)\s*=\s*default)", rest)
        if not others and _in_class(text, found.start(2)):
            yield found.start(1), found.end(), _lines(text[found.start(1) : found.end()])


def _in_class(text: str, at: int) -> bool:
    """Whether the innermost braces around a place are those of a class."""
    return bool(_class_around(text, at))


def _class_around(text: str, at: int) -> str:
    """The name of the class whose braces are the innermost ones around a place; empty where none is."""
    head = re.split(r"[;{}]", text[: max(_brace_around(text, at), 0)])[-1]
    names = re.findall(r"\b(?:struct|class)\b\s+(\w+)", re.sub(r"<[^<>]*>", "", head))
    return names[-1] if names else ""


def _brace_around(text: str, at: int) -> int:
    """Where the innermost braces around a place open; -1 outside of all."""
    depth = 0
    for i in range(at - 1, -1, -1):
        depth += (text[i] == "}") - (text[i] == "{")
        if depth < 0:
            return i
    return -1


def closing_angle(text: str, open_: int) -> int:
    """The place of the `>` that closes the `<` at `open_`."""
    depth = 0
    for i in range(open_, len(text)):
        depth += (text[i] == "<") - (text[i] == ">")
        if not depth:
            return i
    return len(text)


def _calls(head: str, cores: dict[str, bool]) -> str:
    """The body of the function that calls the one for the core at hand, and what tells a launch which cores do anything."""
    head = _ATTRIBUTE.sub(lambda found: " " * len(found.group()), head)
    name = re.search(r"(operator\s*\(\s*\)|\w+)\s*(?=\((?!\s*\)\s*\())", head)
    assert name
    open_ = head.find("(", name.end())
    names = [re.findall(r"\w+", p.partition("=")[0])[-1] for p in split(head[open_ + 1 : closing(head, open_)])]
    given = ", ".join(names)
    working = [core for core in CORES if not cores.get(core, True)]
    lines = " ".join(f"if (::tile_sim::is_{core.lower()}()) {name[1]}<AscendC::{core}>({given});" for core in working)
    return f" {{ {lines} }} static constexpr int tile_sim_cores = {sum(1 << CORES.index(c) for c in working)};"


def _lines(text: str) -> str:
    return "\n" * text.count("\n")


def global_macros(texts: Sequence[str]) -> list[str]:
    """Macros that stand for `__global__`, among others."""
    defined = r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t].*__global__"
    return list(dict.fromkeys(name for text in texts for name in re.findall(defined, text)))
