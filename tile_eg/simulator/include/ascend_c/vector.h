// Elementwise vector instructions. Each comes in two forms: over the first `count` elements, and over `repeat` rounds of
// masked lanes.
#pragma once
#include "mask.h"

namespace AscendC
{

#define TILE_SIM_UNARY(NAME, OP, ALLOWED)                                                                             \
    template <class T>                                                                                                \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t count, Line line = Line(__builtin_LINE()))       \
    {                                                                                                                 \
        static_assert(ALLOWED, #NAME " does not take this element type on 2201");                                     \
        tile_sim::vector_unary(#NAME, tile_sim::UnaryOp::OP, {dst.operand(), {}}, {src.operand(), {}},                \
                               detail::first<T>(count, line), line);                                                  \
    }                                                                                                                 \
    template <class T, bool isSetMask = true>                                                                         \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, detail::Mask mask, int64_t repeat,                \
              const UnaryRepeatParams& p, Line line = Line(__builtin_LINE()))                                                \
    {                                                                                                                 \
        static_assert(ALLOWED, #NAME " does not take this element type on 2201");                                     \
        const auto s = detail::sides(dst, src, p, line);                                                              \
        tile_sim::vector_unary(#NAME, tile_sim::UnaryOp::OP, s.dst, s.src,                                            \
                               mask.lanes<isSetMask>(repeat, sizeof(T), line), line);                                 \
    }

TILE_SIM_UNARY(Exp, exp, detail::is_number<T>)
TILE_SIM_UNARY(Ln, ln, detail::is_number<T>)
TILE_SIM_UNARY(Abs, abs, detail::is_number<T>)
TILE_SIM_UNARY(Sqrt, sqrt, detail::is_number<T>)
TILE_SIM_UNARY(Rsqrt, rsqrt, detail::is_number<T>)
TILE_SIM_UNARY(Reciprocal, reciprocal, detail::is_number<T>)
TILE_SIM_UNARY(Relu, relu, (detail::one_of<T, half, float, int32_t>))
TILE_SIM_UNARY(Not, bit_not, detail::is_bits16<T>)
#undef TILE_SIM_UNARY

#define TILE_SIM_BINARY(NAME, OP, ALLOWED)                                                                                    \
    template <class T>                                                                                                        \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, int64_t count,                     \
              Line line = Line(__builtin_LINE()))                                                                                    \
    {                                                                                                                         \
        static_assert(ALLOWED, #NAME " does not take this element type on 2201");                                             \
        tile_sim::vector_binary(#NAME, tile_sim::BinaryOp::OP, {dst.operand(), {}}, {a.operand(), {}}, {b.operand(), {}},     \
                                detail::first<T>(count, line), line);                                                         \
    }                                                                                                                         \
    template <class T, bool isSetMask = true>                                                                                 \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, detail::Mask mask, int64_t repeat, \
              const BinaryRepeatParams& p, Line line = Line(__builtin_LINE()))                                                       \
    {                                                                                                                         \
        static_assert(ALLOWED, #NAME " does not take this element type on 2201");                                             \
        const auto s = detail::sides(dst, a, b, p, line);                                                                     \
        tile_sim::vector_binary(#NAME, tile_sim::BinaryOp::OP, s.dst, s.a, s.b,                                               \
                                mask.lanes<isSetMask>(repeat, sizeof(T), line), line);                                        \
    }

TILE_SIM_BINARY(Add, add, detail::is_arithmetic<T>)
TILE_SIM_BINARY(Sub, sub, detail::is_arithmetic<T>)
TILE_SIM_BINARY(Mul, mul, detail::is_arithmetic<T>)
TILE_SIM_BINARY(Max, max, detail::is_arithmetic<T>)
TILE_SIM_BINARY(Min, min, detail::is_arithmetic<T>)
TILE_SIM_BINARY(Div, div, detail::is_number<T>)
TILE_SIM_BINARY(And, bit_and, detail::is_bits16<T>)
TILE_SIM_BINARY(Or, bit_or, detail::is_bits16<T>)
TILE_SIM_BINARY(AddRelu, add_relu, (detail::one_of<T, half, float, int16_t>))
TILE_SIM_BINARY(SubRelu, sub_relu, (detail::one_of<T, half, float, int16_t>))
TILE_SIM_BINARY(FusedMulAdd, fused_mul_add, detail::is_number<T>)
TILE_SIM_BINARY(FusedMulAddRelu, fused_mul_add_relu, detail::is_number<T>)
TILE_SIM_BINARY(MulAddRelu, fused_mul_add_relu, detail::is_number<T>)
#undef TILE_SIM_BINARY

template <class T, class U>
void MulAddDst(const LocalTensor<T>& dst, const LocalTensor<U>& a, const LocalTensor<U>& b, int64_t count,
               Line line = Line(__builtin_LINE()))
{
    static_assert(detail::accumulates<T, U>, "MulAddDst does not take these element types on 2201");
    tile_sim::vector_binary("MulAddDst", tile_sim::BinaryOp::mul_add_dst, {dst.operand(), {}}, {a.operand(), {}},
                            {b.operand(), {}}, detail::first<T>(count, line), line);
}

template <class T, class U, bool isSetMask = true>
void MulAddDst(const LocalTensor<T>& dst, const LocalTensor<U>& a, const LocalTensor<U>& b, detail::Mask mask, int64_t repeat,
               const BinaryRepeatParams& p, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::accumulates<T, U>, "MulAddDst does not take these element types on 2201");
    const auto s = detail::sides(dst, a, b, p, line);
    tile_sim::vector_binary("MulAddDst", tile_sim::BinaryOp::mul_add_dst, s.dst, s.a, s.b,
                            mask.lanes<isSetMask>(repeat, sizeof(T), line), line);
}

#define TILE_SIM_SCALAR(NAME, OP, ALLOWED)                                                                                       \
    template <class T, bool isSetMask = true>                                                                                    \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar, int64_t count, Line line = Line(__builtin_LINE())) \
    {                                                                                                                            \
        static_assert(ALLOWED, #NAME " does not take this element type on 2201");                                                \
        tile_sim::vector_scalar(#NAME, tile_sim::ScalarOp::OP, {dst.operand(), {}}, {src.operand(), {}}, double(scalar),         \
                                detail::first<T, isSetMask>(count, line), line);                                                 \
    }                                                                                                                            \
    template <class T, bool isSetMask = true>                                                                                    \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar, detail::Mask mask, int64_t repeat,          \
              const UnaryRepeatParams& p, Line line = Line(__builtin_LINE()))                                                           \
    {                                                                                                                            \
        static_assert(ALLOWED, #NAME " does not take this element type on 2201");                                                \
        const auto s = detail::sides(dst, src, p, line);                                                                         \
        tile_sim::vector_scalar(#NAME, tile_sim::ScalarOp::OP, s.dst, s.src, double(scalar),                                     \
                                mask.lanes<isSetMask>(repeat, sizeof(T), line), line);                                           \
    }

TILE_SIM_SCALAR(Adds, adds, detail::is_arithmetic<T>)
TILE_SIM_SCALAR(Muls, muls, detail::is_arithmetic<T>)
TILE_SIM_SCALAR(Maxs, maxs, detail::is_arithmetic<T>)
TILE_SIM_SCALAR(Mins, mins, detail::is_arithmetic<T>)
TILE_SIM_SCALAR(LeakyRelu, leaky_relu, detail::is_number<T>)
#undef TILE_SIM_SCALAR

template <class T, class U>
void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalar, int64_t count, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::accumulates<T, U>, "Axpy does not take these element types on 2201");
    tile_sim::vector_scalar("Axpy", tile_sim::ScalarOp::axpy, {dst.operand(), {}}, {src.operand(), {}}, double(scalar),
                            detail::first<T>(count, line), line);
}

template <class T, class U, bool isSetMask = true>
void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalar, detail::Mask mask, int64_t repeat,
          const UnaryRepeatParams& p, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::accumulates<T, U>, "Axpy does not take these element types on 2201");
    const auto s = detail::sides(dst, src, p, line);
    tile_sim::vector_scalar("Axpy", tile_sim::ScalarOp::axpy, s.dst, s.src, double(scalar),
                            mask.lanes<isSetMask>(repeat, sizeof(T), line), line);
}

#define TILE_SIM_SHIFT(NAME, LEFT)                                                                                            \
    template <class T, bool isSetMask = true>                                                                                 \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& bits, int64_t count, Line line = Line(__builtin_LINE())) \
    {                                                                                                                         \
        static_assert(detail::is_whole<T>, #NAME " does not take this element type on 2201");                                 \
        tile_sim::vector_shift(#NAME, LEFT, {dst.operand(), {}}, {src.operand(), {}}, int64_t(bits), false,                   \
                               detail::first<T, isSetMask>(count, line), line);                                               \
    }                                                                                                                         \
    template <class T, bool isSetMask = true>                                                                                 \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& bits, detail::Mask mask, int64_t repeat,         \
              const UnaryRepeatParams& p, bool roundEn = false, Line line = Line(__builtin_LINE()))                                  \
    {                                                                                                                         \
        static_assert(detail::is_whole<T>, #NAME " does not take this element type on 2201");                                 \
        const auto s = detail::sides(dst, src, p, line);                                                                      \
        tile_sim::vector_shift(#NAME, LEFT, s.dst, s.src, int64_t(bits), roundEn,                                             \
                               mask.lanes<isSetMask>(repeat, sizeof(T), line), line);                                         \
    }

TILE_SIM_SHIFT(ShiftLeft, true)
TILE_SIM_SHIFT(ShiftRight, false)
#undef TILE_SIM_SHIFT

template <class T>
void Duplicate(const LocalTensor<T>& dst, const T& scalar, int64_t count, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_word<T>, "Duplicate takes 16-bit and 32-bit elements on 2201");
    tile_sim::vector_duplicate({dst.operand(), {}}, tile_sim::to_bits(scalar), detail::first<T>(count, line), line);
}

template <class T, bool isSetMask = true>
void Duplicate(const LocalTensor<T>& dst, const T& scalar, detail::Mask mask, int64_t repeat, int64_t dstBlockStride,
               int64_t dstRepeatStride, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_word<T>, "Duplicate takes 16-bit and 32-bit elements on 2201");
    tile_sim::vector_duplicate(
        {dst.operand(), detail::stride(dstBlockStride, dstRepeatStride, 65535, "Duplicate dst*Stride", line)},
        tile_sim::to_bits(scalar), mask.lanes<isSetMask>(repeat, sizeof(T), line), line);
}

template <class T>
void CreateVecIndex(LocalTensor<T> dst, const T& firstValue, uint32_t count, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_arithmetic<T>, "CreateVecIndex does not take this element type on 2201");
    tile_sim::vector_index({dst.operand(), {}}, double(firstValue), detail::first<T>(count, line), line);
}

template <class T>
void CreateVecIndex(LocalTensor<T>& dst, const T& firstValue, detail::Mask mask, int64_t repeat, int64_t dstBlkStride,
                    int64_t dstRepStride, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_arithmetic<T>, "CreateVecIndex does not take this element type on 2201");
    tile_sim::vector_index({dst.operand(), detail::stride(dstBlkStride, dstRepStride, 65535, "CreateVecIndex dst*Stride", line)},
                           double(firstValue), mask.lanes<true>(repeat, sizeof(T), line), line);
}

template <class T>
void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t repeat, const BrcbRepeatParams& p,
          Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    tile_sim::vector_brcb(dst.operand(), src.operand(), checked(repeat, 0, 255, "repeatTime", line),
                          {checked(p.dstBlkStride, 1, 65535, "BrcbRepeatParams.dstBlkStride", line),
                           checked(p.dstRepStride, 0, 65535, "BrcbRepeatParams.dstRepStride", line)},
                          line);
}

template <class T, bool isSetMask = true>
void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, detail::Mask mask, int64_t repeat, const CopyRepeatParams& p,
          Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    static_assert(detail::is_word<T>, "Copy takes 16-bit and 32-bit elements on 2201");
    tile_sim::vector_unary("Copy", tile_sim::UnaryOp::copy,
                           {dst.operand(),
                            {checked(p.dstStride, 0, 65535, "CopyRepeatParams.dstStride", line),
                             checked(p.dstRepeatSize, 0, 4095, "CopyRepeatParams.dstRepeatSize", line)}},
                           {src.operand(),
                            {checked(p.srcStride, 0, 65535, "CopyRepeatParams.srcStride", line),
                             checked(p.srcRepeatSize, 0, 4095, "CopyRepeatParams.srcRepeatSize", line)}},
                           mask.copied<isSetMask>(repeat, sizeof(T), line), line);
}

}  // namespace AscendC
