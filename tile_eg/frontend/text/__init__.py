"""`.tile` text: parsed, with its sizes put in, and printed."""

from tile_eg.frontend.text.template import Template, load_text

__all__ = ["Template", "load_text"]
