"""All candidates of a kernel, not the chosen one alone: each is planned again, read back from its text, run and compared."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from tile_eg.chips import Chip, load_chip
from tile_eg.inputs import USUAL, drawn_sets
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.program.parser import parse_program
from tile_eg.ir.reference_bounds import Expected
from tile_eg.report.compare import compare
from tile_eg.search import search_options
from tile_eg.search.compiler import expected, plan_schedule
from tile_eg.search.every import Every, Found
from tile_eg.search.planned import Planned

ORDERS = (None, 1)  # that of the program, and one in which pipes are late


def faults(kernel: Kernel, chip: str, most: int, **options: object) -> list[str]:
    """What is wrong with the candidates that the search makes of a kernel: the fastest one, and others up to so many.

    Of each that has a rest in parts, as well. Empty where nothing is.
    """
    every = Every(kernel, load_chip(chip), search_options(untuned=True, **options))  # type: ignore[arg-type]
    found = [f for f in every if f.candidate.unwritable is None]
    drawn = next(iter(drawn_sets(kernel, USUAL, seed=1))).arrays
    want = expected(kernel, drawn)
    out = list(every.faults)
    for n in _some(found, most):
        out += [f"candidate {n}: {wrong}" for wrong in _wrong(kernel, found[n], every.setting.chip, drawn, want)]
    return out


def _some(found: list[Found], most: int) -> list[int]:
    """The first one, some of the others, and one with a rest in parts."""
    drawn = random.Random(len(found)).sample(range(1, len(found)), min(most, len(found)) - 1)
    in_parts = [n for n, f in enumerate(found) if f.candidate.schedule.rest is not None]
    return sorted({0, *drawn, *in_parts[:1]})


def _wrong(
    kernel: Kernel, found: Found, chip: Chip, arrays: Mapping[str, np.ndarray], want: Mapping[str, Expected]
) -> Iterator[str]:
    first = found.candidate.planned
    again = plan_schedule(replace(found.candidate.schedule), chip)
    if _code(Planned(parse_program(str(first.program)), chip)) != _code(first):
        yield "its program reads back as another one"
    for planned in dict.fromkeys((first, again) if _code(again) != _code(first) else (first,)):
        for order in ORDERS:
            run = planned.run(arrays, strict=False, order=order).as_meant(kernel, arrays)
            yield from map(str, run.findings)
            yield from (f"{c.name}{c.where} is {c.got} and not {c.want}" for c in compare(run.outputs, want) if not c.good)


def _code(planned: Planned) -> str:
    """The text without what it says of its source."""
    return re.sub(r"  // .*", "", str(planned.source))
