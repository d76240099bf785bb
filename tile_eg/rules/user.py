"""Rules of the user's own: a file or a text, read as the project's theories are, and checked before it takes part."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tile_eg.errors import WITH_OR_WITHOUT_MARK, Span, TileError, did_you_mean
from tile_eg.rules.added import ADDED, added
from tile_eg.rules.bound import HELP, BoundFault, bound_of
from tile_eg.rules.naming import confusable
from tile_eg.rules.sexpr import Form, Placed, SyntaxFault, heads, parse_placed
from tile_eg.rules.shapes import difference
from tile_eg.rules.theory import INEXACT, LAWS, OF_VALUES, Theory, read_theory, registry, signatures, theories
from tile_eg.rules.typecheck import check_types
from tile_eg.rules.words import unknown_words

RULESETS = ("nest", "algebra", "tiling", "cube", "vec", "place", "loops", "facts")
DECLARATIONS = ("relation", "function", "constructor", "rewrite", "rule", "set")
VALUE_SORTS = ("V", "S", "T", "I")
RESERVED = ("$", "@")


def add(rules: str | Path) -> Theory:
    """Adds a theory to every search of this process: the path of an .egg file, or rules as text.

    TileError with the line for a fault of syntax or type, for a rule without a name, a law or the bound that its law needs,
    for one whose name is taken, and for one whose sides differ in shape.
    """
    theory = read_theory_of(rules, added())
    ADDED.append(theory)
    return theory


def remove(theory: Theory) -> None:
    """Takes an added theory back."""
    ADDED.remove(theory)


def read_theory_of(rules: str | Path, beside: tuple[Theory, ...] = ()) -> Theory:
    """The checked theory in a file, or in a text (one with a parenthesis), to be used `beside` others."""
    if isinstance(rules, str) and "(" in rules:
        return checked("rules", rules, beside)
    path = Path(rules)
    try:
        return checked(path.name, path.read_text(encoding=WITH_OR_WITHOUT_MARK), beside)
    except FileNotFoundError:
        raise TileError(f"there is no rule file '{path}'") from None
    except UnicodeDecodeError as error:
        raise TileError(f"'{path}' is not UTF-8 text (byte {error.start})", help="save it as UTF-8") from None
    except OSError as error:
        raise TileError(f"cannot read '{path}': {error.strerror}") from None


def checked(file: str, text: str, beside: tuple[Theory, ...] = ()) -> Theory:
    """The theory in `text`. TileError, with its place in `file`, for whatever is wrong with it."""
    return checked_among((*theories(), *beside), file, text)


def checked_among(held: tuple[Theory, ...], file: str, text: str) -> Theory:
    """The same, where these theories are all that there are."""
    reader, forms = _Reader(file, text), forms_of(file, text)
    taken = registry(held)
    names: set[str] = set()
    for placed in forms:
        reader.check(placed, taken, names)
    theory = read_theory(Path(file).stem, text, {name: sort for name, (_, sort) in signatures().items()})
    theory = Theory(theory.name, theory.text, theory.rules, text)
    for placed, refused in check_types(held, zip(forms, theory.text, strict=True)):
        start, end = _place_of(text, placed, refused.where)
        raise reader.error(refused.what, start, end)
    for placed in forms:
        for unknown in unknown_words(placed.form):
            start, end = _place_of(text, placed, unknown.word)
            raise reader.error(unknown.what, start, end, unknown.help)
        differs = difference(placed.form) if placed.form[0] in ("rewrite", "rule") else ""
        if differs:
            name = _options(placed.form)[":name"].strip('"')
            raise reader.error(f"the two sides of rule '{name}' differ: {differs}", placed.start, placed.end)
    return theory


def forms_of(file: str, text: str) -> list[Placed]:
    """The forms of a theory with their places. TileError for a fault of syntax."""
    try:
        return list(parse_placed(text))
    except SyntaxFault as fault:
        raise _Reader(file, text).error(fault.what, fault.at, fault.at + 1) from None


def _place_of(text: str, placed: Placed, where: str) -> tuple[int, int]:
    """Where the part of a form that a message quotes stands; the whole form where it cannot be told."""
    squeezed = where.strip()
    at = text.find(squeezed, placed.start, placed.end) if squeezed else -1
    return (at, at + len(squeezed)) if at >= 0 else (placed.start, placed.end)


def _options(form: tuple) -> dict[str, str]:
    """The options of a rule that have a word for a value."""
    pairs = zip(form, form[1:], strict=False)
    return {a: b for a, b in pairs if isinstance(a, str) and a.startswith(":") and isinstance(b, str)}


class _Reader:
    """Checks forms one by one, and makes errors that show their place."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text

    def error(self, what: str, start: int, end: int, help: str = "") -> TileError:
        line, column = self._at(start)
        end_line, end_column = self._at(end)
        error = TileError(what, Span(self.file, line, column, end_line, end_column), help=help)
        error.source = self.text
        return error

    def _at(self, offset: int) -> tuple[int, int]:
        before = self.text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def check(self, placed: Placed, taken: Mapping[str, object], names: set[str]) -> None:
        head = placed.form[0] if placed.form else ""
        if head not in DECLARATIONS and not _is_fact(placed.form):
            known = did_you_mean(str(head), DECLARATIONS)
            raise self.error(f"`{head}` is nothing that a theory holds", placed.start, placed.end, known)
        if head == "constructor" and len(placed.form) > 3 and placed.form[3] not in VALUE_SORTS:
            what = f"a new constructor of sort {placed.form[3]}: an instruction needs a price and its text too"
            raise self.error(what, placed.start, placed.end, "a theory of your own builds on the constructors that there are")
        if head in ("relation", "function", "constructor"):
            self._check_name(placed)
        if pair := confusable(heads(placed.form)):
            what = f"egglog may take `{pair[0]}` for `{pair[1]}` where both are in one rule"
            raise self.error(what, placed.start, placed.end, "leave one of them to a rule of its own")
        if head in ("rewrite", "rule"):
            self._check_rule(placed, taken, names)

    def _check_name(self, placed: Placed) -> None:
        name = str(placed.form[1]) if len(placed.form) > 1 else ""
        if name[:1] in RESERVED:
            what = f"a name that begins with `{name[0]}` is taken: `$` for a kernel's terms, `@` for what egglog makes"
            start, end = _place_of(self.text, placed, name)
            raise self.error(what, start, end, f"call it `{name[1:] or 'mine'}`")

    def _check_rule(self, placed: Placed, taken: Mapping[str, object], names: set[str]) -> None:
        options = _options(placed.form)
        if (
            len(placed.form) < 3
            or not all(isinstance(part, tuple) for part in placed.form[1:2])
            or str(placed.form[-1])[0] == ":"
        ):
            help = '(rewrite LEFT RIGHT :ruleset algebra :name "my-rule" :law equal), or (rule (CONDITIONS) (ACTIONS) ...)'
            raise self.error(f"this is no {placed.form[0]}", placed.start, placed.end, help)
        for option, help in _NEEDED.items():
            if option not in options:
                raise self.error(f"this rule has no {option}", placed.start, placed.end, help)
        name = options[":name"].strip('"')
        if options[":law"] not in LAWS:
            raise self.error(f"`{options[':law']}` is not a law", placed.start, placed.end, f"the laws: {', '.join(LAWS)}")
        if options[":ruleset"] not in RULESETS:
            help = did_you_mean(options[":ruleset"], RULESETS)
            raise self.error(f"there is no ruleset `{options[':ruleset']}`", placed.start, placed.end, help)
        if name in taken or name in names:
            raise self.error(f"there is a rule called '{name}' already", placed.start, placed.end, "give it a name of its own")
        self._check_bound(placed, options)
        names.add(name)

    def _check_bound(self, placed: Placed, options: Mapping[str, str]) -> None:
        """Rules between values that round say how far, in a way that can be read; no other rule does."""
        what = f"a rule of the law {options[':law']} in the ruleset {options[':ruleset']}"
        needed = options[":law"] in INEXACT and options[":ruleset"] in OF_VALUES
        if ":within" not in placed.form:
            if needed:
                help = f"say how far its sides may be apart: {HELP}"
                raise self.error(f"{what} has no :within", placed.start, placed.end, help)
            return
        start, end = _place_of(self.text, placed, ":within")
        if not needed:
            help = f"leave it out: bounds are of the laws {' and '.join(INEXACT)} in the rulesets {', '.join(OF_VALUES)}"
            raise self.error(f"{what} has no bound", start, end, help)
        try:
            bound_of(placed.form[placed.form.index(":within") + 1])
        except BoundFault as fault:
            raise self.error(str(fault), start, end, fault.help) from None


def _complete(form: tuple) -> bool:
    """Whether a rule has two parts, and every option a value."""
    rule = form[0] == "rule"
    sides = len(form) > 2 and all(isinstance(part, tuple) or not (rule or part[0] == ":") for part in form[1:3])
    return sides and isinstance(form[1], tuple) and str(form[-1])[0] != ":"


_NEEDED = {
    ":name": 'give it one: :name "my-rule"',
    ":law": f"say what it keeps, one of {', '.join(LAWS)}: `:law equal` where both sides agree bit for bit",
    ":ruleset": "say when it runs: `:ruleset algebra` for equalities of values, `:ruleset vec` for vector instructions",
}


def _is_fact(form: Form) -> bool:
    """A row of a relation: `(Short "f16")`."""
    return isinstance(form, tuple) and bool(form) and isinstance(form[0], str) and form[0][:1].isupper()
