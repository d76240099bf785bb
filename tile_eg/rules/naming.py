"""Names as egglog gets them: none of ours ends in a digit there.

egglog 13.2.0 names what it makes inside a command by a hint and a number: `@`, the function, constructor, relation, global or
operation at whose call it stands, and how often that had a name made before, through the life of the e-graph, `(pop)` or not
(`SymbolGen` in its src/util.rs). Nothing stands between the two: one of `f` is called `@f21`, and so is one of `f2`. Both in one
command are then one variable, and the command silently means something else. Upstream has mended it since (egraphs-good/egglog,
pull request 1006). Rule variables are no hints, and no name in a text may begin with `@`; they are spelled as the others are, so
that nothing hangs on that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

THEIRS = ("i64", "f64", "to-i64", "to-f64", "not-i64", "log2")
"""What egglog itself calls by a name that ends in a digit."""
_NAME = re.compile(r'(;[^\n]*|"[^"]*")|(?<![^\s()";])([^\s()";]*\d)(_*)(?=[\s()";]|$)')
_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?")


def spelled(text: str) -> str:
    """Commands as egglog gets them: a name that ends in a digit, or in a digit and underscores, has one underscore more."""
    return _NAME.sub(_longer, text)


def _longer(found: re.Match) -> str:
    ours = found[2] and found[0] not in THEIRS and not _NUMBER.fullmatch(found[0])
    return f"{found[0]}_" if ours else found[0]


def unspelled(text: str) -> str:
    """What egglog says, with the names as they were written: the inverse of `spelled`."""
    return _NAME.sub(lambda found: found[0][:-1] if found[3] else found[0], text)


def confusable(names: Iterable[str]) -> tuple[str, str] | None:
    """Two of these names, as egglog gets them, of which one is the other and a number: egglog may take one for the other."""
    names = [*names]
    numbered = sorted({name for n in names if n[-1:].isdigit() and (name := spelled(n))[-1:].isdigit()})
    known = {spelled(name) for name in names} if numbered else ()
    for name in numbered:
        digits = re.search(r"\d*$", name)
        assert digits
        for at in range(digits.start(), len(name)):
            if name[at] != "0" and name[:at] in known:
                return unspelled(name[:at]), unspelled(name)
    return None
