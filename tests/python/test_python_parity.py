"""Each example is written twice, as `.tile` text and in TileLang's words: both are one and the same kernel."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path

import pytest

import tile_eg

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(p.stem for p in EXAMPLES.glob("*.tile"))


def factory(name: str):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def test_there_are_examples() -> None:
    assert {"vector_add", "gemm", "gemm_exp", "matmul_add", "softmax", "flash_attention"} <= set(NAMES)


@pytest.mark.slow(but=27)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("growth", [0, 3], ids=["default-sizes", "other-sizes"])
def test_both_forms_are_one_kernel(name: str, growth: int) -> None:
    template = tile_eg.load(EXAMPLES / f"{name}.tile").template
    python = factory(name)
    sizes = {n: v + growth for n, v in template.sizes.items() if v is not None and n in inspect.signature(python).parameters}
    assert python(**sizes).kernel == template.instantiate(sizes)
