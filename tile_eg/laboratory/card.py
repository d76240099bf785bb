"""The card of a dataset: what is in it, how it was made, and what it does not say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from tile_eg.cost_models.context import FEATURES
from tile_eg.laboratory.rows import Row

COLUMNS = {
    "case": "the kernel and its sizes",
    "kernel": "the kernel's name",
    "chip": "the chip it is planned for",
    "number": "which of its case's schedules, from 1",
    "way": "how it was drawn: near the best, spread over the options of decisions, at random; or found by the search",
    "microseconds": "its time, the label",
    "timed_by": "timeline: predicted; npu: measured, the median of 30 launches",
    "predicted": "the timeline's time, microseconds",
    "bound": "what bounds it in the timeline: a pipe, HBM, or latency",
    "decisions": "the option taken, by what the decision is about",
    "instructions": "how often each instruction is issued in one launch block",
    "feature.*": "numbers by name (`tile_eg.cost_models.context`): microseconds of pipes, counts, bytes, parts of memories",
    "bytes": "bytes of the launch by path, as the timeline counts them",
    "program": "the instruction stream, which `tile-eg run` and `parse_program` read",
}


def card(rows: Sequence[Row], settings: Mapping[str, object], wanted: int) -> str:
    """Markdown, the same for the same rows."""
    return "\n".join([*_head(rows, wanted), *_cases(rows), *_columns(), *_made(settings), *_limits(), ""])


def _head(rows: Sequence[Row], wanted: int) -> list[str]:
    fewer = "" if len(rows) >= wanted else f"; {wanted} were asked for, and draws found no others"
    return ["# Schedules of tile kernels", "", f"{len(rows)} distinct legal schedules{fewer}.", ""]


def _cases(rows: Sequence[Row]) -> list[str]:
    head = "| case | chip | schedules | near, spread, random, search | fastest | median | slowest |"
    out = [head, "|---|---|---:|---|---:|---:|---:|"]
    for case in dict.fromkeys(r.case for r in rows):
        own = [r for r in rows if r.case == case]
        times, ways = [r.microseconds for r in own], Counter(r.way for r in own)
        drawn = ", ".join(str(ways[way]) for way in ("near", "spread", "random", "search"))
        three = " | ".join(f"{t:.4g} us" for t in (min(times), float(np.median(times)), max(times)))
        out.append(f"| {case} | {own[0].chip} | {len(own)} | {drawn} | {three} |")
    return [*out, ""]


def _columns() -> list[str]:
    told = [f"| `{name}` | {what} |" for name, what in COLUMNS.items()]
    names = ", ".join(f"`{name}`" for name in FEATURES)
    return ["## Columns", "", "| column | holds |", "|---|---|", *told, "", f"Features: {names}.", ""]


def _made(settings: Mapping[str, object]) -> list[str]:
    told = f"Seed {settings['seed']}, tile_eg {settings['tile_eg']}, timed by {settings['timed_by']}."
    how = "`_dataset.json` holds digests of kernels and options. The same seed gives these rows on any number of workers."
    return ["## How it was made", "", told, how, "What was drawn twice, or has the program of another one, is there once.", ""]


def _limits() -> list[str]:
    return [
        "## What it does not say",
        "",
        "- Times by the timeline are predictions, and no better than it is (docs/timing.md): a model that learns them learns it.",
        "- Drawn are choices of one e-graph, that of the form that the search found best, with a block for each tile or one of",
        "  its persistent grids. Forms in other tiles, split sums and packed operands are among the first rows alone.",
        "- Schedules are not drawn evenly: a third is near the best, and where memory is short, chance is pulled towards it.",
    ]
