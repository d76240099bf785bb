"""What each example becomes stands in a file, so that a change of the emitted text is seen, and read, in its diff.

`make golden` writes what comes out now as the new files.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import Lowered, lower

HERE = Path(__file__).parent
EXAMPLES = sorted((HERE.parents[1] / "examples").glob("*.tile"))
FORMS = {"asc": lambda low: low.source, "host.cpp": lambda low: low.host, "program": lambda low: str(low.program)}


@cache
def lowered(example: Path) -> Lowered:
    return lower(load_text(example.read_text(), example.name).instantiate())


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.stem)
def test_an_example_becomes_its_golden_text(example: Path, form: str, update_golden: bool) -> None:
    golden = HERE / f"{example.stem}.{form}"
    text = FORMS[form](lowered(example))
    if update_golden:
        golden.write_text(text)
    assert text == golden.read_text()


def test_every_golden_file_has_its_example() -> None:
    names = {e.stem for e in EXAMPLES}
    kept = [f for f in HERE.iterdir() if f.suffix in (".asc", ".cpp", ".program")]
    assert {f.name.split(".")[0] for f in kept} <= names
