// Host part of kernel rms_norm: launch, shapes and workspace. Written by tile_eg.
// Build the kernel with --cce-auto-sync=off: it holds every flag and barrier that it needs, and none should be added.
#include <cstddef>
#include <cstdint>
#include "acl/acl.h"
#ifndef TILE_EG_ASC  // the kernel is built by the CMake macros of CANN 8.3; else its text stands before this one in an .asc file
#include "aclrtlaunch_rms_norm.h"
#endif

namespace rms_norm_host {

constexpr int64_t X_shape[] = {256, 1024};  // f16, input
constexpr int64_t W_shape[] = {1024};  // f16, input
constexpr int64_t Y_shape[] = {256, 1024};  // f16, output
constexpr uint32_t blocks = 16;
constexpr size_t workspaceBytes = 0;

// Starts the kernel on device pointers; `workspace` holds workspaceBytes (nullptr where that is 0).
inline aclError launch(aclrtStream stream, void* X, void* W, void* Y, void* workspace)
{
#ifdef TILE_EG_ASC
    ::rms_norm<<<blocks, 0, stream>>>(static_cast<uint8_t*>(X), static_cast<uint8_t*>(W), static_cast<uint8_t*>(Y), static_cast<uint8_t*>(workspace));
    return ACL_SUCCESS;
#else
    return ACLRT_LAUNCH_KERNEL(rms_norm)(blocks, stream, X, W, Y, workspace);
#endif
}

}  // namespace rms_norm_host
