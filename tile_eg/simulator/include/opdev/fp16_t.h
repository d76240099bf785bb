// The host's half, by the name that CANN's operator headers give it. Two of them make a half again, each result rounded.
#pragma once
#include "../ascend_c/types.h"

namespace op
{

struct fp16_t : ::half {
    using half::half;
    fp16_t(::half value) : ::half(value) {}
};

#define TILE_SIM_OF_TWO(OP) \
    template <class T, class = std::enable_if_t<std::is_same_v<T, fp16_t>>> \
    fp16_t operator OP(const T& a, const T& b) \
    { \
        return fp16_t(float(a) OP float(b)); \
    }
TILE_SIM_OF_TWO(+)
TILE_SIM_OF_TWO(-)
TILE_SIM_OF_TWO(*)
TILE_SIM_OF_TWO(/)
#undef TILE_SIM_OF_TWO

}  // namespace op
