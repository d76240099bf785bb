"""The process around a simulated kernel: what is compiled and kept, and how it ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.simulator.kernels import VECTOR_ADD, kernel, run_vector
from tile_eg.errors import TileError
from tile_eg.simulator import build
from tile_eg.simulator.run import Limits, Simulation, SimulatorError, find_compiler, simulate

A = np.zeros(8192, np.float32)
GCC = build._is_gcc(find_compiler() or "false")


def run(body: str, limits: Limits = Limits(seconds=20)) -> Simulation:  # noqa: B008
    return simulate(kernel("A", "AIV_ONLY", body), "k", [A], kernel_type="AIV_ONLY", launch=1, outputs=[0], limits=limits)


def test_a_text_that_does_not_compile_is_an_error_at_its_line() -> None:
    with pytest.raises(SimulatorError, match=r"kernel\.asc:7:.*Nonsense"):
        run("\nNonsense();")


def test_a_scalar_of_another_type_than_the_tensor_does_not_compile() -> None:
    with pytest.raises(SimulatorError, match="error"):
        run("LocalTensor<half> x(TPosition::VECCALC, 0, 64);\nAdds(x, x, 1.0f, 64);")


@pytest.mark.slow
def test_an_endless_loop_ends_with_the_time_limit() -> None:
    with pytest.raises(SimulatorError, match="did not end within 0.5 seconds of processor time"):
        run("for (volatile int i = 0;; ++i) {}", Limits(seconds=0.5))


def test_a_crash_is_an_error_with_its_signal() -> None:
    with pytest.raises(SimulatorError, match="SIGSEGV"):
        run("*(volatile int*)8 = 1;")


@pytest.mark.slow
def test_a_crash_is_told_after_the_instruction_that_came_last() -> None:
    with pytest.raises(SimulatorError, match=r"SIGSEGV\) after Duplicate at line 6 \(AIV, block 0\)"):
        run("LocalTensor<float> x(TPosition::VECCALC, 0, 64); Duplicate(x, 1.0f, 64);\n*(volatile int*)8 = 1;")


@pytest.mark.slow
def test_what_is_printed_without_end_is_cut() -> None:
    printed = run('for (int i = 0; i < 300000; ++i) AscendC::printf("nothing of interest\\n");').printed
    assert printed.startswith("nothing of interest\n") and printed.endswith("bytes more\n")
    assert len(printed) < 1.1 * (1 << 20)


@pytest.mark.slow
def test_memory_is_limited() -> None:
    with pytest.raises(TileError, match="more memory than the 1,073,741,824 bytes"):
        run("*(new volatile char[1ull << 32]) = 1;", Limits(bytes=1 << 30, seconds=20))


def test_an_output_that_is_not_written_is_nan_and_an_inout_keeps_its_values() -> None:
    source = kernel("A", "AIV_ONLY", "")
    fresh = simulate(source, "k", [A], kernel_type="AIV_ONLY", launch=1, outputs=[0])
    assert np.isnan(fresh.outputs[0]).all()
    kept = simulate(source, "k", [A + 3], kernel_type="AIV_ONLY", launch=1, outputs=[0], inout=[0])
    np.testing.assert_array_equal(kept.outputs[0], A + 3)


@pytest.mark.slow
def test_outputs_come_back_in_the_order_that_was_asked_for() -> None:
    source = kernel("A B", "AIV_ONLY", "")
    done = simulate(source, "k", [A, A[:8] + 1], kernel_type="AIV_ONLY", launch=1, outputs=[1, 0], inout=[0, 1])
    assert [o.size for o in done.outputs] == [8, 8192]


def test_a_kernel_may_be_called_like_a_function_of_the_c_library() -> None:
    source = kernel("A", "AIV_ONLY", "").replace("void k(", "void exp(")
    assert simulate(source, "exp", [A], kernel_type="AIV_ONLY", launch=1).ok


@pytest.fixture
def soon_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a test makes the simulator's executable, its objects are empty, and to link them gives the one made before."""
    made, compiled = build.runtime(), build._run

    def run(command: list[str], folder: Path) -> None:
        if Path(command[-1]).name == build.RUNTIME:
            assert sorted(f.stem for f in folder.glob("*.o")) == sorted(f.stem for f in (build.INCLUDE / "runtime").glob("*.cpp"))
            shutil.copy(made, command[-1])
        elif command[-1].endswith(".cpp") and "-c" in command:
            (folder / Path(command[-1]).with_suffix(".o").name).touch()
        else:
            compiled(command, folder)

    monkeypatch.setattr(build, "_run", run)


@pytest.mark.slow
@pytest.mark.usefixtures("soon_compiled")
def test_a_text_compiles_once_and_leaves_nothing_else_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(build.CACHE_VARIABLE, str(tmp_path))
    assert run_vector(VECTOR_ADD, A, A, A).ok
    files = sorted(tmp_path.iterdir())
    assert [f.name.split("-")[0] for f in files] == ["headers", "kernel", *(["precompiled"] if GCC else []), "simulator"]
    monkeypatch.setattr(build, "_run", lambda *_: pytest.fail("compiled again"))
    assert run_vector(VECTOR_ADD, A, A, A).ok
    assert sorted(tmp_path.iterdir()) == files


@pytest.mark.slow
def test_headers_that_change_while_a_process_runs_do_not_reach_its_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("").ok
    monkeypatch.setattr(build, "INCLUDE", tmp_path)
    assert run(f"// a text that nobody has compiled: {tmp_path}").ok


@pytest.mark.slow
@pytest.mark.skipif(not GCC, reason="only GCC is given a header that was parsed before")
def test_the_header_is_parsed_once_for_all_kernels(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    compiled = build._run
    monkeypatch.setattr(build, "_run", lambda command, folder: (commands.append(command), compiled(command, folder))[1])
    assert run("// one").ok and run("// another").ok
    assert ["c++-header" in command for command in commands] == [True, False, False]
    (kept,) = own_cache.glob("precompiled-*")
    assert all(str(kept / build.PRECOMPILED) in command for command in commands[1:])


@pytest.mark.parametrize("before", ["#define INFINITY 1\n", "int x;\n", "#include <cmath>\n"])
def test_a_text_that_begins_in_another_way_reads_the_header_itself(before: str) -> None:
    text = kernel("A", "AIV_ONLY", "")
    assert build._BEGINS_WITH_HEADER.match("// the kernel\n/* of\nmany */\n" + text)
    assert not build._BEGINS_WITH_HEADER.match(before + text)


def test_a_text_without_the_header_does_not_compile() -> None:
    text = kernel("A", "AIV_ONLY", "").replace('#include "kernel_operator.h"', "")
    with pytest.raises(SimulatorError, match="does not compile"):
        simulate(text, "k", [A], kernel_type="AIV_ONLY", launch=1)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with the simulator alone, as this process would find it at its start."""
    made = build.runtime().parent
    for entry in (made, build._headers(build.require_compiler())):
        shutil.copytree(entry, tmp_path / entry.name)
    monkeypatch.setenv(build.CACHE_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("file", ["kernel-*/kernel.so", "headers-*/kernel_operator.h"])
@pytest.mark.parametrize("size", [0, 100])
def test_a_file_of_the_cache_that_was_cut_off_is_made_again(file: str, size: int, own_cache: Path) -> None:
    text = f"// {file} {size}"
    assert run(text).ok
    (cut,) = own_cache.glob(file)
    whole = cut.read_bytes()
    os.truncate(cut, size)
    assert run(text if "kernel-" in file else text + " again").ok
    assert cut.read_bytes() == whole


@pytest.mark.slow
@pytest.mark.usefixtures("soon_compiled")
def test_a_simulator_that_was_cut_off_is_made_again(own_cache: Path) -> None:
    (cut,) = own_cache.glob("simulator-*/simulator")
    os.truncate(cut, 4096)
    assert run("").ok


def test_a_compiler_without_room_is_told_as_that(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = "sh", "-c", "echo 'as: x.o: No space left on device' >&2; exit 1"
    monkeypatch.setattr(build, "KERNEL_FLAGS", ())
    compiled = build._run
    monkeypatch.setattr(build, "_run", lambda _, folder: compiled(list(full), folder))
    with pytest.raises(TileError, match="the disk is full") as error:
        run("// not compiled yet")
    assert build.CACHE_VARIABLE in error.value.help
    assert not list(own_cache.glob("build-*")) and not list(own_cache.glob("kernel-*"))


def test_a_cache_that_cannot_be_written_says_which_variable_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(build.CACHE_VARIABLE, str(tmp_path / "file" / "cache"))
    with pytest.raises(TileError, match="cannot be kept in") as error:
        run("")
    assert build.CACHE_VARIABLE in error.value.help


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    assert find_compiler() is None
    with pytest.raises(TileError, match="C\\+\\+ compiler") as error:
        run("")
    assert "install g++" in error.value.help
    assert "without it" in error.value.help


def test_a_compiler_that_does_not_work_is_the_users_to_replace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "false")
    monkeypatch.setenv(build.CACHE_VARIABLE, str(tmp_path))
    with pytest.raises(TileError, match="false' cannot compile the simulator") as error:
        run("")
    assert "named in CXX" in error.value.help


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": "other"}, "no kernel called 'other'"),
        ({"kernel_type": "MIX"}, "unknown kernel type"),
        ({"arguments": []}, "takes 1 tensors"),
        ({"launch": 0}, "at least one block"),
        ({"outputs": [1]}, "output 1 is none"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(change: dict[str, object], message: str) -> None:
    call: dict[str, object] = {"kernel": "k", "arguments": [A], "kernel_type": "AIV_ONLY", "launch": 1, **change}
    with pytest.raises(TileError, match=message):
        simulate(kernel("A", "AIV_ONLY", ""), **call)  # type: ignore[arg-type]


def test_a_trace_lists_instructions_and_flags_as_they_are_issued() -> None:
    done = simulate(VECTOR_ADD, "k", [A, A, A], kernel_type="AIV_ONLY", launch=1, outputs=[2], trace=True)
    first = [(row.pipe, row.name, row.bytes) for row in done.trace[:5]]
    assert first == [
        ("MTE2", "DataCopy", 4096),
        ("MTE2", "DataCopy", 4096),
        ("MTE2", "SetFlag MTE2_V, 0", 0),
        ("V", "WaitFlag MTE2_V, 0", 0),
        ("V", "Add", 4096),
    ]


ENDLESS = """
import numpy as np
from tests.simulator.kernels import kernel
from tile_eg.simulator.run import Limits, simulate
body = 'AscendC::printf("started"); for (volatile int i = 0;; ++i) {}'
text = kernel("A", "AIV_ONLY", body)
simulate(text, "k", [np.zeros(8, np.float32)], kernel_type="AIV_ONLY", launch=1, outputs=[0], limits=Limits(seconds=60))
"""


def words(process: int) -> list[bytes]:
    """Those it was started with; none where it has ended, or was not waited for."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def runs(process: int) -> list[int]:
    """The simulated kernels among its children: compilers and questions to the simulator are none."""
    children = map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())
    return [child for child in children if any(word.startswith(b"parent=") for word in words(child))]


def eventually(holds: Callable[[], object], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_the_simulator_ends_with_the_process_that_called_it() -> None:
    caller = subprocess.Popen([sys.executable, "-c", ENDLESS], cwd=Path(__file__).parents[2])
    found: list[int] = []
    try:
        assert eventually(lambda: found.extend(runs(caller.pid)) or found)
    finally:
        caller.kill()
        caller.wait()
    assert eventually(lambda: not any(words(found[0])))


def test_a_run_whose_caller_has_ended_before_it_begins_does_not_begin() -> None:
    command = [str(build.runtime()), "no library", "AIV_ONLY", "1", "0", "1024", "parent=1", "--"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")
