"""The rewrite rules: `.egg` theories, read once into a registry that knows every rule's name, theory, law and line of maths."""

from __future__ import annotations

import re
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path

from tile_eg.ops.elementwise import BINARY, UNARY, Binary, Unary
from tile_eg.ops.records import record
from tile_eg.rules.bound import Bound, BoundFault, bound_of
from tile_eg.rules.naming import confusable
from tile_eg.rules.sexpr import Form, heads, parse, show

LAWS = ("equal", "rounding", "approximate", "implements", "fact")
INEXACT = ("rounding", "approximate")
OF_VALUES = ("nest", "algebra", "tiling")
"""The rulesets that join values: a rule of these that is inexact has a bound."""
NAME = re.compile(r':name "([^"]*)"\)$')
RECORDED = ("P", "PT", "Cfg", "PStt", "PSt", "PL", "V", "Lp")


@record
class Rule:
    """One rule, with its own `conditions` and `actions`.

    `makes` names the constructors that its actions build, `needs` those that its conditions look for. `within` is how far its
    sides may be apart, of a rule between values that is inexact.
    """

    name: str
    theory: str
    law: str
    ruleset: str
    makes: frozenset[str]
    needs: frozenset[str]
    conditions: Form = field(compare=False, repr=False)
    actions: Form = field(compare=False, repr=False)
    within: Bound | None = None

    @property
    def maths(self) -> str:
        """What it says, as a line of maths."""
        return _maths(self.conditions, self.actions, self.ruleset)

    @property
    def needs_bound(self) -> bool:
        """Whether it is a rule for which a bound has to be told."""
        return self.law in INEXACT and self.ruleset in OF_VALUES


@record
class Theory:
    """A rule file as egglog takes it: rewrites as rules that also record who made each physical node.

    `source` is the file's own text where a user wrote it.
    """

    name: str
    text: tuple[str, ...]
    rules: tuple[Rule, ...]
    source: str = ""


def _options(form: Form) -> tuple[list, dict[str, Form]]:
    plain: list = []
    options: dict[str, Form] = {}
    rest = list(form)
    while rest:
        x = rest.pop(0)
        if isinstance(x, str) and x.startswith(":"):
            options[x] = rest.pop(0)
        else:
            plain.append(x)
    return plain, options


def _as_rule(form: Form) -> tuple[Form, Form, dict[str, Form]]:
    """(conditions, actions, options) of a rewrite or a rule."""
    plain, options = _options(form)
    if plain[0] == "rule":
        return plain[1], plain[2], options
    left, right = plain[1], plain[2]
    conditions = (("=", "root", left), *options.pop(":when", ()))
    return conditions, (("union", "root", right),), options


def _with_record(conditions: Form, actions: Form, name: str, sorts: dict[str, str]) -> Form:
    """The actions, and for each union a row that tells which rule made it."""
    bound = {c[1]: c[2] for c in conditions if c[0] == "=" and isinstance(c[1], str)}
    out = list(actions)
    for a in actions:
        made = a[2] if a[0] == "union" and isinstance(a[2], tuple) else bound.get(a[1])
        sort = sorts.get(made[0]) if isinstance(made, tuple) else None
        if a[0] == "union" and sort in RECORDED:
            out.append((f"by{sort}", a[1], f'"{name}"'))
    return tuple(out)


def _maths(conditions: Form, actions: Form, ruleset: str) -> str:
    bound = {c[1]: c[2] for c in conditions if c[0] == "=" and isinstance(c[1], str) and not isinstance(c[2], str)}
    sides = []
    for a in actions:
        if a[0] == "union":
            sides.append(f"{show(bound.get(a[1], a[1]), bound)} = {show(a[2], bound)}")
        elif a[0] == "set":
            sides.append(f"{show(a[1], bound)} := {show(a[2], bound)}")
        else:
            sides.append(show(a, bound))
    used = {a[1] for a in actions if a[0] == "union"}
    when = [show(c, {}) for c in conditions if not (c[0] == "=" and c[1] in used)]
    side = "; ".join(sides)
    return f"{side}   if {', '.join(when)}" if when and ruleset != "facts" else side


def read_theory(name: str, text: str, sorts: dict[str, str]) -> Theory:
    """The theory in `text`; `sorts` (constructor -> its sort) grows by the constructors that the text declares.

    ValueError where egglog may take one name of a form for another (`naming`), or where `:within` is followed by no bound.
    """
    out, rules = [], []
    for form in parse(text):
        if pair := confusable(heads(form)):
            raise ValueError(f"theory {name}: egglog may take {pair[0]} for {pair[1]}")
        if form[0] == "constructor":
            sorts[form[1]] = form[3]
        if form[0] not in ("rewrite", "rule"):
            out.append(show_form(form))
            continue
        conditions, actions, options = _as_rule(form)
        rule_name, ruleset = str(options[":name"]).strip('"'), str(options.get(":ruleset", ""))
        law = str(options.get(":law", "fact"))
        made, needed = (frozenset(heads(part)) for part in (actions, conditions))
        within = _bound(options, f"theory {name}, rule {rule_name}")
        rules.append(Rule(rule_name, name, law, ruleset, made, needed, conditions, actions, within))
        body = show_form(("rule", conditions, _with_record(conditions, actions, rule_name, sorts)))
        out.append(f'{body[:-1]} :ruleset {ruleset} :name "{rule_name}")')
    return Theory(name, tuple(out), tuple(rules))


def _bound(options: dict[str, Form], where: str) -> Bound | None:
    if ":within" not in options:
        return None
    try:
        return bound_of(options[":within"])
    except BoundFault as fault:
        raise BoundFault(f"{where}: {fault}", fault.help) from None


def show_form(form: Form) -> str:
    return form if isinstance(form, str) else "(" + " ".join(show_form(x) for x in form) + ")"


@lru_cache(maxsize=1)
def theories() -> tuple[Theory, ...]:
    """All theories of the project, in their order."""
    sorts: dict[str, str] = {}
    found = sorted((f for f in Path(__file__).parent.iterdir() if f.name.endswith(".egg")), key=lambda f: f.name)
    names = [f.name.removesuffix(".egg") for f in found]
    return tuple(read_theory(n, f.read_text() + _declared(n), sorts) for n, f in zip(names, found, strict=True))


def _declared(theory: str) -> str:
    """The facts of a theory that are rows of the table of operations."""
    if theory != "31_vector":
        return ""
    native: list[tuple[str, Unary | Binary]] = [("Native", op) for op in UNARY.values() if op.native and op.exact]
    native += [("Native", op) for op in BINARY.values() if op.native]
    native += [("NativeS", op) for op in BINARY.values() if op.with_scalar]
    return "".join(f'({table} "{op.name}" "{dtype}")' for table, op in native for dtype in op.types)


@lru_cache(maxsize=1)
def signatures() -> dict[str, tuple[tuple[str, ...], str]]:
    """(sorts of the arguments, sort of the result) of every constructor of the project's theories."""
    forms = (f for t in theories() for text in t.text if text.startswith("(constructor ") for f in parse(text))
    return {form[1]: (form[2], form[3]) for form in forms}


@lru_cache(maxsize=16)
def registry(held: tuple[Theory, ...] | None = None) -> dict[str, Rule]:
    """Every rule of these theories (None: the project's) by its name."""
    return {r.name: r for t in (theories() if held is None else held) for r in t.rules}


@lru_cache(maxsize=16)
def selected(more: tuple[Theory, ...] = (), without: frozenset[str] = frozenset(), exact: bool = False) -> tuple[Theory, ...]:
    """The theories of the project and `more`, less the rules called `without`, and less those that are not `exact`."""
    return tuple(_less(t, without, exact) for t in (*theories(), *more))


def _less(theory: Theory, without: frozenset[str], exact: bool) -> Theory:
    return without_rules(theory, without | {r.name for r in theory.rules if exact and r.law in INEXACT})


def without_rules(theory: Theory, names: frozenset[str]) -> Theory:
    """The theory less the rules of these names."""
    kept = tuple(r for r in theory.rules if r.name not in names)
    if len(kept) == len(theory.rules):
        return theory
    text = tuple(t for t in theory.text if not t.startswith("(rule ") or NAME.findall(t)[-1] not in names)
    return replace(theory, text=text, rules=kept)
