"""The real torch and torch_npu, where they are installed, on the stand-in for CANN: in processes that find its libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.npu.test_bench import KERNEL
from tests.npu.test_page import ROOT, blocks
from tests.npu.torch_npu_libraries import libraries
from tile_eg.cli.app import run
from tile_eg.simulator.build import require_compiler

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
VIEWS = """
import warnings
import torch, torch_npu, tile_eg, tile_eg.errors

warnings.simplefilter("error", tile_eg.errors.TileWarning)
gemm = tile_eg.load("examples/gemm.tile")
a, b = torch.randn(128, 192).half() * 0.3, torch.randn(64, 128).half() * 0.3
found = gemm(a.npu()[:, 64:128], b.npu().t()[:64])
print(torch.equal(found.cpu(), gemm(a[:, 64:128].contiguous(), b.t()[:64].contiguous())))
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


def ran(script: str, machine: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=machine, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_python_with_torch_of_the_page_runs(machine: dict[str, str]) -> None:
    ran(next(b for b in blocks("python") if "torch" in b), machine)


def test_a_kernel_is_launched_on_the_stream_that_torch_is_on(machine: dict[str, str]) -> None:
    assert ran(STREAMS, machine) == "['npu', 'npu'] [True, True]\n"


def test_a_slice_of_columns_and_a_transposed_operand_are_not_copied(machine: dict[str, str]) -> None:
    assert ran(VIEWS, machine) == "True\n"


def test_a_tensor_that_requires_a_gradient_is_refused(machine: dict[str, str]) -> None:
    assert ran(REFUSED, machine).startswith("argument X requires a gradient, and a kernel has none")


LAUNCH = """
#include "scaled.h"
size_t scaled_workspace() { return 0; }
int scaled_launch(void*, void* X, void* Y, void*)
{
    for (int i = 0; i < 64 * 64; ++i) static_cast<float*>(Y)[i] = 3 * static_cast<float*>(X)[i];
    return 0;
}
"""
EXTENSION = """
import sys, warnings, torch, torch_npu

torch.ops.load_library(sys.argv[1])
op, x = torch.ops.tile_eg.scaled, torch.randn(64, 64)
print(torch.equal(op(x.npu()).cpu(), x * 3), op(x.to("meta")).shape)
for wrong in (x, x[:32].npu(), x.half().npu(), x.npu().requires_grad_()):
    try:
        op(wrong)
    except (RuntimeError, NotImplementedError) as error:
        print(str(error).splitlines()[0])
"""


def test_the_extension_of_a_directory_is_an_operator_of_torch_npu(machine: dict[str, str], tmp_path: Path) -> None:
    """Its own host code, against the real headers; what launches stands in, as nothing here compiles `<<<>>>` to a library."""
    (tmp_path / "scaled.tile").write_text(KERNEL)
    assert run(["build", str(tmp_path / "scaled.tile"), "-o", str(tmp_path / "out")]) == 0
    (tmp_path / "out" / "launch.cpp").write_text(LAUNCH)
    specs = [find_spec("torch"), FOUND]
    roots = [Path(next(iter(s.submodule_search_locations))) for s in specs if s and s.submodule_search_locations]
    folders = [f"-I{root / 'include' / part}" for root in roots for part in ("", "torch/csrc/api/include", "third_party/acl/inc")]
    libraries = [f"-L{root / 'lib'}" for root in roots]
    built = tmp_path / "scaled_torch.so"
    command = [require_compiler(), "-std=c++17", "-shared", "-fPIC", *folders, "scaled_torch.cpp", "launch.cpp", *libraries]
    subprocess.run([*command, "-ltorch", "-ltorch_cpu", "-lc10", "-ltorch_npu", "-o", built], cwd=tmp_path / "out", check=True)
    lines = ran(EXTENSION, machine, str(built)).splitlines()
    assert lines[0] == "True torch.Size([64, 64])"
    told = ("backend", "X has the shape [32, 64]", "X is Half", "X requires a gradient")
    assert [what for what, line in zip(told, lines[1:], strict=True) if what not in line] == []
