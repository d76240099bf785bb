// Copies between GM, L1 and UB.
#pragma once
#include <vector>

#include "../runtime/cube_interface.h"
#include "params.h"
#include "tensor.h"

namespace AscendC
{
namespace detail
{

inline tile_sim::Rows block_rows(const DataCopyParams& p, int line)
{
    const int64_t count = tile_sim::checked(p.blockCount, 0, 4095, "DataCopyParams.blockCount", line);
    const int64_t bytes = 32 * tile_sim::checked(p.blockLen, 0, 65535, "DataCopyParams.blockLen", line);
    return {count, bytes, bytes + 32 * tile_sim::checked(p.srcGap, 0, 65535, "DataCopyParams.srcGap", line),
            bytes + 32 * tile_sim::checked(p.dstGap, 0, 65535, "DataCopyParams.dstGap", line)};
}

// L1 to the bias table: lengths and gaps of the destination in 64 bytes (on 3510 32), gaps of the source in 32.
constexpr int64_t bias_unit = __NPU_ARCH__ == 3510 ? 32 : 64;
inline tile_sim::Rows bias_rows(const DataCopyParams& p, int line)
{
    const int64_t bytes = bias_unit * tile_sim::checked(p.blockLen, 0, 65535, "DataCopyParams.blockLen", line);
    return {tile_sim::checked(p.blockCount, 0, 4095, "DataCopyParams.blockCount", line), bytes,
            bytes + 32 * tile_sim::checked(p.srcGap, 0, 65535, "DataCopyParams.srcGap", line),
            bytes + bias_unit * tile_sim::checked(p.dstGap, 0, 65535, "DataCopyParams.dstGap", line)};
}

// L1 to the Fixpipe buffer: lengths in 128 bytes (on 3510 64), and both gaps from the start of one block to that of the next.
inline tile_sim::Rows scale_rows(const DataCopyParams& p, int line)
{
    return {tile_sim::checked(p.blockCount, 0, 4095, "DataCopyParams.blockCount", line),
            (__NPU_ARCH__ == 3510 ? 64 : 128) * tile_sim::checked(p.blockLen, 0, 65535, "DataCopyParams.blockLen", line),
            32 * tile_sim::checked(p.srcGap, 0, 65535, "DataCopyParams.srcGap", line),
            128 * tile_sim::checked(p.dstGap, 0, 65535, "DataCopyParams.dstGap", line)};
}

inline bool is_table(tile_sim::Space space) { return space == tile_sim::Space::BT || space == tile_sim::Space::FB; }

template <class T>
tile_sim::Rows one_row(int64_t count, int line)
{
    const int64_t bytes = tile_sim::bytes_of<T>(count);
    if (bytes % 32)
        tile_sim::misuse("misaligned", line,
                         "DataCopy moves whole 32-byte blocks, and %lld elements are %lld bytes: use DataCopyPad",
                         (long long)count, (long long)bytes);
    return {1, bytes, bytes, bytes};
}

// Rows of any length in GM against rows that start at multiples of 32 bytes in UB. Gaps: bytes in GM, blocks in UB.
template <class T>
tile_sim::Rows byte_rows(const DataCopyExtParams& p, bool into_ub, int64_t padding, int line)
{
    const int64_t count = tile_sim::checked(p.blockCount, 0, 4095, "DataCopyExtParams.blockCount", line);
    const int64_t bytes = tile_sim::checked(p.blockLen, 0, 2097151, "DataCopyExtParams.blockLen", line);
    const bool gaps = count > 1;  // one row has none, whatever its strides say
    const int64_t src = gaps ? tile_sim::checked(p.srcStride, 0, 4294967295, "DataCopyExtParams.srcStride", line) : 0;
    const int64_t dst = gaps ? tile_sim::checked(p.dstStride, 0, 4294967295, "DataCopyExtParams.dstStride", line) : 0;
    if (bytes % int64_t(sizeof(T)))
        tile_sim::misuse("field", line, "DataCopyExtParams.blockLen (%lld bytes) is no multiple of the element's size",
                         (long long)bytes);
    const int64_t row = (bytes + padding + 31) / 32 * 32;
    return into_ub ? tile_sim::Rows{count, bytes, bytes + src, row + 32 * dst}
                   : tile_sim::Rows{count, bytes, row + 32 * src, bytes + dst};
}

}  // namespace detail

template <class T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, uint32_t count, Line line = Line(__builtin_LINE()))
{
    tile_sim::copy_rows("DataCopy", dst.operand(), src.operand(), detail::one_row<T>(count, line), line);
}

template <class T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count, Line line = Line(__builtin_LINE()))
{
    tile_sim::copy_rows("DataCopy", dst.operand(), src.operand(), detail::one_row<T>(count, line), line);
}

template <class T>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count, Line line = Line(__builtin_LINE()))
{
    if (detail::is_table(dst.operand().space)) {
        const int64_t unit = dst.operand().space == tile_sim::Space::BT ? 64 : 32,
                      bytes = tile_sim::bytes_of<T>(count) / unit * unit;
        return tile_sim::copy_table(dst.operand(), src.operand(), {1, bytes, bytes, bytes}, line);
    }
    tile_sim::copy_rows("DataCopy", dst.operand(), src.operand(), detail::one_row<T>(count, line), line);
}

template <class T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& p, Line line = Line(__builtin_LINE()))
{
    tile_sim::copy_rows("DataCopy", dst.operand(), src.operand(), detail::block_rows(p, line), line);
}

template <class T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p, Line line = Line(__builtin_LINE()))
{
    tile_sim::copy_rows("DataCopy", dst.operand(), src.operand(), detail::block_rows(p, line), line);
}

template <class T>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p, Line line = Line(__builtin_LINE()))
{
    if (detail::is_table(dst.operand().space))
        return tile_sim::copy_table(
            dst.operand(), src.operand(),
            dst.operand().space == tile_sim::Space::BT ? detail::bias_rows(p, line) : detail::scale_rows(p, line), line);
    tile_sim::copy_rows("DataCopy", dst.operand(), src.operand(), detail::block_rows(p, line), line);
}

// L1 to the bias table, from half to float: lengths are those of the source (CATLASS copies n halves as n / 32 lengths).
template <class T, class U, class = std::enable_if_t<!std::is_same_v<T, U>>>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const DataCopyParams& p, Line line = Line(__builtin_LINE()))
{
    static_assert(std::is_same_v<T, float> && std::is_same_v<U, half>, "DataCopy casts half to float on the way to the bias table");
    if (dst.operand().space != tile_sim::Space::BT)
        tile_sim::misuse("wrong_memory", line, "DataCopy casts half to float on the way to the bias table (C2) alone");
    tile_sim::Rows rows = detail::bias_rows(p, line);
    rows.dst_stride += rows.bytes;
    tile_sim::copy_table(dst.operand(), src.operand(), rows, line);
}

template <class T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Nd2NzParams& p, Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    tile_sim::copy_nd2nz(
        dst.operand(), src.operand(),
        {checked(p.ndNum, 0, 4095, "Nd2NzParams.ndNum", line), checked(p.nValue, 0, 16384, "Nd2NzParams.nValue", line),
         checked(p.dValue, 0, 65535, "Nd2NzParams.dValue", line),
         checked(p.srcNdMatrixStride, 0, 65535, "Nd2NzParams.srcNdMatrixStride", line),
         checked(p.srcDValue, 1, 65535, "Nd2NzParams.srcDValue", line),
         checked(p.dstNzC0Stride, 1, 16384, "Nd2NzParams.dstNzC0Stride", line),
         checked(p.dstNzNStride, 1, 16384, "Nd2NzParams.dstNzNStride", line),
         checked(p.dstNzMatrixStride, 0, 16384, "Nd2NzParams.dstNzMatrixStride", line)},
        line);
}

#if __NPU_ARCH__ == 3510
// Columns become rows of NZ.
template <class T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Dn2NzParams& p, Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    tile_sim::copy_dn2nz(
        dst.operand(), src.operand(),
        {checked(p.dnNum, 0, 4095, "Dn2NzParams.dnNum", line), checked(p.nValue, 0, 16384, "Dn2NzParams.nValue", line),
         checked(p.dValue, 0, 2097151, "Dn2NzParams.dValue", line),
         checked(p.srcDnMatrixStride, 0, 1099511627775, "Dn2NzParams.srcDnMatrixStride", line),
         checked(p.srcDValue, 1, 1099511627775, "Dn2NzParams.srcDValue", line),
         checked(p.dstNzC0Stride, 1, 16384, "Dn2NzParams.dstNzC0Stride", line),
         checked(p.dstNzNStride, 1, 16384, "Dn2NzParams.dstNzNStride", line),
         checked(p.dstNzMatrixStride, 0, 16384, "Dn2NzParams.dstNzMatrixStride", line)},
        line);
}
#endif

// NZ in UB to rows in GM: the vendor makes it of one copy for each block of 16 columns, and so do we.
template <class T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const Nz2NdParamsFull& p, Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "DataCopy from NZ to rows takes 16-bit and 32-bit elements");
    const int64_t matrices = checked(p.ndNum, 0, 4095, "Nz2NdParamsFull.ndNum", line);
    const int64_t rows = checked(p.nValue, 1, 8192, "Nz2NdParamsFull.nValue", line);
    const int64_t cols = checked(p.dValue, 1, 8192, "Nz2NdParamsFull.dValue", line);
    const int64_t src_matrix = 256 * checked(p.srcNdMatrixStride, 1, 512, "Nz2NdParamsFull.srcNdMatrixStride", line);
    const int64_t src_block = 16 * checked(p.srcNStride, 0, 4096, "Nz2NdParamsFull.srcNStride", line);
    const int64_t dst_row = checked(p.dstDStride, 1, 65535, "Nz2NdParamsFull.dstDStride", line);
    const int64_t dst_matrix = checked(p.dstNdMatrixStride, 1, 65535, "Nz2NdParamsFull.dstNdMatrixStride", line);
    const int64_t run = 16 * int64_t(sizeof(T));
    if (cols % 16)
        tile_sim::misuse("field", line, "Nz2NdParamsFull.dValue is %lld, and must be a multiple of 16", (long long)cols);
    for (int64_t m = 0; m < matrices; ++m)
        for (int64_t block = 0; block < cols / 16; ++block)
            tile_sim::copy_rows("DataCopy", dst[m * dst_matrix + block * 16].operand(),
                                src[m * src_matrix + block * src_block].operand(), {rows, run, run, dst_row * int64_t(sizeof(T))},
                                line);
}

template <class T>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& p,
                 const DataCopyPadExtParams<T>& pad, Line line = Line(__builtin_LINE()))
{
    const int64_t most = 32 / int64_t(sizeof(T));
    const tile_sim::Padding padding{pad.isPad,
                                    tile_sim::checked(pad.leftPadding, 0, most, "DataCopyPadExtParams.leftPadding", line),
                                    tile_sim::checked(pad.rightPadding, 0, most, "DataCopyPadExtParams.rightPadding", line),
                                    tile_sim::to_bits(pad.paddingValue)};
    const int64_t extra = (padding.left + padding.right) * int64_t(sizeof(T));
    tile_sim::copy_pad_in(dst.operand(), src.operand(), detail::byte_rows<T>(p, true, extra, line), padding, line);
}

template <class T>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& p,
                 Line line = Line(__builtin_LINE()))
{
    tile_sim::copy_rows("DataCopyPad", dst.operand(), src.operand(), detail::byte_rows<T>(p, false, 0, line), line);
}

struct DataCopyPadParams {
    bool isPad = false;
    Field leftPadding, rightPadding;
    uint64_t paddingValue = 0;
    DataCopyPadParams() = default;
    DataCopyPadParams(bool pad, Field left, Field right, uint64_t value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value)
    {
    }
};

// The older forms, with 16-bit lengths.
template <class T>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& p, const DataCopyPadParams& pad,
                 Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    DataCopyPadExtParams<T> padding(pad.isPad, pad.leftPadding, pad.rightPadding, T{});
    std::memcpy(&padding.paddingValue, &pad.paddingValue, sizeof(T));
    DataCopyPad(dst, src,
                DataCopyExtParams(p.blockCount, checked(p.blockLen, 0, 65535, "DataCopyParams.blockLen", line),
                                  checked(p.srcGap, 0, 65535, "DataCopyParams.srcGap", line),
                                  checked(p.dstGap, 0, 65535, "DataCopyParams.dstGap", line), 0),
                padding, line);
}
template <class T>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p,
                 Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    DataCopyPad(dst, src,
                DataCopyExtParams(p.blockCount, checked(p.blockLen, 0, 65535, "DataCopyParams.blockLen", line),
                                  checked(p.srcGap, 0, 65535, "DataCopyParams.srcGap", line),
                                  checked(p.dstGap, 0, 65535, "DataCopyParams.dstGap", line), 0),
                line);
}

struct SliceInfo {
    uint32_t startIndex = 0, endIndex = ONE_BLK_SIZE - 1, stride = 0, burstLen = ONE_BLK_SIZE, shapeValue = 0;
    SliceInfo() = default;
    SliceInfo(uint32_t start, uint32_t end, uint32_t gap, uint32_t burst, uint32_t shape = 0)
        : startIndex(start), endIndex(end), stride(gap), burstLen(burst), shapeValue(shape)
    {
    }
};

namespace detail
{

// Where the slices of a tensor start, in elements: the innermost dimension moves in runs of `run` elements, the others one by
// one, each followed by a gap of `stride`.
inline void slice_starts(const SliceInfo* slices, uint32_t dims, int64_t run, std::vector<int64_t>& starts)
{
    starts.assign(1, 0);
    int64_t pitch = 1;
    for (uint32_t d = 0; d < dims; ++d) {
        const SliceInfo& s = slices[d];
        std::vector<int64_t> longer;
        for (int64_t i = s.startIndex; i <= int64_t(s.endIndex); i += (d ? 1 : run) + int64_t(s.stride))
            for (int64_t start : starts) longer.push_back(start + i * pitch);
        starts = longer;
        pitch *= s.shapeValue;
    }
}

template <class T, class Dst, class Src>
void copy_slices(const Dst& dst, const Src& src, const SliceInfo* to, const SliceInfo* from, uint32_t dims, int line)
{
    tile_sim::checked(dims, 1, K_MAX_DIM, "dimValue", line);
    const int64_t run = int64_t(from[0].burstLen) * 32 / int64_t(sizeof(T));
    if (!run || to[0].burstLen != from[0].burstLen)
        tile_sim::misuse("field", line, "SliceInfo.burstLen of the innermost dimension must be one and the same, and not 0");
    std::vector<int64_t> starts, targets;
    slice_starts(from, dims, run, starts), slice_starts(to, dims, run, targets);
    if (starts.size() != targets.size())
        tile_sim::misuse("field", line, "the source has %zu slices, and the destination %zu", starts.size(), targets.size());
    for (size_t i = 0; i < starts.size(); ++i)
        tile_sim::copy_rows("DataCopy", dst[targets[i]].operand(), src[starts[i]].operand(),
                            {1, run * int64_t(sizeof(T)), run * int64_t(sizeof(T)), run * int64_t(sizeof(T))}, line);
}

}  // namespace detail

template <class T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const SliceInfo dstSliceInfo[],
              const SliceInfo srcSliceInfo[], uint32_t dimValue = 1, Line line = Line(__builtin_LINE()))
{
    detail::copy_slices<T>(dst, src, dstSliceInfo, srcSliceInfo, dimValue, line);
}
template <class T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const SliceInfo dstSliceInfo[],
              const SliceInfo srcSliceInfo[], uint32_t dimValue = 1, Line line = Line(__builtin_LINE()))
{
    detail::copy_slices<T>(dst, src, dstSliceInfo, srcSliceInfo, dimValue, line);
}

}  // namespace AscendC
