// Reductions: of rounds of 256 bytes, of 32-byte blocks, of neighbours, and of everything.
#pragma once
#include "mask.h"

namespace AscendC
{
namespace detail
{

template <class T>
tile_sim::VectorSide reduce_source(const LocalTensor<T>& src, int64_t block, int64_t repeat, int line)
{
    static_assert(is_number<T>, "reductions take half and float on 2201");
    return {
        src.operand(),
        {tile_sim::checked(block, 0, 65535, "srcBlkStride", line), tile_sim::checked(repeat, 0, 65535, "srcRepStride", line)}};
}

template <bool set, class T>
void whole(const char* name, tile_sim::ReduceOp op, const LocalTensor<T>& dst, const LocalTensor<T>& src, Mask mask,
           int64_t repeat, int64_t dstRep, int64_t srcBlk, int64_t srcRep, tile_sim::Order order, int line)
{
    tile_sim::reduce_whole(name, op, dst.operand(), reduce_source(src, srcBlk, srcRep, line),
                           tile_sim::checked(dstRep, 0, 65535, "dstRepStride", line), mask.lanes<set>(repeat, sizeof(T), line),
                           order, line);
}

template <bool set, class T>
void block(const char* name, tile_sim::ReduceOp op, const LocalTensor<T>& dst, const LocalTensor<T>& src, Mask mask,
           int64_t repeat, int64_t dstRep, int64_t srcBlk, int64_t srcRep, int line)
{
    tile_sim::reduce_block(name, op, dst.operand(), reduce_source(src, srcBlk, srcRep, line),
                           tile_sim::checked(dstRep, 0, 65535, "dstRepStride", line), mask.lanes<set>(repeat, sizeof(T), line),
                           line);
}

template <bool set, class T>
void pair(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src, Mask mask, int64_t repeat, int64_t dstRep,
          int64_t srcBlk, int64_t srcRep, int line)
{
    tile_sim::reduce_pair(name, dst.operand(), reduce_source(src, srcBlk, srcRep, line),
                          tile_sim::checked(dstRep, 0, 65535, "dstRepStride", line), mask.lanes<set>(repeat, sizeof(T), line),
                          line);
}

}  // namespace detail

template <class T, bool isSetMask = true>
void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, detail::Mask mask, int64_t repeatTime,
                    int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride, Line line = Line(__builtin_LINE()))
{
    detail::whole<isSetMask>("WholeReduceSum", tile_sim::ReduceOp::sum, dst, src, mask, repeatTime, dstRepStride, srcBlkStride,
                             srcRepStride, tile_sim::Order::only_value, line);
}

// The same in another order. A sum is one element, so that its blocks have no stride.
template <class T, bool isSetMask = true>
void RepeatReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t repeatTime, int64_t elemsInOneRepeat, int64_t,
                     int64_t srcBlkStride, int64_t dstRepStride, int64_t srcRepStride, Line line = Line(__builtin_LINE()))
{
    detail::whole<isSetMask>("RepeatReduceSum", tile_sim::ReduceOp::sum, dst, src, elemsInOneRepeat, repeatTime, dstRepStride,
                             srcBlkStride, srcRepStride, tile_sim::Order::only_value, line);
}

#define TILE_SIM_REDUCE(NAME, OP)                                                                                            \
    template <class T, bool isSetMask = true>                                                                                \
    void WholeReduce##NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, detail::Mask mask, int64_t repeatTime,      \
                           int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride,                                 \
                           ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, Line line = Line(__builtin_LINE()))                  \
    {                                                                                                                        \
        detail::whole<isSetMask>("WholeReduce" #NAME, tile_sim::ReduceOp::OP, dst, src, mask, repeatTime, dstRepStride,      \
                                 srcBlkStride, srcRepStride, tile_sim::Order(order), line);                                  \
    }                                                                                                                        \
    template <class T>                                                                                                       \
    void Reduce##NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& scratch, int64_t count,    \
                      bool index = false, Line line = Line(__builtin_LINE()))                                                       \
    {                                                                                                                        \
        static_assert(detail::is_number<T>, "reductions take half and float on 2201");                                       \
        tile_sim::reduce_all("Reduce" #NAME, tile_sim::ReduceOp::OP, dst.operand(), {src.operand(), {}}, scratch.operand(),  \
                             index, detail::first<T>(count, line), line);                                                    \
    }                                                                                                                        \
    template <class T>                                                                                                       \
    void Reduce##NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& scratch, detail::Mask mask, \
                      int64_t repeatTime, int64_t srcRepStride, bool index = false, Line line = Line(__builtin_LINE()))             \
    {                                                                                                                        \
        tile_sim::reduce_all("Reduce" #NAME, tile_sim::ReduceOp::OP, dst.operand(),                                          \
                             detail::reduce_source(src, 1, srcRepStride, line), scratch.operand(), index,                    \
                             mask.lanes<true>(repeatTime, sizeof(T), line, 1 << 24), line);                                           \
    }
TILE_SIM_REDUCE(Max, max)
TILE_SIM_REDUCE(Min, min)
#undef TILE_SIM_REDUCE

template <class T, bool isSetMask = true>
void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& scratch, int64_t count,
               Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_number<T>, "reductions take half and float on 2201");
    tile_sim::reduce_all("ReduceSum", tile_sim::ReduceOp::sum, dst.operand(), {src.operand(), {}}, scratch.operand(), false,
                         detail::first<T, isSetMask>(count, line), line);
}

template <class T>
void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& scratch, detail::Mask mask,
               int64_t repeatTime, int64_t srcRepStride, Line line = Line(__builtin_LINE()))
{
    tile_sim::reduce_all("ReduceSum", tile_sim::ReduceOp::sum, dst.operand(), detail::reduce_source(src, 1, srcRepStride, line),
                         scratch.operand(), false, mask.lanes<true>(repeatTime, sizeof(T), line, 1 << 24), line);
}

// The older names take the repeat before the mask; the newer ones (ReduceRepeat, ReduceDataBlock) after it.
#define TILE_SIM_BLOCK_REDUCE(NAME, OP)                                                                                        \
    template <class T, bool isSetMask = true>                                                                                  \
    void BlockReduce##NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t repeat, detail::Mask mask,            \
                           int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride, Line line = Line(__builtin_LINE()))      \
    {                                                                                                                          \
        detail::block<isSetMask>("BlockReduce" #NAME, tile_sim::ReduceOp::OP, dst, src, mask, repeat, dstRepStride,            \
                                 srcBlkStride, srcRepStride, line);                                                            \
    }
TILE_SIM_BLOCK_REDUCE(Sum, sum)
TILE_SIM_BLOCK_REDUCE(Max, max)
TILE_SIM_BLOCK_REDUCE(Min, min)
#undef TILE_SIM_BLOCK_REDUCE

template <class T, bool isSetMask = true>
void PairReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t repeat, detail::Mask mask, int64_t dstRepStride,
                   int64_t srcBlkStride, int64_t srcRepStride, Line line = Line(__builtin_LINE()))
{
    detail::pair<isSetMask>("PairReduceSum", dst, src, mask, repeat, dstRepStride, srcBlkStride, srcRepStride, line);
}

template <ReduceType type, class T, class U, bool isSetMask = true>
void ReduceRepeat(const LocalTensor<T>& dst, const LocalTensor<U>& src, detail::Mask mask, int64_t repeatTime,
                  int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride,
                  ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, Line line = Line(__builtin_LINE()))
{
    static_assert(std::is_same_v<T, U>, "ReduceRepeat keeps its element type on 2201");
    detail::whole<isSetMask>("ReduceRepeat", tile_sim::ReduceOp(type), dst, src, mask, repeatTime, dstRepStride, srcBlkStride,
                             srcRepStride, type == ReduceType::SUM ? tile_sim::Order::only_value : tile_sim::Order(order), line);
}

template <ReduceType type, class T, class U, bool isSetMask = true>
void ReduceDataBlock(const LocalTensor<T>& dst, const LocalTensor<U>& src, detail::Mask mask, int64_t repeatTime,
                     int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride, Line line = Line(__builtin_LINE()))
{
    static_assert(std::is_same_v<T, U>, "ReduceDataBlock keeps its element type on 2201");
    detail::block<isSetMask>("ReduceDataBlock", tile_sim::ReduceOp(type), dst, src, mask, repeatTime, dstRepStride, srcBlkStride,
                             srcRepStride, line);
}

template <ReduceType type, class T, class U, bool isSetMask = true>
void ReducePairElem(const LocalTensor<T>& dst, const LocalTensor<U>& src, detail::Mask mask, int64_t repeatTime,
                    int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride, Line line = Line(__builtin_LINE()))
{
    static_assert(std::is_same_v<T, U>, "ReducePairElem keeps its element type on 2201");
    static_assert(type == ReduceType::SUM, "ReducePairElem adds only");
    detail::pair<isSetMask>("ReducePairElem", dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride, line);
}

// What the last ReduceRepeat, ReduceMax or ReduceMin found, and what the last ReduceSum of the first elements gave.
template <class T>
void GetReduceRepeatMaxMinSpr(T& value, T& index, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_number<T>, "reductions take half and float on 2201");
    const uint64_t found = tile_sim::reduced_extreme(tile_sim::TypeOf<T>::value, line);
    const uint32_t low = uint32_t(found), high = uint32_t(found >> 32);
    std::memcpy(&value, &low, sizeof(T));
    std::memcpy(&index, &high, sizeof(T));
}
template <class T>
void GetReduceMaxMinCount(T& value, T& index, Line line = Line(__builtin_LINE()))
{
    GetReduceRepeatMaxMinSpr(value, index, line);
}
template <class T>
T GetReduceRepeatSumSpr(Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_number<T>, "reductions take half and float on 2201");
    const uint64_t found = tile_sim::reduced_sum(tile_sim::TypeOf<T>::value, line);
    T value;
    std::memcpy(&value, &found, sizeof(T));
    return value;
}
template <class T>
T GetAccVal(Line line = Line(__builtin_LINE()))
{
    return GetReduceRepeatSumSpr<T>(line);
}

}  // namespace AscendC
