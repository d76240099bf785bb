"""The real torch and torch_npu, where they are installed, on the stand-in for CANN: in processes that find its libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.npu.test_page import ROOT, blocks
from tests.npu.torch_npu_libraries import libraries

FOUND = find_spec("torch_npu")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(FOUND is None, reason="torch_npu is not installed; test_calls has the same path with arrays of ours"),
]
STREAMS = """
import torch, torch_npu, tile_eg

gemm_exp = tile_eg.load("examples/gemm_exp.tile")
a, b = (torch.randn(shape, dtype=torch.float16) * 0.3 for shape in ((256, 128), (128, 256)))
wanted, own = gemm_exp(a, b), torch.npu.Stream()
with torch.npu.stream(own):
    found = gemm_exp(a.npu(), b.npu())
own.synchronize()
print([x.device.type for x in found], [torch.equal(x.cpu(), y) for x, y in zip(found, wanted)])
"""
REFUSED = """
import torch, torch_npu, tile_eg

softmax, x = tile_eg.load("examples/softmax.tile"), torch.randn(512, 512)
try:
    softmax(x.npu().requires_grad_())
except tile_eg.TileError as error:
    print(error.message)
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process on a machine with an NPU."""
    home = tmp_path_factory.mktemp("cann")
    assert FOUND and FOUND.submodule_search_locations
    folder = libraries(home, Path(next(iter(FOUND.submodule_search_locations))))
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    own = {"ASCEND_HOME_PATH": str(home), "ASCEND_OPP_PATH": str(home / "opp"), "PYTHONPATH": paths}
    return {**os.environ, **own, "LD_LIBRARY_PATH": str(folder)}


def ran(script: str, machine: dict[str, str]) -> str:
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, env=machine, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_python_with_torch_of_the_page_runs(machine: dict[str, str]) -> None:
    ran(next(b for b in blocks("python") if "torch" in b), machine)


def test_a_kernel_is_launched_on_the_stream_that_torch_is_on(machine: dict[str, str]) -> None:
    assert ran(STREAMS, machine) == "['npu', 'npu'] [True, True]\n"


def test_a_tensor_that_requires_a_gradient_is_refused(machine: dict[str, str]) -> None:
    assert ran(REFUSED, machine).startswith("argument X requires a gradient, and a kernel has none")
