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

// As arithmetic leaves a number that signals that it is none.
inline float quiet(float value)
{
    const uint32_t bits = float_bits(value);
    return bits_float((bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : bits);
}

// Without branches, as the next one: loops over elements become vector instructions.
inline float half_to_float(uint16_t half)
{
    const uint32_t sign = uint32_t(half & 0x8000) << 16, magnitude = half & 0x7fff;
    const uint32_t tiny = float_bits(float(int32_t(magnitude & 1023)) * (1.0f / 16777216.0f));
    const uint32_t normal = (magnitude << 13) + (magnitude < 0x7c00 ? 112u << 23 : 224u << 23);
    return bits_float(sign | (magnitude < 0x400 ? tiny : normal));
}

// Round to nearest, ties to even.
inline uint16_t float_to_half(float value)
{
    const uint32_t bits = float_bits(value), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
    const float units = bits_float(magnitude < 0x38800000 ? magnitude : 0) * 16777216.0f;  // of 2^-24: exact, and below 2^10
    constexpr float whole = 8388608.0f;  // floats of this size have no fraction
    const uint32_t tiny = float_bits(units + whole) - float_bits(whole);
    const uint32_t normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    const uint32_t finite = magnitude < 0x38800000 ? tiny : normal;
    return uint16_t(sign | (magnitude > 0x7f800000 ? 0x7e00 : magnitude >= 0x477ff000 ? 0x7c00 : finite));
}

inline float bf16_to_float(uint16_t value) { return bits_float(uint32_t(value) << 16); }

inline uint16_t float_to_bf16(float value)
{
    const uint32_t bits = float_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return uint16_t(bits >> 16 | 0x40);
    return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// Floats of 8 bits: `bits` of mantissa after the leading one, the exponent of the least normal number.
struct SmallFloat {
    int bits, least;
    float largest;
    bool infinite;  // whether the highest exponent is that of infinities; else its last mantissa alone is no number
};
constexpr SmallFloat e4m3{3, -6, 448.0f, false}, e5m2{2, -14, 57344.0f, true};

// The power of two of an exponent that float has.
inline float power_of_two(int exponent) { return bits_float(uint32_t(exponent + 127) << 23); }

inline float small_to_float(uint8_t value, SmallFloat type)
{
    const int mantissa = value & ((1 << type.bits) - 1), exponent = (value & 0x7f) >> type.bits, ones = 0x7f >> type.bits;
    const uint32_t sign = uint32_t(value & 0x80) << 24;
    if (type.infinite ? exponent == ones : (value & 0x7f) == 0x7f)
        return bits_float(sign | (mantissa && type.infinite ? 0x7fc00000 : type.infinite ? 0x7f800000 : 0x7fc00000));
    const int whole = exponent ? mantissa | 1 << type.bits : mantissa;
    const float size = float(whole) * power_of_two((exponent ? exponent - 1 : 0) + type.least - type.bits);
    return bits_float(float_bits(size) | sign);
}

// Floats of 4 bits by their lower three, the fourth being the sign.
constexpr float e2m1[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6}, e1m2[8] = {0, 0.25f, 0.5f, 0.75f, 1, 1.25f, 1.5f, 1.75f};
inline float nibble_to_float(int bits, const float (&sizes)[8]) { return bits & 8 ? -sizes[bits & 7] : sizes[bits & 7]; }

// The power of two that a scale stands for; its largest is no number.
inline float scale_to_float(uint8_t scale)
{
    return bits_float(scale == 255 ? 0x7fc00000u : scale ? uint32_t(scale) << 23 : 0x400000u);
}

// Of a number that the type holds exactly.
inline uint8_t small_bits(float value, SmallFloat type)
{
    const uint32_t bits = float_bits(value), magnitude = bits & 0x7fffffff;
    const uint8_t sign = uint8_t(bits >> 24 & 0x80);
    const int exponent = int(magnitude >> 23) - 127;
    if (exponent < type.least) return uint8_t(sign | uint8_t(bits_float(magnitude) / power_of_two(type.least - type.bits)));
    return uint8_t(sign | (exponent - type.least + 1) << type.bits | int(magnitude >> (23 - type.bits) & ((1u << type.bits) - 1)));
}

}  // namespace tile_sim
