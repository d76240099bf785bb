"""The first value of a run that is not what the kernel means: where it is, what it is, and what computed it."""

from tile_eg.locate.difference import Difference, Located
from tile_eg.locate.search import Subject, located, located_outside

__all__ = ["Difference", "Located", "Subject", "located", "located_outside"]
