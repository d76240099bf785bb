// L1 to L0A and L0B, the matrix product, and the way out of L0C.
#pragma once
#include "../runtime/cube_interface.h"
#include "cube_params.h"
#include "tensor.h"

namespace AscendC
{

template <class T>
void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2DParams& p, int line = __builtin_LINE())
{
    using tile_sim::checked;
    tile_sim::load_2d(dst.operand(), src.operand(),
                      {checked(p.startIndex, 0, 65535, "LoadData2DParams.startIndex", line),
                       checked(p.repeatTimes, 0, 255, "LoadData2DParams.repeatTimes", line),
                       checked(p.srcStride, 0, 65535, "LoadData2DParams.srcStride", line),
                       checked(p.dstGap, 0, 65535, "LoadData2DParams.dstGap", line), p.ifTranspose,
                       checked(p.addrMode, 0, 1, "LoadData2DParams.addrMode", line) == 1},
                      line);
}

template <class T>
void LoadDataWithTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2dTransposeParams& p,
                           int line = __builtin_LINE())
{
    using tile_sim::checked;
    tile_sim::load_square(dst.operand(), src.operand(),
                          {checked(p.startIndex, 0, 65535, "LoadData2dTransposeParams.startIndex", line),
                           checked(p.repeatTimes, 0, 255, "LoadData2dTransposeParams.repeatTimes", line),
                           checked(p.srcStride, 0, 65535, "LoadData2dTransposeParams.srcStride", line),
                           checked(p.dstGap, 0, 65535, "LoadData2dTransposeParams.dstGap", line),
                           checked(p.dstFracGap, 0, 65535, "LoadData2dTransposeParams.dstFracGap", line),
                           checked(p.addrMode, 0, 1, "LoadData2dTransposeParams.addrMode", line) == 1},
                          line);
}

template <class T>
void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData3DParamsV2<T>& p, int line = __builtin_LINE())
{
    using tile_sim::checked;
    const bool plain = p.strideW == 1 && p.strideH == 1 && p.filterW == 1 && p.filterH == 1 && p.dilationFilterW == 1 &&
                       p.dilationFilterH == 1 && !p.filterSizeW && !p.filterSizeH && !p.enSmallK && !p.fMatrixCtrl &&
                       !(p.padList[0] | p.padList[1] | p.padList[2] | p.padList[3]);
    if (!plain)
        tile_sim::misuse("unsupported", line,
                         "the simulator knows LoadData3DParamsV2 for matrices only: a 1 x 1 filter, stride 1, no padding");
    tile_sim::load_3d(
        dst.operand(), src.operand(),
        {checked(p.l1H, 0, 32767, "LoadData3DParamsV2.l1H", line), checked(p.l1W, 0, 32767, "LoadData3DParamsV2.l1W", line),
         checked(p.channelSize, 0, 65535, "LoadData3DParamsV2.channelSize", line),
         checked(p.kExtension, 0, 65535, "LoadData3DParamsV2.kExtension", line),
         checked(p.mExtension, 0, 65535, "LoadData3DParamsV2.mExtension", line),
         checked(p.kStartPt, 0, 65535, "LoadData3DParamsV2.kStartPt", line),
         checked(p.mStartPt, 0, 32767, "LoadData3DParamsV2.mStartPt", line), p.enTranspose},
        line);
}

template <class T, class U, class S>
void Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& a, const LocalTensor<S>& b, const MmadParams& p,
          int line = __builtin_LINE())
{
    using tile_sim::checked;
    tile_sim::mmad(dst.operand(), a.operand(), b.operand(),
                   {checked(p.m, 0, 4095, "MmadParams.m", line), checked(p.n, 0, 4095, "MmadParams.n", line),
                    checked(p.k, 0, 4095, "MmadParams.k", line), checked(p.unitFlag, 0, 3, "MmadParams.unitFlag", line),
                    p.cmatrixSource, p.cmatrixInitVal && !p.isBias, p.kDirectionAlign},
                   line);
}

// With a bias, the sums start at the bias of their column, from the bias table.
template <class T, class U, class S, class V>
void Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& a, const LocalTensor<S>& b, const LocalTensor<V>& bias,
          const MmadParams& p, int line = __builtin_LINE())
{
    using tile_sim::checked;
    tile_sim::MmadShape shape{checked(p.m, 0, 4095, "MmadParams.m", line), checked(p.n, 0, 4095, "MmadParams.n", line),
                              checked(p.k, 0, 4095, "MmadParams.k", line), checked(p.unitFlag, 0, 3, "MmadParams.unitFlag", line),
                              true, false, p.kDirectionAlign};
    shape.has_bias = true, shape.bias = bias.operand();
    tile_sim::mmad(dst.operand(), a.operand(), b.operand(), shape, line);
}

template <class T>
struct InitConstValueParams {
    Field repeatTimes, blockNum, dstGap;
    T initValue = 0;
    InitConstValueParams() = default;
    InitConstValueParams(Field times, Field blocks, Field gap, T value)
        : repeatTimes(times), blockNum(blocks), dstGap(gap), initValue(value)
    {
    }
    InitConstValueParams(Field times, T value) : repeatTimes(times), initValue(value) {}
};

template <class T>
void Fill(const LocalTensor<T>& dst, const InitConstValueParams<T>& p, int line = __builtin_LINE())
{
    using tile_sim::checked;
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Fill takes 16-bit and 32-bit elements");
    tile_sim::fill(dst.operand(),
                   {checked(p.repeatTimes, 0, 32767, "InitConstValueParams.repeatTimes", line),
                    checked(p.blockNum, 0, 32767, "InitConstValueParams.blockNum", line),
                    checked(p.dstGap, 0, 32767, "InitConstValueParams.dstGap", line), tile_sim::to_bits(p.initValue)},
                   line);
}
template <class T>
void InitConstValue(const LocalTensor<T>& dst, const InitConstValueParams<T>& p, int line = __builtin_LINE())
{
    Fill(dst, p, line);
}

enum class HF32Mode { ENABLE, DISABLE };
enum class HF32TransMode { NEAREST_ZERO, NEAREST_EVEN };
inline void SetHF32Mode(HF32Mode mode) { tile_sim::set_hf32(mode == HF32Mode::ENABLE); }
inline void SetHF32Mode(bool on) { tile_sim::set_hf32(on); }
inline void SetHF32TransMode(HF32TransMode mode) { tile_sim::set_hf32_rounding(mode == HF32TransMode::NEAREST_ZERO); }
inline void SetHF32TransMode(bool toZero) { tile_sim::set_hf32_rounding(toZero); }

namespace detail
{

inline tile_sim::FixpipeShape fixpipe_shape(const FixpipeParamsV220& p, bool row_major, int line)
{
    using tile_sim::checked;
    return {checked(p.nSize, 0, 4095, "FixpipeParamsV220.nSize", line),
            checked(p.mSize, 0, row_major ? 8192 : 65535, "FixpipeParamsV220.mSize", line),
            checked(p.srcStride, 0, 65535, "FixpipeParamsV220.srcStride", line),
            checked(p.dstStride, 0, 4294967295, "FixpipeParamsV220.dstStride", line),
            checked(p.ndNum, 0, 65535, "FixpipeParamsV220.ndNum", line),
            checked(p.srcNdStride, 0, 512, "FixpipeParamsV220.srcNdStride", line),
            checked(p.dstNdStride, 0, 65535, "FixpipeParamsV220.dstNdStride", line),
            checked(p.unitFlag, 0, 3, "FixpipeParamsV220.unitFlag", line),
            int64_t(p.quantPre),
            p.reluEn,
            row_major,
            p.isChannelSplit,
            p.deqScalar};
}

template <class S>
tile_sim::FixpipeShape with_scales(tile_sim::FixpipeShape shape, const LocalTensor<S>& scales)
{
    static_assert(std::is_same_v<S, uint64_t>, "the table of scales has elements of uint64_t");
    shape.per_column = true, shape.scales = scales.operand();
    return shape;
}

}  // namespace detail

template <class T, class U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& p, int line = __builtin_LINE())
{
    static_assert(config.format != CO2Layout::COLUMN_MAJOR, "Fixpipe writes columns on 3510 only");
    tile_sim::fixpipe(dst.operand(), src.operand(), detail::fixpipe_shape(p, config.format == CO2Layout::ROW_MAJOR, line), line);
}

// L1 takes NZ only on 2201, whatever the configuration says.
template <class T, class U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& p, int line = __builtin_LINE())
{
    tile_sim::fixpipe(dst.operand(), src.operand(), detail::fixpipe_shape(p, false, line), line);
}

// With a scale for each column, in L1.
template <class T, class U, const FixpipeConfig& config = CFG_ROW_MAJOR, class S = uint64_t>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const LocalTensor<S>& scales, const FixpipeParamsV220& p,
             int line = __builtin_LINE())
{
    static_assert(config.format != CO2Layout::COLUMN_MAJOR, "Fixpipe writes columns on 3510 only");
    const auto shape = detail::fixpipe_shape(p, config.format == CO2Layout::ROW_MAJOR, line);
    tile_sim::fixpipe(dst.operand(), src.operand(), detail::with_scales(shape, scales), line);
}
template <class T, class U, const FixpipeConfig& config = CFG_ROW_MAJOR, class S = uint64_t>
void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const LocalTensor<S>& scales, const FixpipeParamsV220& p,
             int line = __builtin_LINE())
{
    tile_sim::fixpipe(dst.operand(), src.operand(), detail::with_scales(detail::fixpipe_shape(p, false, line), scales), line);
}

}  // namespace AscendC
