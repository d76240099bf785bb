"""What an author should know of a kernel that is right: where it may not do what he had in mind."""

from __future__ import annotations

from collections.abc import Iterator

from tile_eg.ir import kernel as kn


def notes(kernel: kn.Kernel) -> tuple[kn.Note, ...]:
    """The notes that its frontend left, and the loops with fewer trips than `stages`, in the order of the source."""
    found = (*kernel.notes, *_short_loops(kernel.body))
    return tuple(dict.fromkeys(sorted(found, key=lambda n: n.span.line if n.span else 0)))


def _short_loops(body: tuple[kn.Stmt, ...]) -> Iterator[kn.Note]:
    for s in body:
        match s:
            case kn.For():
                if 0 < s.extent < s.stages:
                    trips = f"{s.extent} trip{'s' * (s.extent > 1)}"
                    yield kn.Note(f"this loop has {trips}, so that {s.extent} of its {s.stages} stages are used", s.span)
                yield from _short_loops(s.body)
            case kn.If():
                yield from _short_loops((*s.then, *s.otherwise))
