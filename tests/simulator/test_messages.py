"""Messages from vector cores to the cube core of their block, by which the vendor's Matmul objects of vector cores are served."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulator.test_devkit import PARTS
from tile_eg.simulator.asc_file import AscFile
from tile_eg.simulator.devkit import Devkit
from tile_eg.simulator.findings import Simulation
from tile_eg.simulator.launches import kernels
from tile_eg.simulator.program import Options, run_program

MESSAGES = """#ifndef MESSAGES
#define MESSAGES
namespace AscendC {
__aicore__ inline void Barrier()
{
}
constexpr int32_t MIX_NUM = 2;
constexpr uint32_t WORKSPACE_UB_SIZE = 4096;
enum class KFC_Enum : uint16_t { SERVICE_QUIT = 1 };
struct KfcMsg { uint32_t head = 0; int32_t ubAddr = -1; uint64_t piece = 0; };
inline uint32_t KfcMsgMakeFlag(KFC_Enum function, uint16_t) { return uint32_t(function); }
struct SysWorkspaceDesc { this is the simulator's part };
"""
KIT = {
    **PARTS,
    "include/adv_api/matmul/matmul_intf.h": '#include "../../../impl/adv_api/detail/kfc/kernel_kfc.h"\n',
    "impl/adv_api/detail/kfc/kernel_kfc.h": "#ifndef ASCENDC_CPU_DEBUG\n#error one text is for both kinds of cores\n#endif\n",
    "impl/basic_api/dav_c220/kfc/kfc_comm.h": MESSAGES,
}
WAIT = "AscendC::WaitForCubeCore(me);"
FREE = "server.FreeUB(message->ubAddr);"
SOURCE = """#include <cstdio>
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
#include "acl/acl.h"
using namespace AscendC;
constexpr int times = 20, count = 128;

// AIC copies what each vector core sends it to where that core's results lie, one after the other.
void serve(GlobalTensor<float> out)
{
    KfcCommServer servers[2];
    for (int i = 0; i < 2; ++i) servers[i].Init(GetSysWorkSpacePtr(), i);
    LocalTensor<float> l1(TPosition::A1, 0, count);
    for (int ended = 0, done[2] = {0, 0}; ended < 2;)
        for (int i = 0; i < 2; ++i) {
            KfcCommServer& server = servers[i];
            KfcMsg* message = server.RcvMessage();
            if (!message) continue;
            if (message->head == KfcMsgMakeFlag(KFC_Enum::SERVICE_QUIT, 0)) ++ended;
            else {
                GlobalTensor<float> piece;
                piece.SetGlobalBuffer(reinterpret_cast<float*>(message->piece), count);
                SetFlag<HardEvent::MTE3_MTE2>(0), WaitFlag<HardEvent::MTE3_MTE2>(0);
                DataCopy(l1, piece, count);
                FREE
                SetFlag<HardEvent::MTE2_MTE3>(0), WaitFlag<HardEvent::MTE2_MTE3>(0);
                DataCopy(out[(i * times + done[i]++) * count], l1, count);
                AnswerVectorCore<PIPE_MTE3, false>(i);
            }
            server.FreeMessage(message);
        }
}

void send(GlobalTensor<float> out)
{
    const int me = int(GetSubBlockIdx());
    KfcCommClient client(GetSysWorkSpacePtr(), me);
    LocalTensor<float> ub(TPosition::VECCALC, 0, count), back(TPosition::VECCALC, 1024, count);
    for (int i = 0; i < times; ++i) {
        SetFlag<HardEvent::MTE3_V>(0), WaitFlag<HardEvent::MTE3_V>(0);
        Duplicate(ub, float(100 * me + i), count);
        SetFlag<HardEvent::V_MTE3>(0), WaitFlag<HardEvent::V_MTE3>(0);
        int32_t tail;
        GlobalTensor<float> piece;
        piece.SetGlobalBuffer(reinterpret_cast<float*>(client.AllocUB(count * 4, tail)), count);
        DataCopy(piece, ub, count);
        KfcMsg* message = client.AllocMessage();
        client.ubMsg->head = 7, client.ubMsg->ubAddr = tail, client.ubMsg->piece = uint64_t(piece.GetPhyAddr());
        client.PostMessage<false>(message);
        PipeBarrier<PIPE_MTE2>();
        WAIT
        DataCopy(back, out[(me * times + i) * count], count);
    }
}

__global__ __mix__(1, 2) void kernel(GM_ADDR z)
{
    GlobalTensor<float> out;
    out.SetGlobalBuffer(reinterpret_cast<float*>(z), 2 * times * count);
    if ASCEND_IS_AIC serve(out);
    else send(out);
}

int main()
{
    float result[2 * times * count];
    uint8_t* z;
    aclrtMalloc((void**)&z, sizeof result, ACL_MEM_MALLOC_HUGE_FIRST);
    kernel<<<1, 0, nullptr>>>(z);
    aclrtMemcpy(result, sizeof result, z, sizeof result, ACL_MEMCPY_DEVICE_TO_HOST);
    bool right = true;
    for (int i = 0; i < 2 * times * count; ++i) right &= result[i] == 100 * (i / count / times) + i / count % times;
    std::printf("%s", right ? "right" : "wrong");
}
"""


HALVES = """#include <cstdio>
#include "kernel_operator.h"
#include "acl/acl.h"
__global__ __vector__ void nothing() {}
int main() { std::printf("%g %x", aclFloat16ToFloat(0xbe00), aclFloatToFloat16(-3.0f)); }
"""


def simulated(folder: Path, wait: str = WAIT, free: str = FREE) -> Simulation:
    for name, text in KIT.items():
        path = folder / "kit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    source = SOURCE.replace("WAIT", wait).replace("FREE", free)
    return run_program(AscFile(folder / "main.asc", source, devkit=Devkit(folder / "kit")), Options())


@pytest.mark.slow
def test_each_message_comes_once_in_the_order_of_its_core_with_the_piece_that_goes_with_it(tmp_path: Path) -> None:
    done = simulated(tmp_path)
    assert done.printed == "right" and not done.findings


@pytest.mark.slow
def test_who_does_not_wait_for_the_answer_races_with_the_cube_core(tmp_path: Path) -> None:
    assert "race" in {finding.kind for finding in simulated(tmp_path, wait="").findings}


@pytest.mark.slow
def test_pieces_that_are_never_given_back_are_a_deadlock_that_names_the_flag(tmp_path: Path) -> None:
    waiting = [finding.message for finding in simulated(tmp_path, free="").findings if finding.kind == "deadlock"]
    assert any("cross-core flag 8, and no set of it comes from AIC" in message for message in waiting)


ALONE = "#define ASCENDC_CUBE_ONLY\n"


@pytest.mark.parametrize(
    ("define", "cores"), [("", "MIX_AIC_1_2"), (ALONE, "AIC_ONLY"), (f"#if CASE == 2\n{ALONE}#endif\n", "MIX_AIC_1_2")]
)
def test_a_kernel_that_registers_matmul_objects_runs_on_the_cores_that_these_need(define: str, cores: str) -> None:
    [kernel] = kernels(f"{define}__global__ void k(GM_ADDR x) {{ REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm); }}")
    assert kernel.type == cores


@pytest.mark.slow
def test_the_host_reads_and_writes_halves_of_acl(tmp_path: Path) -> None:
    (tmp_path / "main.asc").write_text(HALVES)
    assert run_program(AscFile(tmp_path / "main.asc", HALVES), Options()).printed == "-1.5 c200"
