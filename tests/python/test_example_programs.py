"""Each example's program runs on several shapes, tails among them, and agrees with its NumPy reference."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("beginner/*.py")])
TOLERANCE = 2e-2
"""Of float16 results up to 32 in magnitude: one unit in the last place is 1.6e-2."""


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: str(p.relative_to(EXAMPLES)))
def test_an_example_agrees_with_numpy(program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    runpy.run_path(str(program), run_name="__main__")
    errors = [float(e) for e in re.findall(r"largest error (\S+)", capsys.readouterr().out)]
    assert len(errors) >= 2
    assert max(errors) < TOLERANCE
