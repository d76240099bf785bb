// Addition, maximum and minimum on the way to GM.
#include <cstring>

#include "machine.h"
#include "numbers.h"

namespace tile_sim
{
namespace
{

template <class T, class Load, class Store>
void apply_each(uint8_t* dst, const uint8_t* src, int64_t bytes, Load load, Store store)
{
    const AtomicOp op = machine.core->atomic;
    for (int64_t i = 0; i < bytes; i += int64_t(sizeof(T))) {
        T a, b;
        std::memcpy(&a, dst + i, sizeof a), std::memcpy(&b, src + i, sizeof b);
        const auto x = load(a), y = load(b);
        const bool takes = op == AtomicOp::max ? y > x : y < x;
        if (op == AtomicOp::add)
            a = T(store(decltype(x)(x + y)));
        else if (takes)
            a = b;
        std::memcpy(dst + i, &a, sizeof a);
    }
}

}  // namespace

void set_atomic_type(DType type) { machine.core->atomic_type = type; }
bool is_atomic_sum(DType type) { return machine.core->atomic == AtomicOp::add && machine.core->atomic_type == type; }

void apply_atomic(uint8_t* dst, const uint8_t* src, int64_t bytes, DType type, int line)
{
    const auto same = [](auto x) { return x; };
    if (type != machine.core->atomic_type)
        misuse("field", line, "SetAtomicAdd, Max or Min names another element type than the tensor that is written");
    switch (type) {
        case DType::f32: return apply_each<float>(dst, src, bytes, same, same);
        case DType::f16: return apply_each<uint16_t>(dst, src, bytes, half_to_float, float_to_half);
        case DType::bf16: return apply_each<uint16_t>(dst, src, bytes, bf16_to_float, float_to_bf16);
        case DType::i32: return apply_each<int32_t>(dst, src, bytes, same, same);
        case DType::i16: return apply_each<int16_t>(dst, src, bytes, same, same);
        default: return apply_each<int8_t>(dst, src, bytes, same, same);
    }
}

}  // namespace tile_sim
