// L1 to L0A and L0B, the matrix product, and the way out of L0C.
#pragma once
#include "params.h"
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
            p.isChannelSplit};
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

}  // namespace AscendC
