"""`tile-eg build`: a directory with a kernel that another team builds and uses without tile_eg."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tile_eg.chips import load_chip
from tile_eg.cli import options, runs, sources
from tile_eg.cli.console import complain, show
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel
from tile_eg.search import SearchOptions

MOST_DATA = 1 << 26
"""Bytes of tensors up to which the example comes with data."""


def build(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A kernel, as `tile-eg run` takes it.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", callback=options.to_fill, help="The directory; it is made.")
    ] = None,
    chip: options.OnChip = None,
    sizes: options.Set = None,
    syntax_only: Annotated[bool, typer.Option("--syntax-only", help="Type-check the texts against CANN's headers.")] = False,
    headers: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="CANN, or a checkout of its headers (else this machine's). Repeatable."),
    ] = None,
    *,
    search: SearchOptions,
) -> int:
    """Writes a directory to build a kernel in.

    It holds the kernel, its host part, a library, an example with data, a PyTorch extension, a CMakeLists.txt and a README: CANN
    alone builds it. With --syntax-only the texts are type-checked by the machine's own C++ compiler against CANN's headers, and
    written where -o says so.
    """
    if out is None and not syntax_only:
        raise TileError("-o DIR says where the directory is to be made")
    if headers and not syntax_only:
        raise TileError("--headers goes with --syntax-only: nothing else reads them")
    directory, held = _directory(file, options.sizes(sizes or []), chip, search)
    texts = directory.texts()
    if out is not None:
        _write(out, texts, _data(held, directory))
    return _checked(texts, directory, headers) if syntax_only else 0


def _directory(file: Path, sizes: Mapping[str, int | str], chip: str | None, search: SearchOptions) -> tuple[Any, Any]:
    """The directory of a file's kernel, and what stands in the file at the sizes of the example: one text for all sizes, where
    the kernel has sizes that each call tells."""
    from tile_eg.npu.directory import Directory

    one = sources.for_all_sizes(file, sizes, chip, search, {})
    if one is not None:
        return Directory(one.program, str(one.source), str(one.host), load_chip(one.program.chip)), one.kernel
    held = sources.read(file, sizes)
    planned = sources.compile_held(held, chip, search)
    return Directory(planned.program, str(planned.source), str(planned.host), planned.chip), held


def _data(held: Any, directory: Any) -> dict[str, bytes]:
    """The example's data; none where nothing is known of what the kernel means, or it would be too much."""
    from tile_eg.ir.arrays import begun
    from tile_eg.npu.directory import data_files

    tensors = directory.program.tensors
    if not isinstance(held, Kernel) or sum(t.dtype.bytes * _elements(t) for t in tensors) > MOST_DATA:
        complain("note: the example has no data/: it is too large, or nothing is known of what the kernel means")
        return {}
    drawn = runs.drawn(held, "uniform", 0, [])[0]
    names = [t.name for t in tensors if directory.begins_given(t)]
    return data_files({t.name: begun(t, drawn.arrays) for t in tensors}, drawn.meant or {}, names)


def _elements(tensor: Any) -> int:
    from math import prod

    return int(prod(tensor.shape))


def _write(out: Path, texts: Mapping[str, str], data: Mapping[str, bytes]) -> None:
    with options.writing(out):
        out.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (out / name).write_text(text, encoding="utf-8")
        if data:
            (out / "data").mkdir(exist_ok=True)
        for name, bytes in data.items():
            (out / "data" / name).write_bytes(bytes)
    show(f"wrote {out} ({', '.join([*texts, *(['data/'] if data else [])])})")


def _checked(texts: Mapping[str, str], directory: Any, headers: list[Path] | None) -> int:
    from tile_eg.npu.cann import find_cann
    from tile_eg.npu.syntax import check

    folders = headers or [find_cann().home]
    found = list(check(texts, directory.name, directory.chip.architecture, folders))
    show("\n".join(c.line for c in found))
    return 2 if any(c.wrong for c in found) else 0
