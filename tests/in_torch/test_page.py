"""docs/torch.md: its Python runs, and what it says of options is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import tile_eg
from tile_eg.torch.backend import OPTIONS

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "torch.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE)


class Calls(torch.nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        return torch.ops.mylib.gemm(x, y)


def test_every_block_of_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    halves = [torch.randn(shape, generator=torch.Generator().manual_seed(0)).half() for shape in ((32, 16), (16, 32))]
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU())
    names = {"a": halves[0], "b": halves[1], "module_that_calls_op": Calls(), "model": model, "torch": torch, "tile_eg": tile_eg}
    for block in BLOCKS:
        exec(block, names)
    assert names["c"].shape == (32, 32)
    x = torch.randn(4, 8)
    with torch.no_grad():
        torch.testing.assert_close(names["step"](x), model(x), rtol=1e-5, atol=1e-6)


def test_the_page_lists_the_options_of_the_backend() -> None:
    assert re.findall(r"(?m)^\| `(\w+)` \|", PAGE) == list(OPTIONS)
