"""What memories remember of each two bytes is kept by blocks of 32: nothing of it gets lost where a block is used in parts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulator.kernels import UB, gm, kernel
from tile_eg.simulator.build import INCLUDE, require_compiler
from tile_eg.simulator.run import Limits, Simulation, simulate

GRANULES = 80
DRIVER = """
#include <cstdio>
#include <cstdlib>
#include "track.h"
namespace tile_sim {
Reserved::Reserved(int64_t bytes, int) : at_((uint8_t*)std::calloc(1, size_t(bytes))), bytes_(bytes) {}
Reserved::~Reserved() { std::free(at_); }
}
int main()
{
    using namespace tile_sim;
    Track track;
    Marks marks;
    track.resize(GRANULES), marks.resize(GRANULES);
    char what;
    long a, b, n;
    while (std::scanf(" %c %ld %ld %ld", &what, &a, &b, &n) == 4) {
        if (what == 'f') track.fill(a, b, uint32_t(n));
        if (what == 'e') track.fill_empty(a, b, uint32_t(n));
        if (what == 's') std::printf("%ld\\n", long(track.skip(a, b, uint32_t(n))));
        if (what == 'r' && a < b) std::printf("%ld\\n", long(track.end_of_run(a, b)));
        if (what == 'm') marks.set(a, b, n % 2);
        if (what == 'a') std::printf("%d\\n", int(marks.any(a, b)));
    }
    for (long i = 0; i < GRANULES; ++i) std::printf("%u\\n", track[i]);
}
"""
Step = tuple[str, int, int, int]
STEPS = st.lists(
    st.tuples(st.sampled_from("fesrma"), st.integers(0, GRANULES), st.integers(0, GRANULES), st.integers(0, 3)), max_size=30
)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, runtime = tmp_path_factory.mktemp("track"), INCLUDE / "runtime"
    (folder / "driver.cpp").write_text(DRIVER.replace("GRANULES", str(GRANULES)))
    command = [require_compiler(), "-std=c++17", f"-I{runtime}", "driver.cpp", str(runtime / "track.cpp"), "-o", "driver"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "driver"


def one_by_one(steps: list[Step]) -> list[int]:
    """What a number and a mark for each granule would say."""
    numbers, marks, said = [0] * GRANULES, [0] * GRANULES, []
    for what, a, b, n in steps:
        inside = range(a, b)
        if what in "fe":
            numbers = [n if i in inside and (what == "f" or not x) else x for i, x in enumerate(numbers)]
        if what == "s":
            said.append(next((i for i in inside if numbers[i] not in (0, n)), b))
        if what == "r" and a < b:
            said.append(next((i for i in inside if numbers[i] != numbers[a]), b))
        if what == "m":
            marks = [n % 2 if i in inside else x for i, x in enumerate(marks)]
        if what == "a":
            said.append(int(any(marks[i] for i in inside)))
    return [*said, *numbers]


@pytest.mark.slow
@settings(max_examples=150)
@given(STEPS)
def test_blocks_say_what_granules_would(driver: Path, steps: list[Step]) -> None:
    ordered = [(what, min(a, b), max(a, b), n) for what, a, b, n in steps]
    text = "\n".join(" ".join(map(str, step)) for step in ordered)
    done = subprocess.run([str(driver)], input=text, capture_output=True, text=True, check=True)
    assert [int(line) for line in done.stdout.split()] == one_by_one(ordered)


def two_bytes_each(place: str, blocks: int = 16) -> Simulation:
    """Block b stores two bytes at element `place` of Y."""
    source = kernel(
        "X Y",
        "AIV_ONLY",
        f"""{gm("X Y", "half", 64)} {UB} auto x = ub.GetWithOffset<half>(16, 0);
const int b = GetBlockIdx();
DataCopy(x, gmX, 16); ORDER(MTE2_MTE3);
DataCopyPad(gmY[{place}], x, DataCopyExtParams(1, 2, 0, 0, 0));
""",
    )
    x = np.arange(64, dtype=np.float16)
    return simulate(source, "k", [x, np.zeros_like(x)], kernel_type="AIV_ONLY", launch=blocks, outputs=[1])


def test_blocks_share_32_bytes_without_meeting() -> None:
    done = two_bytes_each("15 - b")
    assert done.ok and done.unwritten[0] is not None
    assert np.flatnonzero(done.unwritten[0]).tolist() == list(range(16, 64))


def test_the_block_that_is_met_in_32_shared_bytes_is_named() -> None:
    (found,) = two_bytes_each("b % 15").findings
    assert (found.kind, found.block) == ("block_race", 15)
    assert "bytes [0, 2) of Y" in found.message and "block 0)" in found.message


def test_one_granule_that_was_left_out_is_told() -> None:
    done = two_bytes_each("b < 7 ? b : b + 1", blocks=15)
    assert done.unwritten[0] is not None and np.flatnonzero(done.unwritten[0])[:2].tolist() == [7, 16]


@pytest.mark.slow
def test_tensors_take_less_than_twice_their_bytes() -> None:
    """Three tensors of 16 MiB, whole, and what is noted of them: 1.6 bytes for each, and the process itself."""
    rows, row = 512, 8192
    source = kernel(
        "A B C",
        "AIV_ONLY",
        f"""{gm("A B C", elements=rows * row)} {UB}
auto x = ub.GetWithOffset<float>({row}, 0); auto y = ub.GetWithOffset<float>({row}, {row * 4});
for (int i = 0; i < {rows // 8}; ++i) {{
  const int at = (GetBlockIdx() * {rows // 8} + i) * {row};
  DataCopy(x, gmA[at], {row}); DataCopy(y, gmB[at], {row}); ORDER(MTE2_V);
  Add(x, x, y, {row}); ORDER(V_MTE3);
  DataCopy(gmC[at], x, {row}); ORDER(MTE3_MTE2);
}}
""",
    )
    a = np.ones((rows, row), np.float32)
    limits = Limits(bytes=112 << 20)
    done = simulate(source, "k", [a, a, np.zeros_like(a)], kernel_type="AIV_ONLY", launch=8, outputs=[2], limits=limits)
    assert done.ok and (done.outputs[0] == 2).all()
