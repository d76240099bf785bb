// Elementwise vector instructions. half and bfloat16_t compute in float and round once.
#include <algorithm>
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

// The same through float: its 24 bits are enough that one addition, subtraction, multiplication or division of halves comes out as if
// it had been rounded once (twice the bits of half and two more), and of floats it is that rounding.
struct NearHalfIo {
    using Stored = uint16_t;
    using Wide = float;
    static Wide load(Stored x) { return half_to_float(x); }
    static Stored store(Wide x) { return float_to_half(x); }
};
struct NearFloatIo {
    using Stored = float;
    using Wide = float;
    static Wide load(Stored x) { return x; }
    static Stored store(Wide x) { return quiet(x); }
};

// Calls `body` with the reader and writer of an element type; `near`: one for which float does.
template <class Body>
void with_type(DType type, bool near, Body body)
{
    switch (type) {
        case DType::f16: return near ? body(NearHalfIo{}) : body(HalfIo{});
        case DType::f32: return near ? body(NearFloatIo{}) : body(FloatIo{});
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

bool accumulates(BinaryOp op)
{
    return op == BinaryOp::mul_add_dst || op == BinaryOp::fused_mul_add || op == BinaryOp::fused_mul_add_relu;
}

// Operations for which float does where the elements are no wider. The others are computed in double.
bool is_near(UnaryOp op) { return op == UnaryOp::relu || op == UnaryOp::abs || op == UnaryOp::neg; }
bool is_near(BinaryOp op) { return !accumulates(op); }

// Calls `body` with what the operation computes of an element.
template <class Body>
void with_unary(UnaryOp op, DType, int64_t, Body body)
{
    if (op == UnaryOp::relu) return body([](int64_t x) { return relu(x); });
    if (op == UnaryOp::bit_not) return body([](int64_t x) { return ~x; });
    body([](int64_t x) { return x; });
}
template <class Body>
void with_unary(UnaryOp op, DType, float, Body body)
{
    if (op == UnaryOp::relu) return body([](float x) { return relu(x); });
    if (op == UnaryOp::abs) return body([](float x) { return std::fabs(x); });
    body([](float x) { return -x; });
}
template <class Body>
void with_unary(UnaryOp op, DType type, double, Body body)
{
    switch (op) {
        case UnaryOp::exp: return body([](double x) { return std::exp(x); });
        case UnaryOp::ln: return body([](double x) { return std::log(x); });
        case UnaryOp::sqrt: return body([](double x) { return std::sqrt(x); });
        case UnaryOp::rsqrt: return body([type](double x) { return approximate(1.0 / std::sqrt(x), x, type); });
        case UnaryOp::reciprocal: return body([type](double x) { return approximate(1.0 / x, x, type); });
        default: return body([](double x) { return x; });
    }
}

// Calls `body` with what the operation computes of an element of the destination and of both sources. Whole numbers are not divided:
// the header refuses it.
template <class W, class Body>
void with_binary(BinaryOp op, Body body)
{
    if constexpr (!std::is_same_v<W, float>) switch (op) {
            case BinaryOp::fused_mul_add: return body([](W dst, W a, W b) { return multiply_add(a, dst, b); });
            case BinaryOp::fused_mul_add_relu: return body([](W dst, W a, W b) { return relu(multiply_add(a, dst, b)); });
            case BinaryOp::mul_add_dst: return body([](W dst, W a, W b) { return multiply_add(a, b, dst); });
            default: break;
        }
    if constexpr (std::is_same_v<W, int64_t>) {
        if (op == BinaryOp::bit_and) return body([](W, W a, W b) { return a & b; });
        if (op == BinaryOp::bit_or) return body([](W, W a, W b) { return a | b; });
    }
    if constexpr (!std::is_same_v<W, double>) switch (op) {
            case BinaryOp::add: return body([](W, W a, W b) { return a + b; });
            case BinaryOp::sub: return body([](W, W a, W b) { return a - b; });
            case BinaryOp::mul: return body([](W, W a, W b) { return a * b; });
            case BinaryOp::max: return body([](W, W a, W b) { return larger(a, b); });
            case BinaryOp::min: return body([](W, W a, W b) { return smaller(a, b); });
            case BinaryOp::add_relu: return body([](W, W a, W b) { return relu(a + b); });
            case BinaryOp::sub_relu: return body([](W, W a, W b) { return relu(a - b); });
            default: break;
        }
    if constexpr (std::is_same_v<W, float>) return body([](W, W a, W b) { return a / b; });
}

// The same of an element of the destination, one of the source, and the scalar.
template <class W, class Body>
void with_scalar(ScalarOp op, Body body)
{
    switch (op) {
        case ScalarOp::adds: return body([](W, W x, W s) { return x + s; });
        case ScalarOp::muls: return body([](W, W x, W s) { return x * s; });
        case ScalarOp::maxs: return body([](W, W x, W s) { return larger(x, s); });
        case ScalarOp::mins: return body([](W, W x, W s) { return smaller(x, s); });
        case ScalarOp::leaky_relu: return body([](W, W x, W s) { return x >= 0 ? x : x * s; });
        default: break;
    }
    if constexpr (!std::is_same_v<W, float>) return body([](W dst, W x, W s) { return multiply_add(x, s, dst); });
}

// Whether the scalar is a number of the element type, and not one that lies between two of them.
bool is_one_of(DType type, double scalar)
{
    return double(type == DType::f16 ? half_to_float(double_to_half(scalar)) : float(scalar)) == scalar;
}

constexpr int64_t at_once = 64;  // elements

// Whether a loop may read some elements before it writes those before them.
bool independent(const void* out, const void* in, int64_t written, int64_t read)
{
    const auto *o = static_cast<const uint8_t*>(out), *i = static_cast<const uint8_t*>(in);
    return (o == i && written == read) || o + written <= i || i + read <= o;
}

// out[i] = compute(out[i], a[i], b[i]), by pieces that are loaded, computed and stored one after the other.
template <class Io, class From, class Compute>
void compute_run(typename Io::Stored* out, const typename From::Stored* a, const typename From::Stored* b, int64_t count, Compute compute)
{
    using T = typename Io::Stored;
    const int64_t written = count * int64_t(sizeof(T)), read = count * int64_t(sizeof(*a));
    const int64_t step = independent(out, a, written, read) && independent(out, b, written, read) ? at_once : 1;
    for (int64_t first = 0; first < count; first += step) {
        const int64_t n = std::min(step, count - first);
        T results[at_once];
        for (int64_t i = 0; i < n; ++i)
            results[i] = Io::store(compute(Io::load(out[first + i]), From::load(a[first + i]), From::load(b[first + i])));
        std::memcpy(out + first, results, size_t(n) * sizeof(T));
    }
}

// Float sums of half products: the one case of two element types.
template <class Body>
void with_types(DType dst, DType src, bool near, Body body)
{
    if (dst == DType::f32 && src == DType::f16) return near ? body(NearFloatIo{}, NearHalfIo{}) : body(FloatIo{}, HalfIo{});
    with_type(dst, near, [&](auto io) { body(io, io); });
}

}  // namespace

void vector_unary(const char* name, UnaryOp op, VectorSide dst, VectorSide src, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_unary(name, op, dst, src, lanes, line); }, dst, src)) return;
    const VectorSide sides[] = {dst, src};
    const bool copy = op == UnaryOp::copy;
    const VectorInstruction v(name, line, lanes, sides, 2, false);
    if (copy) return vector_move(v, dst.at, src.at);
    with_type(dst.at.type, is_near(op), [&](auto io) {
        using T = typename decltype(io)::Stored;
        using W = typename decltype(io)::Wide;
        with_unary(op, dst.at.type, W(), [&](auto compute) {
            for (const Run& run : v.runs()) {
                const T* const in = v.at<T>(1, run.at[1]);
                compute_run<decltype(io), decltype(io)>(v.at<T>(0, run.at[0]), in, in, run.count,
                                                        [&](W, W x, W) { return compute(x); });
            }
        });
    });
}

void vector_binary(const char* name, BinaryOp op, VectorSide dst, VectorSide a, VectorSide b, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_binary(name, op, dst, a, b, lanes, line); }, dst, a, b)) return;
    const VectorSide sides[] = {dst, a, b};
    const VectorInstruction v(name, line, lanes, sides, 3, accumulates(op));
    with_types(dst.at.type, a.at.type, is_near(op), [&](auto io, auto from) {
        using T = typename decltype(io)::Stored;
        using U = typename decltype(from)::Stored;
        with_binary<typename decltype(io)::Wide>(op, [&](auto compute) {
            for (const Run& run : v.runs())
                compute_run<decltype(io), decltype(from)>(v.at<T>(0, run.at[0]), v.at<U>(1, run.at[1]), v.at<U>(2, run.at[2]),
                                                          run.count, compute);
        });
    });
}

void vector_scalar(const char* name, ScalarOp op, VectorSide dst, VectorSide src, double scalar, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_scalar(name, op, dst, src, scalar, lanes, line); }, dst, src)) return;
    const VectorSide sides[] = {dst, src};
    const VectorInstruction v(name, line, lanes, sides, 2, op == ScalarOp::axpy);
    const bool near = op != ScalarOp::axpy && is_one_of(dst.at.type, scalar);
    with_types(dst.at.type, src.at.type, near, [&](auto io, auto from) {
        using T = typename decltype(io)::Stored;
        using U = typename decltype(from)::Stored;
        using W = typename decltype(io)::Wide;
        const W s = W(scalar);
        with_scalar<W>(op, [&](auto compute) {
            for (const Run& run : v.runs()) {
                const U* const in = v.at<U>(1, run.at[1]);
                compute_run<decltype(io), decltype(from)>(v.at<T>(0, run.at[0]), in, in, run.count,
                                                          [&](W dst, W x, W) { return compute(dst, x, s); });
            }
        });
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
    with_type(dst.at.type, false, [&](auto io) {
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
        if (size == 2)
            std::fill_n(v.at<uint16_t>(0, run.at[0]), run.count, uint16_t(bits));
        else if (size == 4)
            std::fill_n(v.at<uint32_t>(0, run.at[0]), run.count, uint32_t(bits));
        else
            for (int64_t i = 0; i < run.count; ++i) std::memcpy(v.at<uint8_t>(0, (run.at[0] + i) * size), &bits, size_t(size));
}

// Lane i of round r holds the first value plus r * lanes + i.
void vector_index(VectorSide dst, double first, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_index(dst, first, lanes, line); }, dst)) return;
    const VectorInstruction v("CreateVecIndex", line, lanes, &dst, 1, false);
    const int64_t width = 256 / size_of(dst.at.type), block = block_of(dst.at.type);
    with_type(dst.at.type, false, [&](auto io) {
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
    // Behind its first element the last repeat may read what no tensor holds any more.
    Operand padding = src;
    padding.begin = -1;
    spread.reads(src, 0, (repeat * 8 - 7) * size, Instruction::Poison::carry);
    spread.reads(padding, (repeat * 8 - 7) * size, 7 * size, Instruction::Poison::carry);
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
