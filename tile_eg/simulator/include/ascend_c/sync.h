// Flags, barriers, and what a core knows of itself.
#pragma once
#include "../runtime/blocks_interface.h"
#include "types.h"

namespace AscendC
{

#define TILE_SIM_EVENTS(X)                                                                                                \
    X(MTE2, MTE1)                                                                                                         \
    X(MTE1, MTE2) X(MTE1, M) X(M, MTE1) X(MTE2, V) X(V, MTE2) X(MTE3, V) X(V, MTE3) X(M, V) X(V, M) X(V, V) X(MTE3, MTE1) \
        X(MTE1, MTE3) X(MTE1, V) X(MTE2, M) X(M, MTE2) X(V, MTE1) X(M, FIX) X(FIX, M) X(MTE3, MTE2) X(MTE2, MTE3) X(S, V) \
            X(V, S) X(S, MTE2) X(MTE2, S) X(S, MTE3) X(MTE3, S) X(MTE2, FIX) X(FIX, MTE2) X(FIX, S) X(M, S) X(FIX, MTE3)  \
                X(MTE1, FIX) X(FIX, MTE1) X(FIX, FIX)

enum class HardEvent : uint8_t {
#define X(a, b) a##_##b,
    TILE_SIM_EVENTS(X)
#undef X
};

namespace detail
{
constexpr tile_sim::PipePair event_pipes[] = {
#define X(a, b) {tile_sim::Pipe::a, tile_sim::Pipe::b},
    TILE_SIM_EVENTS(X)
#undef X
};
}  // namespace detail

template <HardEvent event>
void SetFlag(int32_t id, Line line = Line(__builtin_LINE()))
{
    tile_sim::set_flag(detail::event_pipes[int(event)].src, detail::event_pipes[int(event)].dst, id, line);
}

template <HardEvent event>
void WaitFlag(int32_t id, Line line = Line(__builtin_LINE()))
{
    tile_sim::wait_flag(detail::event_pipes[int(event)].src, detail::event_pipes[int(event)].dst, id, line);
}

template <pipe_t pipe>
void PipeBarrier(Line line = Line(__builtin_LINE()))
{
    static_assert(pipe != PIPE_S, "PipeBarrier does not take PIPE_S");
    tile_sim::pipe_barrier(tile_sim::pipe_of(pipe), line);
}

template <uint8_t mode, pipe_t pipe>
void CrossCoreSetFlag(uint16_t id, Line line = Line(__builtin_LINE()))
{
    static_assert((pipe != PIPE_S || mode == 4) && pipe != PIPE_ALL, "CrossCoreSetFlag takes neither PIPE_S nor PIPE_ALL");
    tile_sim::cross_set(mode, tile_sim::pipe_of(pipe), id, line);
}

template <uint8_t mode = 0, pipe_t pipe = PIPE_S>
void CrossCoreWaitFlag(uint16_t id, Line line = Line(__builtin_LINE()))
{
    tile_sim::cross_wait(mode, tile_sim::pipe_of(pipe), id, line);
}

inline void InitSocState() {}
template <class Address>
void SetSyncBaseAddr(Address)
{
}

// What DataCopyPad fills beside its rows when it is told of no value of its own.
template <class T>
void SetPadValue(T value)
{
    tile_sim::set_pad_value(tile_sim::to_bits(value));
}

inline int64_t GetBlockIdx() { return tile_sim::block_index(); }
inline int64_t GetBlockNum() { return tile_sim::block_count(); }
inline int64_t GetSubBlockIdx() { return tile_sim::sub_block_index(); }
inline int64_t GetSubBlockNum() { return tile_sim::sub_block_count(); }

#define TILE_SIM_ATOMIC(NAME, OP)                                                                                            \
    template <class T>                                                                                                       \
    void NAME(Line line = Line(__builtin_LINE()))                                                                                   \
    {                                                                                                                        \
        static_assert(std::is_same_v<T, float> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t> ||                \
                          std::is_same_v<T, int32_t> || std::is_same_v<T, int16_t> || std::is_same_v<T, int8_t>,             \
                      #NAME " does not take this element type on 2201");                                                     \
        tile_sim::set_atomic(tile_sim::AtomicOp::OP, tile_sim::TypeOf<T>::value, line);                                      \
    }
TILE_SIM_ATOMIC(SetAtomicAdd, add)
TILE_SIM_ATOMIC(SetAtomicMax, max)
TILE_SIM_ATOMIC(SetAtomicMin, min)
#undef TILE_SIM_ATOMIC
inline void SetAtomicNone(Line line = Line(__builtin_LINE()))
{
    tile_sim::set_atomic(tile_sim::AtomicOp::none, tile_sim::DType::f32, line);
}

}  // namespace AscendC

// The built-in names of the block's index and of how many there are.
inline constexpr struct {
    operator int64_t() const { return tile_sim::block_index(); }
} block_idx;
inline constexpr struct {
    operator int64_t() const { return tile_sim::block_count(); }
} block_num;

// Flags and barriers by the compiler's own names.
inline void set_flag(pipe_t from, pipe_t to, int32_t id, AscendC::Line line = AscendC::Line(__builtin_LINE()))
{
    tile_sim::set_flag(tile_sim::pipe_of(from), tile_sim::pipe_of(to), id, line);
}
inline void wait_flag(pipe_t from, pipe_t to, int32_t id, AscendC::Line line = AscendC::Line(__builtin_LINE()))
{
    tile_sim::wait_flag(tile_sim::pipe_of(from), tile_sim::pipe_of(to), id, line);
}
inline void pipe_barrier(pipe_t pipe, AscendC::Line line = AscendC::Line(__builtin_LINE()))
{
    tile_sim::pipe_barrier(tile_sim::pipe_of(pipe), line);
}
