"""Functions of the high-level API from the vendor's public headers: here a checkout with one small function of our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulator.asc import QUEUES, SPEC
from tile_eg.errors import TileError
from tile_eg.simulator.asc_file import AscFile
from tile_eg.simulator.devkit import Devkit
from tile_eg.simulator.findings import Simulation
from tile_eg.simulator.kernel_run import run_kernel
from tile_eg.simulator.program import Options, run_program
from tile_eg.simulator.spec import read_spec

PARTS = {
    "include/adv_api/kernel_api.h": '#include "math/grow.h"\n#include "math/other.h"\n',
    "include/adv_api/tiling_api.h": '#include "math/grow_tiling.h"\n',
    "include/adv_api/math/other.h": "#error is not asked for\n__aicore__ inline void Other(int)\n",
    "include/adv_api/math/grow_tilingdata.h": """BEGIN_TILING_DATA_DEF(GrowTiling)
TILING_DATA_FIELD_DEF(uint32_t, by);
END_TILING_DATA_DEF;
""",
    "include/adv_api/math/grow_tiling.h": "namespace AscendC { uint32_t GetGrowTmpSize(uint32_t count); }\n",
    "impl/adv_api/tiling/math/grow_tiling.cpp": """#include "../../../../include/adv_api/math/grow_tiling.h"
namespace AscendC {
uint32_t GetGrowTmpSize(uint32_t count) { return count * LIMIT; }
}
""",
    "include/adv_api/math/grow.h": """#include "kernel_tensor.h"
#include "kernel_tiling/kernel_tiling.h"
#include "../../../impl/adv_api/detail/math/grow_impl.h"
namespace AscendC {
template <typename T>
__aicore__ inline void Grow(const LocalTensor<T>& dst, const LocalTensor<T>& src, const GrowTiling& tiling, uint32_t count)
{
    GrowImpl(dst, src, float(tiling.by), count);
}
}
""",
    "impl/adv_api/detail/math/grow_impl.h": """#include "../../../../include/basic_api/kernel_tensor.h"
namespace AscendC {
template <typename T>
inline void GrowImpl(const LocalTensor<T>& dst, const LocalTensor<T>& src, float by, uint32_t count)
{
    Adds(dst, src, by, count);
}
}
""",
    "include/basic_api/kernel_tensor.h": "#error the simulator stands in the place of the basic API\n",
    "impl/basic_api/utils/kernel_utils_constants.h": """namespace AscendC {
const int32_t ONE_BLK_SIZE = 31;
struct Unused {};
}  // namespace AscendC
""",
    "impl/basic_api/utils/kernel_utils_struct_norm_sort.h": "",
    "impl/basic_api/utils/kernel_utils_struct_confusion_pad.h": "",
}
GROWN = QUEUES.replace("AscendC::Muls(c, a, t.scale, tile)", "GrowTiling by{3}; AscendC::Grow(c, a, by, tile)")


def checkout(tmp_path: Path) -> Devkit:
    for name, text in PARTS.items():
        path = tmp_path / "kit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("LIMIT", "4"))
    return Devkit(tmp_path / "kit")


def launched(tmp_path: Path, source: str) -> Simulation:
    (tmp_path / "k.asc").write_text(source)
    (tmp_path / "spec.toml").write_text(SPEC)
    file = AscFile(tmp_path / "k.asc", source, devkit=checkout(tmp_path))
    return run_kernel(file, read_spec(tmp_path / "spec.toml"), Options())


def test_a_function_of_the_checkout_runs_over_the_simulators_instructions(tmp_path: Path) -> None:
    done = launched(tmp_path, GROWN)
    assert done.ok and done.outputs[0].tolist() == [x + 3 for x in range(2048)]


def test_a_finding_inside_the_checkout_is_told_at_its_line_there(tmp_path: Path) -> None:
    done = launched(tmp_path, GROWN.replace("by, tile)", "by, tile + 8)"))
    finding = next(f for f in done.findings if f.kind == "out_of_bounds")
    assert (finding.file, finding.line) == ("impl/adv_api/detail/math/grow_impl.h", 6) and finding.file in done.files


def test_the_host_calls_what_the_checkout_computes_for_it(tmp_path: Path) -> None:
    source = """#include <cstdio>
#include "kernel_operator.h"
#include "tiling/tiling_api.h"
__global__ __vector__ void nothing() {}
int main() { printf("%u\\n", AscendC::GetGrowTmpSize(5)); }
"""
    (tmp_path / "main.asc").write_text(source)
    file = AscFile(tmp_path / "main.asc", source, devkit=checkout(tmp_path))
    assert run_program(file, Options()).printed == "20\n"


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TileError, match="no checkout of asc-devkit"):
        Devkit(tmp_path)


def test_matmul_objects_of_vector_cores_are_refused_with_the_word_that_helps(tmp_path: Path) -> None:
    with pytest.raises(TileError, match="Matmul objects of vector cores are not simulated: .*ASCENDC_CUBE_ONLY"):
        launched(tmp_path, '#include "lib/matmul_intf.h"\n' + QUEUES)
