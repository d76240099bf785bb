// The older way to make stores atomic: a type and a sum (SetStoreAtomicConfig.md), and the type alone (SetAtomicType.md).
#pragma once
#include "sync.h"

namespace AscendC
{

enum class AtomicDtype { ATOMIC_NONE, ATOMIC_F32, ATOMIC_F16, ATOMIC_S16, ATOMIC_S32, ATOMIC_S8, ATOMIC_BF16 };
enum class AtomicOp { ATOMIC_SUM };

namespace detail
{
constexpr tile_sim::DType atomic_types[] = {tile_sim::DType::f32, tile_sim::DType::f32, tile_sim::DType::f16, tile_sim::DType::i16,
                                            tile_sim::DType::i32, tile_sim::DType::i8,  tile_sim::DType::bf16};
}

template <class T>
void SetAtomicType()
{
    tile_sim::set_atomic_type(tile_sim::TypeOf<T>::value);
}

template <AtomicDtype type, AtomicOp op>
void SetStoreAtomicConfig(Line line = Line(__builtin_LINE()))
{
    const bool none = type == AtomicDtype::ATOMIC_NONE;
    tile_sim::set_atomic(none ? tile_sim::AtomicOp::none : tile_sim::AtomicOp::add, detail::atomic_types[int(type)], line);
}

inline void GetStoreAtomicConfig(uint16_t& atomicType, uint16_t& atomicOp)
{
    atomicType = atomicOp = 0;
    for (uint16_t i = 1; i < 7; ++i)
        if (tile_sim::is_atomic_sum(detail::atomic_types[i])) atomicType = i;
}

}  // namespace AscendC
