// What the host side of a file asks of the runtime: memory on the device, copies, launches.
#pragma once
#include <functional>

#include <type_traits>

#include "interface.h"

namespace tile_sim
{

void* device_malloc(size_t bytes, const char* name);  // nullptr: there is no room
bool device_free(void* pointer);
bool copy(void* dst, size_t room, const void* src, size_t bytes, int line);  // `line` of the host's file
bool fill(void* dst, size_t room, int value, size_t bytes);
int64_t cube_cores();
int64_t capacity(Space space);

// The type of a kernel whose work is a class's, if that says which cores it has work for (bits: 1 AIC, 2 AIV); else `type`.
template <class Work, class = void>
struct CoresOf {
    static constexpr int value = 0;
};
template <class Work>
struct CoresOf<Work, std::void_t<decltype(Work::tile_sim_cores)>> {
    static constexpr int value = Work::tile_sim_cores;
};
template <class Work>
constexpr KernelType type_by_cores(KernelType type)
{
    constexpr KernelType types[] = {KernelType::AIC_ONLY, KernelType::AIC_ONLY, KernelType::AIV_ONLY, KernelType::MIX_AIC_1_2};
    return CoresOf<Work>::value ? types[CoresOf<Work>::value] : type;
}
template <auto number>
constexpr KernelType type_by_cores(KernelType type)
{
    return type;
}

// What `kernel<<<blocks, memory, stream>>>(arguments)` becomes; it returns when the kernel has ended.
void launch(const char* kernel, KernelType type, int64_t blocks, int line, const std::function<void()>& call);

}  // namespace tile_sim
