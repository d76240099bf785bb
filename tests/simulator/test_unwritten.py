"""What a kernel leaves of its outputs is found, wherever it runs; what starts written is not asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.simulator.asc import MAIN, QUEUES, SPEC, launched, ran
from tests.simulator.kernels import kernel
from tile_eg.cli.app import run
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import Run
from tile_eg.simulator.findings import Counts, Finding, Simulation
from tile_eg.simulator.run import simulate
from tile_eg.simulator.unwritten import unwritten_text

pytestmark = pytest.mark.slow(but=3)

EVERY_SECOND = QUEUES.replace("AscendC::DataCopy(gz[i * tile], c, tile);", "if (i % 2) AscendC::DataCopy(gz[i * tile], c, tile);")


def unwritten(done: Simulation) -> list[str]:
    return [f.message for f in done.findings if f.kind == "unwritten"]


@pytest.mark.slow
def test_a_spec_finds_the_elements_that_are_left_with_their_number_and_the_first(tmp_path: Path) -> None:
    (finding,) = launched(tmp_path, EVERY_SECOND).findings
    assert finding.kind == "unwritten"
    assert finding.message == "1024 of 2048 elements of z are never written, the first is z[0]"
    assert finding.line == EVERY_SECOND.splitlines().index(next(s for s in EVERY_SECOND.splitlines() if "void scaled" in s)) + 1


@pytest.mark.slow
def test_an_output_that_a_kernel_does_not_know_is_never_written(tmp_path: Path) -> None:
    source = QUEUES.replace("AscendC::DataCopy(gz[i * tile], c, tile);", "")
    assert unwritten(launched(tmp_path, source)) == ["z is never written"]


@pytest.mark.slow
@pytest.mark.parametrize("start", ['generator = "zeros"', 'file = "z.npy"'])
def test_an_output_that_starts_written_is_not_blamed(start: str, tmp_path: Path) -> None:
    np.save(tmp_path / "z.npy", np.full(2048, 7, np.float32))
    assert launched(tmp_path, EVERY_SECOND, SPEC.replace("output = true", f"output = true\n{start}")).ok


@pytest.mark.slow
def test_a_run_that_another_error_ended_is_not_blamed_for_the_rest(tmp_path: Path) -> None:
    done = launched(tmp_path, QUEUES.replace("out.FreeTensor(c);", "out.FreeTensor(c), out.FreeTensor(c);"))
    assert done.findings and not unwritten(done)


@pytest.mark.parametrize(("dtype", "count"), [(np.float16, 5), (np.float32, 5), (np.int32, 63)])
def test_elements_of_every_size_are_told_apart(dtype: type, count: int) -> None:
    name = {"float16": "half", "float32": "float", "int32": "int32_t"}[np.dtype(dtype).name]
    body = f"""
    AscendC::GlobalTensor<{name}> g; g.SetGlobalBuffer((__gm__ {name}*)A);
    AscendC::TPipe pipe; AscendC::TBuf<AscendC::TPosition::VECCALC> b; pipe.InitBuffer(b, 1024);
    AscendC::LocalTensor<{name}> a = b.Get<{name}>();
    AscendC::Duplicate(a, ({name})1, 64);
    AscendC::PipeBarrier<PIPE_ALL>();
    AscendC::DataCopyPad(g, a, AscendC::DataCopyExtParams(1, {count} * sizeof({name}), 0, 0, 0));"""
    like = np.zeros((2, 32), dtype)
    done = simulate(kernel("A", "AIV_ONLY", body), "k", [like], kernel_type="AIV_ONLY", launch=1, outputs=[0])
    (mask,) = done.unwritten
    assert done.ok and mask is not None
    np.testing.assert_array_equal(mask, np.arange(64).reshape(2, 32) >= count)


def test_an_output_that_is_written_whole_has_no_mask(tmp_path: Path) -> None:
    assert launched(tmp_path).unwritten == (None,)


def test_what_the_kernel_writes_and_its_text_does_not_is_told_apart_from_what_neither_does() -> None:
    half = load_text("kernel half(A: f32[64, 8]) -> C: f32[64, 8] { shared a: f32[32, 8] a = A[0, 0] C[0, 0] = a }").instantiate()
    mask = np.zeros((64, 8), bool)
    mask[16:] = True
    ran = Run({"C": np.zeros((64, 8), np.float32)}, [Finding("unwritten", "384 of 512", 7)], Counts(), {"C": mask})
    meant = ran.as_meant(half, {"A": np.ones((64, 8), np.float32)})
    told = "128 of 512 elements of C are never written, the first is C[16, 0]"
    assert [(f.line, f.message) for f in meant.findings] == [(7, told)]
    np.testing.assert_array_equal(np.argwhere(meant.unwritten["C"])[[0, -1]], [[32, 0], [63, 7]])


# a file with a main: what the host takes from the device is an output

HALF = MAIN.replace("doubled<float, length><<<2,", "doubled<float, length><<<1,")
INIT = next(line + "\n" for line in HALF.splitlines() if "HOST_TO_DEVICE" in line)
DONE = next(line + "\n" for line in HALF.splitlines() if "aclrtSynchronizeStream" in line)
TO_HOST = "Device, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST"


def test_a_main_that_takes_what_nothing_wrote_is_told_where_it_copies(tmp_path: Path) -> None:
    (finding,) = ran(tmp_path, HALF).findings
    copy = next(n for n, line in enumerate(HALF.splitlines(), 1) if "DEVICE_TO_HOST" in line)
    assert (finding.kind, finding.line) == ("unwritten", copy)
    told = "the host copies 512 bytes of zDevice, and nothing has written 256 of them, the first of these byte 256 of zDevice"
    assert finding.message == told


def test_memory_that_a_main_has_set_is_written(tmp_path: Path) -> None:
    assert ran(tmp_path, HALF.replace(INIT, INIT + "    aclrtMemset(zDevice, sizeof host, 0, sizeof host);\n")).ok


def test_a_copy_on_the_device_does_not_make_results_of_nothing(tmp_path: Path) -> None:
    on = "    aclrtMemcpy(xDevice, sizeof host, zDevice, sizeof host, ACL_MEMCPY_DEVICE_TO_DEVICE);\n"
    source = HALF.replace(DONE, DONE + on).replace("z" + TO_HOST, "x" + TO_HOST)
    assert [f.message.split(",")[0] for f in ran(tmp_path, source).findings] == ["the host copies 512 bytes of xDevice"]


def test_the_command_shows_what_is_unwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.asc").write_text(EVERY_SECOND)
    (tmp_path / "spec.toml").write_text(SPEC)
    assert run(["simulate", str(tmp_path / "k.asc"), "--args", str(tmp_path / "spec.toml")]) == 1
    shown = capsys.readouterr().out
    assert "error: unwritten: 1024 of 2048 elements of z" in shown and "void scaled(GM_ADDR x" in shown


@pytest.mark.parametrize(
    ("left", "text"),
    [
        ([[0, 0, 0], [0, 1, 0]], "C[1, 1] is never written"),
        ([[0, 0, 1], [0, 1, 0]], "2 of 6 elements of C are never written, the first is C[0, 2]"),
        ([[1, 1, 1], [1, 1, 1]], "C is never written"),
    ],
)
def test_it_is_said_how_many_and_where(left: list[list[int]], text: str) -> None:
    assert unwritten_text("C", np.array(left, bool)) == text
