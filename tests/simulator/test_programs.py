"""Files with a main of their own run as they are; what is wrong with a file or a spec is told to its author."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.simulator.asc import MAIN, QUEUES, SPEC, file_of, launched, ran
from tile_eg.cli.app import run
from tile_eg.errors import TileError
from tile_eg.simulator.findings import SimulatorError
from tile_eg.simulator.launches import kernels, rewrite
from tile_eg.simulator.run import Limits

pytestmark = pytest.mark.slow(but=3)


@pytest.mark.slow
def test_a_template_kernel_is_launched_from_main_and_its_result_reaches_the_host(tmp_path: Path) -> None:
    done = ran(tmp_path)
    assert done.ok and done.returned == 0 and done.printed == "last 254\n"


@pytest.mark.slow
def test_a_finding_in_a_file_with_a_main_names_the_device_tensor_and_the_line(tmp_path: Path) -> None:
    done = ran(tmp_path, MAIN.replace("<<<2, 0,", "<<<3, 0,"))
    line = MAIN.splitlines().index("    AscendC::DataCopy(a, gx, LENGTH);") + 1
    assert [(f.kind, f.line) for f in done.findings] == [("out_of_bounds", line)]
    assert "xDevice" in done.findings[0].message


@pytest.mark.slow
def test_what_main_returns_is_returned(tmp_path: Path) -> None:
    assert ran(tmp_path, MAIN.replace("host[1] == 2", "host[1] == 7")).returned == 3


@pytest.mark.slow
def test_a_failed_assert_is_a_finding(tmp_path: Path) -> None:
    source = MAIN.replace("    aclInit(nullptr);", "    assert(argc == 7);")
    finding = ran(tmp_path, "#include <cassert>\n" + source).findings[0]
    assert finding.kind == "assert" and "argc == 7" in finding.message


@pytest.mark.slow
def test_macros_reach_the_file(tmp_path: Path) -> None:
    assert ran(tmp_path, MAIN.replace("last %g", "last of " "SCENARIO %g").replace('"last of SCENARIO %g', 'NAME " %g'),
               defines={"NAME": '"m"'}).printed == "m 254\n"  # fmt: skip


@pytest.mark.slow
def test_a_file_that_loops_for_ever_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(SimulatorError, match="did not end within 1 seconds"):
        ran(tmp_path, MAIN.replace("    aclInit(nullptr);", "    for (volatile int i = 0;; ++i) {}"), limits=Limits(seconds=1))


@pytest.mark.slow
def test_a_function_that_no_text_defines_is_named(tmp_path: Path) -> None:
    source = "void elsewhere(int);\n" + MAIN.replace("    aclInit(nullptr);", "    elsewhere(argc);")
    with pytest.raises(SimulatorError, match=r"^'elsewhere\(int\)' is used and not defined"):
        ran(tmp_path, source)


def test_a_kernel_dumps_its_memories_by_address(tmp_path: Path) -> None:
    dump = "    asc_dump_ubuf<T>((__ubuf__ T*)a.GetPhyAddr(), 7, 4);\n    asc_dump_gm<T>(x, 8, 2);\n}\n\nint main"
    printed = ran(tmp_path, '#include "utils/debug/asc_dump.h"\n' + MAIN.replace("}\n\nint main", dump)).printed
    assert "desc=7, line=21, UB, 4 elements: [0, 2, 4, 6]" in printed
    assert "desc=8, line=22, GM, 2 elements: [0, 1]" in printed


def test_rewriting_keeps_every_line_where_it_was() -> None:
    text = rewrite(MAIN, {"doubled": "AIV_ONLY"})
    assert "<<<" not in text and text.count("\n") == MAIN.count("\n")
    assert text.splitlines()[-3] == MAIN.splitlines()[-3]


@pytest.mark.parametrize(
    ("head", "body", "type_"),
    [
        ("__global__ __cube__ void k()", "", "AIC_ONLY"),
        ("__vector__ __global__ void k()", "", "AIV_ONLY"),
        ("__global__ __mix__(1, 1) void k()", "", "MIX_AIC_1_1"),
        ("__global__ __mix__(0, 1) void k()", "", "MIX_AIV_1_0"),
        ("__global__ __mix__(1, 0) void k()", "", "MIX_AIC_1_0"),
        ('extern "C" __global__ __aicore__ void k()', "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);", "AIC_ONLY"),
        ("__global__ __aicore__ void k()", "if ASCEND_IS_AIC {}", "MIX_AIC_1_2"),
    ],
)
def test_a_kernel_says_its_type(head: str, body: str, type_: str) -> None:
    assert [(k.name, k.type) for k in kernels(f"// __global__ void no()\n{head} {{ {body} }}")] == [("k", type_)]


def test_an_unknown_call_is_told_at_its_line_with_the_nearest_that_is_known(tmp_path: Path) -> None:
    with pytest.raises(TileError) as caught:
        launched(tmp_path, QUEUES.replace("AscendC::Muls(", "AscendC::Mulz("))
    assert "'Mulz' is not simulated" in str(caught.value) and "k.asc:20:" in str(caught.value)
    assert "`Muls`" in caught.value.help


def test_a_macro_that_only_a_build_defines_is_told_with_the_switch_that_does(tmp_path: Path) -> None:
    with pytest.raises(TileError) as caught:
        launched(tmp_path, QUEUES.replace("t.scale, tile)", "t.scale, CYCLENUMS)"))
    assert "-D CYCLENUMS=VALUE" in caught.value.help


def test_a_mistake_inside_a_call_is_told_at_the_authors_line(tmp_path: Path) -> None:
    with pytest.raises(TileError) as caught:
        launched(tmp_path, QUEUES.replace("AscendC::Muls(c, a, t.scale, tile)", "AscendC::And(c, a, a, tile)"))
    assert "And does not take this element type" in str(caught.value) and "k.asc:20:" in str(caught.value)
    assert "vector.h" not in str(caught.value)


@pytest.mark.parametrize("header", ["lib/matmul_intf.h", "kernel_tiling/kernel_tiling.h", "register/op_def_registry.h"])
def test_the_high_level_api_is_refused_as_a_whole(header: str, tmp_path: Path) -> None:
    with pytest.raises(TileError, match="the high-level API .* is not simulated .*: the basic API is"):
        ran(tmp_path, f'#include "{header}"\n' + MAIN)


@pytest.mark.parametrize(
    ("call", "message", "help"),
    [
        (
            "AscendC::LayerNorm<float, true>(c, a, a, t.scale)",
            "LayerNorm of the high-level API is not simulated",
            "WholeReduceSum",
        ),
        ("AscendC::TopK<float>(c, a)", "TopK of the high-level API is not simulated", "Sort, with Concat and Extract"),
        ("SoftMaxTiling s; AscendC::SoftMax<float>(c, a, s)", "SoftMax of the high-level API is not simulated", "WholeReduceMax"),
        ("LayerNormTiling s", "LayerNorm of the high-level API is not simulated .here: 'LayerNormTiling'.", "WholeReduceSum"),
    ],
)
def test_a_function_of_the_high_level_api_is_refused_by_its_name(call: str, message: str, help: str, tmp_path: Path) -> None:
    with pytest.raises(TileError, match=message) as caught:
        launched(tmp_path, QUEUES.replace("AscendC::Muls(c, a, t.scale, tile)", call))
    assert "k.asc:20:" in str(caught.value) and help in caught.value.help


def test_the_host_learns_the_sizes_of_temporary_buffers_and_fills_tiling_structures(tmp_path: Path) -> None:
    host = """#include "tiling/tiling_api.h"
BEGIN_TILING_DATA_DEF(Numbers)
TILING_DATA_FIELD_DEF(uint16_t, tiles);
TILING_DATA_FIELD_DEF(uint32_t, least);
END_TILING_DATA_DEF;
struct Same { uint16_t tiles; uint32_t least; };
"""
    told = """
    uint32_t most, least;
    AscendC::GetErfMaxMinTmpSize(AscendC::TensorShape({4, 64}), 4, false, most, least);
    Numbers numbers;
    numbers.set_tiles(3), numbers.set_least(least);
    Same same;
    numbers.SaveToBuffer(&same, sizeof same);
    printf("sizes %u %u %u\\n", most, same.least, same.tiles);
"""
    done = ran(tmp_path, host + MAIN.replace("    constexpr uint32_t length = 64;", told + "    constexpr uint32_t length = 64;"))
    assert done.printed.startswith("sizes 3072 768 3\n")


HEADER = """#pragma once
template <typename T> void twice(AscendC::LocalTensor<T> a, AscendC::GlobalTensor<T> x, uint32_t n)
{
    AscendC::DataCopy(a, x, n);
    AscendC::Add(a, a, a, n);
}
"""


def with_header(folder: Path, header: str = HEADER) -> str:
    """MAIN with its copy and addition in a header, which forgets the flag between them."""
    (folder / "parts").mkdir(exist_ok=True)
    (folder / "parts" / "twice.h").write_text(header)
    lines = MAIN.replace("AscendC::DataCopy(a, gx, LENGTH)", "twice<T>(a, gx, LENGTH)").splitlines()
    kept = [line for line in lines if "MTE2_V" not in line and "AscendC::Add(" not in line]
    return "\n".join([*kept[:3], '#include "parts/twice.h"', *kept[3:], ""])


def test_a_finding_in_an_included_file_names_it(tmp_path: Path) -> None:
    found = ran(tmp_path, with_header(tmp_path)).findings[0]
    assert (found.kind, found.file, found.line, found.other_file, found.other_line) == (
        "race",
        "parts/twice.h",
        5,
        "parts/twice.h",
        4,
    )
    assert "DataCopy at line 4 of parts/twice.h" in found.message


def test_the_command_shows_the_line_of_an_included_file_and_where_it_is_included(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", str(file_of(tmp_path, with_header(tmp_path)).path)]) == 1
    shown = capsys.readouterr().out
    assert "twice.h:5:5\n    5 |     AscendC::Add(a, a, a, n);" in shown
    assert "note: parts/twice.h is included here" in shown and '4 | #include "parts/twice.h"' in shown


def test_a_finding_in_a_header_of_another_folder_is_shown_where_it_lies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = with_header(tmp_path)
    (tmp_path / "kernels").mkdir()
    assert run(["simulate", str(file_of(tmp_path / "kernels", text).path), "-I", str(tmp_path)]) == 1
    assert f"--> {tmp_path / 'parts' / 'twice.h'}:5:5" in capsys.readouterr().out


def test_a_mistake_in_an_included_file_is_told_at_its_line(tmp_path: Path) -> None:
    with pytest.raises(TileError) as caught:
        ran(tmp_path, with_header(tmp_path, HEADER.replace("AscendC::Add(", "AscendC::Adt(")))
    assert "'Adt' is not simulated" in str(caught.value) and "twice.h:5:" in str(caught.value)
    assert "AscendC::Adt(a, a, a, n);" in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("blocks = = 2", "is not TOML"),
        (SPEC.replace('name = "x"\n', 'name = "x"\nfile = "gone.npy"\n'), "there is no file"),
        (SPEC.replace("generator", "generater"), "unknown key `generater`"),
        (SPEC.replace("fields = {total = 2048, tiles = 4, scale = 0.5}", "value = 3"), None),
        (SPEC.replace("[[arguments]]\nfields = {total = 2048, tiles = 4, scale = 0.5}\n", ""), "gives 2 arguments"),
        (
            SPEC.replace("fields = {total = 2048, tiles = 4, scale = 0.5}", "shape = [4]\noutput = true"),
            "is a tensor, and `Tiling t`",
        ),
        ('kernel = "scale"\n' + SPEC, "no kernel called `scale`"),
        (SPEC.replace("blocks = 2", "blocks = 0"), "at least 1"),
        (SPEC.replace('generator = "arange"\n', ""), "an input needs"),
        (SPEC.replace("[2048]", '["n"]', 1), "a list of whole numbers"),
        (SPEC.replace("shape = [2048]\n", "shape = [2048]\ndtype = 'f64'\n", 1), "unknown dtype `f64`"),
    ],
)
def test_a_bad_spec_is_the_users_error(spec: str, message: str | None, tmp_path: Path) -> None:
    with pytest.raises(TileError, match=message):
        launched(tmp_path, spec=spec)


def test_the_command_compares_with_what_the_spec_expects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "want.npy", np.arange(2048, dtype=np.float32) * 0.5)
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC.replace("output = true", 'output = true\nexpect = "want.npy"'))
    command = ["simulate", str(file_of(tmp_path, QUEUES).path), "--args", str(spec)]
    assert run(command) == 0
    assert "z: good, largest error 0 of 1 + |expected|" in capsys.readouterr().out
    np.save(tmp_path / "want.npy", np.zeros(2048, np.float32))
    assert run([*command, "--json"]) == 1
    assert '"good": false' in capsys.readouterr().out


def test_the_command_shows_a_finding_with_its_line_and_a_caret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file_of(tmp_path, MAIN.replace("<<<2, 0,", "<<<3, 0,")).path
    assert run(["simulate", str(path)]) == 1
    shown = capsys.readouterr().out
    assert "error: out_of_bounds" in shown and "AscendC::DataCopy(a, gx, LENGTH);\n" in shown and "^^^" in shown


def test_a_kernel_without_a_main_asks_for_its_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", str(file_of(tmp_path, QUEUES).path)]) == 1
    assert "--args says what to launch it with" in capsys.readouterr().err


ALL_MEET = """#include "kernel_operator.h"
__global__ __vector__ void k(__gm__ float* x, __gm__ float* z)
{
    AscendC::LocalMemAllocator<> ub;
    auto a = ub.Alloc<float, 64>();
    AscendC::GlobalTensor<float> gx, gz;
    gx.SetGlobalBuffer(x), gz.SetGlobalBuffer(z);
    const int64_t me = AscendC::GetBlockIdx(), next = (me + 1) % AscendC::GetBlockNum();
    AscendC::Duplicate(a, float(me), 64);
    AscendC::PipeBarrier<PIPE_ALL>();
    AscendC::DataCopy(gx[me * 64], a, 64);
    AscendC::SyncAll();
    AscendC::DataCopy(a, gx[next * 64], 64);
    AscendC::PipeBarrier<PIPE_ALL>();
    AscendC::DataCopy(gz[me * 64], a, 64);
}
"""
MEETING = "blocks = 3\n[[arguments]]\nbytes = 768\n[[arguments]]\nshape = [192]\noutput = true\n"


def test_blocks_meet_in_sync_all_and_see_what_the_others_wrote(tmp_path: Path) -> None:
    done = launched(tmp_path, ALL_MEET, MEETING)
    assert done.ok
    np.testing.assert_array_equal(done.outputs[0], np.repeat([1, 2, 0], 64).astype(np.float32))


def test_without_sync_all_the_blocks_race(tmp_path: Path) -> None:
    assert "block_race" in {
        f.kind for f in launched(tmp_path, ALL_MEET.replace("    AscendC::SyncAll();\n", ""), MEETING).findings
    }


def test_a_block_that_does_not_come_to_sync_all_is_a_deadlock(tmp_path: Path) -> None:
    done = launched(tmp_path, ALL_MEET.replace("AscendC::SyncAll();", "if (me) AscendC::SyncAll();"), MEETING)
    assert "deadlock" in {f.kind for f in done.findings}


def test_one_launch_after_another_starts_anew(tmp_path: Path) -> None:
    twice = MAIN.replace("    aclrtSynchronizeStream(stream);", "    doubled<float, length><<<2, 0, stream>>>(zDevice, xDevice);")
    done = ran(tmp_path, twice.replace("zDevice, sizeof host, ACL_MEMCPY_DEVICE", "xDevice, sizeof host, ACL_MEMCPY_DEVICE"))
    assert done.ok and done.printed == "last 508\n"


def test_what_one_statement_allocates_in_a_loop_is_several_tensors(tmp_path: Path) -> None:
    source = MAIN.replace("    aclrtMalloc((void**)&zDevice, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST);\n", "").replace(
        "    aclrtMalloc((void**)&xDevice, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST);\n",
        "    float** device[2] = {&xDevice, &zDevice};\n"
        "    for (int i = 0; i < 2; ++i) aclrtMalloc((void**)device[i], sizeof host, ACL_MEM_MALLOC_HUGE_FIRST);\n",
    )
    touched = {(row.path, row.tensor) for row in ran(tmp_path, source, trace=True).trace if row.tensor}
    assert touched == {("GM->UB", "device[i]"), ("UB->GM", "device[i] (2)")}
