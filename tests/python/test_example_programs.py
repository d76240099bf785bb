"""Each example's program runs on several shapes, tails among them, and agrees with its NumPy reference."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from benchmarks.families import EXAMPLES as FAMILIES

EXAMPLES = Path(__file__).parents[2] / "examples"
LONG = {EXAMPLES / "beginner" / f"{name}.py" for name in ("attention", "rms_norm")}
PROGRAMS = sorted({*EXAMPLES.glob("*.py"), *EXAMPLES.glob("beginner/*.py")} - LONG)
OF_FAMILIES = [e.path.with_suffix(".py") for e in FAMILIES if not e.of]
TOLERANCE = 2e-2
"""Of float16 results up to 32 in magnitude: one unit in the last place is 1.6e-2."""


def named(programs: list[Path], **marks: object) -> list:
    return [pytest.param(p, id=str(p.relative_to(EXAMPLES)), **marks) for p in programs]


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize("program", [*named(PROGRAMS), *named([*sorted(LONG), *OF_FAMILIES], marks=pytest.mark.long)])
def test_an_example_agrees_with_numpy(program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    runpy.run_path(str(program), run_name="__main__")
    errors = [float(e) for e in re.findall(r"largest error (\S+)", capsys.readouterr().out)]
    assert len(errors) >= 2
    assert max(errors) < TOLERANCE
