"""A fit of a chip's constants as a table, and as a chip file with its provenance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tile_eg.laboratory.calibrate import Constant, Fit
from tile_eg.report.text import table


def fit_text(fit: Fit) -> str:
    """Each constant before and after, how well the rows determine it, and what the fit made of the error."""
    ordered = sorted(fit.constants, key=lambda c: (not c.determined, not c.narrowed))
    rows = [(c.name, f"{c.before:.4g}", *_after(c)) for c in ordered]
    head = table(rows, ("constant", "before", "fitted", "standard error", ""), right=(1, 2, 3))
    told = f"{fit.rows} rows, root mean square of log(predicted / measured): {fit.before:.2%} before, {fit.after:.2%} after"
    return f"{head}\n\n{told}"


def _after(c: Constant) -> tuple[str, str, str]:
    if c.determined:
        return f"{c.value:.4g}", f"{c.error:.1%}", "determined"
    if c.narrowed:
        return f"{c.value:.4g}", f"{c.error:.1%}", "narrowed down, not determined"
    if c.error == float("inf"):
        return "", "", "no row knows of it: kept"
    return "", f"{c.error:.0%}", "the rows do not determine it: kept"


def chip_text(fit: Fit, name: str, source: str) -> str:
    """A chip file over the chip that was begun with: the constants that were determined, each table with its source."""
    lines = [f"# {fit.base} with constants fitted by `tile-eg calibrate`; all others are those of {fit.base}."]
    lines += [f"base = {_quoted(fit.base)}", f"name = {_quoted(name)}", f"names = [{_quoted(name)}]"]
    lines += [f"source = {_quoted(f'{fit.base}; ROWS')}", "", "[sources]", f"ROWS = {_quoted(source)}"]
    for path in dict.fromkeys(c.name.rpartition(".")[0] for c in fit.changed):
        own = [c for c in fit.changed if c.name.rpartition(".")[0] == path]
        keys = {c.name.rpartition(".")[2]: c for c in own}
        fitted = ", ".join(f"{key} {c.before:.4g} before, within {c.error:.1%}" for key, c in keys.items())
        was = str(_at(fit.tables, path).get("source", ""))
        lines += ["", f"[{path}]", *(f"{key} = {c.value!r}" for key, c in keys.items())]
        lines.append(f"source = {_quoted(f'ROWS ({fitted}); the others: {was}')}")
    return "\n".join(lines) + "\n"


def _at(tables: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    for key in path.split("."):
        tables = tables[key]
    return tables


def _quoted(text: str) -> str:
    """A basic string of TOML: JSON's escapes are among TOML's."""
    return json.dumps(text)
