// Elementwise vector instructions. half and bfloat16_t compute in float and round once.
#include <cmath>
#include <cstring>
#include <limits>

#include "lanes.h"
#include "schedule.h"
#include "rounding.h"

namespace tile_sim
{
namespace
{

struct HalfIo {
    using Stored = uint16_t;
    static double load(Stored x) { return half_to_float(x); }
    static Stored store(double x) { return double_to_half(x); }
};
struct FloatIo {
    using Stored = float;
    static double load(Stored x) { return x; }
    static Stored store(double x) { return float(x); }
};
template <class T>
struct IntIo {
    using Stored = T;
    static double load(Stored x) { return x; }
    static Stored store(double x) { return T(int64_t(x)); }
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

double larger(double a, double b)
{
    return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : a > b ? a : b;
}
double smaller(double a, double b)
{
    return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : a < b ? a : b;
}

double unary(UnaryOp op, double x, DType type)
{
    switch (op) {
        case UnaryOp::exp: return std::exp(x);
        case UnaryOp::ln: return std::log(x);
        case UnaryOp::abs: return std::fabs(x);
        case UnaryOp::sqrt: return std::sqrt(x);
        case UnaryOp::rsqrt: return approximate(1.0 / std::sqrt(x), x, type);
        case UnaryOp::relu: return x < 0 ? 0.0 : x;
        case UnaryOp::reciprocal: return approximate(1.0 / x, x, type);
        case UnaryOp::neg: return -x;
        case UnaryOp::bit_not: return double(~int64_t(x));
        default: return x;
    }
}

double binary(BinaryOp op, double dst, double a, double b)
{
    switch (op) {
        case BinaryOp::add: return a + b;
        case BinaryOp::sub: return a - b;
        case BinaryOp::mul: return a * b;
        case BinaryOp::div: return a / b;
        case BinaryOp::max: return larger(a, b);
        case BinaryOp::min: return smaller(a, b);
        case BinaryOp::bit_and: return double(int64_t(a) & int64_t(b));
        case BinaryOp::bit_or: return double(int64_t(a) | int64_t(b));
        default: return std::fma(a, b, dst);
    }
}

double scalar_op(ScalarOp op, double dst, double x, double s)
{
    switch (op) {
        case ScalarOp::adds: return x + s;
        case ScalarOp::muls: return x * s;
        case ScalarOp::maxs: return larger(x, s);
        case ScalarOp::mins: return smaller(x, s);
        case ScalarOp::leaky_relu: return x >= 0 ? x : x * s;
        default: return std::fma(x, s, dst);
    }
}

}  // namespace

void vector_unary(const char* name, UnaryOp op, VectorSide dst, VectorSide src, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_unary(name, op, dst, src, lanes, line); }, dst, src)) return;
    const VectorSide sides[] = {dst, src};
    const bool copy = op == UnaryOp::copy;
    const VectorInstruction v(name, line, lanes, sides, 2, false, copy ? Instruction::Poison::carry : Instruction::Poison::error);
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
    const VectorInstruction v(name, line, lanes, sides, 3, op == BinaryOp::mul_add_dst);
    with_type(dst.at.type, [&](auto io) {
        using T = typename decltype(io)::Stored;
        for (const Run& run : v.runs()) {
            T* out = v.at<T>(0, run.at[0]);
            const T *left = v.at<T>(1, run.at[1]), *right = v.at<T>(2, run.at[2]);
            for (int64_t i = 0; i < run.count; ++i)
                out[i] = io.store(binary(op, io.load(out[i]), io.load(left[i]), io.load(right[i])));
        }
    });
}

void vector_scalar(const char* name, ScalarOp op, VectorSide dst, VectorSide src, double scalar, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_scalar(name, op, dst, src, scalar, lanes, line); }, dst, src)) return;
    const VectorSide sides[] = {dst, src};
    const VectorInstruction v(name, line, lanes, sides, 2, op == ScalarOp::axpy);
    with_type(dst.at.type, [&](auto io) {
        with_type(src.at.type, [&](auto from) {
            using T = typename decltype(io)::Stored;
            using U = typename decltype(from)::Stored;
            for (const Run& run : v.runs()) {
                T* out = v.at<T>(0, run.at[0]);
                const U* in = v.at<U>(1, run.at[1]);
                for (int64_t i = 0; i < run.count; ++i)
                    out[i] = io.store(scalar_op(op, io.load(out[i]), from.load(in[i]), scalar));
            }
        });
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
