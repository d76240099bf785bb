"""No clock decides what a kernel becomes: budgets are counts of rounds, of rows, and of the solver's own steps."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

import tile_eg
from tile_eg.extract.solver import solver
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import Lowered, lower

ROOT = Path(tile_eg.__file__).parent
EXAMPLES = ROOT.parent / "examples"
CLOCKS = ["time", "monotonic", "perf_counter", "process_time", "thread_time"]
CLOCKS += [f"{name}_ns" for name in CLOCKS]
REPORTED = {
    "cli/calibrate.py": "how long a fit has run",
    "egraph/profile.py": "what each rule costs",
    "egraph/saturate.py": "how long each phase took",
    "explore/gym.py": "how long an extractor of a user's took",
    "kept_texts.py": "whether a file of tile_eg changed since the process began",
    "jit/profiling.py": "how long a function of the host takes, which launches no kernel",
    "laboratory/compare.py": "how long a cost model took",
    "laboratory/folds.py": "how long a cost model took",
    "search/one_text.py": "how long a compilation took",
    "search/driver.py": "how long a compilation took",
    "search/planned.py": "how long each stage took",
    "search/every.py": "how long a compilation took",
    "search/queue.py": "how long each move took",
    "spread/cluster.py": "how long a worker may be away before others do what it had",
    "disk_cache.py": "when an entry was used last",
    "simulator/progress.py": "how long a run takes still",
    "simulator/run.py": "how long a run may wait without computing: then it is ended, by name",
}
"""The modules that read a clock, and what it is told for."""
PATIENCE = {"cost_models/answers.py": "a cost model of a user's that never answers is named"}
"""The modules that end something after a time, and what."""
LIMITS = ("max_time_in_seconds", "setitimer", "alarm", "interleave_search", "deadline")


def compiled(name: str) -> Lowered:
    return lower(load_text((EXAMPLES / f"{name}.tile").read_text(), f"{name}.tile").instantiate({}))


@pytest.fixture
def jumping_clock(monkeypatch: pytest.MonkeyPatch) -> count:
    """Whoever looks at a clock finds that a thousand seconds are over, as if the process had been stopped meanwhile."""
    ticks = count(0, 1000)
    for name in CLOCKS:
        real, jumped = getattr(time, name), lambda name=name: next(ticks) * (10**9 if name.endswith("_ns") else 1)
        for module in [m for n, m in sys.modules.items() if n == "time" or n.split(".")[0] == "tile_eg"]:
            for attribute in [a for a, value in vars(module).items() if value is real]:
                monkeypatch.setattr(module, attribute, jumped)
    return ticks


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", ["gemm", "flash_attention"])
def test_a_kernel_becomes_the_same_however_long_it_takes(name: str, request: pytest.FixtureRequest) -> None:
    usual = compiled(name)
    ticks = request.getfixturevalue("jumping_clock")
    slow = compiled(name)
    assert next(ticks) > 10_000 and slow.seconds > 10_000
    assert (slow.source, slow.host, str(slow.program)) == (usual.source, usual.host, str(usual.program))
    assert [p.stopped_by for p in slow.phases] == [p.stopped_by for p in usual.phases]


RUNAWAY = """
#include <dlfcn.h>
#include <time.h>
#include <sys/time.h>
static long looks;
static int ahead(clockid_t id, timespec* t) {
    static auto* real = reinterpret_cast<int (*)(clockid_t, timespec*)>(dlsym(RTLD_NEXT, "clock_gettime"));
    int done = real(id, t);
    t->tv_sec += 50 * __sync_add_and_fetch(&looks, 1);
    return done;
}
extern "C" int clock_gettime(clockid_t id, timespec* t) noexcept { return ahead(id, t); }
extern "C" time_t time(time_t* out) noexcept {
    timespec t;
    ahead(CLOCK_REALTIME, &t);
    return out ? *out = t.tv_sec : t.tv_sec;
}
extern "C" int gettimeofday(timeval* out, void*) noexcept {
    timespec t;
    ahead(CLOCK_REALTIME, &t);
    *out = {t.tv_sec, t.tv_nsec / 1000};
    return 0;
}
"""
"""The clocks of the C library, fifty seconds further at each look: for egglog and the solver, whose own no test can reach."""
COMPILE = """
import sys, time
from pathlib import Path
from tile_eg.search.compiler import lower
from tile_eg.frontend.text import load_text

print(time.time() - time.time() < -40)
for file in sys.argv[1:]:
    made = lower(load_text(Path(file).read_text(), file).instantiate({}))
    print(made.source, made.host, made.program)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="another library is put before the C library's as Linux does it")
def test_no_library_looks_at_a_clock_to_decide_either(tmp_path: Path) -> None:
    (tmp_path / "clock.cpp").write_text(RUNAWAY)
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-o", tmp_path / "clock.so", tmp_path / "clock.cpp", "-ldl"], check=True, capture_output=True
    )
    command = [sys.executable, "-c", COMPILE, *(str(EXAMPLES / f"{n}.tile") for n in ("gemm", "flash_attention"))]
    usual, runaway = (
        subprocess.run(command, env=os.environ | more, capture_output=True, text=True, check=True).stdout.split("\n", 1)
        for more in ({}, {"LD_PRELOAD": str(tmp_path / "clock.so")})
    )
    assert (usual[0], runaway[0]) == ("False", "True")
    assert runaway[1] == usual[1]


def reads_a_clock(source: str) -> bool:
    tree = ast.parse(source)
    named = {a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module == "time" for a in n.names}
    asked = {
        n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "time"
    }
    return not (named | asked).isdisjoint(CLOCKS)


@pytest.mark.slow
def test_a_clock_is_read_only_to_tell_how_long_something_took() -> None:
    assert {str(f.relative_to(ROOT)) for f in ROOT.rglob("*.py") if reads_a_clock(f.read_text())} == REPORTED.keys()


@pytest.mark.parametrize("text", ["from time import perf_counter as now", "import time\ntime.time_ns()"])
def test_a_clock_is_seen_however_it_is_imported(text: str) -> None:
    assert reads_a_clock(text)


@pytest.mark.parametrize("word", LIMITS)
def test_nothing_is_stopped_by_a_clock(word: str) -> None:
    code = {str(f.relative_to(ROOT)): f.read_text() for f in ROOT.rglob("*.py") if f.parts[-2] != "simulator"}
    assert [name for name, text in code.items() if word in text and name not in PATIENCE] == []


def test_the_solver_counts_its_steps_alone_and_in_one_order() -> None:
    parameters = solver(3).parameters
    assert parameters.max_time_in_seconds == float("inf")
    assert (parameters.max_deterministic_time, parameters.num_workers, parameters.random_seed) == (3, 1, 0)


def test_no_other_solver_is_made() -> None:
    assert [f.name for f in ROOT.rglob("*.py") if "CpSolver()" in f.read_text()] == ["solver.py"]


@pytest.mark.slow
def test_an_interrupt_after_a_solve_is_still_pythons() -> None:
    """CP-SAT would take Ctrl-C for itself, and leave it so that the process ends without a word of what was lost."""
    lines = [
        "import os, signal",
        "signal.signal(signal.SIGINT, signal.default_int_handler)",  # a shell's background jobs ignore it
        "from tile_eg.extract.solver import load_cp_model, solver",
        "solver(1).solve(load_cp_model().CpModel())",
        "try: os.kill(os.getpid(), signal.SIGINT)",
        "except KeyboardInterrupt: print('interrupted')",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert done.stdout == "interrupted\n"
