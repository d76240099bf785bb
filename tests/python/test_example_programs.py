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
WIDER = {
    **dict.fromkeys(("gemm_bf16", "relu", "experts"), 0.125),  # one unit of bf16 up to 32
    **dict.fromkeys(("gated_mlp", "mlp"), 0.25),  # one unit of bf16 up to 64
    **dict.fromkeys(("quantise", "quantising"), 1.0),  # a whole number that is rounded the other way
}
SAID = re.compile(r"(?:largest error|other places) ([-+.\de]+)|(?:: )([.\d]+) % off", re.M)
"""What a program says of a shape: in numbers, or in hundredths of those that were not rounded to eight or four bits."""


def named(programs: list[Path], **marks: object) -> list:
    return [pytest.param(p, id=str(p.relative_to(EXAMPLES)), **marks) for p in programs]


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize("program", [*named(PROGRAMS), *named([*sorted(LONG), *OF_FAMILIES], marks=pytest.mark.long)])
def test_an_example_agrees_with_numpy(program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    runpy.run_path(str(program), run_name="__main__")
    said = [m.groups() for m in SAID.finditer(capsys.readouterr().out)]
    assert len(said) >= 2
    assert max((float(e) for e, _ in said if e), default=0) <= WIDER.get(program.stem, TOLERANCE)
    assert max((float(p) for _, p in said if p), default=0) <= 20
