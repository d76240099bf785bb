// Conversions between the number formats, rounded as IEEE 754 says. Kernels see this file too, so it brings in no C function
// that a kernel could be called after (exp).
#pragma once
#include <cstdint>
#include <cstring>

namespace tile_sim
{

inline uint32_t float_bits(float value)
{
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}

inline float bits_float(uint32_t bits)
{
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

inline float half_to_float(uint16_t half)
{
    const uint32_t sign = uint32_t(half & 0x8000) << 16, exponent = (half >> 10) & 31, mantissa = half & 1023;
    if (exponent == 31) return bits_float(sign | 0x7f800000 | mantissa << 13);
    if (exponent) return bits_float(sign | (exponent + 112) << 23 | mantissa << 13);
    const float tiny = float(mantissa) * (1.0f / 16777216.0f);
    return sign ? -tiny : tiny;
}

// Round to nearest, ties to even.
inline uint16_t float_to_half(float value)
{
    const uint32_t bits = float_bits(value), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return uint16_t(sign | 0x7e00);
    if (magnitude >= 0x477ff000) return uint16_t(sign | 0x7c00);
    if (magnitude < 0x38800000) {
        const float units = bits_float(magnitude) * 16777216.0f;  // of 2^-24: exact, and below 2^10
        constexpr float whole = 8388608.0f;                       // floats of this size have no fraction
        return uint16_t(sign | uint32_t((units + whole) - whole));
    }
    const uint32_t odd = (magnitude >> 13) & 1;
    return uint16_t(sign | ((magnitude - 0x38000000 + 0xfff + odd) >> 13));
}

inline float bf16_to_float(uint16_t value) { return bits_float(uint32_t(value) << 16); }

inline uint16_t float_to_bf16(float value)
{
    const uint32_t bits = float_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return uint16_t(bits >> 16 | 0x40);
    return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace tile_sim
