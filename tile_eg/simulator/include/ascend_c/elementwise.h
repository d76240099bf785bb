// Logarithms, gates and limits of the high-level API, as activation.h: the instructions of the vendor's public headers for 2201, in
// their order. All but Log2 and SwiGLU of halves work without a temporary buffer.
#pragma once
#include "steps.h"

namespace AscendC
{
namespace detail
{

// One function of all elements at once, without a temporary buffer: function(steps).
template <class T, class Function>
void at_once(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t count, Line line, const Function& function)
{
    if (tile_sim::is_aic()) return;
    check_count(name, dst, src, count, line);
    in_parts(count, count, line, [&](const Steps& steps, int64_t) { function(steps.wait()); });
}

// ln x times a constant
template <class T>
void log_all(const char* name, double factor, const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t count, Line line)
{
    at_once(name, dst, src, count, line, [&](const Steps& steps) {
        steps.ln(dst, src);
        if (factor != 1) steps.muls(dst, dst, factor);
    });
}

// Of halves in float, which takes a temporary buffer.
template <class T>
void log2_all(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp, int64_t count, Line line)
{
    constexpr double by_ln2 = 1.4426950408889634;
    if constexpr (sizeof(T) == 4) {
        log_all("Log2", by_ln2, dst, src, count, line);
    } else {
        check_count("Log2", dst, src, count, line);
        const int64_t piece = elements_at_a_time<float>("Log2", tmp, 1, line);
        const LocalTensor<float> a = tmp.ReinterpretCast<float>();
        in_parts(count, piece, line, [&](const Steps& steps, int64_t first) {
            steps.wait().cast(a, src[first]).ln(a, a).muls(a, a, by_ln2).cast(dst[first], a);
        });
    }
}

// x / (1 + e^-bx), into another tensor than x
template <class T>
const Steps& swish_of(const Steps& steps, const LocalTensor<T>& dst, const LocalTensor<T>& x, double slope)
{
    return steps.muls(dst, x, -slope).exp(dst, dst).adds(dst, dst, 1).div(dst, x, dst);
}

template <class T>
void check_apart(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t count, int line)
{
    const auto a = dst.operand(), b = src.operand();
    const int64_t bytes = count * int64_t(sizeof(T));
    if (a.space == b.space && a.address < b.address + bytes && b.address < a.address + bytes)
        tile_sim::misuse("overlap", line, "%s reads its source after its destination is written: they must not overlap", name);
}

template <class T>
void swish_all(const char* name, double slope, const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t count, Line line)
{
    check_apart(name, dst, src, count, line);
    at_once(name, dst, src, count, line, [&](const Steps& steps) { swish_of(steps, dst, src, slope); });
}

// x swish(y); of halves in float, which takes a temporary buffer.
template <class T>
void swiglu_all(const LocalTensor<T>& dst, const LocalTensor<T>& x, const LocalTensor<T>& y, double slope,
                const LocalTensor<uint8_t>& tmp, int64_t count, Line line)
{
    check_count("SwiGLU", dst, x, count, line), check_count("SwiGLU", dst, y, count, line);
    if constexpr (sizeof(T) == 4) {
        check_apart("SwiGLU", dst, x, count, line), check_apart("SwiGLU", dst, y, count, line);
        at_once("SwiGLU", dst, y, count, line, [&](const Steps& steps) { swish_of(steps, dst, y, slope).mul(dst, x, dst); });
    } else {
        const int64_t piece = elements_at_a_time<float>("SwiGLU", tmp, 3, line);
        const LocalTensor<float> a = tmp.ReinterpretCast<float>(), b = a[piece], c = b[piece];
        in_parts(count, piece, line, [&](const Steps& steps, int64_t first) {
            steps.wait().cast(a, y[first]);
            swish_of(steps, b, a, slope).cast(c, x[first]).mul(b, c, b).cast(dst[first], b);
        });
    }
}

}  // namespace detail

#define TILE_SIM_OF_ALL(NAME, CALL)                                                                                             \
    template <class T, bool isReuseSource = false>                                                                              \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count, Line line = Line(__builtin_LINE()))         \
    {                                                                                                                           \
        CALL;                                                                                                                   \
    }                                                                                                                           \
    template <class T, bool isReuseSource = false>                                                                              \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, Line line = Line(__builtin_LINE()))                         \
    {                                                                                                                           \
        NAME<T, isReuseSource>(dst, src, src.GetSize(), line);                                                                  \
    }
TILE_SIM_OF_ALL(Log, detail::log_all("Log", 1, dst, src, count, line))
TILE_SIM_OF_ALL(Log10, detail::log_all("Log10", 0.43429448190325176, dst, src, count, line))
TILE_SIM_OF_ALL(Silu, detail::swish_all("Silu", 1, dst, src, count, line))
TILE_SIM_OF_ALL(Log2, if (!tile_sim::is_aic()) detail::log2_all(
                          dst, src, sizeof(T) == 4 ? LocalTensor<uint8_t>() : detail::unused_buffer("Log2", line), count, line))
#undef TILE_SIM_OF_ALL

template <class T, bool isReuseSource = false>
void Log2(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& sharedTmpBuffer, uint32_t count,
          Line line = Line(__builtin_LINE()))
{
    if (!tile_sim::is_aic()) detail::log2_all(dst, src, sharedTmpBuffer, count, line);
}
template <class T, bool isReuseSource = false>
void Log2(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& sharedTmpBuffer,
          Line line = Line(__builtin_LINE()))
{
    Log2<T, isReuseSource>(dst, src, sharedTmpBuffer, src.GetSize(), line);
}

template <class T, bool isReuseSource = false>
void Swish(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t dataSize, const T scalarValue,
           Line line = Line(__builtin_LINE()))
{
    detail::swish_all("Swish", float(scalarValue), dst, src, dataSize, line);
}

template <class T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, const float& beta,
            const LocalTensor<uint8_t>& sharedTmpBuffer, uint32_t count, Line line = Line(__builtin_LINE()))
{
    if (!tile_sim::is_aic()) detail::swiglu_all(dst, src0, src1, beta, sharedTmpBuffer, count, line);
}
template <class T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, const float& beta,
            const LocalTensor<uint8_t>& sharedTmpBuffer, Line line = Line(__builtin_LINE()))
{
    SwiGLU<T, isReuseSource>(dst, src0, src1, beta, sharedTmpBuffer, src0.GetSize(), line);
}
template <class T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, const float& beta, uint32_t count,
            Line line = Line(__builtin_LINE()))
{
    if (tile_sim::is_aic()) return;
    const auto tmp = sizeof(T) == 4 ? LocalTensor<uint8_t>() : detail::unused_buffer("SwiGLU", line);
    SwiGLU<T, isReuseSource>(dst, src0, src1, beta, tmp, count, line);
}
template <class T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, const float& beta,
            Line line = Line(__builtin_LINE()))
{
    SwiGLU<T, isReuseSource>(dst, src0, src1, beta, src0.GetSize(), line);
}

// The buffer is not used.
#define TILE_SIM_LIMIT(NAME, STEP)                                                                                               \
    template <class T, bool isReuseSource = false>                                                                              \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T scalar, uint32_t count,                             \
              Line line = Line(__builtin_LINE()))                                                                               \
    {                                                                                                                           \
        detail::at_once(#NAME, dst, src, count, line, [&](const detail::Steps& steps) { steps.STEP(dst, src, float(scalar)); }); \
    }                                                                                                                           \
    template <class T, bool isReuseSource = false>                                                                              \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>&, const T scalar, uint32_t count, \
              Line line = Line(__builtin_LINE()))                                                                               \
    {                                                                                                                           \
        NAME<T, isReuseSource>(dst, src, scalar, count, line);                                                                  \
    }
TILE_SIM_LIMIT(ClampMax, mins)
TILE_SIM_LIMIT(ClampMin, maxs)
#undef TILE_SIM_LIMIT

}  // namespace AscendC
