// Number types, qualifiers and constants of Ascend C.
#pragma once
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "../runtime/interface.h"
#include "../runtime/numbers.h"

#define __aicore__
#define __global__
#define __gm__
#define __ubuf__
#define __cbuf__
#define __cc__
#define __ca__
#define __cb__
#define __cube__
#define __vector__
#define __mix__(...)
#define __kfc_workspace__
#define __inout_pipe__(x)
#define __forceinline__ inline
#ifndef __NPU_ARCH__
#define __NPU_ARCH__ 2201
#endif
#define GM_ADDR __gm__ uint8_t*
#define ASCEND_IS_AIC (::tile_sim::is_aic())
#define ASCEND_IS_AIV (::tile_sim::is_aiv())
#define KERNEL_TASK_TYPE_DEFAULT(type) ::tile_sim::declare_type(type, ::tile_sim::placed(__LINE__, __FILE__))

constexpr auto KERNEL_TYPE_AIC_ONLY = tile_sim::KernelType::AIC_ONLY;
constexpr auto KERNEL_TYPE_AIV_ONLY = tile_sim::KernelType::AIV_ONLY;
constexpr auto KERNEL_TYPE_MIX_AIC_1_1 = tile_sim::KernelType::MIX_AIC_1_1;
constexpr auto KERNEL_TYPE_MIX_AIC_1_2 = tile_sim::KernelType::MIX_AIC_1_2;
constexpr auto KERNEL_TYPE_MIX_AIC_1_0 = tile_sim::KernelType::MIX_AIC_1_0;
constexpr auto KERNEL_TYPE_MIX_AIV_1_0 = tile_sim::KernelType::MIX_AIV_1_0;

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL, PIPE_FIX };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };
enum class QuantMode_t : uint8_t { NoQuant, F322F16, F322BF16, DEQF16, VDEQF16, QF322B8_PRE, VQF322B8_PRE, REQ8, VREQ8 };

namespace tile_sim
{

template <uint16_t (*encode)(float), float (*decode)(uint16_t)>
struct Float16 {
    uint16_t bits = 0;

    Float16() = default;
    template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
    Float16(N value) : bits(encode(static_cast<float>(value)))
    {
    }
    operator float() const { return decode(bits); }
    Float16& operator+=(float other) { return *this = Float16(float(*this) + other); }
    Float16& operator-=(float other) { return *this = Float16(float(*this) - other); }
    Float16& operator*=(float other) { return *this = Float16(float(*this) * other); }
    Float16& operator/=(float other) { return *this = Float16(float(*this) / other); }
};

}  // namespace tile_sim

namespace AscendC
{

// The line of a call, as the last argument that nobody gives: no number is taken for it, so that it cannot decide which form of an
// instruction is meant.
struct Line {
    explicit Line(int number, const char* file = __builtin_FILE()) : number_(tile_sim::placed(number, file)) {}
    operator int() const { return number_; }

private:
    int number_;
};

}  // namespace AscendC

struct half : tile_sim::Float16<tile_sim::float_to_half, tile_sim::half_to_float> {
    using Float16::Float16;
};
struct bfloat16_t : tile_sim::Float16<tile_sim::float_to_bf16, tile_sim::bf16_to_float> {
    using Float16::Float16;
};

#if __NPU_ARCH__ == 3510
struct fp8_e4m3fn_t {  // floats of 8 bits: they are moved, multiplied and cast
    uint8_t bits = 0;
    fp8_e4m3fn_t() = default;
    fp8_e4m3fn_t(float held) : bits(tile_sim::small_bits(held, tile_sim::e4m3)) {}
};
struct fp8_e5m2_t {
    uint8_t bits = 0;
    fp8_e5m2_t() = default;
    fp8_e5m2_t(float held) : bits(tile_sim::small_bits(held, tile_sim::e5m2)) {}
};
struct fp8_e8m0_t {  // scales, and floats of 4 bits of which two share a byte: they are moved and multiplied
    uint8_t bits = 0;
};
struct fp4x2_e2m1_t {
    uint8_t bits = 0;
};
struct fp4x2_e1m2_t {
    uint8_t bits = 0;
};
#endif

namespace tile_sim
{

template <class T>
struct TypeOf;
#if __NPU_ARCH__ == 3510
template <>
struct TypeOf<fp8_e4m3fn_t> {
    static constexpr DType value = DType::f8e4m3;
};
template <>
struct TypeOf<fp8_e5m2_t> {
    static constexpr DType value = DType::f8e5m2;
};
template <>
struct TypeOf<fp8_e8m0_t> {
    static constexpr DType value = DType::e8m0;
};
template <>
struct TypeOf<fp4x2_e2m1_t> {
    static constexpr DType value = DType::f4e2m1;
};
template <>
struct TypeOf<fp4x2_e1m2_t> {
    static constexpr DType value = DType::f4e1m2;
};
#endif
template <>
struct TypeOf<half> {
    static constexpr DType value = DType::f16;
};
template <>
struct TypeOf<bfloat16_t> {
    static constexpr DType value = DType::bf16;
};
template <>
struct TypeOf<float> {
    static constexpr DType value = DType::f32;
};
template <>
struct TypeOf<int8_t> {
    static constexpr DType value = DType::i8;
};
template <>
struct TypeOf<uint8_t> {
    static constexpr DType value = DType::u8;
};
template <>
struct TypeOf<bool> {
    static constexpr DType value = DType::u8;
};
template <>
struct TypeOf<int16_t> {
    static constexpr DType value = DType::i16;
};
template <>
struct TypeOf<uint16_t> {
    static constexpr DType value = DType::u16;
};
template <>
struct TypeOf<int32_t> {
    static constexpr DType value = DType::i32;
};
template <>
struct TypeOf<uint32_t> {
    static constexpr DType value = DType::u32;
};
template <>
struct TypeOf<int64_t> {
    static constexpr DType value = DType::i64;
};
template <>
struct TypeOf<uint64_t> {
    static constexpr DType value = DType::u64;
};

template <class T>
uint64_t to_bits(T value)
{
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
}

constexpr Pipe pipe_of(pipe_t pipe)
{
    switch (pipe) {
        case PIPE_S: return Pipe::S;
        case PIPE_V: return Pipe::V;
        case PIPE_M: return Pipe::M;
        case PIPE_MTE1: return Pipe::MTE1;
        case PIPE_MTE2: return Pipe::MTE2;
        case PIPE_MTE3: return Pipe::MTE3;
        case PIPE_FIX: return Pipe::FIX;
        default: return Pipe::ALL;
    }
}

// A field of a parameter structure. It keeps what was given, so that a value the hardware's field cannot hold is seen.
class Field
{
public:
    Field() = default;
    template <class N, class = std::enable_if_t<std::is_integral_v<N> || std::is_enum_v<N>>>
    Field(N value) : value_(static_cast<int64_t>(value))
    {
    }
    template <class N, class = std::enable_if_t<std::is_integral_v<typename N::value_type>>, class = void>
    Field(const N& constant) : value_(static_cast<int64_t>(constant))  // std::integral_constant and the like
    {
    }
    operator int64_t() const { return value_; }

private:
    int64_t value_ = 0;
};

}  // namespace tile_sim

namespace AscendC
{

struct int4b_t {  // half a byte in tensors: two elements share the byte that starts with the even one
    uint8_t storage = 0;
    int4b_t() = default;
    int4b_t(int value) : storage(uint8_t(value)) {}
};

// Kinds of core. A text is compiled once for both, so `g_coreType` is neither: simulator/dialect.py makes run-time choices of it.
constexpr int32_t MIX = 0, AIC = 1, AIV = 2;

enum class TPosition : uint8_t { GM, A1, A2, B1, B2, C1, C2, C2PIPE2GM, CO1, CO2, VECIN, VECOUT, VECCALC, LCM, TSCM, MAX, SHM = TSCM };
using QuePosition = TPosition;
enum class RoundMode { CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD };
enum class ReduceOrder { ORDER_VALUE_INDEX, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };
enum class ReduceType { SUM, MAX, MIN };
enum class CMPMODE : uint8_t { LT, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class CacheMode { CACHE_MODE_DISABLE, CACHE_MODE_NORMAL, CACHE_MODE_LAST, CACHE_MODE_PERSISTENT };
enum class CacheRwMode { READ, WRITE, RW };
enum class CO2Layout : uint8_t { NZ, ROW_MAJOR, COLUMN_MAJOR };

constexpr int32_t ONE_BLK_SIZE = 32;
constexpr int32_t DEFAULT_C0_SIZE = 32;
constexpr int32_t BLOCK_CUBE = 16;
constexpr uint32_t K_MAX_DIM = 8;
#ifndef K_MAX_SHAPE_DIM  // a file may say how many dimensions its tensors' shapes have
#define K_MAX_SHAPE_DIM 8
#endif

template <class A, class B>
struct IsSameType {
    static constexpr bool value = std::is_same_v<A, B>;
};
template <class T>
struct SizeOfBits {
    static constexpr size_t value = std::is_same_v<T, int4b_t> ? 4 : sizeof(T) * 8;
};
#if __NPU_ARCH__ == 3510
template <>
struct SizeOfBits<fp4x2_e2m1_t> {
    static constexpr size_t value = 4;
};
template <>
struct SizeOfBits<fp4x2_e1m2_t> {
    static constexpr size_t value = 4;
};
#endif
template <class N>
constexpr N CeilDivision(N a, N b)
{
    return b == 0 ? a : (a + b - 1) / b;
}

constexpr tile_sim::Space space_of(TPosition position)
{
    switch (position) {
        case TPosition::A1:
        case TPosition::B1:
        case TPosition::C1:
        case TPosition::TSCM: return tile_sim::Space::L1;
        case TPosition::A2: return tile_sim::Space::L0A;
        case TPosition::B2: return tile_sim::Space::L0B;
        case TPosition::CO1: return tile_sim::Space::L0C;
        case TPosition::C2: return tile_sim::Space::BT;
        case TPosition::C2PIPE2GM: return tile_sim::Space::FB;
        case TPosition::GM:
        case TPosition::CO2: return tile_sim::Space::GM;
        default: return tile_sim::Space::UB;
    }
}

}  // namespace AscendC

namespace tile_sim
{

template <>
struct TypeOf<AscendC::int4b_t> {
    static constexpr DType value = DType::i4;
};

template <class T>
constexpr int64_t bytes_of(int64_t elements)
{
    return bytes_of(TypeOf<T>::value, elements);
}

}  // namespace tile_sim

constexpr int32_t g_coreType = AscendC::MIX;
