// Conversions between element types, and the fused instructions that end in one.
#pragma once
#include "mask.h"

namespace AscendC
{
namespace detail
{

// The vendor's table for Atlas A2 and A3 (Cast.md), and of that for the 950 the floats of 8 bits.
template <class T, class U>
constexpr bool castable()
{
#if __NPU_ARCH__ == 3510
    if (std::is_same_v<U, float> && one_of<T, fp8_e4m3fn_t, fp8_e5m2_t>) return true;
    if (one_of<U, fp8_e4m3fn_t, fp8_e5m2_t>) return std::is_same_v<T, float>;
#endif
    if (std::is_same_v<U, float>) return one_of<T, float, half, bfloat16_t, int64_t, int32_t, int16_t>;
    if (std::is_same_v<U, half>) return one_of<T, float, int32_t, int16_t, int8_t, uint8_t, int4b_t>;
    if (std::is_same_v<U, bfloat16_t>) return one_of<T, float, int32_t>;
    if (std::is_same_v<U, int64_t>) return one_of<T, float, int32_t>;
    if (std::is_same_v<U, int32_t>) return one_of<T, float, half, int16_t, int64_t>;
    if (std::is_same_v<U, int16_t>) return one_of<T, float, half>;
    return one_of<U, int8_t, uint8_t, int4b_t> && std::is_same_v<T, half>;
}

template <class T, class U>
constexpr bool relu_castable = (std::is_same_v<T, int8_t> && one_of<U, half, int16_t>) ||
                               (std::is_same_v<T, half> && std::is_same_v<U, float>);
template <class T, class U>
constexpr bool mul_castable = one_of<T, int8_t, uint8_t> && std::is_same_v<U, half>;

}  // namespace detail

template <class T, class U>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& mode, int64_t count, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::castable<T, U>(), "Cast does not know this pair of element types on 2201");
    tile_sim::vector_cast({dst.operand(), {}}, {src.operand(), {}}, tile_sim::Rounding(mode), detail::first<T>(count, line), line);
}

template <class T, class U, bool isSetMask = true>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& mode, detail::Mask mask, int64_t repeat,
          const UnaryRepeatParams& p, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::castable<T, U>(), "Cast does not know this pair of element types on 2201");
    const auto s = detail::sides(dst, src, p, line);
    tile_sim::vector_cast(s.dst, s.src, tile_sim::Rounding(mode), mask.lanes<isSetMask>(repeat, detail::wider<T, U>, line), line);
}

#define TILE_SIM_BINARY_CAST(NAME, OP, ALLOWED)                                                                                 \
    template <class T, class U>                                                                                                 \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<U>& a, const LocalTensor<U>& b, uint32_t count,                      \
              Line line = Line(__builtin_LINE()))                                                                                      \
    {                                                                                                                           \
        static_assert(ALLOWED, #NAME " does not know these element types on 2201");                                             \
        tile_sim::vector_binary_cast(#NAME, tile_sim::BinaryOp::OP, {dst.operand(), {}}, {a.operand(), {}}, {b.operand(), {}},  \
                                     detail::first<U>(count, line), line);                                                      \
    }                                                                                                                           \
    template <class T, class U, bool isSetMask = true>                                                                          \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<U>& a, const LocalTensor<U>& b, detail::Mask mask, int64_t repeat,   \
              const BinaryRepeatParams& p, Line line = Line(__builtin_LINE()))                                                         \
    {                                                                                                                           \
        static_assert(ALLOWED, #NAME " does not know these element types on 2201");                                             \
        const auto s = detail::sides(dst, a, b, p, line);                                                                       \
        tile_sim::vector_binary_cast(#NAME, tile_sim::BinaryOp::OP, s.dst, s.a, s.b,                                            \
                                     mask.lanes<isSetMask>(repeat, detail::wider<T, U>, line), line);                           \
    }

TILE_SIM_BINARY_CAST(AddReluCast, add_relu, (detail::relu_castable<T, U>))
TILE_SIM_BINARY_CAST(SubReluCast, sub_relu, (detail::relu_castable<T, U>))
TILE_SIM_BINARY_CAST(MulCast, mul, (detail::mul_castable<T, U>))
#undef TILE_SIM_BINARY_CAST

struct VdeqInfo {
    VdeqInfo() = default;
    VdeqInfo(const float* scales, const int16_t* offsets, const bool* signs)
    {
        for (int i = 0; i < 16; ++i) vdeqScale[i] = scales[i], vdeqOffset[i] = offsets[i], vdeqSignMode[i] = signs[i];
    }
    float vdeqScale[16] = {0};
    int16_t vdeqOffset[16] = {0};
    bool vdeqSignMode[16] = {false};
};

namespace detail
{

// The layout of the DEQSCALE register (SetDeqScale.md): scale in bits 0-31, offset in 37-45, sign in 46.
inline uint64_t deq_bits(float scale, int16_t offset, bool sign)
{
    return tile_sim::to_bits(scale) | uint64_t(offset & 0x1ff) << 37 | uint64_t(sign) << 46;
}

template <class T, class U>
constexpr bool dequantisable = (std::is_same_v<U, int32_t> && std::is_same_v<T, half>) ||
                               (std::is_same_v<U, int16_t> && one_of<T, int8_t, uint8_t>);

}  // namespace detail

inline void SetDeqScale(half scale) { tile_sim::set_deq_scale(tile_sim::Deq::half, scale.bits); }
inline void SetDeqScale(float scale, int16_t offset, bool signMode)
{
    tile_sim::set_deq_scale(tile_sim::Deq::settings, detail::deq_bits(scale, offset, signMode));
}
// The 16 settings lie in UB, and the register holds where.
template <class T>
void SetDeqScale(const LocalTensor<T>& vdeq, const VdeqInfo& info, Line line = Line(__builtin_LINE()))
{
    static_assert(std::is_same_v<T, uint64_t>, "the tensor of SetDeqScale has elements of uint64_t");
    for (uint32_t i = 0; i < 16; ++i)
        vdeq.SetValue(i, detail::deq_bits(info.vdeqScale[i], info.vdeqOffset[i], info.vdeqSignMode[i]), line);
    tile_sim::set_deq_scale(tile_sim::Deq::table, vdeq.GetPhyAddr());
}

template <class T, class U, bool isVecDeq = true, bool halfBlock = true>
void CastDequant(const LocalTensor<T>& dst, const LocalTensor<U>& src, uint32_t count, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::dequantisable<T, U>, "CastDequant does not know these element types on 2201");
    tile_sim::vector_dequantise("CastDequant", {dst.operand(), {}}, {src.operand(), {}}, {}, {isVecDeq, halfBlock, false},
                                detail::first<U>(count, line), line);
}

template <class T, class U, bool isSetMask = true, bool isVecDeq = true, bool halfBlock = true>
void CastDequant(const LocalTensor<T>& dst, const LocalTensor<U>& src, detail::Mask mask, int64_t repeat,
                 const UnaryRepeatParams& p, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::dequantisable<T, U>, "CastDequant does not know these element types on 2201");
    const auto s = detail::sides(dst, src, p, line);
    tile_sim::vector_dequantise("CastDequant", s.dst, s.src, {}, {isVecDeq, halfBlock, false},
                                mask.lanes<isSetMask>(repeat, sizeof(U), line), line);
}

template <class T, class U, bool isVecDeq = true, bool halfBlock = true>
void CastDeq(const LocalTensor<T>& dst, const LocalTensor<U>& src, uint32_t count, Line line = Line(__builtin_LINE()))
{
    CastDequant<T, U, isVecDeq, halfBlock>(dst, src, count, line);
}

template <class T, class U, bool isSetMask = true, bool isVecDeq = true, bool halfBlock = true>
void CastDeq(const LocalTensor<T>& dst, const LocalTensor<U>& src, detail::Mask mask, int64_t repeat, const UnaryRepeatParams& p,
             Line line = Line(__builtin_LINE()))
{
    CastDequant<T, U, isSetMask, isVecDeq, halfBlock>(dst, src, mask, repeat, p, line);
}

template <class T, class U>
void AddDeqRelu(const LocalTensor<T>& dst, const LocalTensor<U>& a, const LocalTensor<U>& b, int64_t count,
                Line line = Line(__builtin_LINE()))
{
    static_assert(std::is_same_v<T, half> && std::is_same_v<U, int32_t>, "AddDeqRelu takes int32_t and gives half");
    tile_sim::vector_dequantise("AddDeqRelu", {dst.operand(), {}}, {a.operand(), {}}, {b.operand(), {}}, {false, false, true},
                                detail::first<U>(count, line), line);
}

template <class T, class U, bool isSetMask = true>
void AddDeqRelu(const LocalTensor<T>& dst, const LocalTensor<U>& a, const LocalTensor<U>& b, detail::Mask mask, int64_t repeat,
                const BinaryRepeatParams& p, Line line = Line(__builtin_LINE()))
{
    static_assert(std::is_same_v<T, half> && std::is_same_v<U, int32_t>, "AddDeqRelu takes int32_t and gives half");
    const auto s = detail::sides(dst, a, b, p, line);
    tile_sim::vector_dequantise("AddDeqRelu", s.dst, s.a, s.b, {false, false, true},
                                mask.lanes<isSetMask>(repeat, sizeof(U), line), line);
}

template <bool isSetMask = true>
void AddDeqRelu(const LocalTensor<half>& dst, const LocalTensor<int32_t>& a, const LocalTensor<int32_t>& b, detail::Mask mask,
                int64_t repeat, const BinaryRepeatParams& p, Line line = Line(__builtin_LINE()))
{
    AddDeqRelu<half, int32_t, isSetMask>(dst, a, b, mask, repeat, p, line);
}

}  // namespace AscendC
