// What a kernel prints.
#pragma once
#include <cstdio>
#include <initializer_list>

#include "tensor.h"

namespace AscendC
{
namespace detail
{

template <class T>
auto printable(T value)
{
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>)
        return double(float(value));
    else
        return value;
}

template <class T>
void print_elements(const char* where, const tile_sim::Operand& at, uint32_t id, uint32_t size, int line)
{
    std::printf("DumpTensor: desc=%u, line=%d, %s, %u elements: [", id, line, where, size);
    for (uint32_t i = 0; i < size; ++i) {
        const uint64_t bits = tile_sim::peek(at, i, line);
        T value;
        std::memcpy(&value, &bits, sizeof(T));
        std::printf("%s%g", i ? ", " : "", double(printable(value)));
    }
    std::printf("]\n");
}

}  // namespace detail

template <class... Arguments>
void printf(const char* format, Arguments... arguments)
{
    std::printf(format, detail::printable(arguments)...);
}
template <class... Arguments>
void PRINTF(const char* format, Arguments... arguments)
{
    std::printf(format, detail::printable(arguments)...);
}

template <class T>
void DumpTensor(const LocalTensor<T>& tensor, uint32_t id, uint32_t size, Line line = Line(__builtin_LINE()))
{
    detail::print_elements<T>("local", tensor.operand(), id, size, line);
}
template <class T>
void DumpTensor(const GlobalTensor<T>& tensor, uint32_t id, uint32_t size, Line line = Line(__builtin_LINE()))
{
    detail::print_elements<T>("GM", tensor.operand(), id, size, line);
}

}  // namespace AscendC

namespace tile_sim
{

// What a text that tile_eg watches (`run --where`) says behind an instruction: where it is, and what its result holds.
template <class Tensor>
void watch(int64_t id, const Tensor& tensor, int64_t bytes, std::initializer_list<int64_t> values)
{
    watched(id, &tensor.operand(), bytes, values.begin(), int64_t(values.size()));
}
inline void watch(int64_t id, std::initializer_list<int64_t> values)
{
    watched(id, nullptr, 0, values.begin(), int64_t(values.size()));
}

// An assertion that does not hold, with the text that its author gave it.
inline void fails(int line, const char* condition)
{
    misuse("assert", line, "the assertion %s does not hold", condition);
}
template <class... Arguments>
void fails(int line, const char* condition, const char* format, Arguments... arguments)
{
    char text[512];
    std::snprintf(text, sizeof text, format, AscendC::detail::printable(arguments)...);
    misuse("assert", line, "%s%sthe assertion %s does not hold", text, *text ? ": " : "", condition);
}

}  // namespace tile_sim

#define ascendc_assert(condition, ...) ((condition) ? void(0) : ::tile_sim::fails(::tile_sim::placed(__LINE__, __FILE__), #condition __VA_OPT__(, ) __VA_ARGS__))
#define ASCENDC_ASSERT(condition, ...)                                                                          \
    do {                                                                                                        \
        if (!(condition)) ::tile_sim::fails(::tile_sim::placed(__LINE__, __FILE__), #condition);                \
    } while (0)
#define ASSERT(condition) ASCENDC_ASSERT(condition)
#define KERNEL_LOG(level, ...)
