// What the ready-made functions of the high-level API share: a temporary buffer, and one instruction after another.
#pragma once
#include "cast.h"
#include "queue.h"
#include "sync.h"
#include "vector.h"

namespace AscendC
{
namespace detail
{

// The part of the unified buffer that the kernel's TPipe has not handed out: what a call without a temporary buffer takes.
inline LocalTensor<uint8_t> unused_buffer(const char* name, int line)
{
    if (!TPipe::current())
        tile_sim::misuse("capacity", line,
                         "%s without a temporary buffer takes what a TPipe has not handed out, and the kernel has no TPipe: give it a "
                         "LocalTensor<uint8_t>",
                         name);
    const int64_t start = tile_sim::allocate(tile_sim::Space::UB, 0, line), end = tile_sim::capacity(tile_sim::Space::UB);
    return LocalTensor<uint8_t>(TPosition::VECCALC, {tile_sim::Space::UB, tile_sim::DType::u8, start, end});
}

// How many elements a call computes at a time, in a temporary buffer that holds `parts` tensors of them: whole 32s.
template <class T>
int64_t elements_at_a_time(const char* name, const LocalTensor<uint8_t>& tmp, int64_t parts, int line)
{
    const int64_t least = parts * 32 * int64_t(sizeof(T)), piece = int64_t(tmp.GetSize()) / least * 32;
    if (piece == 0)
        tile_sim::misuse("capacity", line,
                         "%s has a temporary buffer of %lld bytes, and needs %lld at least (%lld times 32 elements of %lld bytes)", name,
                         (long long)tmp.GetSize(), (long long)least, (long long)parts, (long long)sizeof(T));
    return piece;
}

template <class T>
void check_count(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t count, int line)
{
    static_assert(is_number<T>, "the functions of the high-level API take half and float on 2201");
    for (const auto* side : {&dst, &src})
        if (count > int64_t(side->GetSize()))
            tile_sim::misuse("out_of_bounds", line, "%s is to compute %lld elements, and its %s has %lld", name, (long long)count,
                             side == &dst ? "destination" : "source", (long long)side->GetSize());
}

// Instructions over the first `count` elements, each of which waits for the one before.
class Steps
{
public:
    Steps(int64_t count, Line line) : count_(count), line_(line) {}

#define TILE_SIM_STEP(NAME, INSTRUCTION)                                             \
    template <class T, class... Operands>                                            \
    const Steps& NAME(const LocalTensor<T>& dst, const Operands&... operands) const  \
    {                                                                                \
        INSTRUCTION(dst, operands..., count_, line_);                                \
        return wait();                                                               \
    }
    TILE_SIM_STEP(exp, Exp)
    TILE_SIM_STEP(ln, Ln)
    TILE_SIM_STEP(abs, Abs)
    TILE_SIM_STEP(reciprocal, Reciprocal)
    TILE_SIM_STEP(add, Add)
    TILE_SIM_STEP(mul, Mul)
    TILE_SIM_STEP(div, Div)
#undef TILE_SIM_STEP
#define TILE_SIM_STEP(NAME, INSTRUCTION)                                                                \
    template <class T>                                                                                  \
    const Steps& NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, double number) const        \
    {                                                                                                   \
        INSTRUCTION(dst, src, T(float(number)), count_, line_);                                         \
        return wait();                                                                                  \
    }
    TILE_SIM_STEP(adds, Adds)
    TILE_SIM_STEP(muls, Muls)
    TILE_SIM_STEP(mins, Mins)
    TILE_SIM_STEP(maxs, Maxs)
#undef TILE_SIM_STEP
    template <class T>
    const Steps& fill(const LocalTensor<T>& dst, double number) const
    {
        Duplicate(dst, T(float(number)), int32_t(count_), line_);
        return wait();
    }
    template <class T, class U>
    const Steps& cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, RoundMode mode = RoundMode::CAST_NONE) const
    {
        Cast(dst, src, mode, uint32_t(count_), line_);
        return wait();
    }
    const Steps& wait() const
    {
        tile_sim::pipe_barrier(tile_sim::Pipe::V, line_);
        return *this;
    }

private:
    int64_t count_;
    Line line_;
};

// Calls part(steps, first) for so many elements at a time, and leaves the mask as the vendor's library does: normal, all lanes.
template <class Part>
void in_parts(int64_t count, int64_t piece, Line line, const Part& part)
{
    for (int64_t first = 0; first < count; first += piece) part(Steps(count - first < piece ? count - first : piece, line), first);
    SetMaskNorm();
    ResetMask();
}

}  // namespace detail
}  // namespace AscendC
