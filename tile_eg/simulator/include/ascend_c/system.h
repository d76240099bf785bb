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
    return b == 0 ? a : (a + b - 1) / b;
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

inline int64_t GetTaskRation() { return tile_sim::sub_block_count(); }

// All cores of all blocks, or all vector cores, come here before one goes on; all pipes have finished what came before.
template <bool isAIVOnly = true>
void SyncAll(int line = __builtin_LINE())
{
    tile_sim::sync_all(isAIVOnly, line);
}
// The same by way of GM and UB, which the simulator leaves alone.
template <bool isAIVOnly = true>
void SyncAll(const GlobalTensor<int32_t>&, const LocalTensor<int32_t>&, int32_t = 0, int line = __builtin_LINE())
{
    tile_sim::sync_all(isAIVOnly, line);
}

// No kernel runs before or after: launches take their turns.
inline void SetNextTaskStart() {}
inline void WaitPreTaskEnd() {}

inline void DisableDmaAtomic(int line = __builtin_LINE()) { SetAtomicNone(line); }

}  // namespace AscendC
