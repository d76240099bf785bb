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

constexpr int64_t at_once = 64;  // elements

// A 64-bit number keeps 53 bits; the last one says whether there was more, which is all that rounding to float asks for.
double sticky(int64_t x)
{
    if (x > -(int64_t(1) << 53) && x < int64_t(1) << 53) return double(x);
    return double((x & ~int64_t(0x7ff)) | (x & 0x7ff ? 0x800 : 0));
}

template <class T>
T raw(const uint8_t* p)
{
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

// Element `i` of an operand that starts at `p`.
double load(const uint8_t* p, int64_t i, DType type)
{
    if (type == DType::i4) return int8_t(uint8_t(p[i / 2] << (i % 2 ? 0 : 4))) >> 4;
    p += i * size_of(type);
    switch (type) {
        case DType::f16: return half_to_float(raw<uint16_t>(p));
        case DType::bf16: return bf16_to_float(raw<uint16_t>(p));
        case DType::f8e4m3: return small_to_float(*p, e4m3);
        case DType::f8e5m2: return small_to_float(*p, e5m2);
        case DType::f32: return raw<float>(p);
        case DType::i64: return sticky(raw<int64_t>(p));
        case DType::i32: return raw<int32_t>(p);
        case DType::i16: return raw<int16_t>(p);
        case DType::u8: return *p;
        default: return int8_t(*p);
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

// Whole numbers that do not fit are the nearest that do; NaN is 0.
template <class T>
T saturated(double x)
{
    const double low = double(std::numeric_limits<T>::min()), high = double(std::numeric_limits<T>::max());
    return std::isnan(x) ? T(0) : x <= low ? std::numeric_limits<T>::min() : x >= high ? std::numeric_limits<T>::max() : T(x);
}

template <class T>
void store_raw(uint8_t* p, T value)
{
    std::memcpy(p, &value, sizeof value);
}

void store_nibble(uint8_t* byte, int64_t i, double x)
{
    const int value = int(std::min(7.0, std::max(-8.0, std::isnan(x) ? 0.0 : x))) & 15;
    *byte = uint8_t(i % 2 ? (*byte & 0x0f) | value << 4 : (*byte & 0xf0) | value);
}

// Rounded; what is beyond the largest number saturates, and NaN becomes 0 (SetCtrlSpr, CTRL[48] and CTRL[50] as they begin).
uint8_t small_rounded(double x, SmallFloat type, Rounding rounding)
{
    const double near = to_precision(std::isnan(x) ? 0.0 : x, type.bits + 1, type.least, rounding);
    return small_bits(float(std::min<double>(type.largest, std::max<double>(-type.largest, near))), type);
}

void store(uint8_t* p, int64_t i, double x, DType type, Rounding rounding)
{
    if (type == DType::i4) return store_nibble(p + i / 2, i, to_integer(x, rounding));
    p += i * size_of(type);
    switch (type) {
        case DType::f16: return store_raw(p, float_to_half(float(to_precision(x, 11, -14, rounding))));
        case DType::bf16: return store_raw(p, float_to_bf16(float(to_precision(x, 8, -126, rounding))));
        case DType::f8e4m3: return store_raw(p, small_rounded(x, e4m3, rounding));
        case DType::f8e5m2: return store_raw(p, small_rounded(x, e5m2, rounding));
        case DType::f32: return store_raw(p, float(to_precision(x, 24, -126, rounding)));
        case DType::i64: return store_raw(p, saturated<int64_t>(to_integer(x, rounding)));
        case DType::i32: return store_raw(p, saturated<int32_t>(to_integer(x, rounding)));
        case DType::i16: return store_raw(p, saturated<int16_t>(to_integer(x, rounding)));
        case DType::u8: return store_raw(p, saturated<uint8_t>(to_integer(x, rounding)));
        default: return store_raw(p, saturated<int8_t>(to_integer(x, rounding)));
    }
}

// The casts of most kernels, without a loop over modes for each element. False: it is none of them.
bool cast_run(uint8_t* to, const uint8_t* from, int64_t count, DType dst, DType src, Rounding rounding)
{
    const int64_t written = count * size_of(dst), read = count * size_of(src);
    const bool apart = to + written <= from || from + read <= to || (to == from && written <= read);  // as if all was read first
    const bool nearest = apart && (rounding == Rounding::none || rounding == Rounding::rint);
    const auto each = [&](auto target, auto source, auto compute) {
        using To = decltype(target);
        using From = decltype(source);
        for (int64_t first = 0; first < count; first += at_once) {
            const int64_t n = std::min(at_once, count - first);
            From read[at_once];
            To written[at_once];
            std::memcpy(read, from + first * int64_t(sizeof(From)), size_t(n) * sizeof(From));
            for (int64_t i = 0; i < n; ++i) written[i] = compute(read[i]);
            std::memcpy(to + first * int64_t(sizeof(To)), written, size_t(n) * sizeof(To));
        }
        return true;
    };
    if (src == DType::f32 && dst == DType::f16 && nearest) return each(uint16_t(), float(), float_to_half);
    if (src == DType::f32 && dst == DType::bf16 && nearest) return each(uint16_t(), float(), float_to_bf16);
    if (src == DType::f16 && dst == DType::f32 && apart) return each(float(), uint16_t(), [](uint16_t x) { return quiet(half_to_float(x)); });
    if (src == DType::bf16 && dst == DType::f32 && apart) return each(float(), uint16_t(), [](uint16_t x) { return quiet(bf16_to_float(x)); });
    return false;
}

bool is_small(DType type) { return type == DType::f8e4m3 || type == DType::f8e5m2; }
bool is_float(DType type) { return is_small(type) || type == DType::f16 || type == DType::bf16 || type == DType::f32; }
bool is_byte(DType type) { return type == DType::i4 || type == DType::i8 || type == DType::u8; }

// What the vendor's tables for A2 and A3, and for the 950, allow (Cast.md): conversions that lose nothing take CAST_NONE, others need a mode.
void check_mode(DType dst, DType src, Rounding rounding, int line)
{
    if (src == DType::i32 && dst == DType::f16) return;
    const bool whole = !is_float(src) && !is_float(dst);
    const bool exact = whole || is_byte(src) || is_small(src) || (dst == DType::f32 && (src == DType::f16 || src == DType::bf16 || src == DType::i16));
    if (exact && rounding != Rounding::none)
        misuse("field", line, "this Cast takes RoundMode::CAST_NONE only");
    const bool needs = (is_float(src) && !is_float(dst) && !is_byte(dst)) || dst == DType::bf16 ||
                       (dst == DType::f32 && (src == DType::f32 || src == DType::i64));
    if (needs && rounding == Rounding::none)
        misuse("field", line, "this Cast needs a rounding mode (CAST_RINT, FLOOR, CEIL, ROUND or TRUNC)");
    if (is_small(dst) && rounding != Rounding::rint) misuse("field", line, "a Cast to floats of 8 bits takes RoundMode::CAST_RINT");
    if (rounding == Rounding::odd && !(src == DType::f32 && dst == DType::f16))
        misuse("field", line, "CAST_ODD is for float to half only");
}

// Two int4b_t share a byte, and are written together.
void check_nibbles(const VectorInstruction& v, DType dst, DType src, int line)
{
    if (dst != DType::i4 && src != DType::i4) return;
    for (const Run& run : v.runs())
        if (run.count % 2 || run.at[0] % 2 || run.at[1] % 2)
            misuse("field", line, "a Cast from or to int4b_t takes pairs of elements: an even count, and masks of two equal bits");
}

}  // namespace

void vector_cast(VectorSide dst, VectorSide src, Rounding rounding, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_cast(dst, src, rounding, lanes, line); }, dst, src)) return;
    const DType to = dst.at.type, from = src.at.type;
    check_mode(to, from, rounding, line);
    const VectorSide sides[] = {dst, src};
    const VectorInstruction v("Cast", line, lanes, sides, 2, false);
    if (v.nothing()) return;
    check_nibbles(v, to, from, line);
    const bool scaled = from == DType::i32 && to == DType::f16;
    const double scale = scaled ? deq_scale("a Cast of int32_t to half", line) : 1.0;
    if (scaled) rounding = Rounding::rint;
    std::vector<double> values;
    for (const Run& run : v.runs()) {
        if (!scaled && cast_run(v.data(0) + bytes_of(to, run.at[0]), v.data(1) + bytes_of(from, run.at[1]), run.count, to, from, rounding))
            continue;
        values.resize(size_t(run.count));
        for (int64_t i = 0; i < run.count; ++i) values[size_t(i)] = load(v.data(1), run.at[1] + i, from) * scale;
        if (to == DType::f32 && from == DType::f32)  // to whole numbers (precision_conversion.md)
            for (double& x : values) x = to_integer(x, rounding);
        for (int64_t i = 0; i < run.count; ++i) store(v.data(0), run.at[0] + i, values[size_t(i)], to, rounding);
    }
}

namespace
{

// The sum, difference or product as the source's type holds it: whole numbers wrap.
double combined(BinaryOp op, double a, double b, DType type)
{
    const double exact = op == BinaryOp::mul ? a * b : op == BinaryOp::sub_relu ? a - b : a + b;
    uint8_t bytes[8] = {0};
    if (type == DType::i16)
        store_raw(bytes, int16_t(int64_t(exact)));
    else
        store(bytes, 0, exact, type, Rounding::rint);
    const double held = load(bytes, 0, type);
    return op != BinaryOp::mul && held < 0 ? 0.0 : held;
}

}  // namespace

void vector_binary_cast(const char* name, BinaryOp op, VectorSide dst, VectorSide a, VectorSide b, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_binary_cast(name, op, dst, a, b, lanes, line); }, dst, a, b)) return;
    const VectorSide sides[] = {dst, a, b};
    const VectorInstruction v(name, line, lanes, sides, 3, false);
    for (const Run& run : v.runs()) {
        std::vector<double> values(static_cast<size_t>(run.count));
        for (int64_t i = 0; i < run.count; ++i)
            values[size_t(i)] = combined(op, load(v.data(1), run.at[1] + i, a.at.type), load(v.data(2), run.at[2] + i, a.at.type),
                                         a.at.type);
        for (int64_t i = 0; i < run.count; ++i) store(v.data(0), run.at[0] + i, values[size_t(i)], dst.at.type, Rounding::rint);
    }
}

}  // namespace tile_sim
