// What the scalar unit computes: bits of words, conversions, types, the smaller of two. No header of C functions, after which a
// kernel could be called.
#pragma once
#include "types.h"

// Of two scalars. Words of the compiler, in no namespace; forms by type, so that those of the C++ library may be there as well.
#define TILE_SIM_SMALLER_AND_LARGER(T)                     \
    inline constexpr T min(T a, T b) { return b < a ? b : a; } \
    inline constexpr T max(T a, T b) { return a < b ? b : a; }
TILE_SIM_SMALLER_AND_LARGER(int32_t)
TILE_SIM_SMALLER_AND_LARGER(uint32_t)
TILE_SIM_SMALLER_AND_LARGER(int64_t)
TILE_SIM_SMALLER_AND_LARGER(uint64_t)
TILE_SIM_SMALLER_AND_LARGER(float)
#undef TILE_SIM_SMALLER_AND_LARGER

namespace AscendC
{

template <int countValue>
int64_t GetBitCount(uint64_t valueIn)
{
    static_assert(countValue == 0 || countValue == 1, "GetBitCount counts zeros or ones");
    const int64_t ones = __builtin_popcountll(valueIn);
    return countValue ? ones : 64 - ones;
}
template <int countValue>
int64_t ScalarGetCountOfValue(uint64_t valueIn)
{
    return GetBitCount<countValue>(valueIn);
}

inline int64_t CountLeadingZero(uint64_t valueIn) { return valueIn ? __builtin_clzll(valueIn) : 64; }
inline int64_t ScalarCountLeadingZero(uint64_t valueIn) { return CountLeadingZero(valueIn); }

// Bits after the sign that equal it; -1 for 0 and -1.
inline int64_t CountBitsCntSameAsSignBit(int64_t valueIn)
{
    return valueIn == 0 || valueIn == -1 ? -1 : __builtin_clzll(uint64_t(valueIn < 0 ? ~valueIn : valueIn)) - 1;
}

// Where the lowest bit of a value stands; -1 where there is none.
template <int countValue>
int64_t GetSFFValue(uint64_t valueIn)
{
    static_assert(countValue == 0 || countValue == 1, "GetSFFValue looks for a zero or a one");
    const uint64_t bits = countValue ? valueIn : ~valueIn;
    return bits ? __builtin_ctzll(bits) : -1;
}
template <int countValue>
int64_t ScalarGetSFFValue(uint64_t valueIn)
{
    return GetSFFValue<countValue>(valueIn);
}

// A float to the nearest half (RoundMode::CAST_ODD: half) or to a whole number.
template <class T, class U, RoundMode mode>
U Cast(T valueIn)
{
    static_assert(std::is_same_v<T, float> && (std::is_same_v<U, half> || std::is_same_v<U, int32_t>),
                  "the scalar Cast takes float to half or int32_t");
    static_assert(!std::is_same_v<U, half> || mode == RoundMode::CAST_NONE || mode == RoundMode::CAST_RINT,
                  "the simulator knows the scalar Cast to half with CAST_NONE and CAST_RINT");
    if constexpr (std::is_same_v<U, half>) return half(valueIn);
    const double x = mode == RoundMode::CAST_FLOOR   ? __builtin_floor(valueIn)
                     : mode == RoundMode::CAST_CEIL  ? __builtin_ceil(valueIn)
                     : mode == RoundMode::CAST_ROUND ? __builtin_round(valueIn)
                     : mode == RoundMode::CAST_TRUNC ? __builtin_trunc(valueIn)
                                                     : __builtin_nearbyint(valueIn);
    return U(x != x ? 0.0 : x > 2147483647.0 ? 2147483647.0 : x < -2147483648.0 ? -2147483648.0 : x);
}
template <class T, class U, RoundMode mode>
U ScalarCast(T valueIn)
{
    return Cast<T, U, mode>(valueIn);
}
inline float ToFloat(const bfloat16_t& value) { return value; }
inline bfloat16_t ToBfloat16(const float& value) { return value; }

namespace Std
{
using namespace ::std;
template <class T>
constexpr T min(const T& a, const T& b)
{
    return b < a ? b : a;
}
template <class T>
constexpr T max(const T& a, const T& b)
{
    return a < b ? b : a;
}
}  // namespace Std

}  // namespace AscendC
