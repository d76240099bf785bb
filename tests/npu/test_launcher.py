"""The launcher against headers: the stand-in's, CANN's own where torch_npu carries them, and those without launch functions."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.npu.cann import STANDIN, StandIn
from tests.npu.kernels import doubled, matrix, scaled_product
from tile_eg.errors import TileError
from tile_eg.npu import build
from tile_eg.npu.arrays import NpuArray
from tile_eg.npu.cann import Cann, find_cann
from tile_eg.npu.device import Ready, ready
from tile_eg.npu.launcher import Launcher
from tile_eg.simulator.build import require_compiler

pytestmark = pytest.mark.slow
SOURCE = Path(build.__file__).parent / "launcher.cpp"


def real_headers() -> Path:
    found = find_spec("torch_npu")
    if found is None or not found.submodule_search_locations:
        pytest.skip("torch_npu, which carries ACL's headers, is not installed")
    return Path(next(iter(found.submodule_search_locations))) / "include"


def compiles(source: Path, include: Path, *flags: str) -> bool:
    strict = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    command = [require_compiler(), *strict, f"-isystem{include}", *flags, str(source)]
    return subprocess.run(command, check=False).returncode == 0


@pytest.mark.parametrize("flags", [(), ("-DTILE_EG_RT",)])
def test_the_launcher_compiles_without_a_warning(flags: tuple[str, ...]) -> None:
    assert compiles(SOURCE, STANDIN, *flags)


def test_the_launcher_and_the_stand_in_fit_the_real_headers() -> None:
    include = real_headers()
    assert compiles(SOURCE, include)
    assert compiles(STANDIN / "ascendcl.cpp", include, "-Wno-unused-parameter")


@pytest.fixture
def older(npu: StandIn, tmp_path: Path) -> Launcher:
    """The launcher of a CANN whose ACL has no launch functions: it goes by those of the runtime."""
    home = tmp_path / "cann"
    shutil.copytree(npu.home, home)
    header = home / "include" / "acl" / "acl_rt.h"
    newer = r"(?s)aclError aclrt(LaunchKernelWithHostArgs|GetHardwareSyncAddr|BinaryLoadFromData)\(.*?;"
    header.write_text(re.sub(newer, "", header.read_text()))
    for name in ("libruntime.so", "libascendcl.so"):
        (home / "lib64" / name).unlink(missing_ok=True)
        (home / "lib64" / name).symlink_to(npu.home / "lib64" / "libascendcl.so")
    return Launcher(Cann(home))


@pytest.mark.parametrize("mixed", [False, True])
def test_an_older_acl_launches_through_the_runtime(
    mixed: bool, older: Launcher, npu: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tile_eg.npu import device

    monkeypatch.setattr(device, "the_launcher", lambda: older)
    kernel = scaled_product() if mixed else doubled()
    given = [matrix(64, 64, dtype="float16"), matrix(64, 64, dtype="float16", seed=1)] if mixed else [matrix(64, 96)]
    before, made = npu.calls("rtKernelLaunch"), ready(kernel.planned(), 0)
    arrays = [NpuArray(a.shape, a.dtype, 0, older).copy_from(a) for a in given]
    out = NpuArray((64, 64) if mixed else (64, 96), np.dtype(np.float32), 0, older)
    workspace = NpuArray((max(made.workspace, 1),), np.dtype(np.uint8), 0, older)
    Ready.launch(made, [a.data_ptr() for a in (*arrays, out)], workspace.data_ptr(), 0)
    assert np.array_equal(out.synchronize().numpy(), kernel(*given))
    assert npu.calls("rtKernelLaunch") == before + 1


def test_memory_stays_while_kernels_may_use_it(npu: StandIn) -> None:
    launcher = Launcher(find_cann())
    launcher.wait(0)
    NpuArray((8,), np.dtype(np.float32), 0, launcher)
    before = npu.calls("aclrtFree")
    npu.fail("aclrtSynchronizeStream", 507000)
    with pytest.raises(TileError, match="wait for the stream"):
        launcher.wait(0)
    assert npu.calls("aclrtFree") == before
    launcher.wait(0)
    assert npu.calls("aclrtFree") == before + 1


def test_a_device_has_one_stream_of_the_launchers(npu: StandIn) -> None:
    launcher = Launcher(find_cann())
    assert launcher.stream(0) == launcher.stream(0)


def test_the_compiler_is_called_for_the_cores_of_the_chip(npu: StandIn) -> None:
    from tile_eg.npu.entry import kernels_of

    wanted = kernels_of(str(scaled_product().planned().source))
    for architecture, core in (("dav-2201", "dav-c220"), ("dav-3510", "dav-c310")):
        steps = list(build.commands(wanted, architecture, find_cann(), "out.o"))
        archs = [word for _, command in steps for word in command if word.startswith("--cce-aicore-arch=")]
        assert archs == [f"--cce-aicore-arch={core}-cube", f"--cce-aicore-arch={core}-vec"]
        assert all("--cce-auto-sync=off" in command for _, command in steps[:2])
