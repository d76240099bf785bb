// Rounding that only the runtime needs.
#pragma once
#include <cmath>

#include "numbers.h"

namespace tile_sim
{

// Rounds once: through float, whose last bit is made odd where something was cut off, so that no tie is made up.
inline uint16_t double_to_half(double value)
{
    float near = float(value);
    if (double(near) != value && std::isfinite(near)) {
        if (std::fabs(double(near)) > std::fabs(value)) near = bits_float(float_bits(near) - 1);
        near = bits_float(float_bits(near) | 1);
    }
    return float_to_half(near);
}

// Scales of quantisation are floats with 8 bits of exponent and 10 of mantissa; the rest is cut off.
inline float ten_bit_mantissa(float value) { return bits_float(float_bits(value) & 0xffffe000); }

}  // namespace tile_sim
