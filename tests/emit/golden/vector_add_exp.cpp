// Kernel vadd for 910B2, written by tile_eg.
#include "kernel_operator.h"

__aicore__ inline int32_t Min(int32_t a, int32_t b) { return a < b ? a : b; }
__aicore__ inline int32_t Max(int32_t a, int32_t b) { return a > b ? a : b; }

extern "C" __global__ __aicore__ void vadd(GM_ADDR A, GM_ADDR B, GM_ADDR C, GM_ADDR workspace)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);

    const int32_t block = static_cast<int32_t>(AscendC::GetBlockIdx()) / 2;
    const int32_t sub = static_cast<int32_t>(AscendC::GetBlockIdx()) % 2;
    AscendC::GlobalTensor<float> A_gm;
    A_gm.SetGlobalBuffer((__gm__ float*)A);
    AscendC::GlobalTensor<float> B_gm;
    B_gm.SetGlobalBuffer((__gm__ float*)B);
    AscendC::GlobalTensor<float> C_gm;
    C_gm.SetGlobalBuffer((__gm__ float*)C);
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> ub;
    pipe.InitBuffer(ub, 65536);
    AscendC::LocalTensor<float> a = ub.GetWithOffset<float>(8192, 0);  // 16 x 256, 2 slots
    AscendC::LocalTensor<float> b = ub.GetWithOffset<float>(8192, 32768);  // 16 x 256, 2 slots

    AscendC::SetFlag<AscendC::HardEvent::MTE3_MTE2>(EVENT_ID0);
    AscendC::SetFlag<AscendC::HardEvent::MTE3_MTE2>(EVENT_ID1);
    for (int32_t k = 0; k < 8; ++k) {
        AscendC::WaitFlag<AscendC::HardEvent::MTE3_MTE2>(k % 2);
        AscendC::DataCopy(a[(k % 2) * 4096], A_gm[block * 65536 + k * 8192 + sub * 4096], 4096);  // vector_add_exp.program:10
        AscendC::DataCopy(b[(k % 2) * 4096], B_gm[block * 65536 + k * 8192 + sub * 4096], 4096);  // vector_add_exp.program:11
        AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(k % 2);
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(k % 2);
        AscendC::Add(a[(k % 2) * 4096], a[(k % 2) * 4096], b[(k % 2) * 4096], 4096);  // vector_add_exp.program:12
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Exp(a[(k % 2) * 4096], a[(k % 2) * 4096], 4096);  // vector_add_exp.program:13
        AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(k % 2);
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(k % 2);
        AscendC::DataCopy(C_gm[block * 65536 + k * 8192 + sub * 4096], a[(k % 2) * 4096], 4096);  // vector_add_exp.program:14
        AscendC::SetFlag<AscendC::HardEvent::MTE3_MTE2>(k % 2);
    }
    AscendC::WaitFlag<AscendC::HardEvent::MTE3_MTE2>(EVENT_ID0);
    AscendC::WaitFlag<AscendC::HardEvent::MTE3_MTE2>(EVENT_ID1);
}
