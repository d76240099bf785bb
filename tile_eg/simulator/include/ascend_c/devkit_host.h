// What the host's side of the vendor's public headers needs (simulator/devkit.py).
#pragma once
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "../register/tilingdata_base.h"
#include "../tiling/platform/platform_ascendc.h"
#include "../tiling/tensor_shape.h"

namespace ge
{
enum DataType {
    DT_FLOAT = 0,
    DT_FLOAT16 = 1,
    DT_INT8 = 2,
    DT_INT32 = 3,
    DT_UINT8 = 4,
    DT_INT16 = 6,
    DT_UINT16 = 7,
    DT_UINT32 = 8,
    DT_INT64 = 9,
    DT_UINT64 = 10,
    DT_BF16 = 27,
    DT_INT4 = 29,
    DT_HIFLOAT8 = 34,
    DT_FLOAT8_E5M2 = 35,
    DT_FLOAT8_E4M3FN = 36,
    DT_FLOAT8_E8M0 = 37,
    DT_FLOAT4_E2M1 = 40,
    DT_FLOAT4_E1M2 = 41
};
using Shape = AscendC::TensorShape;
}  // namespace ge
namespace AscendC
{
using TensorDataType = ge::DataType;
}

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

using errno_t = int;
constexpr errno_t EOK = 0;
inline errno_t memcpy_s(void* to, size_t most, const void* from, size_t bytes)
{
    if (bytes > most) return 1;
    std::memcpy(to, from, bytes);
    return EOK;
}
inline errno_t memset_s(void* to, size_t most, int value, size_t bytes)
{
    if (bytes > most) return 1;
    std::memset(to, value, bytes);
    return EOK;
}
