// Kernel gemm for 910B2, written by tile_eg.
#include "kernel_operator.h"

__aicore__ inline int32_t Min(int32_t a, int32_t b) { return a < b ? a : b; }
__aicore__ inline int32_t Max(int32_t a, int32_t b) { return a > b ? a : b; }

extern "C" __global__ __aicore__ void gemm(GM_ADDR A, GM_ADDR B, GM_ADDR C, GM_ADDR workspace)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);

    const int32_t block = static_cast<int32_t>(AscendC::GetBlockIdx());
    AscendC::GlobalTensor<half> A_gm;
    A_gm.SetGlobalBuffer((__gm__ half*)A);
    AscendC::GlobalTensor<half> B_gm;
    B_gm.SetGlobalBuffer((__gm__ half*)B);
    AscendC::GlobalTensor<float> C_gm;
    C_gm.SetGlobalBuffer((__gm__ float*)C);
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::A1> l1;
    pipe.InitBuffer(l1, 131072);
    AscendC::TBuf<AscendC::TPosition::A2> l0a;
    pipe.InitBuffer(l0a, 32768);
    AscendC::TBuf<AscendC::TPosition::B2> l0b;
    pipe.InitBuffer(l0b, 32768);
    AscendC::TBuf<AscendC::TPosition::CO1> l0c;
    pipe.InitBuffer(l0c, 65536);
    AscendC::LocalTensor<half> a = l1.GetWithOffset<half>(32768, 0);  // 128 x 128, 2 slots
    AscendC::LocalTensor<half> b = l1.GetWithOffset<half>(32768, 65536);  // 128 x 128, 2 slots
    AscendC::LocalTensor<half> la = l0a.GetWithOffset<half>(16384, 0);  // 128 x 64, 2 slots
    AscendC::LocalTensor<half> lb = l0b.GetWithOffset<half>(16384, 0);  // 64 x 128, 2 slots
    AscendC::LocalTensor<float> c = l0c.GetWithOffset<float>(16384, 0);  // 128 x 128

    AscendC::SetFlag<AscendC::HardEvent::M_MTE1>(EVENT_ID0);
    AscendC::SetFlag<AscendC::HardEvent::M_MTE1>(EVENT_ID1);
    AscendC::SetFlag<AscendC::HardEvent::MTE1_MTE2>(EVENT_ID0);
    AscendC::SetFlag<AscendC::HardEvent::MTE1_MTE2>(EVENT_ID1);
    for (int32_t k = 0; k < 4; ++k) {
        AscendC::WaitFlag<AscendC::HardEvent::MTE1_MTE2>(k % 2);
        AscendC::DataCopy(a[(k % 2) * 16384], A_gm[(block / 4) * 65536 + k * 128],
            AscendC::Nd2NzParams(1, 128, 128, 0, 512, 128, 1, 0));  // gemm.program:12
        AscendC::DataCopy(b[(k % 2) * 16384], B_gm[(block % 4) * 128 + k * 65536],
            AscendC::Nd2NzParams(1, 128, 128, 0, 512, 128, 1, 0));  // gemm.program:13
        AscendC::SetFlag<AscendC::HardEvent::MTE2_MTE1>(k % 2);
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_MTE1>(k % 2);
        for (int32_t s = 0; s < 2; ++s) {
            AscendC::WaitFlag<AscendC::HardEvent::M_MTE1>(s % 2);
            for (int32_t f = 0; f < 4; ++f) {
                AscendC::LoadData(la[(s % 2) * 8192 + f * 256], a[(k % 2) * 16384 + f * 2048 + s * 8192],
                    AscendC::LoadData2DParams(0, 8, 1, 0, 3, false, 0));  // gemm.program:15
            }
            for (int32_t f = 0; f < 4; ++f) {
                AscendC::LoadData(lb[(s % 2) * 8192 + f * 2048], b[(k % 2) * 16384 + f * 256 + s * 1024],
                    AscendC::LoadData2DParams(0, 8, 8, 0, 0, true, 0));  // gemm.program:16
            }
            AscendC::SetFlag<AscendC::HardEvent::MTE1_M>(s % 2);
            AscendC::WaitFlag<AscendC::HardEvent::MTE1_M>(s % 2);
            AscendC::Mmad(c, la[(s % 2) * 8192], lb[(s % 2) * 8192],
                AscendC::MmadParams(128, 128, 64, 0, false, k * 2 + s < 1));  // gemm.program:17
            AscendC::SetFlag<AscendC::HardEvent::M_MTE1>(s % 2);
        }
        AscendC::SetFlag<AscendC::HardEvent::MTE1_MTE2>(k % 2);
    }
    AscendC::SetFlag<AscendC::HardEvent::M_FIX>(EVENT_ID0);
    AscendC::WaitFlag<AscendC::HardEvent::M_FIX>(EVENT_ID0);
    AscendC::Fixpipe<float, float, AscendC::CFG_ROW_MAJOR>(C_gm[(block % 4) * 128 + (block / 4) * 65536], c,
        AscendC::FixpipeParamsV220(128, 128, 128, 512, false, QuantMode_t::NoQuant, 0, 1, 0, 0, 0));  // gemm.program:20
    AscendC::WaitFlag<AscendC::HardEvent::M_MTE1>(EVENT_ID0);
    AscendC::WaitFlag<AscendC::HardEvent::M_MTE1>(EVENT_ID1);
    AscendC::WaitFlag<AscendC::HardEvent::MTE1_MTE2>(EVENT_ID0);
    AscendC::WaitFlag<AscendC::HardEvent::MTE1_MTE2>(EVENT_ID1);
}
