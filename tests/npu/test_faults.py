"""What goes wrong between a call and a launch: each fault names its step, and the next call is as if it had not been."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.npu.cann import ROOT, StandIn
from tests.npu.kernels import doubled, matrix, scaled_product
from tile_eg.disk_cache import CACHE_VARIABLE, DiskCache
from tile_eg.errors import TileError
from tile_eg.jit import CompiledKernel
from tile_eg.npu import build
from tile_eg.npu.arrays import array
from tile_eg.npu.cann import Cann, find_cann
from tile_eg.npu.codes import CODES

pytestmark = pytest.mark.slow(but=6)


@pytest.fixture
def objects(npu: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for objects; the compiler itself keeps its libraries where it does."""
    monkeypatch.setattr(build, "user_cache", lambda: DiskCache(tmp_path / "objects", CACHE_VARIABLE))
    return tmp_path / "objects"


@pytest.fixture
def source(npu: StandIn) -> Callable[[], Path]:
    text = str(doubled().planned().source)
    return lambda: build.device_object(text, "dav-2201", Cann(npu.home))


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("fail", "compile for the vector cores: bisheng refuses the kernel's text"),
        ("half", r"compile for the vector cores: the compiler ended well, and vec.o holds \d+ of \d+ bytes"),
        ("nothing", "compile for the vector cores: the compiler ended well and left no vec.o: it is not there"),
        ("killed", "compile for the vector cores: bisheng was ended by SIGKILL"),
        ("full", "what was made cannot be kept in .*: the disk is full"),
    ],
)
def test_a_compiler_that_fails_is_told_and_leaves_nothing(
    fault: str, told: str, objects: Path, source: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_FAULT", fault)
    with pytest.raises(TileError, match=told):
        source()
    assert not objects.exists() or [p for p in objects.iterdir() if not p.name.startswith("build-")] == []
    monkeypatch.delenv("STANDIN_FAULT")
    assert source().stat().st_size > 0


def test_what_the_compiler_says_is_told_at_the_statement_and_the_authors_line(
    objects: Path, source: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_FAULT", "fail")
    with pytest.raises(TileError) as caught:
        source()
    said = r"line (\d+) \(from kernels\.py:\d+\): no member named 'Frobnicate' in namespace 'AscendC'"
    told = re.search(said, str(caught.value))
    assert told and str(doubled().planned().source).splitlines()[int(told[1]) - 1].strip() in str(caught.value)


def test_a_compiler_that_hangs_is_ended(objects: Path, source: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_FAULT", "hang")
    monkeypatch.setattr(build, "SECONDS", 0.5)
    with pytest.raises(TileError, match=r"compile for the vector cores: bisheng did not end within 0\.5 seconds") as caught:
        source()
    assert "--cce-aicore-arch=dav-c220-vec" in caught.value.help


@pytest.mark.slow
def test_a_truncated_entry_of_the_cache_is_made_again(objects: Path, source: Callable[[], Path]) -> None:
    made = source()
    whole = made.read_bytes()
    made.write_bytes(whole[:100])
    assert source().read_bytes() == whole


def test_launchers_of_former_versions_do_not_pile_up(objects: Path, npu: StandIn) -> None:
    for n in range(10):
        build.user_cache().write(f"npulauncher-{n}", b"of a former version")
        os.utime(objects / f"npulauncher-{n}", (n, n))
    assert build.launcher(Cann(npu.home)).is_file()
    assert len(list(objects.glob("npulauncher-*"))) == build.MOST_LAUNCHERS


def test_two_processes_that_build_one_object_make_it_once(npu: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tmp_path / "kernel.asc"
    text.write_text(str(doubled().planned().source))
    log, tool = tmp_path / "log", tmp_path / "cann" / "bin" / "bisheng"
    shutil.copytree(npu.home, tmp_path / "cann", symlinks=True)
    tool.write_text(tool.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\necho once >> {log}\nsleep 0.3\n"))
    code = (
        "import sys; from pathlib import Path; from tile_eg.npu import build; from tile_eg.npu.cann import Cann\n"
        "from tile_eg.disk_cache import DiskCache\n"
        f"build.user_cache = lambda: DiskCache(Path({str(tmp_path / 'objects')!r}))\n"
        f"print(build.device_object(Path({str(text)!r}).read_text(), 'dav-2201', Cann(Path({str(tmp_path / 'cann')!r}))))"
    )
    command = [sys.executable, "-c", code]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(2)]
    first, second = (p.communicate()[0].strip() for p in both)
    assert first == second and Path(first).is_file() and log.read_text().split() == ["once"]


def fresh() -> CompiledKernel:
    """The kernel as a process that has loaded nothing has it."""
    return CompiledKernel(doubled().kernel, [1])


@pytest.fixture
def unloaded(npu: StandIn) -> Iterator[StandIn]:
    launcher = array(np.zeros(1)).launcher
    kept = dict(launcher.loaded), dict(launcher.binaries)
    launcher.loaded.clear(), launcher.binaries.clear()
    yield npu
    launcher.loaded.update(kept[0]), launcher.binaries.update(kept[1])


@pytest.mark.parametrize(
    ("function", "step"),
    [
        ("aclrtBinaryLoadFromData", "load kernel.o on device 0"),
        ("aclrtBinaryGetFunction", "find kernel doubled in what was loaded"),
        ("aclrtLaunchKernelWithHostArgs", "launch doubled with 4 blocks on device 0"),
        ("aclrtMalloc", "take 24576 bytes on device 0"),
    ],
)
def test_a_step_that_acl_refuses_is_named_and_the_next_call_is_good(function: str, step: str, unloaded: StandIn) -> None:
    kernel, x = fresh(), array(matrix(64, 96))
    unloaded.fail(function, 507899)
    with pytest.raises(TileError, match=f"{step}: ACL gives 507899: the driver failed inside") as caught:
        kernel(x)
    assert f"asked to fail in {function}" in str(caught.value)
    assert np.array_equal(kernel(x).synchronize().numpy(), x.numpy() * 2)


def test_each_code_of_a_launch_is_told_in_words(npu: StandIn) -> None:
    kernel, x = fresh(), array(matrix(64, 96))
    kernel(x)
    for code, words in {**CODES, 107099: "a call was not as ACL wants it", 999999: "nothing is known of this code"}.items():
        npu.fail("aclrtLaunchKernelWithHostArgs", code)
        with pytest.raises(TileError) as caught:
            kernel(x)
        assert caught.value.message == f"launch doubled with 4 blocks on device 0: ACL gives {code}: {words}"


def test_a_kernel_that_fails_on_the_device_is_told_by_whoever_waits(npu: StandIn) -> None:
    kernel, x = fresh(), array(matrix(64, 96))
    kernel(x)
    kernel.npu.prepared[0].ready.launch([0x1234, 0x5678], 0, 0)
    with pytest.raises(TileError, match="wait for the stream: ACL gives 507015: the kernel failed on a cube core"):
        x.synchronize()
    assert np.array_equal(kernel(x).synchronize().numpy(), x.numpy() * 2)


def test_a_stream_that_was_destroyed_is_told(npu: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, x = fresh(), array(matrix(64, 96))
    kernel(x)
    monkeypatch.setattr(x.launcher, "streams", {})  # the other tests keep theirs
    stream = x.launcher.stream(0)
    npu.library.aclrtDestroyStream.argtypes = [ctypes.c_void_p]
    npu.library.aclrtDestroyStream(stream)
    with pytest.raises(TileError, match="ACL gives 107003: the stream is not of the current device, or was destroyed"):
        kernel.npu.prepared[0].ready.launch([x.data_ptr(), x.data_ptr()], 0, stream)


def test_a_device_without_room_says_what_to_free(npu: StandIn) -> None:
    x = array(matrix(64, 96))
    free = npu.memory(1000)
    try:
        with pytest.raises(TileError, match="take 24576 bytes on device 0: ACL gives 207001") as caught:
            fresh()(x)
        assert "empty_cache" in caught.value.help
    finally:
        npu.memory(free)


def test_a_chip_that_the_kernel_was_not_compiled_for_is_refused(npu: StandIn) -> None:
    npu.soc("Ascend950PR_9599")
    x = array(matrix(64, 96))
    with pytest.raises(TileError, match=r"compiled for 910B2 \(dav-2201\), and the device is Ascend950PR_9599") as caught:
        fresh()(x)
    assert 'chip="950"' in caught.value.help


def test_a_mixed_kernel_with_more_blocks_than_the_chip_has_cores_is_refused(npu: StandIn) -> None:
    from tile_eg.chips import load_chip
    from tile_eg.npu.device import check_chip
    from tile_eg.npu.entry import kernels_of

    mixed = kernels_of(str(scaled_product().planned().source))[0]
    check_chip(load_chip("910B2"), "Ascend910B2", mixed, 24)
    with pytest.raises(TileError, match="launched with 24 blocks, and Ascend910B4 has 20 cores") as caught:
        check_chip(load_chip("910B2"), "Ascend910B4", mixed, 24)
    assert 'chip="910B4"' in caught.value.help


def test_npu_arrays_without_cann_are_told_how_to_get_it(npu: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    from tile_eg.npu import device

    kernel, x = fresh(), array(matrix(64, 96))
    monkeypatch.setenv("ASCEND_HOME_PATH", "/nowhere")
    monkeypatch.setattr(device, "the_launcher", lambda: find_cann())
    with pytest.raises(TileError, match="no CANN on this machine: ASCEND_HOME_PATH is /nowhere, and that is no folder") as caught:
        kernel(x)
    assert "set_env.sh" in caught.value.help


def test_a_cann_that_is_too_old_is_refused(npu: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ascend_toolkit_install.info").write_text("version=8.1.RC1\n")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    with pytest.raises(TileError, match=r"is 8\.1, and kernels are built from 8\.3 on"):
        find_cann()


def test_a_compiler_for_another_processor_is_told(objects: Path, npu: StandIn, tmp_path: Path) -> None:
    shutil.copytree(npu.home, tmp_path / "cann")
    (tmp_path / "cann" / "bin" / "bisheng").write_bytes(b"\x7fELF" + bytes(60))
    with pytest.raises(TileError, match="compile for the vector cores: .*bisheng does not start: Exec format error"):
        build.device_object(str(doubled().planned().source), "dav-2201", Cann(tmp_path / "cann"))


def test_a_launcher_that_does_not_compile_is_told(objects: Path, npu: StandIn, tmp_path: Path) -> None:
    shutil.copytree(npu.home, tmp_path / "cann")
    (tmp_path / "cann" / "include" / "acl" / "acl_rt.h").write_text("#error of another release\n")
    with pytest.raises(TileError, match=r"compile the launcher: \S+ fails:\n.*of another release"):
        build.launcher(Cann(tmp_path / "cann"))


def test_a_cann_without_its_compiler_is_told(npu: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    with pytest.raises(TileError, match="has no bisheng"):
        build.device_object(str(doubled().planned().source), "dav-2201", find_cann())
