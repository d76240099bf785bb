"""The texts that `tile-eg emit` writes: compiled now, or as they are kept."""

from __future__ import annotations

from collections.abc import Mapping

from tile_eg.cli import sources
from tile_eg.cli.kept import Wanted
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel
from tile_eg.search.compiler import Lowered


def emitted(wanted: Wanted, kind: str, points: Mapping[str, tuple[int, ...]], keeps: bool) -> str:
    """A text of what stands in a file, which is kept for who asks again if `keeps`."""
    kept = None if points else wanted.kept_if_known()
    one = None
    if kept is None and (points or wanted.file.suffix == ".tile" or not wanted.known):
        how = wanted.chip, wanted.search, points, wanted.searched, wanted.cached
        one = sources.for_all_sizes(wanted.file, wanted.sizes, *how)
    if one is not None:
        if kind == "program" or wanted.number:
            what = "--program and --schedule are of a kernel at known sizes"
            raise TileError(what, help="give its sizes: --set NAME=NUMBER")
        return str(getattr(one, kind))
    text = str(getattr(kept, kind)) if kept else _text(wanted, kind)
    if keeps:
        wanted.keep_asked(kind)
    return text


def _text(wanted: Wanted, kind: str) -> str:
    """A text of a kernel that is compiled now. Its spec holds the kernel's meaning, where it has one."""
    planned, held = wanted.compiled(), wanted.held
    if kind == "spec" and isinstance(held, Kernel) and not isinstance(planned, Lowered):
        from tile_eg.frontend.text.meaning import meaning_text

        return planned.spec_with(meaning_text(held))
    return str(getattr(planned, kind))
