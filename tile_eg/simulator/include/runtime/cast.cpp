// Cast between number formats, with the rounding that the instruction names.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "lanes.h"
#include "schedule.h"
#include "numbers.h"

namespace tile_sim
{
namespace
{

double load(const uint8_t* p, DType type)
{
    uint16_t half;
    float single;
    int32_t whole;
    int16_t small;
    switch (type) {
        case DType::f16: std::memcpy(&half, p, 2); return half_to_float(half);
        case DType::bf16: std::memcpy(&half, p, 2); return bf16_to_float(half);
        case DType::f32: std::memcpy(&single, p, 4); return single;
        case DType::i32: std::memcpy(&whole, p, 4); return whole;
        case DType::i16: std::memcpy(&small, p, 2); return small;
        default: return *reinterpret_cast<const int8_t*>(p);
    }
}

double to_integer(double x, Rounding rounding)
{
    switch (rounding) {
        case Rounding::floor: return std::floor(x);
        case Rounding::ceil: return std::ceil(x);
        case Rounding::round: return std::round(x);
        case Rounding::trunc: return std::trunc(x);
        default: return std::nearbyint(x);
    }
}

// `x` as a multiple of the distance between two numbers of a format with `bits` bits of significand.
double to_precision(double x, int bits, int least_exponent, Rounding rounding)
{
    if (x == 0 || !std::isfinite(x)) return x;
    const int exponent = std::max(std::ilogb(x), least_exponent) - (bits - 1);
    const double scaled = std::ldexp(x, -exponent);
    if (rounding == Rounding::odd) {
        const double down = std::trunc(scaled);
        return std::ldexp(down == scaled || std::fmod(down, 2) != 0 ? down : down + (scaled > 0 ? 1 : -1), exponent);
    }
    return std::ldexp(to_integer(scaled, rounding), exponent);
}

template <class T>
void store_integer(uint8_t* p, double x, Rounding rounding)
{
    const double low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    const T value = std::isnan(x) ? T(0) : T(std::min(high, std::max(low, to_integer(x, rounding))));
    std::memcpy(p, &value, sizeof value);
}

void store(uint8_t* p, double x, DType type, Rounding rounding)
{
    uint16_t half;
    float single;
    switch (type) {
        case DType::f16:
            half = float_to_half(float(to_precision(x, 11, -14, rounding)));
            std::memcpy(p, &half, 2);
            return;
        case DType::bf16:
            half = float_to_bf16(float(to_precision(x, 8, -126, rounding)));
            std::memcpy(p, &half, 2);
            return;
        case DType::f32:
            single = float(to_precision(x, 24, -126, rounding));
            std::memcpy(p, &single, 4);
            return;
        case DType::i32: return store_integer<int32_t>(p, x, rounding);
        case DType::i16: return store_integer<int16_t>(p, x, rounding);
        default: return store_integer<int8_t>(p, x, rounding);
    }
}

bool is_float(DType type) { return type == DType::f16 || type == DType::bf16 || type == DType::f32; }

// What the vendor's table of conversions allows: exact ones take CAST_NONE, float to int and to bfloat16_t need a mode.
void check_mode(DType dst, DType src, Rounding rounding, int line)
{
    const bool exact = dst == DType::f32 && src != DType::f32 && src != DType::i32;
    if (exact && rounding != Rounding::none)
        misuse("field", line, "this Cast loses nothing, and takes RoundMode::CAST_NONE only");
    const bool needs =
        (is_float(src) && !is_float(dst) && dst != DType::i8) || dst == DType::bf16 || (dst == DType::f32 && src == DType::f32);
    if (needs && rounding == Rounding::none)
        misuse("field", line, "this Cast needs a rounding mode (CAST_RINT, FLOOR, CEIL, ROUND or TRUNC)");
    if (rounding == Rounding::odd && !(src == DType::f32 && dst == DType::f16))
        misuse("field", line, "CAST_ODD is for float to half only");
}

}  // namespace

void vector_cast(VectorSide dst, VectorSide src, Rounding rounding, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_cast(dst, src, rounding, lanes, line); }, dst, src)) return;
    check_mode(dst.at.type, src.at.type, rounding, line);
    const VectorSide sides[] = {dst, src};
    const VectorInstruction v("Cast", line, lanes, sides, 2, false);
    const int64_t to = size_of(dst.at.type), from = size_of(src.at.type);
    if (v.nothing()) return;
    std::vector<double> values;
    for (const Run& run : v.runs()) {
        values.resize(size_t(run.count));
        for (int64_t i = 0; i < run.count; ++i) values[size_t(i)] = load(v.at<uint8_t>(1, (run.at[1] + i) * from), src.at.type);
        for (int64_t i = 0; i < run.count; ++i)
            store(v.at<uint8_t>(0, (run.at[0] + i) * to), values[size_t(i)], dst.at.type, rounding);
    }
}

}  // namespace tile_sim
