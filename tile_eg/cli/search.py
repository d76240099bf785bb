"""The options of the search on the command line: every command that compiles takes the same ones."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tile_eg.search import EFFORTS, SearchOptions, search_options

ModelSeconds = Annotated[
    float, typer.Option("--model-seconds", metavar="NUMBER", help="Seconds for one answer of a cost model.")
]
MODEL_SECONDS = 60.0
FLAGS: dict[str, tuple[Any, Any]] = {
    "effort": (
        Annotated[str, typer.Option(metavar="|".join(EFFORTS), help="How much is tried before a schedule is chosen.")],
        "quick",
    ),
    "exact_math": (Annotated[bool, typer.Option("--exact-math", help="Only rules that hold bit for bit.")], False),
    "deterministic": (
        Annotated[bool, typer.Option("--deterministic", help="No sums of floats whose order changes from run to run.")],
        False,
    ),
    "untuned": (
        Annotated[bool, typer.Option("--untuned", help="Search, even if `tile-eg tune` has found a schedule.")],
        False,
    ),
    "rules": (
        Annotated[list[Path] | None, typer.Option("--rules", metavar="FILE.egg", help="Rules of your own. Repeatable.")],
        None,
    ),
    "without": (Annotated[list[str] | None, typer.Option(metavar="RULE", help="Leave out a rule or a move. Repeatable.")], None),
    "fuel": (Annotated[int | None, typer.Option(metavar="ROWS", help="How many rows a phase of the rules may add.")], None),
    "extractor": (
        Annotated[
            str | None,
            typer.Option(metavar="NAME", help="exact, beam, greedy, random, worst, choices=FILE, or module:Class (executed)."),
        ],
        None,
    ),
    "cost_model": (
        Annotated[
            str | None,
            typer.Option(
                "--cost-model", metavar="NAME", help="Prices and ranks: a name, name@FILE, or module:Class, which is executed."
            ),
        ],
        None,
    ),
    "model_faults": (
        Annotated[
            str,
            typer.Option("--model-faults", metavar="stop|default", help="If a cost model fails: stop, or use the default."),
        ],
        "stop",
    ),
    "model_seconds": (ModelSeconds, MODEL_SECONDS),
}
SEVERAL = ("rules", "without")


def searching(command: Callable[..., Any], without: Collection[str] = (), **usual: Any) -> Callable[..., Any]:
    """The command with the flags of the search in place of its parameter `search`, which gets the `SearchOptions`.

    It has no flags `without`, and `usual` values other than those of most commands.
    """
    own = inspect.signature(command, eval_str=True)
    flags = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=usual.get(name, default), annotation=kind)
        for name, (kind, default) in FLAGS.items()
        if name not in without
    ]
    kept = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own.parameters.values() if p.name != "search"]

    @functools.wraps(command)
    def with_flags(**given: Any) -> Any:
        flags_given = {f.name: given.pop(f.name) for f in flags}
        return command(**given, search=given_search(flags_given))

    with_flags.__signature__ = own.replace(parameters=[*kept, *flags])  # type: ignore[attr-defined]
    with_flags.__annotations__ = {p.name: p.annotation for p in [*kept, *flags]}
    del with_flags.__wrapped__  # type: ignore[attr-defined]
    return with_flags


def given_search(given: Mapping[str, Any]) -> SearchOptions:
    """The options of a search by the names of their flags; a flag that was given no time is None or its usual value."""
    flags = {name: value for name, value in given.items() if name in FLAGS}
    several: Mapping[str, Any] = {name: () if flags[name] is None else flags[name] for name in SEVERAL}
    return search_options(**{**flags, **several})
