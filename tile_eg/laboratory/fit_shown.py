"""A fit of a chip's constants as a table, and as a chip file with its provenance."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from math import inf
from typing import Any

from tile_eg.chips.loader import chip_marks
from tile_eg.chips.marks import Mark
from tile_eg.laboratory.calibrate import Constant, Fit
from tile_eg.report.text import table

NAMED = 6
"""Constants that no row knows of are named up to so many, beyond that they are counted."""


def fit_text(fit: Fit) -> str:
    """Each constant before and after, how well the rows determine it, and what the fit made of the error."""
    touched = [c for c in fit.constants if c.error < inf]
    ordered = sorted(touched, key=lambda c: (not c.determined, not c.narrowed))
    rows = [(c.name, f"{c.before:.4g}", *_after(c)) for c in ordered]
    head = table(rows, ("constant", "before", "fitted", "standard error", ""), right=(1, 2, 3))
    count = "1 row" if fit.rows == 1 else f"{fit.rows} rows"
    told = f"{count}, root mean square of log(predicted / measured): {fit.before:.2%} before, {fit.after:.2%} after"
    return "\n\n".join([*([head] if rows else []), *_unknown([c.name for c in fit.constants if c.error == inf]), told])


def _unknown(names: Sequence[str]) -> list[str]:
    """What is said of the constants that no row knows of."""
    if not names:
        return []
    if len(names) <= NAMED:
        return [f"kept, as no row knows of {'it' if len(names) == 1 else 'them'}: {', '.join(names)}"]
    tables = Counter(name.partition(".")[0] for name in names)
    parts = ", ".join(f"{count} of [{name}]" for name, count in tables.items())
    return [f"kept, as no row knows of them: {len(names)} other constants, {parts}"]


def _after(c: Constant) -> tuple[str, str, str]:
    span = f"its range ({c.low:.4g} to {c.high:.4g})"
    end = f", at the end of {span}" if c.at_end else ""
    if c.determined:
        return f"{c.value:.4g}", f"{c.error:.1%}", f"determined{end}"
    if c.narrowed:
        return f"{c.value:.4g}", f"{c.error:.1%}", f"narrowed down, not determined{end}"
    if c.at_end:
        return "", f"{c.error:.0%}", f"the rows would have it beyond {span}: kept"
    return "", f"{c.error:.0%}", "the rows do not determine it: kept"


def chip_text(fit: Fit, name: str, source: str) -> str:
    """A chip file over the chip that was begun with: the constants that were determined, each table with its source and marks."""
    lines = [f"# {fit.base} with constants fitted by `tile-eg calibrate`; all others are those of {fit.base}."]
    lines += [f"base = {_quoted(fit.base)}", f"name = {_quoted(name)}", f"names = [{_quoted(name)}]"]
    lines += [f"source = {_quoted(f'{fit.base}; ROWS')}", "", "[sources]", f"ROWS = {_quoted(source)}"]
    marked = {m.name: m for m in chip_marks(fit.base)}
    for path in dict.fromkeys(_owner(fit.tables, c.name) for c in fit.changed):
        own = {c.name.removeprefix(f"{path}."): c for c in fit.changed if c.name.startswith(f"{path}.")}
        fitted = ", ".join(f"{key} {c.before:.4g} before, within {c.error:.1%}" for key, c in own.items())
        was = str(_at(fit.tables, path).get("source", ""))
        lines += ["", f"[{path}]", *(f"{key} = {c.value!r}" for key, c in own.items())]
        for part in dict.fromkeys(key.rpartition(".")[0] for key in own):
            lines += _marks(marked, path, part, {c.name for c in own.values()})
        lines.append(f"source = {_quoted(f'ROWS ({fitted}); the others: {was}')}")
    return "\n".join(lines) + "\n"


def _marks(marked: Mapping[str, Mark], path: str, part: str, now: Set[str]) -> list[str]:
    """The marks of a table, or of the part of it that has a size of element: what is fitted `now` is assumed no longer."""
    dot = f"{part}." if part else ""
    own = {n.rpartition(".")[2]: m for n, m in marked.items() if n.rpartition(".")[0] == f"{path}.{part}".rstrip(".")}
    fitted = [key for key, m in own.items() if m.kind == "fitted" or m.name in now]
    assumed = ", ".join(f"{k} = {[m.low, m.high]}" for k, m in own.items() if m.kind == "assumed" and k not in fitted)
    return [f"{dot}fitted = {json.dumps(fitted)}", f"{dot}assumed = {{ {assumed} }}" if assumed else f"{dot}assumed = {{}}"]


def _owner(tables: Mapping[str, Any], name: str) -> str:
    """The table with the source of a constant: the vector unit's costs have one for both sizes of element."""
    path = name.rpartition(".")[0]
    while "source" not in _at(tables, path):
        path = path.rpartition(".")[0]
    return path


def _at(tables: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    for key in path.split("."):
        tables = tables[key]
    return tables


def _quoted(text: str) -> str:
    """A basic string of TOML: JSON's escapes are among TOML's."""
    return json.dumps(text)
