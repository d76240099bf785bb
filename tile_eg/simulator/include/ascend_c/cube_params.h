// The parameter structures of the cube's instructions, with the vendor's field names, orders and defaults.
#pragma once
#include "types.h"

namespace AscendC
{

using tile_sim::Field;

struct LoadData2DParams {
    Field startIndex, repeatTimes, srcStride, sid, dstGap;
    bool ifTranspose = false;
    Field addrMode;
    LoadData2DParams() = default;
    LoadData2DParams(Field start, Field repeat, Field src, Field id, Field gap, bool transpose, Field mode)
        : startIndex(start), repeatTimes(repeat), srcStride(src), sid(id), dstGap(gap), ifTranspose(transpose), addrMode(mode)
    {
    }
};
using LoadData2dParams = LoadData2DParams;

struct LoadData2DParamsV2 {
    Field mStartPosition, kStartPosition, mStep, kStep, srcStride, dstStride;
    bool ifTranspose = false;
    Field sid;
    LoadData2DParamsV2() = default;
    LoadData2DParamsV2(Field mStart, Field kStart, Field mBlocks, Field kBlocks, Field src, Field dst, bool transpose, Field id)
        : mStartPosition(mStart),
          kStartPosition(kStart),
          mStep(mBlocks),
          kStep(kBlocks),
          srcStride(src),
          dstStride(dst),
          ifTranspose(transpose),
          sid(id)
    {
    }
};

#if __NPU_ARCH__ == 3510
struct LoadData2DMxParams {
    Field xStartPosition, yStartPosition, xStep, yStep, srcStride, dstStride;
    LoadData2DMxParams() = default;
    LoadData2DMxParams(Field xStart, Field yStart, Field x, Field y, Field src, Field dst)
        : xStartPosition(xStart), yStartPosition(yStart), xStep(x), yStep(y), srcStride(src), dstStride(dst)
    {
    }
};
#endif

struct LoadData2dTransposeParams {
    Field startIndex, repeatTimes, srcStride, dstGap, dstFracGap, addrMode;
    LoadData2dTransposeParams() = default;
    LoadData2dTransposeParams(Field start, Field repeat, Field src, Field gap, Field fractalGap, Field mode = 0)
        : startIndex(start), repeatTimes(repeat), srcStride(src), dstGap(gap), dstFracGap(fractalGap), addrMode(mode)
    {
    }
};

enum class FmatrixMode : uint8_t { FMATRIX_LEFT, FMATRIX_RIGHT };
constexpr int32_t PAD_SIZE = 4;

struct IsResetLoad3dConfig {
    bool isSetFMatrix = true, isSetPadding = true;
};
constexpr IsResetLoad3dConfig IS_RESER_LOAD3D_DEFAULT_CONFIG = {true, true};

struct LoadDataRepeatParam {
    Field repeatStride, repeatTime = 1, repeatMode;
    LoadDataRepeatParam() = default;
    LoadDataRepeatParam(Field stride, Field time, Field mode) : repeatStride(stride), repeatTime(time), repeatMode(mode) {}
};

template <class T>
struct LoadData3DParamsV2 {
    uint8_t padList[4] = {0, 0, 0, 0};
    Field l1H, l1W, channelSize, kExtension, mExtension, kStartPt, mStartPt;
    Field strideW = 1, strideH = 1, filterW = 1, filterH = 1, dilationFilterW = 1, dilationFilterH = 1;
    bool enTranspose = false, enSmallK = false;
    T padValue = 0;
    bool filterSizeW = false, filterSizeH = false, fMatrixCtrl = false;
    LoadData3DParamsV2() = default;
    LoadData3DParamsV2(const uint8_t* pads, Field height, Field width, Field channels, Field k, Field m, Field kStart,
                       Field mStart, Field stepW, Field stepH, Field kernelW, Field kernelH, Field dilationW, Field dilationH,
                       bool transpose, bool smallK, T pad, bool wideW = false, bool wideH = false, bool right = false)
        : padList{pads[0], pads[1], pads[2], pads[3]},
          l1H(height),
          l1W(width),
          channelSize(channels),
          kExtension(k),
          mExtension(m),
          kStartPt(kStart),
          mStartPt(mStart),
          strideW(stepW),
          strideH(stepH),
          filterW(kernelW),
          filterH(kernelH),
          dilationFilterW(dilationW),
          dilationFilterH(dilationH),
          enTranspose(transpose),
          enSmallK(smallK),
          padValue(pad),
          filterSizeW(wideW),
          filterSizeH(wideH),
          fMatrixCtrl(right)
    {
    }
};

// Fields of 8 and 16 bits, put together: kernel and strides (filterConfig), the part that is taken (extConfig).
struct LoadData3DParamsV2Pro {
    Field channelSize;
    bool enTranspose = false, enSmallK = false, filterSizeW = false, filterSizeH = false, fMatrixCtrl = false;
    uint64_t extConfig = 0, filterConfig = 0x10101010101;
    LoadData3DParamsV2Pro() = default;
    LoadData3DParamsV2Pro(Field channels, bool transpose, bool smallK, bool wideW, bool wideH, bool right, uint64_t extension,
                          uint64_t filter)
        : channelSize(channels),
          enTranspose(transpose),
          enSmallK(smallK),
          filterSizeW(wideW),
          filterSizeH(wideH),
          fMatrixCtrl(right),
          extConfig(extension),
          filterConfig(filter)
    {
    }
};

struct MmadParams {
    Field m, n, k;
    bool isBias = false, kDirectionAlign = false, cmatrixSource = false, cmatrixInitVal = true;
    Field unitFlag;
    MmadParams() = default;
    MmadParams(Field rows, Field cols, Field depth, Field unit, bool bias, bool init)
        : m(rows), n(cols), k(depth), cmatrixSource(bias), cmatrixInitVal(init), unitFlag(unit)
    {
    }
    // The older form; offset, sparsity and Winograd have no effect on this architecture.
    MmadParams(Field rows, Field cols, Field depth, bool bias, Field, bool, bool, bool) : m(rows), n(cols), k(depth), isBias(bias)
    {
    }
};

struct FixpipeConfig {
    CO2Layout format;
    bool isToUB = false;
    constexpr FixpipeConfig(CO2Layout layout, bool to_ub = false) : format(layout), isToUB(to_ub) {}
};
constexpr FixpipeConfig CFG_NZ = {CO2Layout::NZ};
constexpr FixpipeConfig CFG_ROW_MAJOR = {CO2Layout::ROW_MAJOR};
constexpr FixpipeConfig CFG_COLUMN_MAJOR = {CO2Layout::COLUMN_MAJOR};
#if __NPU_ARCH__ == 3510

struct Nz2NdParams {
    Field ndNum = 1, srcNdStride, dstNdStride;
};
struct Nz2DnParams {
    Field dnNum = 1, srcNzMatrixStride, dstDnMatrixStride, srcNzC0Stride = 1;
};

template <CO2Layout format>
struct TransformParams {
    using PARAMS = uint8_t;
};
template <>
struct TransformParams<CO2Layout::ROW_MAJOR> {
    using PARAMS = Nz2NdParams;
};
template <>
struct TransformParams<CO2Layout::COLUMN_MAJOR> {
    using PARAMS = Nz2DnParams;
};

template <CO2Layout format = CO2Layout::ROW_MAJOR>
struct FixpipeParamsArch3510 {
    Field nSize, mSize, srcStride, dstStride;
    QuantMode_t quantPre = QuantMode_t::NoQuant;
    uint64_t deqScalar = 0;
    bool reluEn = false;
    Field unitFlag, dualDstCtl;
    bool subBlockId = false;
    typename TransformParams<format>::PARAMS params{};
    bool isChannelSplit = false;
    FixpipeParamsArch3510() = default;
    FixpipeParamsArch3510(Field n, Field m, Field src, Field dst) : nSize(n), mSize(m), srcStride(src), dstStride(dst) {}
};
template <CO2Layout format = CO2Layout::ROW_MAJOR>
using FixpipeParamsC310 = FixpipeParamsArch3510<format>;
#endif

struct FixpipeParamsV220 {
    Field nSize, mSize, srcStride, dstStride;
    QuantMode_t quantPre = QuantMode_t::NoQuant;
    uint64_t deqScalar = 0;
    Field ndNum = 1, srcNdStride, dstNdStride;
    bool reluEn = false;
    Field unitFlag;
    bool isChannelSplit = false;
    FixpipeParamsV220() = default;
    FixpipeParamsV220(Field n, Field m, Field src, Field dst, bool relu)
        : nSize(n), mSize(m), srcStride(src), dstStride(dst), reluEn(relu)
    {
    }
    FixpipeParamsV220(Field n, Field m, Field src, Field dst, bool relu, QuantMode_t quant, int64_t scale, Field matrices,
                      Field srcMatrix, Field dstMatrix, Field unit, bool split = false)
        : nSize(n),
          mSize(m),
          srcStride(src),
          dstStride(dst),
          quantPre(quant),
          deqScalar(scale),
          ndNum(matrices),
          srcNdStride(srcMatrix),
          dstNdStride(dstMatrix),
          reluEn(relu),
          unitFlag(unit),
          isChannelSplit(split)
    {
    }
};

struct DataCopyCO12DstParams {
    Field sid, nSize, mSize, dstStride, srcStride, unitFlag, clipReluPre, eltWiseOp;
    QuantMode_t quantPre = QuantMode_t::NoQuant;
    Field reluPre;
    bool channelSplit = false, nz2ndEn = false;
    DataCopyCO12DstParams() = default;
    DataCopyCO12DstParams(Field n, Field m, Field dst, Field src, QuantMode_t quant, Field relu, bool split, bool rows)
        : nSize(n), mSize(m), dstStride(dst), srcStride(src), quantPre(quant), reluPre(relu), channelSplit(split), nz2ndEn(rows)
    {
    }
};

}  // namespace AscendC
