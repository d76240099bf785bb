// Broadcast of the high-level API: a row or a column of UB to a matrix, as the vendor's public headers compose it for 2201
// (Broadcast.md).
#pragma once
#include "gather.h"
#include "scalar.h"
#include "steps.h"

namespace AscendC
{
namespace detail
{

// A Copy of `rows` rows, each of the first `lanes` of its source.
template <class T>
void copy_rows_of(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t rows, int64_t lanes, const CopyRepeatParams& strides,
                  int64_t dst_row, int64_t src_row, Line line)
{
    SetMaskCount();
    SetVectorMask<T, MaskMode::COUNTER>(int32_t(lanes), line);
    for (int64_t first = 0; first < rows; first += 255)
        Copy<T, false>(dst[first * dst_row], src[first * src_row], MASK_PLACEHOLDER, rows - first < 255 ? rows - first : 255, strides,
                       line);
    tile_sim::pipe_barrier(tile_sim::Pipe::V, line);
    SetMaskNorm();
    ResetMask();
}

// Columns to a matrix of `width` columns: each element becomes a block of 32 bytes, and a block a row. Rows that are no whole blocks
// are made whole in the temporary buffer, and their first elements are taken from there.
template <class T>
void broadcast_columns(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& tmp, int64_t rows, int64_t width,
                       Line line)
{
    constexpr int64_t block = 32 / int64_t(sizeof(T));
    const int64_t blocks = (width + block - 1) / block, whole = blocks * block;
    const bool packed = width % block != 0;
    const int64_t least = block * block + (packed ? block * whole : 0), at_a_time = int64_t(tmp.GetSize()) / least * block;
    if (at_a_time == 0)
        tile_sim::misuse("capacity", line,
                         "Broadcast has a temporary buffer of %lld bytes, and needs %lld at least for rows of %lld elements",
                         (long long)tmp.GetLength(), (long long)(least * int64_t(sizeof(T))), (long long)width);
    for (int64_t first = 0; first < rows; first += at_a_time) {
        const int64_t count = rows - first < at_a_time ? rows - first : at_a_time, rounds = (count + 7) / 8;
        for (int64_t round = 0; round < rounds; round += 254)
            Brcb(tmp[round * 8 * block], src[first + round * 8], rounds - round < 254 ? rounds - round : 254, BrcbRepeatParams(1, 8), line);
        tile_sim::pipe_barrier(tile_sim::Pipe::V, line);
        const LocalTensor<T> lines = packed ? tmp[count * block] : dst[first * width];
        copy_rows_of(lines, tmp, count, whole, CopyRepeatParams(1, 0, blocks, 1), whole, block, line);
        if (!packed) continue;
        uint64_t kept = 0;
        GatherMask(dst[first * width], lines, uint8_t(7), true, uint32_t(width), GatherMaskParams(1, count, blocks, 0), kept, line);
        tile_sim::pipe_barrier(tile_sim::Pipe::V, line);
    }
}

// A row to a matrix, by Or with a block of zeros: eight rows at a time, or of long rows one.
template <class T>
void broadcast_rows(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& tmp, int64_t rows, int64_t width,
                    Line line)
{
    const int64_t bytes = width * int64_t(sizeof(T)), blocks = bytes / 32;
    if (bytes % 32)
        tile_sim::misuse("misaligned", line, "Broadcast along axis 0 takes rows of whole 32 bytes, and these have %lld", (long long)bytes);
    if (tmp.GetLength() < 32)
        tile_sim::misuse("capacity", line, "Broadcast has a temporary buffer of %lld bytes, and needs 32 at least",
                         (long long)tmp.GetLength());
    const auto zeros = tmp.template ReinterpretCast<uint16_t>(), row = src.template ReinterpretCast<uint16_t>();
    Duplicate(zeros, uint16_t(0), 16, line);
    tile_sim::pipe_barrier(tile_sim::Pipe::V, line);
    const int64_t each = blocks < 255 ? 8 : 1;
    for (int64_t first = 0; first < rows; first += each) {
        const auto to = dst[first * width].template ReinterpretCast<uint16_t>();
        const int64_t count = rows - first < each ? rows - first : each;
        if (each == 8) {
            Or(to, row, zeros, count * 16, blocks, BinaryRepeatParams(blocks, 0, 0, 1, 1, 0), line);
        } else {
            SetMaskCount();
            SetVectorMask<uint16_t, MaskMode::COUNTER>(int32_t(bytes / 2), line);
            Or<uint16_t, false>(to, row, zeros, MASK_PLACEHOLDER, 1, BinaryRepeatParams(1, 1, 0, 8, 8, 0), line);
        }
    }
    tile_sim::pipe_barrier(tile_sim::Pipe::V, line);
    SetMaskNorm();
    ResetMask();
}

// One element to a matrix: the scalar unit reads it.
template <class T>
void broadcast_element(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t count, Line line)
{
    using tile_sim::Pipe;
    const auto order = [&](HardEvent event, Pipe from, Pipe to) {
        const int64_t id = TPipe::current() ? TPipe::current()->FetchEventID(event) : 0;
        tile_sim::set_flag(from, to, id, line);
        tile_sim::wait_flag(from, to, id, line);
    };
    order(HardEvent::V_S, Pipe::V, Pipe::S);
    const T element = src.GetValue(0, line);
    order(HardEvent::S_V, Pipe::S, Pipe::V);
    Duplicate(dst, element, int32_t(count), line);
    tile_sim::pipe_barrier(Pipe::V, line);
}

template <class T, int32_t dim, int32_t axis>
void broadcast_words(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t* dstShape, const uint32_t* srcShape,
                     const LocalTensor<T>& tmp, Line line)
{
    const int64_t rows = dim == 2 ? dstShape[0] : 1, width = dstShape[dim - 1];
    const int64_t given = int64_t(dim == 2 ? srcShape[0] : 1) * srcShape[dim - 1];
    if (given == rows * width)
        copy_rows_of(dst, src, 1, given, CopyRepeatParams(1, 1, 8, 8), given, given, line);
    else if (given == 1)
        broadcast_element(dst, src, rows * width, line);
    else if (axis == 1)
        broadcast_columns(dst, src, tmp, rows, width, line);
    else
        broadcast_rows(dst, src, tmp, rows, width, line);
}

// Elements of 8 bits go through halves, in the temporary buffer: the source, the result, then what the broadcast itself needs.
template <class T, int32_t dim, int32_t axis>
void broadcast_bytes(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t* dstShape, const uint32_t* srcShape,
                     const LocalTensor<uint8_t>& tmp, Line line)
{
    int64_t given = 1, wanted = 1;
    for (int32_t i = 0; i < dim; ++i) given *= srcShape[i], wanted *= dstShape[i];
    const int64_t to = whole_blocks(given * 2) / 2, rest = to + whole_blocks(wanted * 2) / 2;
    if (int64_t(tmp.GetSize()) < rest * 2)
        tile_sim::misuse("capacity", line, "Broadcast of 8-bit elements has a temporary buffer of %lld bytes, and needs over %lld",
                         (long long)tmp.GetSize(), (long long)(rest * 2));
    const LocalTensor<half> wide = tmp.ReinterpretCast<half>();
    Steps(given, line).cast(wide, src);
    broadcast_words<half, dim, axis>(wide[to], wide, dstShape, srcShape, wide[rest], line);
    Steps(wanted, line).cast(dst, wide[to]);
}

}  // namespace detail

template <class T, int32_t dim, int32_t axis, bool isReuseSource = false>
void Broadcast(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t* dstShape, const uint32_t* srcShape,
               const LocalTensor<uint8_t>& sharedTmpBuffer, Line line = Line(__builtin_LINE()))
{
    static_assert(dim == 1 || dim == 2, "Broadcast takes one or two dimensions on 2201");
    static_assert(axis == 0 || axis == 1, "Broadcast goes along axis 0 or 1");
    static_assert(sizeof(T) <= 4, "Broadcast takes elements of 8, 16 and 32 bits on 2201");
    if (tile_sim::is_aic()) return;
    for (int32_t i = 0; i < dim; ++i)
        if (srcShape[i] != dstShape[i] && (srcShape[i] != 1 || (i != axis && srcShape[axis % dim] != 1)))
            tile_sim::misuse("field", line, "Broadcast along axis %d: dimension %d has %u in the source and %u in the destination",
                             int(axis), int(i), srcShape[i], dstShape[i]);
    if constexpr (sizeof(T) == 1)
        detail::broadcast_bytes<T, dim, axis>(dst, src, dstShape, srcShape, sharedTmpBuffer, line);
    else
        detail::broadcast_words<T, dim, axis>(dst, src, dstShape, srcShape, sharedTmpBuffer.template ReinterpretCast<T>(), line);
}

template <class T, int32_t dim, int32_t axis, bool isReuseSource = false>
void Broadcast(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t* dstShape, const uint32_t* srcShape,
               Line line = Line(__builtin_LINE()))
{
    if (!tile_sim::is_aic())
        Broadcast<T, dim, axis, isReuseSource>(dst, src, dstShape, srcShape, detail::unused_buffer("Broadcast", line), line);
}

}  // namespace AscendC
