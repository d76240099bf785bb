// Kernel softmax_rows for 910B2, written by tile_eg.
#include "kernel_operator.h"

__aicore__ inline int32_t Min(int32_t a, int32_t b) { return a < b ? a : b; }
__aicore__ inline int32_t Max(int32_t a, int32_t b) { return a > b ? a : b; }

extern "C" __global__ __aicore__ void softmax_rows(GM_ADDR X, GM_ADDR Y, GM_ADDR workspace)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);

    const int32_t block = static_cast<int32_t>(AscendC::GetBlockIdx()) / 2;
    const int32_t sub = static_cast<int32_t>(AscendC::GetBlockIdx()) % 2;
    AscendC::GlobalTensor<float> X_gm;
    X_gm.SetGlobalBuffer((__gm__ float*)X);
    AscendC::GlobalTensor<float> Y_gm;
    Y_gm.SetGlobalBuffer((__gm__ float*)Y);
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> ub;
    pipe.InitBuffer(ub, 17472);
    AscendC::LocalTensor<float> x = ub.GetWithOffset<float>(3200, 0);  // 16 x 200
    AscendC::LocalTensor<float> m = ub.GetWithOffset<float>(16, 12800);  // 1 x 16
    AscendC::LocalTensor<float> w = ub.GetWithOffset<float>(128, 12864);  // 16 x 8
    AscendC::LocalTensor<float> s = ub.GetWithOffset<float>(1024, 13376);  // 16 x 64
    const int32_t validRows = Max(0, Min(75 - block * 32 - sub * 16, 16));

    if (validRows > 0) {
        AscendC::DataCopyPad(x, X_gm[block * 6400 + sub * 3200],
            AscendC::DataCopyExtParams(validRows, 800, 0, 0, 0), AscendC::DataCopyPadExtParams<float>());  // softmax_rows.program:11  load
    }
    AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID0);
    AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID0);
    if (validRows > 0) {
        AscendC::Max(s, x, x[64], 64, validRows, AscendC::BinaryRepeatParams(1, 1, 1, 8, 25, 25));  // softmax_rows.program:12  row-max
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Max(s, s, x[128], 64, validRows, AscendC::BinaryRepeatParams(1, 1, 1, 8, 8, 25));
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Max(s, s, x[192], 8, validRows, AscendC::BinaryRepeatParams(1, 1, 1, 8, 8, 25));
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::WholeReduceMax(m, s, 64, validRows, 1, 1, 8, AscendC::ReduceOrder::ORDER_ONLY_VALUE);
    }
    AscendC::PipeBarrier<PIPE_V>();
    if (validRows > 0) {
        AscendC::Brcb(w, m, (validRows + 7) / 8, AscendC::BrcbRepeatParams(1, 8));  // softmax_rows.program:13  broadcast
    }
    AscendC::PipeBarrier<PIPE_V>();
    if (validRows > 0) {
        for (int32_t col = 0; col < 192; col += 64) {
            AscendC::Sub(x[col], x[col], w, 64, validRows, AscendC::BinaryRepeatParams(1, 1, 0, 25, 25, 1));  // softmax_rows.program:14  shift
        }
        AscendC::Sub(x[192], x[192], w, 8, validRows, AscendC::BinaryRepeatParams(1, 1, 0, 25, 25, 1));
    }
    AscendC::PipeBarrier<PIPE_V>();
    if (validRows > 0) {
        AscendC::Exp(x, x, validRows * 200);  // softmax_rows.program:15  exp
    }
    AscendC::PipeBarrier<PIPE_V>();
    if (validRows > 0) {
        AscendC::Add(s, x, x[64], 64, validRows, AscendC::BinaryRepeatParams(1, 1, 1, 8, 25, 25));  // softmax_rows.program:16  row-sum
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Add(s, s, x[128], 64, validRows, AscendC::BinaryRepeatParams(1, 1, 1, 8, 8, 25));
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Add(s, s, x[192], 8, validRows, AscendC::BinaryRepeatParams(1, 1, 1, 8, 8, 25));
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::WholeReduceSum(m, s, 64, validRows, 1, 1, 8);
    }
    AscendC::PipeBarrier<PIPE_V>();
    if (validRows > 0) {
        AscendC::Brcb(w, m, (validRows + 7) / 8, AscendC::BrcbRepeatParams(1, 8));  // softmax_rows.program:17  broadcast
    }
    AscendC::PipeBarrier<PIPE_V>();
    if (validRows > 0) {
        for (int32_t col = 0; col < 192; col += 64) {
            AscendC::Div(x[col], x[col], w, 64, validRows, AscendC::BinaryRepeatParams(1, 1, 0, 25, 25, 1));  // softmax_rows.program:18  scale
        }
        AscendC::Div(x[192], x[192], w, 8, validRows, AscendC::BinaryRepeatParams(1, 1, 0, 25, 25, 1));
    }
    AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID0);
    AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID0);
    if (validRows > 0) {
        AscendC::DataCopyPad(Y_gm[block * 6400 + sub * 3200], x,
            AscendC::DataCopyExtParams(validRows, 800, 0, 0, 0));  // softmax_rows.program:19  store
    }
}
