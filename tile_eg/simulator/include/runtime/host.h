// What the host side of a file asks of the runtime: memory on the device, copies, launches.
#pragma once
#include <functional>

#include "interface.h"

namespace tile_sim
{

void* device_malloc(size_t bytes, const char* name);  // nullptr: there is no room
bool device_free(void* pointer);
bool copy(void* dst, size_t room, const void* src, size_t bytes, int line);  // `line` of the host's file
bool fill(void* dst, size_t room, int value, size_t bytes);
int64_t cube_cores();
int64_t capacity(Space space);

// What `kernel<<<blocks, memory, stream>>>(arguments)` becomes; it returns when the kernel has ended.
void launch(const char* kernel, KernelType type, int64_t blocks, int line, const std::function<void()>& call);

}  // namespace tile_sim
