// Host part of kernel flash_attention_causal: launch, shapes and workspace. Written by tile_eg.
// Build the kernel with --cce-auto-sync=off: it holds every flag and barrier that it needs, and none should be added.
#include <cstddef>
#include <cstdint>
#include "acl/acl.h"
#ifndef TILE_EG_ASC  // the kernel is built by the CMake macros of CANN 8.3; else its text stands before this one in an .asc file
#include "aclrtlaunch_flash_attention_causal.h"
#endif

namespace flash_attention_causal_host {

constexpr int64_t Q_shape[] = {1, 2, 256, 64};  // f16, input
constexpr int64_t K_shape[] = {1, 2, 256, 64};  // f16, input
constexpr int64_t V_shape[] = {1, 2, 256, 64};  // f16, input
constexpr int64_t O_shape[] = {1, 2, 256, 64};  // f16, output
constexpr uint32_t blocks = 8;
constexpr size_t workspaceBytes = 1966080;

// Starts the kernel on device pointers; `workspace` holds workspaceBytes (nullptr where that is 0).
inline aclError launch(aclrtStream stream, void* Q, void* K, void* V, void* O, void* workspace)
{
#ifdef TILE_EG_ASC
    ::flash_attention_causal<<<blocks, 0, stream>>>(static_cast<uint8_t*>(Q), static_cast<uint8_t*>(K), static_cast<uint8_t*>(V), static_cast<uint8_t*>(O), static_cast<uint8_t*>(workspace));
    return ACL_SUCCESS;
#else
    return ACLRT_LAUNCH_KERNEL(flash_attention_causal)(blocks, stream, Q, K, V, O, workspace);
#endif
}

}  // namespace flash_attention_causal_host
