// Kernel flash for 910B2, written by tile_eg.
#include "kernel_operator.h"

__aicore__ inline int32_t Min(int32_t a, int32_t b) { return a < b ? a : b; }
__aicore__ inline int32_t Max(int32_t a, int32_t b) { return a > b ? a : b; }

extern "C" __global__ __aicore__ void flash(GM_ADDR Q, GM_ADDR K, GM_ADDR V, GM_ADDR O, GM_ADDR workspace)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);

    if ASCEND_IS_AIC {
        const int32_t block = static_cast<int32_t>(AscendC::GetBlockIdx());
        AscendC::GlobalTensor<half> Q_gm;
        Q_gm.SetGlobalBuffer((__gm__ half*)Q);
        AscendC::GlobalTensor<half> K_gm;
        K_gm.SetGlobalBuffer((__gm__ half*)K);
        AscendC::GlobalTensor<half> V_gm;
        V_gm.SetGlobalBuffer((__gm__ half*)V);
        AscendC::GlobalTensor<float> sw;
        sw.SetGlobalBuffer((__gm__ float*)(workspace + static_cast<uint64_t>(block) * 1000000));
        AscendC::GlobalTensor<half> pw;
        pw.SetGlobalBuffer((__gm__ half*)(workspace + static_cast<uint64_t>(block) * 1000000 + 131072));
        AscendC::GlobalTensor<float> ow;
        ow.SetGlobalBuffer((__gm__ float*)(workspace + static_cast<uint64_t>(block) * 1000000 + 196608));
        AscendC::TPipe pipe;
        AscendC::TBuf<AscendC::TPosition::A1> l1;
        pipe.InitBuffer(l1, 147456);
        AscendC::TBuf<AscendC::TPosition::A2> l0a;
        pipe.InitBuffer(l0a, 49152);
        AscendC::TBuf<AscendC::TPosition::B2> l0b;
        pipe.InitBuffer(l0b, 32768);
        AscendC::TBuf<AscendC::TPosition::CO1> l0c;
        pipe.InitBuffer(l0c, 98304);
        AscendC::LocalTensor<half> q = l1.GetWithOffset<half>(8192, 0);  // 128 x 64
        AscendC::LocalTensor<half> k1 = l1.GetWithOffset<half>(16384, 16384);  // 128 x 64, 2 slots
        AscendC::LocalTensor<half> v1 = l1.GetWithOffset<half>(16384, 49152);  // 128 x 64, 2 slots
        AscendC::LocalTensor<half> p1 = l1.GetWithOffset<half>(32768, 81920);  // 128 x 128, 2 slots
        AscendC::LocalTensor<half> qa = l0a.GetWithOffset<half>(8192, 0);  // 128 x 64
        AscendC::LocalTensor<half> pa = l0a.GetWithOffset<half>(16384, 16384);  // 128 x 128
        AscendC::LocalTensor<half> kb = l0b.GetWithOffset<half>(8192, 0);  // 64 x 128
        AscendC::LocalTensor<half> vb = l0b.GetWithOffset<half>(8192, 16384);  // 128 x 64
        AscendC::LocalTensor<float> s0 = l0c.GetWithOffset<float>(16384, 0);  // 128 x 128
        AscendC::LocalTensor<float> o0 = l0c.GetWithOffset<float>(8192, 65536);  // 128 x 64

        AscendC::SetFlag<AscendC::HardEvent::M_MTE1>(EVENT_ID0);
        AscendC::SetFlag<AscendC::HardEvent::FIX_M>(EVENT_ID0);
        AscendC::SetFlag<AscendC::HardEvent::M_MTE1>(EVENT_ID1);
        AscendC::SetFlag<AscendC::HardEvent::FIX_M>(EVENT_ID1);
        AscendC::SetFlag<AscendC::HardEvent::MTE1_MTE2>(EVENT_ID0);
        AscendC::SetFlag<AscendC::HardEvent::MTE1_MTE2>(EVENT_ID1);
        AscendC::DataCopy(q, Q_gm[block * 8192], AscendC::Nd2NzParams(1, 128, 64, 0, 64, 128, 1, 0));  // flash_attention.program:31
        AscendC::SetFlag<AscendC::HardEvent::MTE2_MTE1>(EVENT_ID0);
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_MTE1>(EVENT_ID0);
        for (int32_t f = 0; f < 4; ++f) {
            AscendC::LoadData(qa[f * 256], q[f * 2048], AscendC::LoadData2DParams(0, 8, 1, 0, 3, false, 0));  // flash_attention.program:32
        }
        for (int32_t i = 0; i < 9; ++i) {
            if (i < 8) {
                AscendC::DataCopy(k1[(i % 2) * 8192], K_gm[i * 8192],
                    AscendC::Nd2NzParams(1, 128, 64, 0, 64, 128, 1, 0));  // flash_attention.program:35
                AscendC::SetFlag<AscendC::HardEvent::MTE2_MTE1>(i % 2 + 1);
                AscendC::WaitFlag<AscendC::HardEvent::MTE2_MTE1>(i % 2 + 1);
                AscendC::WaitFlag<AscendC::HardEvent::M_MTE1>(EVENT_ID0);
                for (int32_t f = 0; f < 4; ++f) {
                    AscendC::LoadData(kb[f * 2048], k1[(i % 2) * 8192 + f * 2048],
                        AscendC::LoadData2DParams(0, 8, 1, 0, 0, false, 0));  // flash_attention.program:36
                }
                AscendC::SetFlag<AscendC::HardEvent::MTE1_M>(EVENT_ID0);
                AscendC::WaitFlag<AscendC::HardEvent::MTE1_M>(EVENT_ID0);
                AscendC::WaitFlag<AscendC::HardEvent::FIX_M>(EVENT_ID0);
                AscendC::Mmad(s0, qa, kb, AscendC::MmadParams(128, 128, 64, 0, false, true));  // flash_attention.program:37
                AscendC::SetFlag<AscendC::HardEvent::M_FIX>(EVENT_ID0);
                AscendC::SetFlag<AscendC::HardEvent::M_MTE1>(EVENT_ID0);
                AscendC::WaitFlag<AscendC::HardEvent::M_FIX>(EVENT_ID0);
                AscendC::Fixpipe<float, float, AscendC::CFG_ROW_MAJOR>(sw[(i % 2) * 16384], s0,
                    AscendC::FixpipeParamsV220(128, 128, 128, 128, false, QuantMode_t::NoQuant, 0, 1, 0, 0, 0));  // flash_attention.program:38
                AscendC::SetFlag<AscendC::HardEvent::FIX_M>(EVENT_ID0);
                AscendC::CrossCoreSetFlag<2, PIPE_FIX>(0);
            }
            if (0 < i) {
                AscendC::WaitFlag<AscendC::HardEvent::MTE1_MTE2>((i - 1) % 2);
                AscendC::DataCopy(v1[((i - 1) % 2) * 8192], V_gm[i * 8192 - 8192],
                    AscendC::Nd2NzParams(1, 128, 64, 0, 64, 128, 1, 0));  // flash_attention.program:41
                AscendC::CrossCoreWaitFlag(1);
                AscendC::DataCopy(p1[((i - 1) % 2) * 16384], pw[((i - 1) % 2) * 16384],
                    AscendC::Nd2NzParams(1, 128, 128, 0, 128, 128, 1, 0));  // flash_attention.program:42
                AscendC::SetFlag<AscendC::HardEvent::MTE2_MTE1>((i - 1) % 2 + 3);
                AscendC::WaitFlag<AscendC::HardEvent::MTE2_MTE1>((i - 1) % 2 + 3);
                AscendC::WaitFlag<AscendC::HardEvent::M_MTE1>(EVENT_ID1);
                for (int32_t f = 0; f < 8; ++f) {
                    AscendC::LoadData(pa[f * 2048], p1[((i - 1) % 2) * 16384 + f * 256],
                        AscendC::LoadData2DParams(0, 8, 8, 0, 0, false, 0));  // flash_attention.program:43
                }
                for (int32_t f = 0; f < 4; ++f) {
                    AscendC::LoadData(vb[f * 256], v1[((i - 1) % 2) * 8192 + f * 2048],
                        AscendC::LoadData2DParams(0, 8, 1, 0, 3, true, 0));  // flash_attention.program:44
                }
                AscendC::SetFlag<AscendC::HardEvent::MTE1_M>(EVENT_ID1);
                AscendC::SetFlag<AscendC::HardEvent::MTE1_MTE2>((i - 1) % 2);
                AscendC::WaitFlag<AscendC::HardEvent::MTE1_M>(EVENT_ID1);
                AscendC::WaitFlag<AscendC::HardEvent::FIX_M>(EVENT_ID1);
                AscendC::Mmad(o0, pa, vb, AscendC::MmadParams(128, 64, 128, 0, false, true));  // flash_attention.program:45
                AscendC::SetFlag<AscendC::HardEvent::M_FIX>(EVENT_ID1);
                AscendC::SetFlag<AscendC::HardEvent::M_MTE1>(EVENT_ID1);
                AscendC::WaitFlag<AscendC::HardEvent::M_FIX>(EVENT_ID1);
                AscendC::Fixpipe<float, float, AscendC::CFG_ROW_MAJOR>(ow[((i - 1) % 2) * 8192], o0,
                    AscendC::FixpipeParamsV220(64, 128, 128, 64, false, QuantMode_t::NoQuant, 0, 1, 0, 0, 0));  // flash_attention.program:46
                AscendC::SetFlag<AscendC::HardEvent::FIX_M>(EVENT_ID1);
                AscendC::CrossCoreSetFlag<2, PIPE_FIX>(2);
            }
        }
        AscendC::WaitFlag<AscendC::HardEvent::M_MTE1>(EVENT_ID0);
        AscendC::WaitFlag<AscendC::HardEvent::FIX_M>(EVENT_ID0);
        AscendC::WaitFlag<AscendC::HardEvent::M_MTE1>(EVENT_ID1);
        AscendC::WaitFlag<AscendC::HardEvent::FIX_M>(EVENT_ID1);
        AscendC::WaitFlag<AscendC::HardEvent::MTE1_MTE2>(EVENT_ID0);
        AscendC::WaitFlag<AscendC::HardEvent::MTE1_MTE2>(EVENT_ID1);
    }

    if ASCEND_IS_AIV {
        const int32_t block = static_cast<int32_t>(AscendC::GetBlockIdx()) / static_cast<int32_t>(AscendC::GetSubBlockNum());
        const int32_t sub = static_cast<int32_t>(AscendC::GetSubBlockIdx());
        AscendC::GlobalTensor<half> O_gm;
        O_gm.SetGlobalBuffer((__gm__ half*)O);
        AscendC::GlobalTensor<float> sw;
        sw.SetGlobalBuffer((__gm__ float*)(workspace + static_cast<uint64_t>(block) * 1000000));
        AscendC::GlobalTensor<half> pw;
        pw.SetGlobalBuffer((__gm__ half*)(workspace + static_cast<uint64_t>(block) * 1000000 + 131072));
        AscendC::GlobalTensor<float> ow;
        ow.SetGlobalBuffer((__gm__ float*)(workspace + static_cast<uint64_t>(block) * 1000000 + 196608));
        AscendC::TPipe pipe;
        AscendC::TBuf<AscendC::TPosition::VECCALC> ub;
        pipe.InitBuffer(ub, 142336);
        AscendC::LocalTensor<float> s = ub.GetWithOffset<float>(16384, 0);  // 64 x 128, 2 slots
        AscendC::LocalTensor<half> p = ub.GetWithOffset<half>(8192, 65536);  // 64 x 128
        AscendC::LocalTensor<float> o = ub.GetWithOffset<float>(4096, 81920);  // 64 x 64
        AscendC::LocalTensor<float> acc = ub.GetWithOffset<float>(4096, 98304);  // 64 x 64
        AscendC::LocalTensor<half> of = ub.GetWithOffset<half>(4096, 114688);  // 64 x 64
        AscendC::LocalTensor<float> m = ub.GetWithOffset<float>(64, 122880);  // 1 x 64
        AscendC::LocalTensor<float> mn = ub.GetWithOffset<float>(64, 123136);  // 1 x 64
        AscendC::LocalTensor<float> mb = ub.GetWithOffset<float>(512, 123392);  // 64 x 8
        AscendC::LocalTensor<float> l = ub.GetWithOffset<float>(64, 125440);  // 1 x 64
        AscendC::LocalTensor<float> rs = ub.GetWithOffset<float>(64, 125696);  // 1 x 64
        AscendC::LocalTensor<float> sc = ub.GetWithOffset<float>(4096, 125952);  // 64 x 64

        AscendC::SetFlag<AscendC::HardEvent::MTE3_V>(EVENT_ID0);
        AscendC::SetFlag<AscendC::HardEvent::V_MTE2>(EVENT_ID0);
        AscendC::SetFlag<AscendC::HardEvent::V_MTE2>(EVENT_ID1);
        AscendC::SetFlag<AscendC::HardEvent::V_MTE2>(EVENT_ID2);
        AscendC::Duplicate(acc, 0.0f, 4096);  // flash_attention.program:51
        AscendC::Duplicate(m, -__builtin_inff(), 64);  // flash_attention.program:52
        AscendC::Duplicate(l, 0.0f, 64);  // flash_attention.program:53
        for (int32_t i = 0; i < 9; ++i) {
            if (i < 8) {
                AscendC::WaitFlag<AscendC::HardEvent::V_MTE2>(i % 2);
                AscendC::CrossCoreWaitFlag(0);
                AscendC::DataCopy(s[(i % 2) * 8192], sw[(i % 2) * 16384 + sub * 8192], 8192);  // flash_attention.program:56
                AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(i % 2);
                AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(i % 2);
                AscendC::Muls(s[(i % 2) * 8192], s[(i % 2) * 8192], 0.125f, 8192);  // flash_attention.program:57
                AscendC::PipeBarrier<PIPE_V>();
                AscendC::Max(sc, s[(i % 2) * 8192], s[(i % 2) * 8192 + 64], 64, 64,
                    AscendC::BinaryRepeatParams(1, 1, 1, 8, 16, 16));  // flash_attention.program:58
                AscendC::PipeBarrier<PIPE_V>();
                AscendC::WholeReduceMax(mn, sc, 64, 64, 1, 1, 8, AscendC::ReduceOrder::ORDER_ONLY_VALUE);
                AscendC::PipeBarrier<PIPE_V>();
                AscendC::Max(mn, mn, m, 64);  // flash_attention.program:59
                AscendC::PipeBarrier<PIPE_V>();
                AscendC::Brcb(mb, mn, 8, AscendC::BrcbRepeatParams(1, 8));  // flash_attention.program:60
                AscendC::PipeBarrier<PIPE_V>();
                AscendC::Sub(s[(i % 2) * 8192], s[(i % 2) * 8192], mb, 64, 64,
                    AscendC::BinaryRepeatParams(1, 1, 0, 16, 16, 1));  // flash_attention.program:61
                AscendC::Sub(s[(i % 2) * 8192 + 64], s[(i % 2) * 8192 + 64], mb, 64, 64,
                    AscendC::BinaryRepeatParams(1, 1, 0, 16, 16, 1));
                AscendC::PipeBarrier<PIPE_V>();
                AscendC::Exp(s[(i % 2) * 8192], s[(i % 2) * 8192], 8192);  // flash_attention.program:62
                AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(EVENT_ID0);
                AscendC::PipeBarrier<PIPE_V>();
                AscendC::Cast(p, s[(i % 2) * 8192], AscendC::RoundMode::CAST_RINT, 8192);  // flash_attention.program:63
                AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID0);
                AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID0);
                AscendC::DataCopy(pw[(i % 2) * 16384 + sub * 8192], p, 8192);  // flash_attention.program:64
                AscendC::SetFlag<AscendC::HardEvent::MTE3_V>(EVENT_ID0);
                AscendC::CrossCoreSetFlag<2, PIPE_MTE3>(1);
                AscendC::Add(sc, s[(i % 2) * 8192], s[(i % 2) * 8192 + 64], 64, 64,
                    AscendC::BinaryRepeatParams(1, 1, 1, 8, 16, 16));  // flash_attention.program:65
                AscendC::PipeBarrier<PIPE_V>();
                AscendC::WholeReduceSum(rs, sc, 64, 64, 1, 1, 8);
                AscendC::SetFlag<AscendC::HardEvent::V_MTE2>(i % 2);
                AscendC::PipeBarrier<PIPE_V>();
                AscendC::Add(l, l, rs, 64);  // flash_attention.program:66
            }
            if (0 < i) {
                AscendC::WaitFlag<AscendC::HardEvent::V_MTE2>(EVENT_ID2);
                AscendC::CrossCoreWaitFlag(2);
                AscendC::DataCopy(o, ow[((i - 1) % 2) * 8192 + sub * 4096], 4096);  // flash_attention.program:69
                AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID2);
                AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID2);
                AscendC::Add(acc, acc, o, 4096);  // flash_attention.program:70
                AscendC::SetFlag<AscendC::HardEvent::V_MTE2>(EVENT_ID2);
            }
        }
        AscendC::Brcb(mb, l, 8, AscendC::BrcbRepeatParams(1, 8));  // flash_attention.program:73
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Div(acc, acc, mb, 64, 64, AscendC::BinaryRepeatParams(1, 1, 0, 8, 8, 1));  // flash_attention.program:74
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(of, acc, AscendC::RoundMode::CAST_RINT, 4096);  // flash_attention.program:75
        AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID1);
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID1);
        AscendC::DataCopy(O_gm[block * 8192 + sub * 4096], of, 4096);  // flash_attention.program:76
        AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(EVENT_ID0);
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE2>(EVENT_ID0);
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE2>(EVENT_ID1);
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE2>(EVENT_ID2);
    }
}
