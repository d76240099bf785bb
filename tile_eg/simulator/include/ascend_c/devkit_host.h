// What the host's side of the vendor's public headers needs (simulator/devkit.py).
#pragma once
#include <cstdio>
#include <cstring>

#include "../register/tilingdata_base.h"
#include "../tiling/platform/platform_ascendc.h"
#include "../tiling/tensor_shape.h"

#define TILING_LOG_ERROR(...) (std::printf("tiling: " __VA_ARGS__), std::printf("\n"))
#define TILING_LOG_WARNING(...)
#define TILING_LOG_INFO(...)
#define TILING_LOG_DEBUG(...)
#define ASCENDC_HOST_ASSERT(condition, behaviour, ...) \
    do {                                               \
        if (!(condition)) {                            \
            TILING_LOG_ERROR(__VA_ARGS__);             \
            behaviour;                                 \
        }                                              \
    } while (0)

constexpr int EOK = 0;
inline int memcpy_s(void* to, size_t most, const void* from, size_t bytes)
{
    if (bytes > most) return 1;
    std::memcpy(to, from, bytes);
    return EOK;
}
inline int memset_s(void* to, size_t most, int value, size_t bytes)
{
    if (bytes > most) return 1;
    std::memset(to, value, bytes);
    return EOK;
}
