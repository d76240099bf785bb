// Host part of kernel gemm: launch, shapes and workspace. Written by tile_eg.
// Build the kernel with --cce-auto-sync=off: it holds every flag and barrier that it needs, and none should be added.
#include <cstddef>
#include <cstdint>
#include "acl/acl.h"
#ifndef TILE_EG_ASC  // the kernel is built by the CMake macros of CANN 8.3; else its text stands before this one in an .asc file
#include "aclrtlaunch_gemm.h"
#endif

namespace gemm_host {

constexpr int64_t A_shape[] = {512, 512};  // f16, input
constexpr int64_t B_shape[] = {512, 512};  // f16, input
constexpr int64_t C_shape[] = {512, 512};  // f16, output
constexpr uint32_t blocks = 8;
constexpr size_t workspaceBytes = 0;

// Starts the kernel on device pointers; `workspace` holds workspaceBytes (nullptr where that is 0).
inline aclError launch(aclrtStream stream, void* A, void* B, void* C, void* workspace)
{
#ifdef TILE_EG_ASC
    ::gemm<<<blocks, 0, stream>>>(static_cast<uint8_t*>(A), static_cast<uint8_t*>(B), static_cast<uint8_t*>(C), static_cast<uint8_t*>(workspace));
    return ACL_SUCCESS;
#else
    return ACLRT_LAUNCH_KERNEL(gemm)(blocks, stream, A, B, C, workspace);
#endif
}

}  // namespace gemm_host
