// Small things that kernels ask for: rounding up, type choices, cycles, and what synchronises nothing here.
#pragma once
#include "sync.h"
#include "tensor.h"

namespace AscendC
{

template <bool condition, class A, class B>
struct Conditional {
    using type = std::conditional_t<condition, A, B>;
};

template <class A, class B>
constexpr auto DivCeil(A a, B b)
{
    using N = decltype((a + b - 1) / b);
    return b == 0 ? N(a) : (a + b - 1) / b;
}
template <class A, class B>
constexpr auto CeilAlign(A a, B b)
{
    return DivCeil(a, b) * b;
}
template <class A, class B>
constexpr auto AlignUp(A a, B b)
{
    return DivCeil(a, b) * b;
}

// A counter that only goes up: the simulator keeps order, not time.
inline int64_t GetSystemCycle()
{
    static thread_local int64_t cycle = 0;
    return cycle += 1;
}

constexpr uint32_t GetDataBlockSizeInBytes() { return ONE_BLK_SIZE; }

inline void ICachePreLoad(int64_t) {}

inline int64_t GetTaskRation() { return tile_sim::sub_block_count(); }

// A value for the first elements of a tensor in GM, by way of the end of UB, which the simulator leaves alone; runs on MTE3.
template <class T>
void Fill(const GlobalTensor<T>& gmWorkspaceAddr, uint64_t size, T value, Line line = Line(__builtin_LINE()))
{
    tile_sim::fill_gm(gmWorkspaceAddr.operand(), int64_t(size), tile_sim::to_bits(value), line);
}
template <class T>
void InitOutput(const GlobalTensor<T>& gmWorkspaceAddr, uint32_t size, T value = 0, Line line = Line(__builtin_LINE()))
{
    Fill(gmWorkspaceAddr, size, value, line);
}

// No kernel runs before or after: launches take their turns.
inline void SetNextTaskStart() {}
inline void WaitPreTaskEnd() {}

inline void DisableDmaAtomic(Line line = Line(__builtin_LINE())) { SetAtomicNone(line); }

}  // namespace AscendC

// Which way a branch mostly goes: it is the same whatever is said.
constexpr bool likely(bool condition) { return condition; }
constexpr bool unlikely(bool condition) { return condition; }
