"""For what prints as text: the same text at the Python prompt and in a notebook."""

from __future__ import annotations

from typing import Any


class Printed:
    """A base for classes with a `__str__` of their own; dataclasses need `repr=False`."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"
