"""What a stranger's file is kept from, wherever in it the code stands; and what it may do as before."""

from __future__ import annotations

import functools
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.simulator.asc import MAIN, QUEUES, SPEC, file_of, launched, ran
from tests.simulator.kernels import kernel
from tile_eg.cli.app import run
from tile_eg.simulator import confinement
from tile_eg.simulator.asc_file import AscFile
from tile_eg.simulator.build import require_compiler, runtime
from tile_eg.simulator.confinement import Confinement, Refused, cannot_confine, refused
from tile_eg.simulator.findings import SimulatorError
from tile_eg.simulator.program import Options, run_program
from tile_eg.simulator.run import simulate

pytestmark = pytest.mark.slow(but=3)

HEADERS = "".join(
    f"#include <{name}>\n"
    for name in (
        "csignal", "cstdio", "cstdlib", "thread", "fcntl.h", "spawn.h", "unistd.h",
        "sys/ptrace.h", "sys/resource.h", "sys/socket.h", "sys/stat.h", "sys/syscall.h",
    )
)  # fmt: skip


@functools.cache
def why_not() -> str:
    return cannot_confine(runtime())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own as the current one; skips where the machine cannot confine."""
    if why_not():
        pytest.skip(why_not())
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def in_main(code: str) -> str:
    return HEADERS + MAIN.replace("    aclInit(nullptr);", "    " + code)


PROGRAM = "start another process"
HOSTILE = {
    "a shell": ("system(shell);", PROGRAM),
    "a shell with a pipe": ('popen(shell, "r");', PROGRAM),
    "a spawned program": ('char* a[1]{}; posix_spawn(&pid, "/bin/true", nullptr, nullptr, a, nullptr);', PROGRAM),
    "a program in its own place": ('execl("/bin/sh", "sh", "-c", shell, (char*)nullptr);', "start a program"),
    "a fork": ("if (!fork()) for (;;) {}", PROGRAM),
    "a file": ('fopen(out, "w");', "write '{out}'"),
    "a file that is there": ("open(there, O_WRONLY);", "write '{there}'"),
    "a file that is cut off": ("open(there, O_RDONLY | O_TRUNC);", "write '{there}'"),
    "a file cut off by name": ("truncate(there, 0);", "write '{there}'"),
    "a file that is removed": ("unlink(there);", "write '{there}'"),
    "a file that is moved": ("rename(there, out);", "write '{there}'"),
    "a folder": ("mkdir(out, 0777);", "write '{out}'"),
    "the rights of a file": ("chmod(there, 0777);", "rights"),
    "a link": ("symlink(there, out);", "link"),
    "a secret": ('fopen(there, "r");', "read '{there}'"),
    "a socket": ("socket(AF_INET, SOCK_STREAM, 0);", "use the network"),
    "the end of its parent": ("kill(getppid(), SIGKILL);", "signal"),
    "the end of all": ("kill(-1, SIGKILL);", "signal"),
    "the memory of its parent": ("ptrace(PTRACE_ATTACH, getppid(), nullptr, nullptr);", "look into another process"),
    "its own limits": ("rlimit r{1, 1}; setrlimit(RLIMIT_CPU, &r);", "limits"),
    "the signal that tells": ("signal(SIGSYS, SIG_IGN);", "limits"),
    "blocked signals before": ("sigset_t s; sigfillset(&s); sigprocmask(SIG_BLOCK, &s, nullptr); system(shell);", PROGRAM),
    "calls that go past the filter": ("syscall(425, 8, nullptr);", "system call number 425"),
}


def all_hostile() -> str:
    """A file that does one of them, as its environment says: in a constructor or in its main."""
    cases = "\n".join(f"    case {i}: {{ {code} }} break;" for i, (code, _) in enumerate(HOSTILE.values()))
    act = f"""static void act(const char* where)
{{
    if (strcmp(getenv("WHERE"), where)) return;
    const char *out = getenv("OUT"), *there = getenv("THERE");
    const std::string command = std::string("echo > ") + out;
    const char* const shell = command.c_str();
    pid_t pid;
    switch (atoi(getenv("WHAT"))) {{
{cases}
    }}
}}
__attribute__((constructor)) static void before_main() {{ act("constructor"); }}
"""
    return f"#include <cstring>\n#include <string>\n{HEADERS}{act}" + MAIN.replace("    aclInit(nullptr);", '    act("main");')


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> AscFile:
    return file_of(tmp_path_factory.mktemp("hostile"), all_hostile())


@pytest.mark.slow
@pytest.mark.parametrize("where", ["constructor", "main"])
@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_code_is_refused_and_named(
    what: str, where: str, file: AscFile, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, there = here.parent / "out", here.parent / "there"
    there.write_text("a secret")
    there.chmod(0o600)
    given = {"WHERE": where, "WHAT": list(HOSTILE).index(what), "OUT": out, "THERE": there}
    for name, value in given.items():
        monkeypatch.setenv(name, str(value))
    with pytest.raises(Refused) as caught:
        run_program(file, Options())
    assert HOSTILE[what][1].format(out=out, there=there) in str(caught.value)
    assert not out.exists() and there.read_text() == "a secret" and there.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_a_constructor_runs_confined_where_a_spec_launches_the_kernel(here: Path) -> None:
    with pytest.raises(Refused, match=PROGRAM):
        launched(here, f'{HEADERS}__attribute__((constructor)) static void before() {{ system("echo > ../out"); }}\n{QUEUES}')
    assert not (here.parent / "out").exists()


@pytest.mark.slow
def test_a_kernel_writes_no_file_at_all(here: Path) -> None:
    (here / "output").mkdir()
    with pytest.raises(Refused, match=r"write './output/x'"):
        launched(here, HEADERS + QUEUES.replace("AscendC::TPipe pipe;", 'fopen("./output/x", "w"); AscendC::TPipe pipe;'), SPEC)


@pytest.mark.slow
def test_what_a_worker_tries_ends_the_run(here: Path) -> None:
    body = """
static volatile float sink;
for (int i = 0; i < 60000000; ++i) sink = i;
if (GetBlockIdx() == 7) socket(2, 1, 0);
"""
    text = HEADERS + kernel("A", "AIV_ONLY", body)
    with pytest.raises(Refused, match="use the network"):
        simulate(text, "k", [np.zeros(64, np.float32)], kernel_type="AIV_ONLY", launch=8, outputs=[0])


SAMPLE = r"""
    char text[8] = {};
    FILE* in = fopen("./input/x.txt", "r"); if (!in || !fgets(text, 8, in)) return 5; fclose(in);
    FILE* out = fopen("./output/y.txt", "w"); if (!out) return 6; fputs(text, out); fclose(out);
    std::thread([] { std::puts("a thread"); }).join();
"""


def test_a_main_reads_its_input_and_writes_its_output(here: Path) -> None:
    for name in ("input", "output"):
        (here / name).mkdir()
    (here / "input" / "x.txt").write_text("numbers")
    for _ in range(2):  # the second time the file is there
        done = ran(here, in_main(SAMPLE))
        assert done.ok and not done.returned and not done.unconfined and "a thread" in done.printed
    assert (here / "output" / "y.txt").read_text() == "numbers"


def test_an_output_folder_that_is_a_link_is_not_written_in(here: Path) -> None:
    (here.parent / "elsewhere").mkdir()
    (here / "output").symlink_to(here.parent / "elsewhere")
    with pytest.raises(Refused, match="write './output/y.txt'"):
        ran(here, in_main('fopen("./output/y.txt", "w");'))


def test_a_link_inside_of_the_output_folder_leads_nowhere(here: Path) -> None:
    (here / "output").mkdir()
    (here / "output" / "y.txt").symlink_to(here.parent / "y.txt")
    with pytest.raises(Refused, match="write './output/y.txt'"):
        ran(here, in_main('fopen("./output/y.txt", "w");'))
    assert not (here.parent / "y.txt").exists()


def test_folders_can_be_opened_to_it_and_the_error_says_how(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = file_of(here, in_main('FILE* f = fopen("../out", "w"); if (!f) return 4; fclose(f);')).path
    assert run(["simulate", str(file), "--no-time"]) == 1
    said = capsys.readouterr().err
    assert "error: refused: the code tried to write '../out'" in said and "--writes .. allows it" in said
    assert run(["simulate", str(file), "--no-time", "--writes", ".."]) == 0
    assert (here.parent / "out").exists()


def test_unconfined_it_does_all_that_the_user_may(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = file_of(here, in_main('if (system("echo > ../out")) return 4;')).path
    assert run(["simulate", str(file), "--no-time", "--unconfined"]) == 0
    assert (here.parent / "out").exists() and "not confined" not in capsys.readouterr().err


def test_the_api_says_that_a_run_was_not_confined(here: Path) -> None:
    assert ran(here, confinement=Confinement(False)).unconfined == "it was asked for"


def test_a_machine_that_cannot_confine_is_named_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(confinement, "cannot_confine", lambda _: "only Linux can confine it: nothing is refused")
    assert run(["simulate", str(file_of(tmp_path, MAIN).path), "--no-time"]) == 0
    assert "note: the run is not confined: only Linux can confine it: nothing is refused\n" in capsys.readouterr().err


WITHOUT_LANDLOCK = """
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50000 | 38), (0x06, 0, 0, 0x7FFF0000)]  # call 444: ENOSYS
filter = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(filter)))
libc = ctypes.CDLL(None)
assert not libc.prctl(38, 1, 0, 0, 0) and not libc.prctl(22, 2, program, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "tile_eg", *sys.argv[1:]])
"""


def test_without_landlock_files_are_not_confined_and_it_says_so(here: Path) -> None:
    (here / "output").mkdir()
    file = file_of(here, in_main('FILE* f = fopen("../out", "w"); if (!f) return 4; fclose(f); system("true");')).path
    command = [sys.executable, "-c", WITHOUT_LANDLOCK, "simulate", str(file), "--no-time"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "note: the run is not confined: the kernel of this machine has no Landlock" in done.stderr
    assert (here.parent / "out").exists() and f"refused: the code tried to {PROGRAM}" in done.stderr and done.returncode == 1


SOURCES = [Path(confinement.__file__).parent / "include" / "runtime" / f"{name}.cpp"
           for name in ("confine", "confine_files", "confine_calls", "refuse")]  # fmt: skip
ASKED = """#include "confine.h"
int main() { tile_sim::confine({}, ""); std::puts(tile_sim::cannot_confine().c_str()); }
"""


def test_the_runtime_says_so_where_it_cannot_confine(tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text(ASKED)
    flags = ["-std=c++17", f"-I{SOURCES[0].parent}", "-U__linux__"]
    subprocess.run([require_compiler(), *flags, *map(str, SOURCES), "main.cpp", "-o", "main"], cwd=tmp_path, check=True)
    said = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True).stdout
    assert said == "only Linux can confine it: nothing is refused\n"


CROSS = shutil.which("aarch64-linux-gnu-g++")


@pytest.mark.skipif(CROSS is None, reason="no cross compiler for aarch64 (aarch64-linux-gnu-g++)")
def test_the_runtime_compiles_for_aarch64(tmp_path: Path) -> None:
    subprocess.run([str(CROSS), "-std=c++17", "-Wall", "-Werror", "-c", *map(str, SOURCES)], cwd=tmp_path, check=True)


def test_a_refusal_of_which_nothing_was_said_is_a_refusal() -> None:
    assert "a system call that is not allowed" in str(refused("what the code printed"))


def test_a_process_that_ends_without_a_report_is_not_good(here: Path) -> None:
    with pytest.raises(SimulatorError, match="ended the process"):
        ran(here, in_main("_exit(0);"))


def test_abort_is_a_crash_and_no_refusal(here: Path) -> None:
    with pytest.raises(SimulatorError, match=signal.SIGABRT.name):
        ran(here, in_main("abort();"))
