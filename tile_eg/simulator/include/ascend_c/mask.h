// Masks of vector instructions: the argument of an instruction, and the register behind it.
#pragma once
#include "params.h"
#include "tensor.h"

namespace AscendC
{

enum class MaskMode : uint8_t { NORMAL, COUNTER };
constexpr uint64_t MASK_PLACEHOLDER = 0;  // the argument of instructions with isSetMask = false
inline uint64_t MASK_PLACEHOLDER_LIST[2] = {0, 0};

inline void SetMaskNorm() { tile_sim::set_mask_mode(false); }
inline void SetMaskCount() { tile_sim::set_mask_mode(true); }
inline void ResetMask() { tile_sim::set_mask_bits(~uint64_t(0), ~uint64_t(0)); }

template <class T, MaskMode mode = MaskMode::NORMAL>
void SetVectorMask(uint64_t maskHigh, uint64_t maskLow)
{
    tile_sim::set_mask_bits(mode == MaskMode::COUNTER ? 0 : maskHigh, maskLow);
}
template <class T, MaskMode mode = MaskMode::NORMAL>
void SetVectorMask(int32_t len, Line line = Line(__builtin_LINE()))
{
    if (mode == MaskMode::COUNTER)
        tile_sim::set_mask_bits(0, uint64_t(len));
    else
        tile_sim::set_mask_length(len, sizeof(T), line);
}

namespace detail
{

// The mask argument: a number of lanes, or an array of bits.
class Mask
{
public:
    template <class N, class = std::enable_if_t<std::is_integral_v<N>>>
    Mask(N lanes) : mask_{int64_t(lanes), 0, 0}
    {
    }
    Mask(const uint64_t* bits) : mask_{-1, bits[0], bits[1]} {}

    // Lanes of rounds of 256 bytes of the widest operand, `width` bytes an element.
    template <bool set>
    tile_sim::Lanes lanes(int64_t repeat, int64_t width, int line, int64_t most = 255) const
    {
        return tile_sim::masked(set, mask_, tile_sim::checked(repeat, 0, most, "repeatTime", line), width, line);
    }

    template <bool set>
    tile_sim::Lanes copied(int64_t repeat, int64_t width, int line) const
    {
        return tile_sim::copied(set, mask_, tile_sim::checked(repeat, 0, 255, "repeatTime", line), width, line);
    }

private:
    tile_sim::MaskArgument mask_;
};

template <class T, bool set = true>
tile_sim::Lanes first(int64_t count, int line)
{
    return tile_sim::counted(set, count, sizeof(T), line);
}

inline tile_sim::Stride stride(const Field& block, const Field& repeat, int64_t most_block, const char* what, int line)
{
    return {tile_sim::checked(block, 0, most_block, what, line), tile_sim::checked(repeat, 0, 255, what, line)};
}

struct UnarySides {
    tile_sim::VectorSide dst, src;
};
struct BinarySides {
    tile_sim::VectorSide dst, a, b;
};

template <class T, class U>
UnarySides sides(const LocalTensor<T>& dst, const LocalTensor<U>& src, const UnaryRepeatParams& p, int line)
{
    return {{dst.operand(), stride(p.dstBlkStride, p.dstRepStride, 65535, "UnaryRepeatParams.dst*Stride", line)},
            {src.operand(), stride(p.srcBlkStride, p.srcRepStride, 65535, "UnaryRepeatParams.src*Stride", line)}};
}

template <class T, class U>
BinarySides sides(const LocalTensor<T>& dst, const LocalTensor<U>& a, const LocalTensor<U>& b, const BinaryRepeatParams& p,
                  int line)
{
    return {{dst.operand(), stride(p.dstBlkStride, p.dstRepStride, 255, "BinaryRepeatParams.dst*Stride", line)},
            {a.operand(), stride(p.src0BlkStride, p.src0RepStride, 255, "BinaryRepeatParams.src0*Stride", line)},
            {b.operand(), stride(p.src1BlkStride, p.src1RepStride, 255, "BinaryRepeatParams.src1*Stride", line)}};
}

template <class T, class... Ts>
constexpr bool one_of = (std::is_same_v<T, Ts> || ...);
template <class T>
constexpr bool is_number = one_of<T, half, float>;
template <class T>
constexpr bool is_arithmetic = one_of<T, half, float, int16_t, int32_t>;
template <class T>
constexpr bool is_bits16 = one_of<T, int16_t, uint16_t>;
template <class T>
constexpr bool is_whole = one_of<T, int16_t, uint16_t, int32_t, uint32_t>;
template <class T>
constexpr bool is_word = sizeof(T) == 2 || sizeof(T) == 4;
template <class T, class U>
constexpr int64_t wider = sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U);
// Multiply and add with float sums of half products.
template <class T, class U>
constexpr bool accumulates = is_number<T> && (std::is_same_v<T, U> || std::is_same_v<U, half>);

}  // namespace detail
}  // namespace AscendC
