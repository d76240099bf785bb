// Ready-made functions of the high-level API, made of the instructions, the orders and the constants of the vendor's pages and public
// headers for 2201 (Tanh.md, Sigmoid.md, Gelu.md, Erf.md): so their roundings are those of the instructions.
#pragma once
#include "steps.h"

namespace AscendC
{
namespace detail
{

// (e^2x - 1) / (e^2x + 1), of x within 8.8
inline void tanh_of(const Steps& steps, const LocalTensor<float>& dst, const LocalTensor<float>& src, const LocalTensor<float>& e)
{
    steps.mins(e, src, 8.8).maxs(e, e, -8.8).muls(e, e, 2).exp(e, e).adds(dst, e, -1).adds(e, e, 1).div(dst, dst, e);
}

template <class T>
void tanh_all(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp, int64_t count, Line line)
{
    constexpr bool narrow = sizeof(T) == 2;  // computed in float
    check_count("Tanh", dst, src, count, line);
    const int64_t piece = elements_at_a_time<float>("Tanh", tmp, narrow ? 2 : 1, line);
    const LocalTensor<float> a = tmp.ReinterpretCast<float>(), b = a[piece];
    in_parts(count, piece, line, [&](const Steps& steps, int64_t first) {
        if constexpr (narrow) {
            steps.cast(a, src[first]);
            tanh_of(steps, a, a, b);
            steps.cast(dst[first], a);
        } else {
            tanh_of(steps, dst[first], src[first], a);
        }
    });
}

// 1 / (1 + e^-x)
template <class T>
void sigmoid_all(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp, int64_t count, Line line)
{
    check_count("Sigmoid", dst, src, count, line);
    const int64_t piece = elements_at_a_time<T>("Sigmoid", tmp, 1, line);
    const LocalTensor<T> one = tmp.ReinterpretCast<T>();
    in_parts(count, piece, line, [&](const Steps& steps, int64_t first) {
        const LocalTensor<T> y = dst[first];
        steps.wait().muls(y, src[first], -1).exp(y, y).adds(y, y, 1).fill(one, 1).div(y, one, y);
    });
}

// P(x) / Q(x), both polynomials of x^2 (and P times x), of x within 3.92. `x` is overwritten; the quotient is left in `dst`.
inline void erf_of(const Steps& steps, const LocalTensor<float>& dst, const LocalTensor<float>& x, const LocalTensor<float>& square,
                   const LocalTensor<float>& p, const LocalTensor<float>& q)
{
    constexpr double of_p[] = {0.75517016694e1, 0.10162808918e3, 0.13938061484e4, 0.50637915060e4};
    constexpr double of_q[] = {0.39856963806e3, 0.30231248150e4, 0.13243365831e5, 0.26267224157e5};
    steps.mul(square, x, x).muls(p, square, 0.053443748819);
    for (const double c : of_p) steps.adds(q, p, c).mul(p, square, q);
    steps.adds(q, p, 0.29639384698e5).mul(p, x, q).adds(q, square, 0.31212858877e2);
    for (const double c : of_q) steps.mul(x, square, q).adds(q, x, c);
    steps.div(dst, p, q);
}

template <class T>
void erf_all(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp, int64_t count, Line line)
{
    constexpr bool narrow = sizeof(T) == 2;
    check_count("Erf", dst, src, count, line);
    const int64_t piece = elements_at_a_time<float>("Erf", tmp, narrow ? 4 : 3, line);
    const LocalTensor<float> a = tmp.ReinterpretCast<float>(), b = a[piece], c = b[piece], d = c[piece];
    in_parts(count, piece, line, [&](const Steps& steps, int64_t first) {
        if constexpr (narrow) {
            steps.cast(d, src[first]).mins(a, d, 3.92).maxs(d, a, -3.92);
            erf_of(steps, a, d, a, b, c);
            steps.cast(dst[first], a, RoundMode::CAST_ROUND);
        } else {
            const LocalTensor<float> y = dst[first];
            steps.mins(a, src[first], 3.92).maxs(y, a, -3.92);
            erf_of(steps, y, y, a, b, c);
        }
    });
}

// x * 1 / (1 + e^-|y|) * e^min(y, 0) with y = 1.5957691 (x + 0.044715 x^3): the form by tanh, without overflow
template <bool fast, class T>
void gelu_of(const Steps& steps, const LocalTensor<T>& dst, const LocalTensor<T>& x, const LocalTensor<T>& a, const LocalTensor<T>& b,
             const LocalTensor<T>&)
{
    steps.mul(a, x, x).mul(b, x, a).muls(a, b, 0.044715).add(b, x, a).muls(a, b, 1.5957691216057308);
    steps.mins(b, a, 0).exp(b, b).abs(a, a).muls(a, a, -1).exp(a, a).adds(a, a, 1);
    if constexpr (fast)
        steps.reciprocal(a, a).mul(a, x, a);
    else
        steps.div(a, x, a);
    steps.mul(dst, a, b);
}

// x / (1 + e^-1.702x)
template <bool fast, class T>
void faster_gelu_of(const Steps& steps, const LocalTensor<T>& dst, const LocalTensor<T>& x, const LocalTensor<T>& a,
                    const LocalTensor<T>&, const LocalTensor<T>&)
{
    steps.muls(a, x, -1.702).exp(a, a).adds(a, a, 1);
    if constexpr (fast)
        steps.reciprocal(a, a).mul(dst, x, a);
    else
        steps.div(dst, x, a);
}

// x (sign(x) (0.5 - 0.1444 (min(|0.7071 x|, 1.769) - 1.769)^2) + 0.5)
template <bool fast, class T>
void faster_gelu_v2_of(const Steps& steps, const LocalTensor<T>& dst, const LocalTensor<T>& x, const LocalTensor<T>& a,
                       const LocalTensor<T>& b, const LocalTensor<T>& c)
{
    steps.muls(a, x, 0.7071).abs(a, a).mins(a, a, 1.769).adds(a, a, -1.769).mul(a, a, a).muls(a, a, -0.1444).adds(a, a, 0.5);
    steps.adds(b, x, 1e-12).abs(c, b);
    if constexpr (fast)
        steps.reciprocal(c, c).mul(b, b, c);
    else
        steps.div(b, b, c);
    steps.mul(a, a, b).adds(a, a, 0.5).mul(dst, x, a);
}

// A function of elements with `parts` temporary tensors; halves as floats where they are to be `precise`, which takes another one.
template <bool precise, class T, class Function>
void gelu_all(const char* name, int64_t parts, const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp,
              int64_t count, Line line, const Function& function)
{
    constexpr bool widened = precise && sizeof(T) == 2;
    using Inner = std::conditional_t<widened, float, T>;
    check_count(name, dst, src, count, line);
    const int64_t piece = elements_at_a_time<Inner>(name, tmp, parts + widened, line);
    const LocalTensor<Inner> a = tmp.ReinterpretCast<Inner>(), b = a[piece], c = b[piece], wide = a[parts * piece];
    in_parts(count, piece, line, [&](const Steps& steps, int64_t first) {
        if constexpr (widened) {
            steps.cast(wide, src[first]);
            function(steps, wide, wide, a, b, c);
            steps.cast(dst[first], wide);
        } else {
            function(steps, dst[first], src[first], a, b, c);
        }
    });
}

}  // namespace detail

// Each with a temporary buffer or without, over the first elements or over all that the source has.
#define TILE_SIM_FUNCTION(NAME, ALL)                                                                                                  \
    template <class T, bool isReuseSource = false>                                                                                    \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& sharedTmpBuffer, uint32_t calCount,   \
              Line line = Line(__builtin_LINE()))                                                                                     \
    {                                                                                                                                 \
        if (!tile_sim::is_aic()) detail::ALL(dst, src, sharedTmpBuffer, calCount, line);                                              \
    }                                                                                                                                 \
    template <class T, bool isReuseSource = false>                                                                                    \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& sharedTmpBuffer,                      \
              Line line = Line(__builtin_LINE()))                                                                                     \
    {                                                                                                                                 \
        NAME<T, isReuseSource>(dst, src, sharedTmpBuffer, src.GetSize(), line);                                                       \
    }                                                                                                                                 \
    template <class T, bool isReuseSource = false>                                                                                    \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t calCount, Line line = Line(__builtin_LINE()))            \
    {                                                                                                                                 \
        if (!tile_sim::is_aic()) detail::ALL(dst, src, detail::unused_buffer(#NAME, line), calCount, line);                           \
    }                                                                                                                                 \
    template <class T, bool isReuseSource = false>                                                                                    \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, Line line = Line(__builtin_LINE()))                               \
    {                                                                                                                                 \
        NAME<T, isReuseSource>(dst, src, src.GetSize(), line);                                                                        \
    }

TILE_SIM_FUNCTION(Tanh, tanh_all)
TILE_SIM_FUNCTION(Sigmoid, sigmoid_all)
TILE_SIM_FUNCTION(Erf, erf_all)
#undef TILE_SIM_FUNCTION

#define TILE_SIM_GELU(NAME, FUNCTION, PARTS)                                                                                          \
    template <class T, bool highPrecision = false, bool highPerformance = false>                                                      \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& sharedTmpBuffer, uint32_t dataSize,   \
              Line line = Line(__builtin_LINE()))                                                                                     \
    {                                                                                                                                 \
        detail::gelu_all<highPrecision>(#NAME, PARTS, dst, src, sharedTmpBuffer, dataSize, line, [](const auto&... operands) {        \
            detail::FUNCTION<highPerformance>(operands...);                                                                           \
        });                                                                                                                           \
    }                                                                                                                                 \
    template <class T, bool highPrecision = false, bool highPerformance = false>                                                      \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t dataSize, Line line = Line(__builtin_LINE()))            \
    {                                                                                                                                 \
        NAME<T, highPrecision, highPerformance>(dst, src, detail::unused_buffer(#NAME, line), dataSize, line);                        \
    }

TILE_SIM_GELU(Gelu, gelu_of, 2)
TILE_SIM_GELU(FasterGelu, faster_gelu_of, 1)
TILE_SIM_GELU(FasterGeluV2, faster_gelu_v2_of, 3)
#undef TILE_SIM_GELU

}  // namespace AscendC
