// Atomic addition on the way to GM.
#include <cstring>

#include "machine.h"
#include "numbers.h"

namespace tile_sim
{
namespace
{

template <class T, class Load, class Store>
void add_each(uint8_t* dst, const uint8_t* src, int64_t bytes, Load load, Store store)
{
    for (int64_t i = 0; i < bytes; i += sizeof(T)) {
        T a, b;
        std::memcpy(&a, dst + i, sizeof a), std::memcpy(&b, src + i, sizeof b);
        a = T(store(load(a) + load(b)));
        std::memcpy(dst + i, &a, sizeof a);
    }
}

}  // namespace

void atomic_add(uint8_t* dst, const uint8_t* src, int64_t bytes, DType type, int line)
{
    const auto same = [](auto x) { return x; };
    if (type != machine.core->atomic_type)
        misuse("field", line, "SetAtomicAdd names another element type than the tensor that is written");
    switch (type) {
        case DType::f32: return add_each<float>(dst, src, bytes, same, same);
        case DType::f16: return add_each<uint16_t>(dst, src, bytes, half_to_float, float_to_half);
        case DType::bf16: return add_each<uint16_t>(dst, src, bytes, bf16_to_float, float_to_bf16);
        case DType::i32: return add_each<int32_t>(dst, src, bytes, same, same);
        default: return add_each<int16_t>(dst, src, bytes, same, same);
    }
}

}  // namespace tile_sim
