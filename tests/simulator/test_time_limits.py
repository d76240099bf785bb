"""How long a run may take, how far it is, and what is said when it is interrupted."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tile_eg
from tests.simulator.asc import MAIN, file_of, ran
from tests.simulator.kernels import kernel
from tile_eg.cli.app import run
from tile_eg.cli.console import ProgressLine
from tile_eg.errors import TileError
from tile_eg.simulator import limits
from tile_eg.simulator import run as runs
from tile_eg.simulator.findings import LimitError
from tile_eg.simulator.progress import Progress, watched
from tile_eg.simulator.run import Limits, simulate

ADD = """kernel add[N=64](A: f32[N]) -> C: f32[N] {
  grid b = 1
  shared a: f32[N]
  a = A[0]
  a = a + 1
  C[0] = a
}
"""
ENDLESS = "TPipe pipe; TBuf<TPosition::VECCALC> ub; pipe.InitBuffer(ub, 1024); auto x = ub.Get<float>();\n"
ENDLESS += "for (;;) { Duplicate(x, 1.0f, 64); PipeBarrier<PIPE_V>(); }"
BUSY = "for (volatile int i = 0;; ++i) {}"
A = np.zeros(64, np.float32)


def launch(body: str, blocks: int = 1, seconds: float = 60) -> None:
    text, allowed = kernel("A", "AIV_ONLY", body), Limits(seconds=seconds)
    simulate(text, "k", [A], kernel_type="AIV_ONLY", launch=blocks, outputs=[0], inout=[0], limits=allowed)


@pytest.mark.slow
def test_a_process_that_stood_still_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[Progress] = []
    work = "static volatile float s; for (int i = 0; i < 100000000; ++i) s = i;"  # is not over before it is stopped
    launch(work)  # compiles it
    monkeypatch.setattr(runs, "EVERY", 0.6)

    class Stopped(subprocess.Popen[bytes]):  # for longer than its limit
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, **kwargs)  # type: ignore[call-overload]
            os.kill(self.pid, signal.SIGSTOP)

        def communicate(self, *args: object, **kwargs: object) -> object:  # type: ignore[override]
            if len(stopped) == 4:
                os.kill(self.pid, signal.SIGCONT)
            return super().communicate(*args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(runs.subprocess, "Popen", Stopped)
    with watched(stopped.append):
        launch(work, seconds=2)
    assert len(stopped) >= 4


@pytest.mark.slow
def test_workers_and_their_parent_have_one_limit() -> None:
    spin = "static volatile float s; for (int i = 0; i < 100000000; ++i) s = i;"
    with pytest.raises(LimitError, match="within 1 seconds of processor time"):
        launch(spin, blocks=40, seconds=1)


@pytest.mark.slow
def test_a_run_that_waits_instead_of_computing_ends_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PATIENCE", 2)
    monkeypatch.setattr(limits, "LEAST_PATIENCE", 0)
    waits = "#include <unistd.h>\n" + MAIN.replace("    aclInit(nullptr);", "    for (;;) pause();")
    with pytest.raises(LimitError, match="did not end within 1 seconds, in which it used less than 0.5 .*: it waits"):
        ran(tmp_path, waits, limits=Limits(seconds=0.5))


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("handled", ["signal(SIGPROF, SIG_IGN);", "itimerval none{}; setitimer(ITIMER_PROF, &none, nullptr);"])
def test_the_limit_holds_for_a_file_that_stops_the_clock(handled: str, tmp_path: Path) -> None:
    text = "#include <csignal>\n#include <sys/time.h>\n" + MAIN.replace("    aclInit(nullptr);", handled + BUSY)
    with pytest.raises(LimitError, match="of processor time"):
        ran(tmp_path, text, limits=Limits(seconds=0.5))


@pytest.mark.slow
def test_the_limit_is_an_argument_of_kernels_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(command: list[str], limits: Limits, *_: object) -> None:
        assert "seconds=7" in command
        raise LimitError(f"late after {limits.seconds}")

    (tmp_path / "add.tile").write_text(ADD)
    np.testing.assert_array_equal(tile_eg.load(tmp_path / "add.tile", seconds=30)(A), A + 1)
    monkeypatch.setattr(runs, "execute", late)
    with pytest.raises(TileError, match="late after 7") as error:
        tile_eg.load(tmp_path / "add.tile", seconds=7)(A)
    assert "`seconds=` in Python" in error.value.help


@pytest.mark.slow
def test_a_run_that_looks_at_instructions_without_end_is_not_one_of_too_large_tensors() -> None:
    text = kernel("A", "AIV_ONLY", ENDLESS)
    with pytest.raises(TileError, match="did not end with as many instructions") as error:
        simulate(text, "k", [A], kernel_type="AIV_ONLY", launch=1, outputs=[0], inout=[0], limits=Limits(bytes=192 << 20))
    assert "changes what its condition reads" in error.value.help


@pytest.mark.slow
def test_the_memory_of_a_run_is_an_argument_of_kernels_in_python(tmp_path: Path) -> None:
    (tmp_path / "add.tile").write_text(ADD)
    with pytest.raises(TileError, match="more memory than the 4,096 bytes") as error:
        tile_eg.load(tmp_path / "add.tile", memory=4096)(A)
    assert "`memory=` in bytes in Python" in error.value.help


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ({"seconds": 0}, "`seconds` is a number above 0, not 0"),
        ({"seconds": "long"}, "not 'long'"),
        ({"memory": "8G"}, "`memory` is a whole number of bytes above 0, not '8G'"),
        ({"memory": 1.5}, "not 1.5"),
    ],
)
def test_a_limit_that_is_none_is_refused_at_once(limit: dict[str, object], why: str, tmp_path: Path) -> None:
    (tmp_path / "add.tile").write_text(ADD)
    with pytest.raises(TileError, match=why):
        tile_eg.load(tmp_path / "add.tile", **limit)
    with pytest.raises(TileError, match=why):
        tile_eg.jit(**limit)


@pytest.mark.slow
def test_the_limit_is_an_option_of_simulate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = file_of(tmp_path, MAIN.replace("    aclInit(nullptr);", BUSY)).path
    assert run(["simulate", str(file), "--seconds", "0.2"]) == 1
    said = capsys.readouterr().err
    assert "within 0.2 seconds of processor time" in said and "--seconds NUMBER" in said


@pytest.mark.slow
def test_a_long_run_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Progress] = []
    monkeypatch.setattr(runs, "EVERY", 0.02)
    with watched(told.append):
        launch("static volatile float s; for (int i = 0; i < 300000000; ++i) s = i;", blocks=20)
    ended = [p.ended for p in told]
    assert ended == sorted(ended) and 0 < max(ended) <= 20
    assert {p.blocks for p in told if p.launch} == {20}
    assert any(p.left is not None and p.left > 0 for p in told)


def test_what_is_left_follows_from_what_was_done() -> None:
    assert str(Progress(2, 48, 12, 9.0, 4.0)) == "launch 2: 12 of 48 blocks after 9 s, about 12 s left"
    assert str(Progress(1, 48, 0, 9.0, 4.0)) == "launch 1: 0 of 48 blocks after 9 s"
    assert str(Progress(0, 0, 0, 9.0, 0.0)) == "running for 9 s, no kernel is launched yet"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_one_line_and_clears_it() -> None:
    with ProgressLine(terminal := Terminal()) as line:
        line.tell("soon", 1.0)
        line.tell("a third", 3.0)
        line.tell("half", 4.0)
    assert terminal.getvalue() == "\ra third\rhalf   \r    \r"


def test_a_file_gets_a_line_each_minute() -> None:
    with ProgressLine(file := io.StringIO()) as line:
        for second in range(150):
            line.tell(f"{second} s", float(second))
    assert file.getvalue() == "60 s\n120 s\n"


def _hears_interrupts() -> None:
    """A shell's background jobs ignore Ctrl-C, and their children with them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_an_interrupt_says_what_is_lost_and_ends_the_simulator(tmp_path: Path) -> None:
    file = file_of(tmp_path, MAIN.replace("    aclInit(nullptr);", 'FILE* f = fopen("./output/up", "w"); fclose(f);' + BUSY)).path
    (tmp_path / "output").mkdir()
    command = [sys.executable, "-m", "tile_eg", "simulate", str(file)]
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, text=True, preexec_fn=_hears_interrupts, **pipes) as process:
        while not (tmp_path / "output" / "up").exists():
            assert process.poll() is None
            time.sleep(0.05)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        time.sleep(1.2)
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
    assert process.returncode == 130 and children
    assert "interrupted: the simulation (running for " in said and "has no result" in said
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_an_interrupt_elsewhere_names_the_step(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from tile_eg.cli import sources
    from tile_eg.search.planned import stage

    def interrupted(*_: object) -> None:
        with stage("search"):
            raise KeyboardInterrupt

    monkeypatch.setattr(sources, "read", interrupted)
    assert run(["check", "any.tile"]) == 130
    assert "interrupted: the step 'search' has no result" in capsys.readouterr().err
