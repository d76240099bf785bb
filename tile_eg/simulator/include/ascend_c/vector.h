// Vector instructions. Each comes in two forms: over the first `count` elements, and over `repeat` rounds of masked lanes.
#pragma once
#include "params.h"
#include "tensor.h"

namespace AscendC
{
namespace detail
{

// The mask argument: a number of lanes, or an array of bits.
class Mask
{
public:
    template <class N, class = std::enable_if_t<std::is_integral_v<N>>>
    Mask(N lanes) : lanes_(int64_t(lanes))
    {
    }
    Mask(const uint64_t* bits) : low_(bits[0]), high_(bits[1]) {}

    // Lanes of a round: 256 bytes of the widest operand, `width` bytes an element.
    tile_sim::Lanes lanes(int64_t repeat, int64_t width, int64_t most, int line) const
    {
        tile_sim::Lanes result;
        result.repeat = tile_sim::checked(repeat, 0, most, "repeatTime", line);
        result.mask[0] = low_, result.mask[1] = width == 2 ? high_ : 0;
        if (lanes_ >= 0) {
            tile_sim::checked(lanes_, 0, 256 / width, "mask", line);
            result.mask[0] = lanes_ >= 64 ? ~uint64_t(0) : (uint64_t(1) << lanes_) - 1;
            result.mask[1] = lanes_ >= 128 ? ~uint64_t(0) : lanes_ > 64 ? (uint64_t(1) << (lanes_ - 64)) - 1 : 0;
        }
        return result;
    }

private:
    int64_t lanes_ = -1;
    uint64_t low_ = 0, high_ = 0;
};

inline tile_sim::Lanes first(int64_t count, int line)
{
    tile_sim::Lanes lanes;
    lanes.count = tile_sim::checked(count, 0, 1 << 24, "count", line);
    return lanes;
}

inline tile_sim::Stride stride(const Field& block, const Field& repeat, int64_t most_block, const char* what, int line)
{
    return {tile_sim::checked(block, 0, most_block, what, line), tile_sim::checked(repeat, 0, 255, what, line)};
}

struct UnarySides {
    tile_sim::VectorSide dst, src;
};

template <class T, class U>
UnarySides sides(const LocalTensor<T>& dst, const LocalTensor<U>& src, const UnaryRepeatParams& p, int line)
{
    return {{dst.operand(), stride(p.dstBlkStride, p.dstRepStride, 65535, "UnaryRepeatParams.dst*Stride", line)},
            {src.operand(), stride(p.srcBlkStride, p.srcRepStride, 65535, "UnaryRepeatParams.src*Stride", line)}};
}

template <class T>
constexpr bool is_number = std::is_same_v<T, half> || std::is_same_v<T, float>;
template <class T>
constexpr bool is_arithmetic = is_number<T> || std::is_same_v<T, int16_t> || std::is_same_v<T, int32_t>;

}  // namespace detail

#define TILE_SIM_UNARY(NAME, OP, ALLOWED)                                                                                   \
    template <class T>                                                                                                      \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t count, int line = __builtin_LINE())             \
    {                                                                                                                       \
        static_assert(ALLOWED, #NAME " does not take this element type on 2201");                                           \
        tile_sim::vector_unary(#NAME, tile_sim::UnaryOp::OP, {dst.operand(), {}}, {src.operand(), {}},                      \
                               detail::first(count, line), line);                                                           \
    }                                                                                                                       \
    template <class T, bool isSetMask = true>                                                                               \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, detail::Mask mask, int64_t repeat,                      \
              const UnaryRepeatParams& p, int line = __builtin_LINE())                                                      \
    {                                                                                                                       \
        static_assert(ALLOWED, #NAME " does not take this element type on 2201");                                           \
        static_assert(isSetMask, "the simulator knows no mask that is set outside of the instruction");                     \
        const auto s = detail::sides(dst, src, p, line);                                                                    \
        tile_sim::vector_unary(#NAME, tile_sim::UnaryOp::OP, s.dst, s.src, mask.lanes(repeat, sizeof(T), 255, line), line); \
    }

TILE_SIM_UNARY(Exp, exp, detail::is_number<T>)
TILE_SIM_UNARY(Ln, ln, detail::is_number<T>)
TILE_SIM_UNARY(Abs, abs, detail::is_number<T>)
TILE_SIM_UNARY(Sqrt, sqrt, detail::is_number<T>)
TILE_SIM_UNARY(Rsqrt, rsqrt, detail::is_number<T>)
TILE_SIM_UNARY(Reciprocal, reciprocal, detail::is_number<T>)
TILE_SIM_UNARY(Relu, relu, (detail::is_number<T> || std::is_same_v<T, int32_t>))
TILE_SIM_UNARY(Not, bit_not, (std::is_same_v<T, int16_t> || std::is_same_v<T, uint16_t>))
#undef TILE_SIM_UNARY

#define TILE_SIM_BINARY(NAME, OP, ALLOWED)                                                                                    \
    template <class T>                                                                                                        \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, int64_t count,                     \
              int line = __builtin_LINE())                                                                                    \
    {                                                                                                                         \
        static_assert(ALLOWED, #NAME " does not take this element type on 2201");                                             \
        tile_sim::vector_binary(#NAME, tile_sim::BinaryOp::OP, {dst.operand(), {}}, {a.operand(), {}}, {b.operand(), {}},     \
                                detail::first(count, line), line);                                                            \
    }                                                                                                                         \
    template <class T, bool isSetMask = true>                                                                                 \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, detail::Mask mask, int64_t repeat, \
              const BinaryRepeatParams& p, int line = __builtin_LINE())                                                       \
    {                                                                                                                         \
        static_assert(ALLOWED, #NAME " does not take this element type on 2201");                                             \
        static_assert(isSetMask, "the simulator knows no mask that is set outside of the instruction");                       \
        tile_sim::vector_binary(                                                                                              \
            #NAME, tile_sim::BinaryOp::OP,                                                                                    \
            {dst.operand(), detail::stride(p.dstBlkStride, p.dstRepStride, 255, "BinaryRepeatParams.dst*Stride", line)},      \
            {a.operand(), detail::stride(p.src0BlkStride, p.src0RepStride, 255, "BinaryRepeatParams.src0*Stride", line)},     \
            {b.operand(), detail::stride(p.src1BlkStride, p.src1RepStride, 255, "BinaryRepeatParams.src1*Stride", line)},     \
            mask.lanes(repeat, sizeof(T), 255, line), line);                                                                  \
    }

TILE_SIM_BINARY(Add, add, detail::is_arithmetic<T>)
TILE_SIM_BINARY(Sub, sub, detail::is_arithmetic<T>)
TILE_SIM_BINARY(Mul, mul, detail::is_arithmetic<T>)
TILE_SIM_BINARY(Max, max, detail::is_arithmetic<T>)
TILE_SIM_BINARY(Min, min, detail::is_arithmetic<T>)
TILE_SIM_BINARY(Div, div, detail::is_number<T>)
TILE_SIM_BINARY(And, bit_and, (std::is_same_v<T, int16_t> || std::is_same_v<T, uint16_t>))
TILE_SIM_BINARY(Or, bit_or, (std::is_same_v<T, int16_t> || std::is_same_v<T, uint16_t>))
TILE_SIM_BINARY(MulAddDst, mul_add_dst, detail::is_number<T>)
#undef TILE_SIM_BINARY

#define TILE_SIM_SCALAR(NAME, OP, ALLOWED)                                                                                       \
    template <class T, bool isSetMask = true>                                                                                    \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar, int64_t count, int line = __builtin_LINE()) \
    {                                                                                                                            \
        static_assert(ALLOWED, #NAME " does not take this element type on 2201");                                                \
        tile_sim::vector_scalar(#NAME, tile_sim::ScalarOp::OP, {dst.operand(), {}}, {src.operand(), {}}, double(scalar),         \
                                detail::first(count, line), line);                                                               \
    }                                                                                                                            \
    template <class T, bool isSetMask = true>                                                                                    \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar, detail::Mask mask, int64_t repeat,          \
              const UnaryRepeatParams& p, int line = __builtin_LINE())                                                           \
    {                                                                                                                            \
        static_assert(ALLOWED, #NAME " does not take this element type on 2201");                                                \
        static_assert(isSetMask, "the simulator knows no mask that is set outside of the instruction");                          \
        const auto s = detail::sides(dst, src, p, line);                                                                         \
        tile_sim::vector_scalar(#NAME, tile_sim::ScalarOp::OP, s.dst, s.src, double(scalar),                                     \
                                mask.lanes(repeat, sizeof(T), 255, line), line);                                                 \
    }

TILE_SIM_SCALAR(Adds, adds, detail::is_arithmetic<T>)
TILE_SIM_SCALAR(Muls, muls, detail::is_arithmetic<T>)
TILE_SIM_SCALAR(Maxs, maxs, detail::is_arithmetic<T>)
TILE_SIM_SCALAR(Mins, mins, detail::is_arithmetic<T>)
TILE_SIM_SCALAR(LeakyRelu, leaky_relu, detail::is_number<T>)
#undef TILE_SIM_SCALAR

template <class T, class U>
void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalar, int64_t count, int line = __builtin_LINE())
{
    static_assert(detail::is_number<T> && (std::is_same_v<T, U> || std::is_same_v<U, half>),
                  "Axpy does not take these element types");
    tile_sim::vector_scalar("Axpy", tile_sim::ScalarOp::axpy, {dst.operand(), {}}, {src.operand(), {}}, double(scalar),
                            detail::first(count, line), line);
}

template <class T, class U, bool isSetMask = true>
void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalar, detail::Mask mask, int64_t repeat,
          const UnaryRepeatParams& p, int line = __builtin_LINE())
{
    static_assert(detail::is_number<T> && (std::is_same_v<T, U> || std::is_same_v<U, half>),
                  "Axpy does not take these element types");
    const auto s = detail::sides(dst, src, p, line);
    tile_sim::vector_scalar("Axpy", tile_sim::ScalarOp::axpy, s.dst, s.src, double(scalar),
                            mask.lanes(repeat, sizeof(T), 255, line), line);
}

template <class T>
void Duplicate(const LocalTensor<T>& dst, const T& scalar, int64_t count, int line = __builtin_LINE())
{
    tile_sim::vector_duplicate({dst.operand(), {}}, tile_sim::to_bits(scalar), detail::first(count, line), line);
}

template <class T, bool isSetMask = true>
void Duplicate(const LocalTensor<T>& dst, const T& scalar, detail::Mask mask, int64_t repeat, int64_t dstBlockStride,
               int64_t dstRepeatStride, int line = __builtin_LINE())
{
    tile_sim::vector_duplicate(
        {dst.operand(), detail::stride(dstBlockStride, dstRepeatStride, 65535, "Duplicate dst*Stride", line)},
        tile_sim::to_bits(scalar), mask.lanes(repeat, sizeof(T), 255, line), line);
}

namespace detail
{

template <class T, class U>
constexpr bool castable()
{
    using std::is_same_v;
    if (is_same_v<U, float>)
        return is_same_v<T, float> || is_same_v<T, half> || is_same_v<T, bfloat16_t> || is_same_v<T, int32_t> ||
               is_same_v<T, int16_t>;
    if (is_same_v<U, half>) return is_same_v<T, float> || is_same_v<T, int32_t> || is_same_v<T, int16_t> || is_same_v<T, int8_t>;
    if (is_same_v<U, bfloat16_t>) return is_same_v<T, float> || is_same_v<T, int32_t>;
    if (is_same_v<U, int32_t>) return is_same_v<T, float> || is_same_v<T, int16_t>;
    if (is_same_v<U, int16_t>) return is_same_v<T, float> || is_same_v<T, half>;
    return is_same_v<U, int8_t> && is_same_v<T, half>;
}

}  // namespace detail

template <class T, class U>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& mode, int64_t count, int line = __builtin_LINE())
{
    static_assert(detail::castable<T, U>(), "Cast does not know this pair of element types on 2201");
    tile_sim::vector_cast({dst.operand(), {}}, {src.operand(), {}}, tile_sim::Rounding(mode), detail::first(count, line), line);
}

template <class T, class U, bool isSetMask = true>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& mode, detail::Mask mask, int64_t repeat,
          const UnaryRepeatParams& p, int line = __builtin_LINE())
{
    static_assert(detail::castable<T, U>(), "Cast does not know this pair of element types on 2201");
    const auto s = detail::sides(dst, src, p, line);
    constexpr int64_t width = sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U);
    tile_sim::vector_cast(s.dst, s.src, tile_sim::Rounding(mode), mask.lanes(repeat, width, 255, line), line);
}

template <class T>
void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t repeat, const BrcbRepeatParams& p,
          int line = __builtin_LINE())
{
    using tile_sim::checked;
    tile_sim::vector_brcb(dst.operand(), src.operand(), checked(repeat, 0, 255, "repeatTime", line),
                          {checked(p.dstBlkStride, 1, 65535, "BrcbRepeatParams.dstBlkStride", line),
                           checked(p.dstRepStride, 0, 65535, "BrcbRepeatParams.dstRepStride", line)},
                          line);
}

template <class T, bool isSetMask = true>
void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, detail::Mask mask, int64_t repeat, const CopyRepeatParams& p,
          int line = __builtin_LINE())
{
    using tile_sim::checked;
    tile_sim::vector_unary("Copy", tile_sim::UnaryOp::copy,
                           {dst.operand(),
                            {checked(p.dstStride, 0, 65535, "CopyRepeatParams.dstStride", line),
                             checked(p.dstRepeatSize, 0, 4095, "CopyRepeatParams.dstRepeatSize", line)}},
                           {src.operand(),
                            {checked(p.srcStride, 0, 65535, "CopyRepeatParams.srcStride", line),
                             checked(p.srcRepeatSize, 0, 4095, "CopyRepeatParams.srcRepeatSize", line)}},
                           mask.lanes(repeat, sizeof(T), 255, line), line);
}

namespace detail
{

template <class T>
tile_sim::VectorSide reduce_source(const LocalTensor<T>& src, int64_t block, int64_t repeat, int line)
{
    return {
        src.operand(),
        {tile_sim::checked(block, 0, 65535, "srcBlkStride", line), tile_sim::checked(repeat, 0, 65535, "srcRepStride", line)}};
}

template <class T>
void whole(const char* name, tile_sim::ReduceOp op, const LocalTensor<T>& dst, const LocalTensor<T>& src, Mask mask,
           int64_t repeat, int64_t dstRep, int64_t srcBlk, int64_t srcRep, tile_sim::Order order, int line)
{
    static_assert(is_number<T>, "reductions take half and float");
    tile_sim::reduce_whole(name, op, dst.operand(), reduce_source(src, srcBlk, srcRep, line),
                           tile_sim::checked(dstRep, 0, 65535, "dstRepStride", line), mask.lanes(repeat, sizeof(T), 255, line),
                           order, line);
}

template <class T>
void block(const char* name, tile_sim::ReduceOp op, const LocalTensor<T>& dst, const LocalTensor<T>& src, Mask mask,
           int64_t repeat, int64_t dstRep, int64_t srcBlk, int64_t srcRep, int line)
{
    static_assert(is_number<T>, "reductions take half and float");
    tile_sim::reduce_block(name, op, dst.operand(), reduce_source(src, srcBlk, srcRep, line),
                           tile_sim::checked(dstRep, 0, 65535, "dstRepStride", line), mask.lanes(repeat, sizeof(T), 255, line),
                           line);
}

}  // namespace detail

template <class T, bool isSetMask = true>
void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, detail::Mask mask, int64_t repeatTime,
                    int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride, int line = __builtin_LINE())
{
    detail::whole("WholeReduceSum", tile_sim::ReduceOp::sum, dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride,
                  tile_sim::Order::only_value, line);
}

#define TILE_SIM_REDUCE(NAME, OP)                                                                                           \
    template <class T, bool isSetMask = true>                                                                               \
    void WholeReduce##NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, detail::Mask mask, int64_t repeatTime,     \
                           int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride,                                \
                           ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, int line = __builtin_LINE())                 \
    {                                                                                                                       \
        detail::whole("WholeReduce" #NAME, tile_sim::ReduceOp::OP, dst, src, mask, repeatTime, dstRepStride, srcBlkStride,  \
                      srcRepStride, tile_sim::Order(order), line);                                                          \
    }                                                                                                                       \
    template <class T>                                                                                                      \
    void Reduce##NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& scratch, int64_t count,   \
                      bool index = false, int line = __builtin_LINE())                                                      \
    {                                                                                                                       \
        static_assert(detail::is_number<T>, "reductions take half and float");                                              \
        tile_sim::reduce_all("Reduce" #NAME, tile_sim::ReduceOp::OP, dst.operand(), {src.operand(), {}}, scratch.operand(), \
                             index, detail::first(count, line), line);                                                      \
    }
TILE_SIM_REDUCE(Max, max)
TILE_SIM_REDUCE(Min, min)
#undef TILE_SIM_REDUCE

template <class T, bool isSetMask = true>
void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& scratch, int64_t count,
               int line = __builtin_LINE())
{
    static_assert(detail::is_number<T>, "reductions take half and float");
    tile_sim::reduce_all("ReduceSum", tile_sim::ReduceOp::sum, dst.operand(), {src.operand(), {}}, scratch.operand(), false,
                         detail::first(count, line), line);
}

// The older names take the repeat before the mask; the newer ones (ReduceRepeat, ReduceDataBlock) after it.
#define TILE_SIM_BLOCK_REDUCE(NAME, OP)                                                                                   \
    template <class T, bool isSetMask = true>                                                                             \
    void BlockReduce##NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t repeat, detail::Mask mask,       \
                           int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride, int line = __builtin_LINE()) \
    {                                                                                                                     \
        detail::block("BlockReduce" #NAME, tile_sim::ReduceOp::OP, dst, src, mask, repeat, dstRepStride, srcBlkStride,    \
                      srcRepStride, line);                                                                                \
    }
TILE_SIM_BLOCK_REDUCE(Sum, sum)
TILE_SIM_BLOCK_REDUCE(Max, max)
TILE_SIM_BLOCK_REDUCE(Min, min)
#undef TILE_SIM_BLOCK_REDUCE

template <ReduceType type, class T, bool isSetMask = true>
void ReduceRepeat(const LocalTensor<T>& dst, const LocalTensor<T>& src, detail::Mask mask, int64_t repeatTime,
                  int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride,
                  ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, int line = __builtin_LINE())
{
    detail::whole("ReduceRepeat", tile_sim::ReduceOp(type), dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride,
                  type == ReduceType::SUM ? tile_sim::Order::only_value : tile_sim::Order(order), line);
}

template <ReduceType type, class T, bool isSetMask = true>
void ReduceDataBlock(const LocalTensor<T>& dst, const LocalTensor<T>& src, detail::Mask mask, int64_t repeatTime,
                     int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride, int line = __builtin_LINE())
{
    detail::block("ReduceDataBlock", tile_sim::ReduceOp(type), dst, src, mask, repeatTime, dstRepStride, srcBlkStride,
                  srcRepStride, line);
}

template <class T, class U>
void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, CMPMODE mode, int64_t count,
             int line = __builtin_LINE())
{
    static_assert(detail::is_number<T> && sizeof(U) == 1, "the simulator knows Compare of half and float into bytes");
    tile_sim::vector_compare(dst.operand(), a.operand(), b.operand(), tile_sim::Comparison(mode), count, line);
}

template <class T, class U>
void CompareScalar(const LocalTensor<U>& dst, const LocalTensor<T>& a, const T scalar, CMPMODE mode, int64_t count,
                   int line = __builtin_LINE())
{
    static_assert(detail::is_number<T> && sizeof(U) == 1, "the simulator knows CompareScalar of half and float into bytes");
    tile_sim::vector_compare_scalar(dst.operand(), a.operand(), double(scalar), tile_sim::Comparison(mode), count, line);
}

template <class T, class U>
void Compares(const LocalTensor<U>& dst, const LocalTensor<T>& a, const T scalar, CMPMODE mode, int64_t count,
              int line = __builtin_LINE())
{
    CompareScalar(dst, a, scalar, mode, count, line);
}

template <class T, class U>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& mask, const LocalTensor<T>& a, const LocalTensor<T>& b, SELMODE mode,
            int64_t count, int line = __builtin_LINE())
{
    static_assert(detail::is_number<T>, "Select takes half and float");
    if (mode != SELMODE::VSEL_TENSOR_TENSOR_MODE)
        tile_sim::misuse("unsupported", line, "the simulator knows Select of two tensors in VSEL_TENSOR_TENSOR_MODE only");
    tile_sim::vector_select(dst.operand(), mask.operand(), a.operand(), b.operand(), count, line);
}

template <class T, class U>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& mask, const LocalTensor<T>& a, T scalar, SELMODE mode, int64_t count,
            int line = __builtin_LINE())
{
    static_assert(detail::is_number<T>, "Select takes half and float");
    if (mode != SELMODE::VSEL_TENSOR_SCALAR_MODE)
        tile_sim::misuse("unsupported", line, "Select of a tensor and a scalar is VSEL_TENSOR_SCALAR_MODE");
    tile_sim::vector_select_scalar(dst.operand(), mask.operand(), a.operand(), double(scalar), count, line);
}

}  // namespace AscendC
