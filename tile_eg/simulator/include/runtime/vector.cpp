// Elementwise vector instructions. half and bfloat16_t compute in float and round once.
#include <cmath>
#include <cstring>
#include <type_traits>

#include "lanes.h"
#include "schedule.h"
#include "rounding.h"

namespace tile_sim
{
namespace
{

// Elements of an instruction: how they are stored, and the type they are computed in. Whole numbers that do not fit their
// type keep their low bits.
struct HalfIo {
    using Stored = uint16_t;
    using Wide = double;
    static Wide load(Stored x) { return half_to_float(x); }
    static Stored store(Wide x) { return double_to_half(x); }
};
struct FloatIo {
    using Stored = float;
    using Wide = double;
    static Wide load(Stored x) { return x; }
    static Stored store(Wide x) { return float(x); }
};
template <class T>
struct IntIo {
    using Stored = T;
    using Wide = int64_t;
    static Wide load(Stored x) { return x; }
    static Stored store(Wide x) { return T(x); }
};

// Calls `body` with the reader and writer of an element type.
template <class Body>
void with_type(DType type, Body body)
{
    switch (type) {
        case DType::f16: return body(HalfIo{});
        case DType::f32: return body(FloatIo{});
        case DType::i16: return body(IntIo<int16_t>{});
        case DType::u16: return body(IntIo<uint16_t>{});
        case DType::i32: return body(IntIo<int32_t>{});
        default: return body(IntIo<uint32_t>{});
    }
}

// Reciprocal and Rsqrt are approximations: the vendor promises no better than 1e-3 for half and 1e-4 for float. The error
// is a fixed function of the operand, of about that size.
double approximate(double exact, double operand, DType type)
{
    const double bound = type == DType::f16 ? 1.0 / 512 : 1.0 / 4096;
    const uint32_t bits = float_bits(float(operand)) * 2654435761u;
    return exact * (1.0 + bound * (double(bits >> 8) / (1 << 23) - 1.0));
}

template <class Wide>
bool is_nan(Wide x)
{
    return x != x;
}
template <class Wide>
Wide larger(Wide a, Wide b)
{
    return is_nan(a) ? a : is_nan(b) ? b : a > b ? a : b;
}
template <class Wide>
Wide smaller(Wide a, Wide b)
{
    return is_nan(a) ? a : is_nan(b) ? b : a < b ? a : b;
}
template <class Wide>
Wide relu(Wide x)
{
    return x < 0 ? Wide(0) : x;
}
double multiply_add(double a, double b, double c) { return std::fma(a, b, c); }
int64_t multiply_add(int64_t a, int64_t b, int64_t c) { return a * b + c; }

double unary(UnaryOp op, double x, DType type)
{
    switch (op) {
        case UnaryOp::exp: return std::exp(x);
        case UnaryOp::ln: return std::log(x);
        case UnaryOp::abs: return std::fabs(x);
        case UnaryOp::sqrt: return std::sqrt(x);
        case UnaryOp::rsqrt: return approximate(1.0 / std::sqrt(x), x, type);
        case UnaryOp::relu: return relu(x);
        case UnaryOp::reciprocal: return approximate(1.0 / x, x, type);
        case UnaryOp::neg: return -x;
        default: return x;
    }
}

int64_t unary(UnaryOp op, int64_t x, DType)
{
    return op == UnaryOp::relu ? relu(x) : op == UnaryOp::bit_not ? ~x : x;
}

int64_t bits(BinaryOp op, int64_t a, int64_t b) { return op == BinaryOp::bit_and ? a & b : a | b; }
double bits(BinaryOp, double a, double) { return a; }
double quotient(double a, double b) { return a / b; }
int64_t quotient(int64_t a, int64_t) { return a; }  // no such instruction: the header refuses it

template <class Wide>
Wide binary(BinaryOp op, Wide dst, Wide a, Wide b)
{
    switch (op) {
        case BinaryOp::add: return a + b;
        case BinaryOp::sub: return a - b;
        case BinaryOp::mul: return a * b;
        case BinaryOp::div: return quotient(a, b);
        case BinaryOp::max: return larger(a, b);
        case BinaryOp::min: return smaller(a, b);
        case BinaryOp::fused_mul_add: return multiply_add(a, dst, b);
        case BinaryOp::fused_mul_add_relu: return relu(multiply_add(a, dst, b));
        case BinaryOp::add_relu: return relu(a + b);
        case BinaryOp::sub_relu: return relu(a - b);
        case BinaryOp::mul_add_dst: return multiply_add(a, b, dst);
        default: return bits(op, a, b);
    }
}

template <class Wide>
Wide scalar_op(ScalarOp op, Wide dst, Wide x, Wide s)
{
    switch (op) {
        case ScalarOp::adds: return x + s;
        case ScalarOp::muls: return x * s;
        case ScalarOp::maxs: return larger(x, s);
        case ScalarOp::mins: return smaller(x, s);
        case ScalarOp::leaky_relu: return x >= 0 ? x : x * s;
        default: return multiply_add(x, s, dst);
    }
}

bool accumulates(BinaryOp op)
{
    return op == BinaryOp::mul_add_dst || op == BinaryOp::fused_mul_add || op == BinaryOp::fused_mul_add_relu;
}

// Float sums of half products: the one case of two element types.
template <class Body>
void with_types(DType dst, DType src, Body body)
{
    if (dst == DType::f32 && src == DType::f16) return body(FloatIo{}, HalfIo{});
    with_type(dst, [&](auto io) { body(io, io); });
}

}  // namespace

void vector_unary(const char* name, UnaryOp op, VectorSide dst, VectorSide src, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_unary(name, op, dst, src, lanes, line); }, dst, src)) return;
    const VectorSide sides[] = {dst, src};
    const bool copy = op == UnaryOp::copy;
    const VectorInstruction v(name, line, lanes, sides, 2, false);
    if (copy) return vector_move(v, dst.at, src.at);
    with_type(dst.at.type, [&](auto io) {
        using T = typename decltype(io)::Stored;
        for (const Run& run : v.runs()) {
            T* out = v.at<T>(0, run.at[0]);
            const T* in = v.at<T>(1, run.at[1]);
            for (int64_t i = 0; i < run.count; ++i) out[i] = io.store(unary(op, io.load(in[i]), dst.at.type));
        }
    });
}

void vector_binary(const char* name, BinaryOp op, VectorSide dst, VectorSide a, VectorSide b, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_binary(name, op, dst, a, b, lanes, line); }, dst, a, b)) return;
    const VectorSide sides[] = {dst, a, b};
    const VectorInstruction v(name, line, lanes, sides, 3, accumulates(op));
    with_types(dst.at.type, a.at.type, [&](auto io, auto from) {
        using T = typename decltype(io)::Stored;
        using U = typename decltype(from)::Stored;
        for (const Run& run : v.runs()) {
            T* out = v.at<T>(0, run.at[0]);
            const U *left = v.at<U>(1, run.at[1]), *right = v.at<U>(2, run.at[2]);
            for (int64_t i = 0; i < run.count; ++i)
                out[i] = io.store(binary(op, io.load(out[i]), from.load(left[i]), from.load(right[i])));
        }
    });
}

void vector_scalar(const char* name, ScalarOp op, VectorSide dst, VectorSide src, double scalar, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_scalar(name, op, dst, src, scalar, lanes, line); }, dst, src)) return;
    const VectorSide sides[] = {dst, src};
    const VectorInstruction v(name, line, lanes, sides, 2, op == ScalarOp::axpy);
    with_types(dst.at.type, src.at.type, [&](auto io, auto from) {
        using T = typename decltype(io)::Stored;
        using U = typename decltype(from)::Stored;
        const auto s = typename decltype(io)::Wide(scalar);
        for (const Run& run : v.runs()) {
            T* out = v.at<T>(0, run.at[0]);
            const U* in = v.at<U>(1, run.at[1]);
            for (int64_t i = 0; i < run.count; ++i) out[i] = io.store(scalar_op(op, io.load(out[i]), from.load(in[i]), s));
        }
    });
}

namespace
{

// A left shift of a signed number keeps its sign bit; a right shift copies it (ShiftLeft.md, ShiftRight.md). Rounding adds
// the last bit that is shifted out.
int64_t shifted(int64_t x, bool left, int64_t by, int64_t width, bool is_signed, bool round)
{
    if (left) {
        const int64_t kept = width - (is_signed ? 1 : 0), low = (int64_t(1) << kept) - 1;
        return (x & ~low) | (by >= kept ? 0 : (x << by) & low);
    }
    if (by >= 63) return x < 0 ? -1 : 0;
    return (x >> by) + (round && by > 0 ? (x >> (by - 1) & 1) : 0);
}

}  // namespace

void vector_shift(const char* name, bool left, VectorSide dst, VectorSide src, int64_t bits, bool round, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_shift(name, left, dst, src, bits, round, lanes, line); }, dst, src)) return;
    const int64_t width = 8 * size_of(dst.at.type);
    const bool is_signed = dst.at.type == DType::i16 || dst.at.type == DType::i32;
    checked(bits, 0, width, "the number of bits of a shift", line);
    if (round && !is_signed) misuse("field", line, "ShiftRight rounds signed numbers only");
    const VectorSide sides[] = {dst, src};
    const VectorInstruction v(name, line, lanes, sides, 2, false);
    with_type(dst.at.type, [&](auto io) {
        if constexpr (std::is_same_v<typename decltype(io)::Wide, int64_t>) {
            using T = typename decltype(io)::Stored;
            for (const Run& run : v.runs()) {
                T* out = v.at<T>(0, run.at[0]);
                const T* in = v.at<T>(1, run.at[1]);
                for (int64_t i = 0; i < run.count; ++i)
                    out[i] = io.store(shifted(io.load(in[i]), left, bits, width, is_signed, round));
            }
        }
    });
}

void vector_duplicate(VectorSide dst, uint64_t bits, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_duplicate(dst, bits, lanes, line); }, dst)) return;
    const VectorInstruction v("Duplicate", line, lanes, &dst, 1, false);
    const int64_t size = size_of(dst.at.type);
    for (const Run& run : v.runs())
        for (int64_t i = 0; i < run.count; ++i) std::memcpy(v.at<uint8_t>(0, (run.at[0] + i) * size), &bits, size_t(size));
}

// Lane i of round r holds the first value plus r * lanes + i.
void vector_index(VectorSide dst, double first, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_index(dst, first, lanes, line); }, dst)) return;
    const VectorInstruction v("CreateVecIndex", line, lanes, &dst, 1, false);
    const int64_t width = 256 / size_of(dst.at.type), block = block_of(dst.at.type);
    with_type(dst.at.type, [&](auto io) {
        using T = typename decltype(io)::Stored;
        using Wide = typename decltype(io)::Wide;
        if (lanes.count >= 0) {
            for (int64_t i = 0; i < lanes.count; ++i) *v.at<T>(0, i) = io.store(Wide(first) + Wide(i));
            return;
        }
        for (int64_t r = 0; r < rounds_of(lanes, width); ++r)
            for (int64_t i = 0; i < width; ++i)
                if (lane_active(lanes, r, i, width))
                    *v.at<T>(0, (r * dst.stride.repeat + i / block * dst.stride.block) * block + i % block) =
                        io.store(Wide(first) + Wide(r * width + i));
    });
}

void vector_move(const VectorInstruction& v, const Operand& dst, const Operand& src)
{
    Memory& ub = machine.memory(Space::UB);
    const int64_t size = size_of(dst.type);
    for (const Run& run : v.runs()) {
        std::memmove(v.at<uint8_t>(0, run.at[0] * size), v.at<uint8_t>(1, run.at[1] * size), size_t(run.count * size));
        for (int64_t i = 0; i < run.count * size; i += granule)
            if (const int64_t from = src.address + run.at[1] * size + i; ub.poisoned(from, from + 1))
                ub.poison(dst.address + run.at[0] * size + i, dst.address + run.at[0] * size + i + granule, true);
    }
}

// Element i of the source fills block i of the destination.
void vector_brcb(Operand dst, Operand src, int64_t repeat, Stride stride, int line)
{
    if (queued(line, [=] { vector_brcb(dst, src, repeat, stride, line); }, dst, src)) return;
    Instruction spread("Brcb", Pipe::V, line);
    const int64_t size = size_of(dst.type);
    spread.needs(dst, Space::UB, "destination"), spread.needs(src, Space::UB, "source");
    if (!repeat) return;
    spread.align(dst, 32, "destination"), spread.align(src, 32, "source");
    if (size != 2 && size != 4) misuse("field", line, "Brcb takes 16-bit and 32-bit elements");
    const auto block = [&](int64_t r, int64_t i) { return (r * stride.repeat + i * stride.block) * 32; };
    spread.reads(src, 0, repeat * 8 * size, Instruction::Poison::carry);
    for (int64_t r = 0; r < repeat; ++r)
        for (int64_t i = 0; i < 8; ++i) spread.writes(dst, block(r, i), 32);
    spread.keeps_apart();
    spread.check();
    spread.sized(repeat * 16, size, 0, 0);
    spread.counts("vector", repeat * 256);
    Memory& ub = machine.memory(Space::UB);
    for (int64_t r = 0; r < repeat; ++r)
        for (int64_t i = 0; i < 8; ++i) {
            const int64_t from = (r * 8 + i) * size;
            for (int64_t e = 0; e < 32; e += size)
                std::memcpy(spread.data(dst, block(r, i) + e), spread.data(src, from), size_t(size));
            if (ub.poisoned(src.address + from, src.address + from + size))
                ub.poison(dst.address + block(r, i), dst.address + block(r, i) + 32, true);
        }
}

}  // namespace tile_sim
