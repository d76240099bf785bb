// Sorting of whole lists, made of the hardware's sorts of 32 and merges of four (Sort.md, Concat.md, Extract.md). As in the vendor's
// library, what the parts need of one another is ordered inside.
#pragma once
#include "gather.h"
#include "sort.h"
#include "sync.h"
#include "vector.h"

namespace AscendC
{

// Bytes of a sorted list of so many elements: a record of score and index has 8, whatever the score's type.
template <class T>
uint32_t GetSortLen(uint32_t elemCount)
{
    return elemCount * 8;
}
template <class T>
uint32_t GetSortOffset(uint32_t elemOffset)
{
    return elemOffset * 8;
}

// On this architecture the scores are sorted where they lie.
template <class T>
void Concat(LocalTensor<T>& concat, const LocalTensor<T>& src, const LocalTensor<T>&, int32_t repeatTime,
            Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_number<T>, "Concat takes half and float");
    tile_sim::checked(repeatTime, 0, 255, "repeatTime", line);
    concat = src;
}

namespace detail
{

// Merges the sorted lists of `length` records, four at a time, from `src` to `dst`.
template <class T>
void merge_fours(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t length, int64_t total, int line)
{
    constexpr int64_t record = 8 / int64_t(sizeof(T));
    for (int64_t first = 0; first < total; first += 4 * length) {
        tile_sim::MergeShape shape;
        tile_sim::Operand lists[4];
        for (shape.lists = 0; shape.lists < 4 && first + shape.lists * length < total; ++shape.lists) {
            const int64_t start = first + shape.lists * length;
            lists[shape.lists] = src[start * record].operand();
            shape.lengths[shape.lists] = total - start < length ? total - start : length;
        }
        tile_sim::vector_merge(dst[first * record].operand(), lists, shape, line);
    }
    tile_sim::pipe_barrier(tile_sim::Pipe::V, line);
}

}  // namespace detail

// 32 elements at a time, or with isFullSort all of them; downwards.
template <class T, bool isFullSort>
void Sort(const LocalTensor<T>& dst, const LocalTensor<T>& concat, const LocalTensor<uint32_t>& index, LocalTensor<T>& tmp,
          int32_t repeatTime, Line line = Line(__builtin_LINE()))
{
    Sort32(dst, concat, index, repeatTime, line);
    const int64_t total = int64_t(repeatTime) * 32;
    if (!isFullSort || repeatTime <= 1) return;
    tile_sim::pipe_barrier(tile_sim::Pipe::V, line);
    for (int64_t length = 32; length < total; length *= 4) {
        detail::merge_fours(tmp, dst, length, total, line);
        const tile_sim::Rows all{1, total * 8, total * 8, total * 8};
        tile_sim::copy_rows("DataCopy", dst.operand(), tmp.operand(), all, line);
        tile_sim::pipe_barrier(tile_sim::Pipe::V, line);
    }
}

// The scores and the indices of 32 sorted records a round.
template <class T>
void Extract(const LocalTensor<T>& dstValue, const LocalTensor<uint32_t>& dstIndex, const LocalTensor<T>& sorted, int32_t repeatTime,
             Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_number<T>, "Extract takes half and float");
    uint64_t kept = 0;
    const GatherMaskParams rounds(1, repeatTime, 8, 0);
    GatherMask(dstValue, sorted, uint8_t(sizeof(T) == 4 ? 1 : 3), false, 0u, rounds, kept, line);
    GatherMask(dstIndex, sorted.template ReinterpretCast<uint32_t>(), uint8_t(2), false, 0u, rounds, kept, line);
    tile_sim::pipe_barrier(tile_sim::Pipe::V, line);
}

}  // namespace AscendC
