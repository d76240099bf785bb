// Host part of kernel gelu_mul: launch, shapes and workspace. Written by tile_eg.
// Build the kernel with --cce-auto-sync=off: it holds every flag and barrier that it needs, and none should be added.
#include <cstddef>
#include <cstdint>
#include "acl/acl.h"
#ifndef TILE_EG_ASC  // the kernel is built by the CMake macros of CANN 8.3; else its text stands before this one in an .asc file
#include "aclrtlaunch_gelu_mul.h"
#endif

namespace gelu_mul_host {

constexpr int64_t A_shape[] = {256, 2, 512};  // f32, input
constexpr int64_t Y_shape[] = {256, 512};  // f32, output
constexpr uint32_t blocks = 32;
constexpr size_t workspaceBytes = 0;

// Starts the kernel on device pointers; `workspace` holds workspaceBytes (nullptr where that is 0).
inline aclError launch(aclrtStream stream, void* A, void* Y, void* workspace)
{
#ifdef TILE_EG_ASC
    ::gelu_mul<<<blocks, 0, stream>>>(static_cast<uint8_t*>(A), static_cast<uint8_t*>(Y), static_cast<uint8_t*>(workspace));
    return ACL_SUCCESS;
#else
    return ACLRT_LAUNCH_KERNEL(gelu_mul)(blocks, stream, A, Y, workspace);
#endif
}

}  // namespace gelu_mul_host
