"""Rows of a dataset on disk: Parquet where pyarrow is, lines of JSON anywhere."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from tile_eg.cost_models.context import FEATURES
from tile_eg.errors import TileError
from tile_eg.laboratory.rows import Row

FORMATS = {"parquet": "rows.parquet", "jsonl": "rows.jsonl"}
CARD, SETTINGS, PARTS = "_card.md", "_dataset.json", "_parts"
"""Beside the rows. What reads a folder of Parquet files as one table leaves out names that begin with `_`."""
PREFIX = "feature."
MAPS = ("decisions", "instructions", "bytes")


def check_format(name: str) -> None:
    """TileError for a format that there is none of, or that needs what is not installed."""
    if name not in FORMATS:
        raise TileError(f"--format {name}: a dataset is written as {' or '.join(FORMATS)}")
    if name == "parquet":
        _arrow()


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """All rows in one file, whole or not at all; its ending says how. TileError where it cannot be written."""
    beside = path.with_name(f".{os.getpid()}.{path.name}")  # of each process its own: two may make one dataset
    try:
        (_write_parquet if path.suffix == ".parquet" else _write_lines)(list(rows), beside)
        os.replace(beside, path)
    except OSError as error:
        raise TileError(f"cannot write '{path}': {error.strerror or error}") from None


def read_rows(path: Path) -> list[Row]:
    """What `write_rows` wrote. TileError where the file cannot be read or is none of these."""
    try:
        found = list(_read_parquet(path) if path.suffix == ".parquet" else _read_lines(path))
        return [Row(**row) for row in found]
    except OSError as error:
        raise TileError(f"cannot read '{path}': {error.strerror or error}") from None
    except (ValueError, TypeError, KeyError, EOFError, zlib.error) as error:
        raise TileError(f"'{path}' holds no rows of a dataset: {error}", help="`tile-eg dataset` writes them") from None


def _write_lines(rows: list[Row], path: Path) -> None:
    text = "".join(json.dumps(row.plain()) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode(), 3, mtime=0))
    else:
        path.write_text(text, encoding="utf-8")


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return (json.loads(line) for line in text.splitlines())


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        help = "pip install 'tile_eg[data]', or without it: --format jsonl (lines of JSON, read alike by tile_eg.laboratory)"
        raise TileError("Parquet needs pyarrow", help=help) from None
    return pyarrow


def _write_parquet(rows: list[Row], path: Path) -> None:
    """A column for each field of a row and for each feature; maps are maps."""
    pa = _arrow()
    plain = [row.plain() for row in rows]
    columns: dict[str, Any] = {}
    for f in fields(Row):
        values = [row[f.name] for row in plain]
        if f.name == "features":
            columns |= {PREFIX + name: pa.array([v[name] for v in values], pa.float64()) for name in FEATURES}
        elif f.name in MAPS:
            kind = pa.string() if f.name == "decisions" else pa.float64()
            columns[f.name] = pa.array([list(v.items()) for v in values], pa.map_(pa.string(), kind))
        else:
            columns[f.name] = pa.array(values)
    pa.parquet.write_table(pa.table(columns), path, compression="zstd")


def _read_parquet(path: Path) -> Iterator[dict[str, Any]]:
    pa = _arrow()
    try:
        table = pa.parquet.read_table(path)
    except pa.ArrowInvalid as error:
        raise ValueError(str(error).splitlines()[0]) from None
    for row in table.to_pylist():
        features = {name: row.pop(PREFIX + name) for name in FEATURES}
        yield {**row, "features": features, **{name: dict(row[name]) for name in MAPS}}
