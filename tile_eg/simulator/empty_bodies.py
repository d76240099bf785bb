"""Functions of the vendor's headers that do nothing on some architectures: there they end the run, as their result is missing.

The vendor writes such a function once for all architectures, with `#if` around what it does. Where the preprocessor leaves
nothing of it, the function compiles, and its caller would go on with what was in memory before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tile_eg.simulator.launches import blanked, closing

_BODY = re.compile(r"\)\s*(?:const\s*)?(\{)")
_OTHER = re.compile(r"\b(?:if|else|for|while|switch|constexpr)\b|(?:Check|Verify)\w*\s*$")
"""What stands before the parentheses of what is no function, or one that only checks, or is computed by the compiler."""
_TENSOR, _ANY = re.compile(r"\b(?:Local|Global)Tensor\b"), re.compile("")
_ARCHITECTURE = re.compile(r"(?:[\d()&|!<>=\s]|\b(?:defined|__NPU_ARCH__|__CCE_AICORE__)\b)+")
"""A condition that says on which architectures something stands, and no more."""
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b((?:\\\n|[^\n])*)\n?", re.M)
_NAMED = {"ifdef": "defined({})", "ifndef": "!defined({})", "else": "1"}
_INSIDE = r"\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)"
_NO_EFFECT = re.compile(
    rf"\s*(?:(?:static_assert|(?:ASCENDC|TRACE|KERNEL)_\w*|(?:\w+::)*\w*(?:Check|Verify)\w*(?:<[^<>;]*>)?)\s*{_INSIDE}\s*;?"
    rf"|\(void\)[^;]*;|using\s[^;]*;|if\s+(?:ASCEND_IS_AI[CV]|\([^(){{}}]*\bg_coreType\b[^(){{}}]*\))\s*\{{\s*return;\s*\}}|return;|;)"
)
"""A statement that changes no tensor: a check, a mark in a trace, a core that is left out."""
_REFUSED = """
#if {empty}
::tile_sim::misuse("unsupported", ::tile_sim::placed({line}, __FILE__),
    "the vendor's header leaves %s empty on this architecture", __func__);
#endif
#line {line}
"""


@dataclass
class _Part:
    """What stands in a body, or under a condition of it, in its order."""

    items: list[str | list[tuple[str, _Part]]] = field(default_factory=list)
    """Texts, and for each `#if .. #endif` its branches: condition, and what stands there; the last condition is "1"."""

    @property
    def works(self) -> bool:
        """Whether there is an architecture on which this has an effect, whatever else is defined."""
        return any(_has_effect(item) if isinstance(item, str) else _works_somewhere(item) for item in self.items)

    @property
    def empty(self) -> str:
        """The condition of the preprocessor under which nothing here has an effect: "0" is never, "1" is always."""
        return _all("01"[not _has_effect(item)] if isinstance(item, str) else _empty(item) for item in self.items)


def refusing(text: str, inside: bool) -> str:
    """The header's text, where each function that is empty on an architecture ends the run there, with `unsupported`.

    In a header of the API's `inside`, what takes no tensor is left as it is: a step that other architectures need.
    """
    if "__NPU_ARCH__" not in text:
        return text
    seen, made, at = blanked(text), "", 0
    for begin, end in _functions(seen, _TENSOR if inside else _ANY):
        part = _read(seen[begin:end])
        if begin >= at and part.works and (empty := part.empty) != "0":
            made += text[at:begin] + _REFUSED.format(empty=empty, line=seen.count("\n", 0, begin) + 1)
            at = begin
    return made + text[at:]


def _functions(text: str, wanted: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Where the bodies of functions begin and end, within their braces; in their parameters stands what is wanted."""
    for found in _BODY.finditer(text):
        open_ = _opening(text, found.start())
        before = max(text.rfind(c, 0, open_) for c in ";{}")
        head = _DIRECTIVE.sub("", text[before + 1 : open_])
        if wanted.search(text, open_, found.start()) and not _OTHER.search(head):
            yield found.end(1), closing(text, found.start(1))


def _opening(text: str, close: int) -> int:
    """The place of the parenthesis that the one at `close` closes; 0 where none does."""
    depth, at = 1, close
    while depth and at:
        at = max(text.rfind("(", 0, at), text.rfind(")", 0, at), 0)
        depth += 1 if text[at] == ")" else -1
    return at


def _read(body: str) -> _Part:
    """A body by its directives."""
    open_, at = [_Part()], 0
    for found in _DIRECTIVE.finditer(body):
        open_[-1].items.append(body[at : found.start()])
        at, word = found.end(), found[1]
        if word in ("elif", "else", "endif") and len(open_) > 1:
            open_.pop()
        if word == "endif":
            continue
        if word.startswith("if"):
            open_[-1].items.append([])
        branches = open_[-1].items[-1]
        if not isinstance(branches, list):
            return _Part([body])  # directives that do not match
        condition = " ".join(found[2].replace("\\\n", " ").split())
        open_.append(_Part())
        branches.append((_NAMED.get(word, "{}").format(condition), open_[-1]))
    open_[-1].items.append(body[at:])
    return open_[0]


def _has_effect(text: str) -> bool:
    return bool(_NO_EFFECT.sub("", text).strip())


def _works_somewhere(branches: list[tuple[str, _Part]]) -> bool:
    return all(_ARCHITECTURE.fullmatch(condition) for condition, _ in branches) and any(part.works for _, part in branches)


def _empty(branches: list[tuple[str, _Part]]) -> str:
    """The condition under which the branch that stands has no effect; none stands where no condition holds."""
    ways, before = [], "1"
    for condition, part in [*branches, ("1", _Part())]:
        ways.append(_all((before, condition, part.empty)))
        before = _all((before, f"!({condition})"))
    ways = [way for way in ways if way != "0"]
    return " || ".join(f"({way})" for way in ways) or "0"


def _all(conditions: Iterator[str] | tuple[str, ...]) -> str:
    """All of these: no more terms than are needed."""
    terms = [f"({c})" for c in conditions if c != "1"]
    return "0" if "(0)" in terms or "(!(1))" in terms else " && ".join(terms) or "1"
