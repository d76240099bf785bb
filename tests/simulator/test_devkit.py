"""Functions of the high-level API from the vendor's public headers: here a checkout with one small function of our own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.simulator.asc import QUEUES, SPEC
from tile_eg.errors import TileError
from tile_eg.simulator.asc_file import AscFile
from tile_eg.simulator.build import require_compiler
from tile_eg.simulator.devkit import Devkit
from tile_eg.simulator.empty_bodies import refusing
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
MORE}
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


CALLED = QUEUES.replace("AscendC::Muls(c, a, t.scale, tile)", "AscendC::Adds(c, a, 1.0f, tile); AscendC::Shrink(c, 1)")
EMPTY = "the vendor's header leaves Shrink empty on this architecture"


def shrink(body: str, head: str = "inline void Shrink(const LocalTensor<T>& dst, int n)") -> str:
    return f"template <typename T>\n__aicore__ {head}\n{{\n{body}\n}}\n"


def checkout(tmp_path: Path, more: str = "") -> Devkit:
    for name, text in PARTS.items():
        path = tmp_path / "kit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("LIMIT", "4").replace("MORE", more))
    return Devkit(tmp_path / "kit")


def launched(tmp_path: Path, source: str, more: str = "") -> Simulation:
    (tmp_path / "k.asc").write_text(source)
    (tmp_path / "spec.toml").write_text(SPEC)
    file = AscFile(tmp_path / "k.asc", source, devkit=checkout(tmp_path, more))
    return run_kernel(file, read_spec(tmp_path / "spec.toml"), Options())


@pytest.mark.slow
def test_a_function_of_the_checkout_runs_over_the_simulators_instructions(tmp_path: Path) -> None:
    done = launched(tmp_path, GROWN)
    assert done.ok and done.outputs[0].tolist() == [x + 3 for x in range(2048)]


@pytest.mark.slow
def test_a_function_that_says_which_pipes_it_is_on_is_found_by_its_name(tmp_path: Path) -> None:
    widen = shrink(
        "    Adds(dst, dst, T(1), n);", "inline __in_pipe__(S) __out_pipe__(V, S) void Widen(const LocalTensor<T>& dst, int n)"
    )
    done = launched(tmp_path, CALLED.replace("Shrink(c, 1)", "Widen(c, tile)"), widen)
    assert done.ok and done.outputs[0].tolist() == [x + 2 for x in range(2048)]


@pytest.mark.slow
def test_a_finding_inside_the_checkout_is_told_at_its_line_there(tmp_path: Path) -> None:
    done = launched(tmp_path, GROWN.replace("by, tile)", "by, tile + 8)"))
    finding = next(f for f in done.findings if f.kind == "out_of_bounds")
    assert (finding.file, finding.line) == ("impl/adv_api/detail/math/grow_impl.h", 6) and finding.file in done.files
    assert Path(done.paths[finding.file]).is_file()


@pytest.mark.slow
def test_layouts_are_taken_from_the_checkout_where_a_file_makes_one(tmp_path: Path) -> None:
    kit = checkout(tmp_path)
    layouts = tmp_path / "kit/impl/basic_api/kernel_operator_coord.h"
    assert all("kernel_operator_coord.h" not in text for text in kit.texts([GROWN.replace("by{3}", "by{MakeShape(3)}")]).values())
    layouts.write_text("namespace AscendC { template <typename T> T MakeShape(T n) { return n; } }\n")
    assert "impl/basic_api/kernel_operator_coord.h" not in kit.texts([GROWN])
    done = launched(tmp_path, GROWN.replace("by{3}", "by{uint32_t(AscendC::MakeShape(3))}"))
    assert done.ok and done.outputs[0].tolist() == [x + 3 for x in range(2048)]


@pytest.mark.slow
def test_functions_are_there_for_a_file_that_includes_matmul_objects_first(tmp_path: Path) -> None:
    checkout(tmp_path)
    objects = tmp_path / "kit/include/adv_api/matmul/matmul_intf.h"
    objects.parent.mkdir()
    objects.write_text("ASCENDC_HOST_AICORE inline int Objects() { return 3; }\n")
    done = launched(tmp_path, '#include "lib/matmul_intf.h"\n' + GROWN)
    assert done.ok and done.outputs[0].tolist() == [x + 3 for x in range(2048)]


def overflow(before: int, behind: int) -> str:
    """A kernel that sets what becomes of infinities before and behind all that it computes."""
    begun = GROWN.replace(
        "    AscendC::TPipe pipe;\n", f"    AscendC::TPipe pipe;\n    AscendC::AscendCUtils::SetOverflow({before});\n"
    )
    return begun.replace("    }\n}\n", f"    }}\n    AscendC::AscendCUtils::SetOverflow({behind});\n}}\n")


@pytest.mark.slow
def test_what_saturates_nothing_is_taken(tmp_path: Path) -> None:
    done = launched(tmp_path, overflow(1, 0))
    assert done.ok and done.outputs[0].tolist() == [x + 3 for x in range(2048)]


@pytest.mark.slow
def test_what_is_computed_where_infinities_saturate_is_refused(tmp_path: Path) -> None:
    found = [f for f in launched(tmp_path, overflow(0, 1)).findings if f.kind == "unsupported"]
    assert found and "Adds computes behind SetOverflow(0)" in found[0].message


@pytest.mark.slow
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
    with pytest.raises(TileError, match="is not a checkout of asc-devkit"):
        Devkit(tmp_path)


def test_matmul_objects_of_vector_cores_are_refused_on_3510_with_the_word_that_helps(tmp_path: Path) -> None:
    source = '#include "lib/matmul_intf.h"\n' + QUEUES
    file = AscFile(tmp_path / "k.asc", source, devkit=checkout(tmp_path))
    (tmp_path / "spec.toml").write_text(SPEC)
    with pytest.raises(TileError, match="Matmul objects of vector cores are simulated on 2201 alone: .*ASCENDC_CUBE_ONLY"):
        run_kernel(file, read_spec(tmp_path / "spec.toml"), Options(architecture=3510))


@pytest.mark.slow
def test_a_function_that_the_checkout_leaves_empty_on_the_architecture_ends_the_run_at_its_line(tmp_path: Path) -> None:
    done = launched(
        tmp_path, CALLED, shrink("#if defined(__NPU_ARCH__) && (__NPU_ARCH__ == 3510)\n    Adds(dst, dst, T(n), n);\n#endif")
    )
    found = [(f.kind, f.message, f.file, f.line) for f in done.findings if f.kind == "unsupported"]
    assert found == [("unsupported", EMPTY, "include/adv_api/math/grow.h", 12)]


@pytest.mark.slow
def test_a_function_that_works_on_the_architecture_runs_and_its_lines_keep_their_numbers(tmp_path: Path) -> None:
    body = "#if __NPU_ARCH__ == 2201\n    Adds(dst, dst, T(1), n);\n    Adds(dst, dst, T(1), n + 4096);\n#endif"
    done = launched(tmp_path, CALLED, shrink(body))
    assert {f.line for f in done.findings if f.kind == "out_of_bounds"} == {15}


@pytest.mark.parametrize(
    "body",
    [
        "#if __NPU_ARCH__ == 3510\n    Adds(dst, n);\n#endif",
        "#if defined(__NPU_ARCH__) && \\\n    (__NPU_ARCH__ == 3510)\n    Adds(dst, n);\n#endif",
        "#if __NPU_ARCH__ == 3510\n    Adds(dst, n);\n#else\n    return;\n#endif",
        '#if __NPU_ARCH__ == 3510\n    Adds(dst, n);\n#else\n    ASCENDC_ASSERT(false, { KERNEL_LOG("no"); });\n#endif',
        "#if __NPU_ARCH__ == 2002\n    Adds(dst, n);\n#elif __NPU_ARCH__ == 3510\n    Muls(dst, n);\n#endif",
        "#if __NPU_ARCH__ != 1001\n#if __NPU_ARCH__ == 3510\n    Adds(dst, n);\n#endif\n#endif",
        "static_assert(sizeof(T) > 1);\nif ASCEND_IS_AIC { return; }\n#if __NPU_ARCH__ == 3510\n    Adds(dst, n);\n#endif",
        "#ifdef DEBUG\n    Print(n);\n#endif\n#if __NPU_ARCH__ == 3510\n    Adds(dst, n);\n#endif",
    ],
)
def test_a_body_that_the_preprocessor_leaves_without_effect_is_refused(body: str) -> None:
    assert refused(shrink(body), 2201) and not refused(shrink(body), 3510)


@pytest.mark.parametrize(
    "text",
    [
        shrink("#ifdef DEBUG\n    Print(n);\n#endif"),
        shrink("#if DEBUG && __NPU_ARCH__ == 2201\n    Print(n);\n#endif"),
        shrink("#if __NPU_ARCH__ == 3510\n    Adds(dst, n);\n#else\n    Muls(dst, n);\n#endif"),
        shrink("#if __NPU_ARCH__ == 3510\n    Adds(dst, n);\n#endif\n    Muls(dst, n);"),
        shrink("#if __NPU_ARCH__ == 3510\n    ASCENDC_ASSERT(n > 0);\n#endif"),
        shrink("#if __NPU_ARCH__ == 3510\n    Adds(dst, n);\n#endif", "inline void CheckShrink(const LocalTensor<T>& dst)"),
        shrink("#if __NPU_ARCH__ == 3510\n    fixpipe.flag = 0;\n#endif", "inline void Step(Adaptor& fixpipe)"),
        shrink("    if (n) {\n#if __NPU_ARCH__ == 3510\n    Adds(dst, n);\n#endif\n    }\n    Muls(dst, n);"),
        "namespace AscendC {\n#if __NPU_ARCH__ == 3510\nvoid Adds(LocalTensor<T> dst);\n#endif\n}\n",
    ],
)
def test_what_has_another_effect_or_only_checks_is_not_refused(text: str) -> None:
    assert not refused(text, 2201)


def refused(text: str, architecture: int) -> bool:
    """Whether a function of a header inside of the checkout ends the run on an architecture."""
    command = [require_compiler(), "-E", "-P", "-x", "c++", f"-D__NPU_ARCH__={architecture}", "-"]
    done = subprocess.run(command, input=refusing(text, inside=True), capture_output=True, text=True, check=True)
    return "unsupported" in done.stdout
