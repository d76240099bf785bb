"""One rule judged: its types, its law by the tests of it, and whether a kernel needs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from benchmarks.rules.kernels import SHOWN_BY, kernels
from benchmarks.rules.needed import Search, Witness
from benchmarks.rules.page import PAGE, rows_of
from tests.rules.covering import named_tests
from tile_eg.errors import TileError, did_you_mean
from tile_eg.rules import Rule, registry, selected
from tile_eg.rules.sexpr import heads, parse_placed
from tile_eg.rules.user import checked_among, forms_of

ROOT = Path(__file__).parents[2]
UNTESTED = "no test of it: a kernel that is made to use it belongs into KERNELS of tests/rules/test_implements.py"
UNSHOWN = "no kernel gets slower without it: add one that does to benchmarks/rules/texts.py, or drop the rule"


@dataclass(frozen=True)
class Verdict:
    """What was found of one aspect of a rule, in words."""

    good: bool
    found: str


def judged(name: str) -> int:
    """Prints the verdicts on a rule. 0 where all are good, 1 where one is not, 2 where there is no such rule."""
    try:
        rule = _known(name)
    except (TileError, ValueError) as error:  # a theory cannot be read
        print(f"types  BAD: {error}")
        return 1
    if rule is None:
        print(f"there is no rule '{name}'; {did_you_mean(name, registry())}")
        return 2
    print(f"{name}: {rule.law}{f' within {rule.within}' if rule.within else ''}, ruleset {rule.ruleset}, {rule.theory}.egg")
    print(f"  {rule.maths}")
    good = True
    for aspect, verdict in _verdicts(rule):
        print(f"{aspect:<7}{'good' if verdict.good else 'BAD'}: {verdict.found}", flush=True)
        good = good and verdict.good
    return 0 if good else 1


def _known(name: str) -> Rule | None:
    """The rule of this name, if all theories can be read."""
    for file in files("tile_eg.rules").iterdir():
        if file.name.endswith(".egg"):
            forms_of(file.name, file.read_text())
    return registry().get(name)


def _verdicts(rule: Rule) -> Iterator[tuple[str, Verdict]]:
    """One after the other; a rule of the wrong types goes no further."""
    aspects: dict[str, Callable[[Rule], Verdict]] = {"types": types, "law": law, "need": need}
    for aspect, of in aspects.items():
        verdict = of(rule)
        yield aspect, verdict
        if aspect == "types" and not verdict.good:
            return


def types(rule: Rule) -> Verdict:
    """Read as a rule of a user's own, beside all others."""
    file = f"{rule.theory}.egg"
    text = (files("tile_eg.rules") / file).read_text()
    try:
        checked_among(selected(without=frozenset({rule.name})), file, alone(rule.name, text))
    except TileError as error:
        return Verdict(False, str(error))
    return Verdict(True, "syntax, words, element types, and the shapes of both sides")


def alone(name: str, text: str) -> str:
    """A theory's text with only the rule of this name, in its place. A fact of ours may leave out its law."""
    (placed,) = (p for p in parse_placed(text) if f'"{name}"' in p.form and p.form[p.form.index(f'"{name}"') - 1] == ":name")
    before = "".join("\n" if c == "\n" else " " for c in text[: placed.start])
    rule = text[placed.start : placed.end]
    fact = ":law" not in placed.form and "union" not in heads(placed.form) and placed.form[0] == "rule"
    return before + (f"{rule[:-1]} :law fact)" if fact else rule)


def law(rule: Rule) -> Verdict:
    """The tests of its law, run."""
    tests = named_tests(rule.name)
    if not tests:
        return Verdict(False, UNTESTED)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "", *tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    listed = "".join(f"\n       {t}" for t in tests)
    return Verdict(True, f"tested by{listed}") if done.returncode == 0 else Verdict(False, f"{done.stdout}{done.stderr}".strip())


def need(rule: Rule) -> Verdict:
    """A kernel that is worse without it: the known one first."""
    if rule.law == "fact":
        return Verdict(True, "not asked of a fact; the rules that ask for it are needed")
    known = dict(rows_of(PAGE.read_text())) | SHOWN_BY
    witness = Search(kernels()).witness(rule.name, known.get(rule.name))
    return Verdict(True, _told(witness)) if witness else Verdict(False, UNSHOWN)


def _told(w: Witness) -> str:
    if w.without is None:
        return f"`{w.kernel}` ({w.with_it:.3f} us) does not compile without it"
    more = 100 * (w.without / w.with_it - 1)
    return f"`{w.kernel}` takes {w.with_it:.3f} us, and {w.without:.3f} us without it (+{more:.1f} %)"
