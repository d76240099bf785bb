"""Tensors of more than 2^31 elements.

GM is sparse, so a kernel that touches little of them runs; what it writes lies where it should.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.simulator.asc import MAIN, ran
from tests.simulator.kernels import kernel
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import Lowered, lower
from tile_eg.simulator.run import Limits, simulate

CORNERS = """
kernel corners[M=65536, N=36864, W=128](A: f16[M, N]) -> C: f16[M, N] {
  grid (bx) = (16)
  shared a: f16[16, W]
  a = A[bx*4096 + 8, N - W]
  atomic C[bx*4096 + 8, N - W] += a
}
"""
SHAPE = (65536, 36864)
TILES = [(slice(b * 4096 + 8, b * 4096 + 24), slice(-128, None)) for b in range(16)]


@cache
def corners() -> Lowered:
    return lower(load_text(CORNERS).instantiate({}))


def arrays() -> tuple[np.ndarray, np.ndarray]:
    """Zeros take no memory; A has whole numbers in the tiles, C ones."""
    a, c = np.zeros(SHAPE, np.float16), np.zeros(SHAPE, np.float16)
    for number, tile in enumerate(TILES):
        a[tile], c[tile] = number + 2, 1
    return a, c


def run(source: str, **given: object) -> np.ndarray:
    a, c = arrays()
    how = {"kernel_type": "AIV_ONLY", "launch": 16, "outputs": [1], "inout": [1], **given}
    done = simulate(source, "corners", [a, c], **how)  # type: ignore[arg-type]
    assert not done.findings
    return done.outputs[0]


@pytest.mark.slow
def test_a_kernel_reads_and_writes_beyond_two_to_the_31_elements() -> None:
    found = run(corners().source)
    assert [found[tile].min() for tile in TILES] == [found[tile].max() for tile in TILES] == [number + 3 for number in range(16)]


@pytest.mark.slow
def test_what_is_not_touched_stays_as_it_was() -> None:
    found = run(corners().source)
    assert not found[:4096, 0].any() and not found[TILES[15][0], -256:-128].any()


@pytest.mark.slow
def test_the_same_text_in_32_bits_is_caught() -> None:
    narrow = str(corners().source).replace("static_cast<int64_t>(block)", "block")
    a, c = arrays()
    done = simulate(narrow, "corners", [a, c], kernel_type="AIV_ONLY", launch=16, outputs=[1], inout=[1])
    assert "out_of_bounds" in {f.kind for f in done.findings}


@pytest.mark.slow
def test_chosen_blocks_run_alone() -> None:
    found = run(corners().source, blocks=[15])
    assert found[TILES[15]].max() == 18 and found[TILES[14]].max() == 1


@pytest.mark.slow
def test_a_block_that_the_launch_has_not_is_refused() -> None:
    with pytest.raises(TileError, match="blocks 0 to 15"):
        run(corners().source, blocks=[16])


@pytest.mark.slow
def test_memory_counts_what_is_touched() -> None:
    """Ten gigabytes of tensors, of which 512 rows of 256 bytes are touched: some 600 pieces of 8 KiB, with notes on each."""
    assert run(corners().source, limits=Limits(bytes=96 << 20))[TILES[15]].all()
    with pytest.raises(TileError, match="more memory than the 1,048,576 bytes"):
        run(corners().source, limits=Limits(bytes=1 << 20))


@pytest.mark.slow
def test_an_output_of_which_nothing_was_written_is_nan_in_every_piece() -> None:
    like = np.zeros(3 * 8192, np.float32)
    done = simulate(kernel("A", "AIV_ONLY", ""), "k", [like], kernel_type="AIV_ONLY", launch=1, outputs=[0])
    assert np.isnan(done.outputs[0]).all()


@pytest.mark.slow
def test_a_main_allocates_more_than_there_is_and_touches_little(tmp_path: Path) -> None:
    source = MAIN.replace("&xDevice, sizeof host", "&xDevice, size_t(24) << 30")
    source = source.replace("aclrtMemcpy(xDevice,", "float* const far = xDevice + (size_t(5) << 30);\n    aclrtMemcpy(far,")
    source = source.replace("        xDevice, zDevice);", "        far, zDevice);")
    done = ran(tmp_path, source, limits=Limits(bytes=64 << 20))
    assert done.ok and done.printed == "last 254\n"


@pytest.mark.slow
def test_a_main_may_end_with_the_code_that_stands_for_too_little_memory(tmp_path: Path) -> None:
    done = ran(tmp_path, "#include <cstdlib>\n" + MAIN.replace("    return host[1]", "    exit(4);\n    return host[1]"))
    assert done.returned == 4


@pytest.mark.slow
def test_a_limit_on_file_sizes_is_named() -> None:
    lines = [
        "import resource",
        "from tile_eg.simulator.image import Image",
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))",
        "try: Image([1 << 20])",
        "except Exception as error: print(type(error).__name__, error)",
    ]
    said = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True).stdout
    assert said.startswith("TileError") and "ulimit -f" in said and "cannot go to the simulator" in said
