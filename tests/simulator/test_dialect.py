"""Libraries of templates over Ascend C: headers in other folders, work that is specialised for each kind of core, small words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_eg.cli.app import run as command
from tile_eg.simulator.asc_file import AscFile
from tile_eg.simulator.build import SAME_EVERY_TIME, _taken, require_compiler
from tile_eg.simulator.dialect import as_cpp
from tile_eg.simulator.findings import Simulation
from tile_eg.simulator.program import Options, run_program

ADAPTER = """#pragma once
#include <acl/acl.h>
#include <kernel_operator.h>
#define ON_DEVICE __forceinline__ __aicore__
#define ON_BOTH __forceinline__[host, aicore]
#define KERNEL __global__ __aicore__
template <class Work>
KERNEL void Adapter(typename Work::Params params, uint64_t meet)
{
    AscendC::SetSyncBaseAddr(meet);
    Work work;
    work(params);
}
template <class Work>
void Start(typename Work::Params const& params, uint32_t blocks, aclrtStream stream)
{
    Adapter<Work><<<blocks, nullptr, stream>>>(params, 0);
}
"""
WORK = """#pragma once
#include "../own/adapter.hpp"
template <class T>
class Work
{
public:
    template <class E>
    struct Sums {
        using type = int32_t;
    };
    template <>
    struct Sums<half> {
        using type = float;
    };
    struct Pair {
        uint32_t at, count;
        ON_DEVICE Pair() = default;
    };
    struct Params {
        GM_ADDR x;
        GM_ADDR z;
        ON_BOTH Params() {}
        ON_BOTH Params(GM_ADDR x_, GM_ADDR z_) : x(x_), z(z_) {}
    };

    template <int32_t CORE_TYPE = g_coreType>
    ON_DEVICE void operator()(Params const& params);

    template <>
    ON_DEVICE void operator()<AscendC::AIC>(Params const& params)
    {@CUBE@}

    template <>
    ON_DEVICE void operator()<AscendC::AIV>(Params const& params)
    {
        static_assert(std::is_same_v<typename Sums<half>::type, float> && AscendC::SizeOfBits<AscendC::int4b_t>::value == 4);
        if constexpr (g_coreType == AscendC::AIC) return;
        if (unlikely(params.x == nullptr)) return;
        AscendC::ICachePreLoad(1);
        @WAIT@
        volatile uint32_t none = 0, some = 7;  // the cores go on behind a division by 0
        volatile uint32_t quotient = some / none, rest = some % none;
        volatile int32_t whole_quotient = int32_t(some) / int32_t(none);
        volatile uint64_t long_rest = (uint64_t(some) << 40) % uint64_t(none);
        if (quotient != 0 || rest != 7 || whole_quotient != 0 || long_rest != uint64_t(7) << 40) return;
        const Pair part = {uint32_t(AscendC::GetBlockIdx()) * 64, 64};
        AscendC::LocalMemAllocator<AscendC::Hardware::UB> ub;
        AscendC::LocalTensor<T> whole = ub.Alloc<T, 128>(), a;
        a.SetAddr(whole[64].address_);
        AscendC::GlobalTensor<T> gx, gz;
        gx.SetGlobalBuffer((__gm__ T*)params.x + part.at);
        gz.SetGlobalBuffer((__gm__ T*)params.z + part.at);
        AscendC::DataCopy(a, gx, part.count);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        AscendC::Add(whole, a, a, 64);
        pipe_barrier(PIPE_V);
        AscendC::RepeatReduceSum<T>(whole, whole, 1, 64, 0, 1, 1, 8);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        AscendC::DataCopy(gz, whole, part.count);
    }
};
"""
MAIN = """#include <cstdlib>
#include <opdev/fp16_t.h>
#include <opdev/bfloat16.h>
#include "own/work.hpp"
int main(int argc, const char** argv)
{
    const uint32_t blocks = std::atoi(argv[1]), count = std::atoi(argv[2]) * 64;
    float host[256];
    for (uint32_t i = 0; i < count; ++i) host[i] = op::fp16_t(1.0f) + op::bfloat16(float(i / 64));
    uint8_t *x, *z;
    uint64_t meet = 1;
    aclrtGetHardwareSyncAddr(reinterpret_cast<void**>(&meet));
    aclrtMalloc((void**)&x, count * 4, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc((void**)&z, count * 4, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(x, count * 4, host, count * 4, ACL_MEMCPY_HOST_TO_DEVICE);
    Start<Work<float>>({x, z}, blocks, nullptr);
    aclrtMemcpy(host, count * 4, z, count * 4, ACL_MEMCPY_DEVICE_TO_HOST);
    for (uint32_t i = 0; i < count; i += 64)
        if (host[i] != 128 * (1 + i / 64)) return 3;
    return 0;
}
"""


def written(folder: Path, cube: str = "", wait: str = "") -> AscFile:
    (folder / "headers" / "own").mkdir(parents=True)
    (folder / "headers" / "own" / "adapter.hpp").write_text(ADAPTER)
    (folder / "headers" / "own" / "work.hpp").write_text(WORK.replace("@CUBE@", cube).replace("@WAIT@", wait))
    (folder / "main.cpp").write_text(MAIN)
    return AscFile(folder / "main.cpp", MAIN, (folder / "headers",))


def ran(file: AscFile, *arguments: str) -> Simulation:
    return run_program(file, Options(arguments=arguments))


@pytest.mark.slow
def test_work_of_vector_cores_alone_is_launched_on_so_many_of_them(tmp_path: Path) -> None:
    done = ran(written(tmp_path), "3", "3")
    assert (done.returned, done.findings) == (0, ())


@pytest.mark.slow
def test_cube_and_vector_cores_do_each_their_own_work(tmp_path: Path) -> None:
    file = written(tmp_path, "AscendC::CrossCoreSetFlag<2, PIPE_FIX>(1);", "AscendC::CrossCoreWaitFlag(1);")
    done = ran(file, "2", "4")
    assert (done.returned, done.findings) == (0, ())


@pytest.mark.slow
def test_the_command_takes_folders_of_headers_and_what_main_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path)
    assert command(["simulate", str(file.path), "-I", str(tmp_path / "headers"), "--no-time", "--", "2", "2"]) == 0
    assert "good, 0 findings" in capsys.readouterr().out
    assert command(["simulate", str(file.path), "-I", str(tmp_path / "headers"), "--no-time", "--", "1", "2"]) == 1


@pytest.mark.slow
def test_a_mistake_in_a_header_of_another_folder_is_told_at_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, wait="AscendC::Frobnicate(1);")
    assert command(["simulate", str(file.path), "-I", str(tmp_path / "headers"), "--", "1", "1"]) == 1
    told = capsys.readouterr().err
    assert "'Frobnicate' is not simulated" in told and "headers/own/work.hpp:" in told and "AscendC::Frobnicate(1);" in told


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("#define BOTH inline[host, aicore]", "#define BOTH inline"),
        ("if constexpr (g_coreType == AscendC::AIV) {}", "if (::tile_sim::is_aiv()) {}"),
        ("if constexpr (g_coreType != AscendC::AIC) {}", "if (!::tile_sim::is_aic()) {}"),
        (
            "constexpr Id id = Flag<1, g_coreType>::ID;",
            "const Id id = ::tile_sim::is_aic() ? Flag<1, AscendC::AIC>::ID : Flag<1, AscendC::AIV>::ID;",
        ),
        ("struct P { int a; P() = default; };", "struct P { int a; };"),
        ("struct P { int a; P() = default; P(int); };", "struct P { int a; P() = default; P(int); };"),
        ("template <>\nstruct S<int> {};", "template <>\nstruct S<int> {};"),
        (
            "class C { template <class T> struct S {};\ntemplate <>\nstruct S<int> {}; };",
            "class C { template <class T, class tile_sim_any = void> struct S {};\n"
            "template <class tile_sim_any>\nstruct S<int, tile_sim_any> {}; };",
        ),
        ("// g_coreType in [host, aicore]", "// g_coreType in [host, aicore]"),
        ("struct P { int a;  // the first\nP() = default; };", "struct P { int a;\n };"),
        (
            "class K { void operator()(P p) { if ASCEND_IS_AIV { return; } f(); } "
            "void operator()(Q q) { if ASCEND_IS_AIV {} } };",
            "class K { void operator()(P p) { if ASCEND_IS_AIV { return; } f(); } static constexpr int tile_sim_cores = 1; "
            "void operator()(Q q) { if ASCEND_IS_AIV {} } };",
        ),
        (
            "class K { void operator()(P p) { if ASCEND_IS_AIC { f(); } } };",
            "class K { void operator()(P p) { if ASCEND_IS_AIC { f(); } } static constexpr int tile_sim_cores = 3; };",
        ),
        (
            "class K { template <int C = g_coreType> __attribute__((always_inline)) void operator()(P p);\n"
            "template <> void operator()<AscendC::AIV>(P p) { f(p); } };",
            "class K { template <int C = g_coreType, std::enable_if_t<C == AscendC::MIX, int> = 0> "
            "__attribute__((always_inline)) void operator()(P p) { if (::tile_sim::is_aiv()) operator()<AscendC::AIV>(p); } "
            "static constexpr int tile_sim_cores = 2;\n"
            "template <int C, std::enable_if_t<C == AscendC::AIV, int> = 0> void operator()(P p) { f(p); } };",
        ),
    ],
)
def test_what_a_compiler_for_two_cores_takes_becomes_cpp(text: str, becomes: str) -> None:
    assert as_cpp(text) == becomes


CALLED = """template <class T> class Work : public Base<T> {
template <int32_t CORE_TYPE = g_coreType> void operator()(int);
template <> void operator()<AscendC::AIC>(int) {@CUBE@}
template <> void operator()<AscendC::AIV>(int) { f(); }
};
__global__ @ATTRIBUTE@ void k(GM_ADDR x) { using W = Work<half>; W w; w(1); }
"""


@pytest.mark.parametrize(
    ("cube", "attribute", "kind"),
    [("g();", "", "MIX_AIC_1_2"), ("", "", "AIV_ONLY"), ("g();", "__attribute__((aic))", "AIC_ONLY")],
)
def test_a_kernel_runs_on_the_cores_for_which_the_classes_that_it_names_have_work(cube: str, attribute: str, kind: str) -> None:
    text = CALLED.replace("@CUBE@", cube).replace("@ATTRIBUTE@", attribute)
    assert [(k.name, k.type) for k in AscFile(Path("k.cpp"), text).kernels] == [("k", kind)]


CHOSEN = """template <int N>
#if PAIRS == 2
__global__ __mix__(1, 2)
#else
__global__ __mix__(1, 1)
#endif
    void k(GM_ADDR x) {}
"""


@pytest.mark.parametrize(("pairs", "kind"), [("1", "MIX_AIC_1_1"), ("2", "MIX_AIC_1_2")])
def test_the_preprocessor_chooses_among_the_words_before_a_kernels_name(pairs: str, kind: str) -> None:
    file = AscFile(Path("k.cpp"), CHOSEN).with_macros({"PAIRS": pairs})
    assert [(k.name, k.type, k.line) for k in file.kernels] == [("k", kind, 7)]


def test_macros_of_a_file_that_is_included_choose_them_too(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text("#pragma once\n#include <absent.h>\n#define PAIRS 2\n")
    file = AscFile(tmp_path / "k.cpp", f'#include "kernel_operator.h"\n#include "sizes.h"\n{CHOSEN}')
    assert [(k.name, k.type) for k in file.kernels] == [("k", "MIX_AIC_1_2")]


CARELESS = """#include <acl/acl.h>
#include <kernel_operator.h>
#include <opdev/fp16_t.h>
using namespace std;
__global__ __aicore__ __vector__ void k(GM_ADDR z, GM_ADDR nothing)
{
    AscendC::TPipe pipe;
    pipe.Destroy();
    AscendC::LocalTensor<int32_t> x(AscendC::TPosition::VECCALC, 0, 8);
    AscendC::GlobalTensor<int32_t> gz, unused;
    gz.SetGlobalBuffer((__gm__ int32_t*)z);
    unused.SetGlobalBuffer((__gm__ int32_t*)nothing);
    int32_t beyond = gz.GetValue(8);  // reported
    AscendC::Duplicate(x, int32_t(beyond * 0 + min(7u, uint32_t(9))), 8);
    AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID7);
    @AGAIN@
    AscendC::DataCopyParams one{1, integral_constant<uint32_t, 1>(), 0, 0};
    AscendC::DataCopy(gz, x, one);
}
int main()
{
    int32_t host[8] = {}, on_the_stack = 0;
    uint8_t* z;
    uint8_t* unset = (uint8_t*)64;
    if (aclrtFreeHost(&on_the_stack) == ACL_SUCCESS) return 2;
    aclrtMalloc((void**)&z, 32, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(z, 32, host, 32, ACL_MEMCPY_HOST_TO_DEVICE);
    k<<<1, nullptr, nullptr>>>(z, unset);
    aclrtMemcpy(host, 32, z, 32, ACL_MEMCPY_DEVICE_TO_HOST);
    const op::fp16_t sum = op::fp16_t(2048.0f) + op::fp16_t(1.0f);  // rounded, before anything is made of it
    return host[7] == 7 && float(sum) == 2048 ? 0 : 3;
}
"""
WAIT = "AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID7);"


def careless(folder: Path, again: str) -> Simulation:
    source = CARELESS.replace("@AGAIN@", again)
    (folder / "main.cpp").write_text(source)
    return ran(AscFile(folder / "main.cpp", source))


@pytest.mark.slow
@pytest.mark.skipif(not _taken(require_compiler(), SAME_EVERY_TIME), reason="the compiler cannot set what a text does not")
def test_variables_that_a_text_never_sets_are_0_whatever_lay_there(tmp_path: Path) -> None:
    source = CARELESS.replace("@AGAIN@", WAIT)
    source = source.replace("on_the_stack = 0;", "on_the_stack = 0; left_there(); if (never_set()) return 4;")
    functions = """__attribute__((noinline)) void left_there() { volatile int x[64]; for (int i = 0; i < 64; ++i) x[i] = 7; }
__attribute__((noinline)) int never_set() { volatile int x[64]; return x[0] | x[31] | x[63]; }
"""
    assert ran(AscFile(tmp_path / "main.cpp", functions + source)).returned == 0


@pytest.mark.slow
def test_a_buffer_beyond_its_memory_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    done = careless(tmp_path, WAIT + "AscendC::TBuf<AscendC::TPosition::A1> large; pipe.Init(); pipe.InitBuffer(large, 524320);")
    assert (done.returned, [f.kind for f in done.findings]) == (0, ["out_of_bounds", "capacity"])


@pytest.mark.slow
def test_a_file_may_say_how_many_dimensions_the_shapes_of_tensors_have(tmp_path: Path) -> None:
    source = "#define K_MAX_SHAPE_DIM 0\n" + CARELESS.replace("@AGAIN@", WAIT)
    assert ran(AscFile(tmp_path / "main.cpp", source)).returned == 0


@pytest.mark.slow
def test_a_shape_of_more_dimensions_than_the_file_says_is_told(tmp_path: Path) -> None:
    shaped = WAIT + "const uint32_t sizes[1] = {8}; AscendC::ShapeInfo shape(1, sizes);"
    source = "#define K_MAX_SHAPE_DIM 0\n" + CARELESS.replace("@AGAIN@", shaped)
    done = ran(AscFile(tmp_path / "main.cpp", source))
    assert [f.kind for f in done.findings] == ["out_of_bounds", "field"] and "shapeDim is 1" in done.findings[1].message


@pytest.mark.slow
def test_a_number_read_beyond_its_tensor_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    done = careless(tmp_path, WAIT)
    assert (done.returned, [f.kind for f in done.findings]) == (0, ["out_of_bounds"])


@pytest.mark.slow
def test_a_flag_that_is_set_twice_is_told_and_each_set_has_its_wait(tmp_path: Path) -> None:
    done = careless(tmp_path, f"AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID7); {WAIT} {WAIT}")
    assert (done.returned, [f.kind for f in done.findings]) == (0, ["out_of_bounds", "double_set"])


def test_every_line_stays_where_it_was() -> None:
    for text in (ADAPTER, WORK):
        assert as_cpp(text).count("\n") == text.count("\n")
