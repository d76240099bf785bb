// What the host side may ask of the high-level API: the sizes of the temporary buffers of the functions that are there (2201).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "../register/tilingdata_base.h"
#include "platform/platform_ascendc.h"
#include "tensor_shape.h"

namespace AscendC
{

namespace detail
{
// So many tensors of the source's size, or of 256 bytes at least; the least is that of 256 bytes.
inline void tmp_sizes(const TensorShape& shape, uint32_t type, uint32_t parts, uint32_t& most, uint32_t& least)
{
    least = parts * 256;
    most = std::max(least, parts * uint32_t(shape.GetShapeSize()) * type);
}
}  // namespace detail

inline void GetTanhTmpBufferFactorSize(uint32_t typeSize, uint32_t& maxLiveNodeCount, uint32_t& extraBuf)
{
    maxLiveNodeCount = typeSize == 4 ? 1 : 4, extraBuf = 0;
}
inline void GetErfTmpBufferFactorSize(uint32_t typeSize, uint32_t& maxLiveNodeCount, uint32_t& extraBuf)
{
    maxLiveNodeCount = typeSize == 4 ? 3 : 8, extraBuf = 0;
}
inline void GetLog2MaxMinTmpSize(const TensorShape& shape, uint32_t typeSize, bool, uint32_t& maxValue, uint32_t& minValue)
{
    maxValue = minValue = 0;
    if (typeSize == 2) detail::tmp_sizes(shape, 4, 1, maxValue, minValue);
}
inline void GetSwiGLUMaxMinTmpSize(const TensorShape& shape, uint32_t typeSize, uint32_t& maxValue, uint32_t& minValue, bool)
{
    maxValue = minValue = 0;
    if (typeSize == 2) detail::tmp_sizes(shape, 4, 3, maxValue, minValue);
}
// These need none.
#define TILE_SIM_NO_BUFFER(NAME)                                                                                   \
    inline void NAME(const TensorShape&, uint32_t, bool, uint32_t& maxValue, uint32_t& minValue)                   \
    {                                                                                                              \
        maxValue = minValue = 0;                                                                                   \
    }
TILE_SIM_NO_BUFFER(GetLogMaxMinTmpSize)
TILE_SIM_NO_BUFFER(GetLog10MaxMinTmpSize)
TILE_SIM_NO_BUFFER(GetClampMaxMinTmpSize)
TILE_SIM_NO_BUFFER(GetSiluTmpSize)
TILE_SIM_NO_BUFFER(GetSwishTmpSize)
#undef TILE_SIM_NO_BUFFER
inline void GetTanhMaxMinTmpSize(const TensorShape& shape, uint32_t typeSize, bool, uint32_t& maxValue, uint32_t& minValue)
{
    detail::tmp_sizes(shape, typeSize, typeSize == 4 ? 1 : 4, maxValue, minValue);
}
inline void GetErfMaxMinTmpSize(const TensorShape& shape, uint32_t typeSize, bool, uint32_t& maxValue, uint32_t& minValue)
{
    detail::tmp_sizes(shape, typeSize, typeSize == 4 ? 3 : 8, maxValue, minValue);
}
inline void GetSigmoidMaxMinTmpSize(const TensorShape& shape, uint32_t typeSize, bool, uint32_t& maxValue, uint32_t& minValue)
{
    detail::tmp_sizes(shape, typeSize, 1, maxValue, minValue);
}
inline void GetGeluMaxMinTmpSize(const TensorShape& shape, uint32_t, uint32_t& maxValue, uint32_t& minValue)
{
    detail::tmp_sizes(shape, 4, 3, maxValue, minValue);
}
inline uint32_t GetGeluMaxTmpSize(const TensorShape& shape, uint32_t typeSize)
{
    uint32_t most, least;
    GetGeluMaxMinTmpSize(shape, typeSize, most, least);
    return most;
}
inline uint32_t GetGeluMinTmpSize(const TensorShape&, uint32_t) { return 3 * 256; }

// Of columns to rows: blocks of 32 bytes, and rows that are no whole blocks once more; 8-bit elements lie in it as halves.
inline void GetBroadCastMaxMinTmpSize(const platform_ascendc::PlatformAscendC&, const TensorShape& srcShape, const TensorShape& dstShape,
                                      uint32_t typeSize, bool, uint32_t& maxValue, uint32_t& minValue)
{
    const auto up = [](int64_t size, int64_t to) { return (size + to - 1) / to * to; };
    const int64_t source = srcShape.GetShapeSize(), result = dstShape.GetShapeSize(), width = typeSize == 1 ? 2 : typeSize;
    const int64_t halves = typeSize == 1 ? (up(source, 16) + up(result, 16)) * 2 : 0, block = 32 / width;
    if (source == result || source == 1) {
        maxValue = minValue = uint32_t(typeSize == 1 ? halves + 32 : 0);
        return;
    }
    if (srcShape.GetDim(1) != 1) {
        maxValue = minValue = uint32_t(32 + halves);
        return;
    }
    const int64_t rows = dstShape.GetDim(0), whole = up(dstShape.GetDim(1), block), packed = whole != dstShape.GetDim(1);
    minValue = uint32_t((block * block + packed * block * whole) * width + halves);
    maxValue = uint32_t((up(rows, 8) * block + packed * rows * whole) * width + halves);
}

}  // namespace AscendC
