// The bits of a scale (QUANT_PRE, the vendor's page on quantisation): 0-31 a float of which the hardware keeps 10 bits of mantissa,
// 32-35 a right shift minus one and 36 whether it is made, 37-45 an offset, 46 whether the result is signed.
#include "quantise.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rounding.h"

namespace tile_sim
{
namespace
{

constexpr int64_t most_in_row = 16;  // elements that convert at once

bool is_byte(DType type) { return type == DType::i8 || type == DType::u8; }

bool fits(DType dst, DType src, Quantisation how)
{
    switch (how) {
        case Quantisation::none: return dst == src;
        case Quantisation::to_half: return src == DType::f32 && dst == DType::f16;
        case Quantisation::to_bf16: return src == DType::f32 && dst == DType::bf16;
        case Quantisation::dequantise:
        case Quantisation::dequantise_columns: return src == DType::i32 && dst == DType::f16;
        case Quantisation::float_to_byte:
        case Quantisation::float_to_byte_columns: return src == DType::f32 && is_byte(dst);
        default: return src == DType::i32 && is_byte(dst);
    }
}

bool by_column(Quantisation how)
{
    return how == Quantisation::dequantise_columns || how == Quantisation::float_to_byte_columns ||
           how == Quantisation::whole_to_byte_columns;
}

double clamped(double x, double low, double high) { return std::isnan(x) ? 0.0 : std::min(high, std::max(low, x)); }

// With the shift, a whole number is cut to 16 bits first.
double shifted(double x, uint64_t scale)
{
    if (!(scale >> 36 & 1)) return x;
    return clamped(std::floor(std::ldexp(x, -int(scale >> 32 & 15) - 1)), -32768, 32767);
}

void to_byte(uint8_t* to, double x, DType dst, const Conversion& c)
{
    const bool is_signed = c.scale >> 46 & 1;
    if (is_signed != (dst == DType::i8))
        misuse("field", c.line, "bit 46 of the scale is 1 for int8_t, and 0 for uint8_t");
    const int offset = int(c.scale >> 37 & 0x1ff), whole = int(std::nearbyint(clamped(x, -256, 255)));
    *to = uint8_t(int(clamped(whole + (offset >= 256 ? offset - 512 : offset), is_signed ? -128 : 0, is_signed ? 127 : 255)));
}

template <class T>
void put(uint8_t* to, T value)
{
    std::memcpy(to, &value, sizeof value);
}

}  // namespace

void check_quantisation(DType dst, DType src, Quantisation how, bool per_column, int line)
{
    if (how > Quantisation::whole_to_byte_columns || !fits(dst, src, how))
        misuse("field", line,
               "FixpipeParamsV220.quantPre does not fit: NoQuant keeps float or int32_t; from float F322F16, F322BF16 and "
               "(V)QF322B8_PRE, from int32_t (V)DEQF16 and (V)REQ8");
    if (by_column(how) != per_column)
        misuse("field", line, per_column ? "a table of scales needs VDEQF16, VQF322B8_PRE or VREQ8"
                                         : "VDEQF16, VQF322B8_PRE and VREQ8 need a table of scales");
}

// With ReLU, negative numbers are multiplied by 0: the offset comes after it.
void convert(uint8_t* to, const uint8_t* from, DType dst, const Conversion& c)
{
    float single;
    int32_t whole;
    std::memcpy(&single, from, 4), std::memcpy(&whole, from, 4);
    const float positive = c.relu && single < 0 ? 0.0f : single;
    switch (c.how) {
        case Quantisation::none:
            return dst == DType::f32 ? put(to, positive) : put(to, c.relu ? std::max(whole, 0) : whole);
        case Quantisation::to_half: return put(to, float_to_half(positive));
        case Quantisation::to_bf16: return put(to, float_to_bf16(positive));
        default: break;
    }
    const bool from_float = c.how == Quantisation::float_to_byte || c.how == Quantisation::float_to_byte_columns;
    const double x = from_float ? double(single) : shifted(whole, c.scale);
    const double scaled = c.relu && x < 0 ? 0.0 : x * ten_bit_mantissa(bits_float(uint32_t(c.scale)));
    if (dst != DType::f16) return to_byte(to, scaled, dst, c);
    put(to, double_to_half(clamped(scaled, -65504, 65504)));
}

void convert_row(uint8_t* to, const uint8_t* from, DType dst, Conversion c, const uint64_t* scales, int64_t count)
{
    if (c.how == Quantisation::to_half && !c.relu && count <= most_in_row) {
        float in[most_in_row];
        uint16_t out[most_in_row];
        std::memcpy(in, from, size_t(count) * 4);
        for (int64_t i = 0; i < count; ++i) out[i] = float_to_half(in[i]);
        return void(std::memcpy(to, out, size_t(count) * 2));
    }
    if (c.how == Quantisation::none && !c.relu) return void(std::memcpy(to, from, size_t(count) * 4));
    for (int64_t i = 0; i < count; ++i) {
        c.scale = scales[i];
        convert(to + i * size_of(dst), from + i * 4, dst, c);
    }
}

}  // namespace tile_sim
