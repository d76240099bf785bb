// A stand-in for the host API: what the host side of a file needs to launch its kernels on the simulated device.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "../runtime/host.h"
#include "../runtime/numbers.h"

using aclError = int;
using aclrtStream = void*;
using aclrtContext = void*;
using aclrtEvent = void*;
using aclFloat16 = uint16_t;
constexpr aclError ACL_SUCCESS = 0, ACL_ERROR_NONE = 0, ACL_ERROR_INVALID_PARAM = 100000, ACL_ERROR_BAD_ALLOC = 200000;
enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY };
enum aclrtMemcpyKind { ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_DEVICE };

inline float aclFloat16ToFloat(aclFloat16 bits) { return tile_sim::half_to_float(bits); }
inline aclFloat16 aclFloatToFloat16(float value) { return tile_sim::float_to_half(value); }

inline aclError aclInit(const char*) { return ACL_SUCCESS; }
inline aclError aclFinalize() { return ACL_SUCCESS; }
inline aclError aclrtSetDevice(int32_t) { return ACL_SUCCESS; }
inline aclError aclrtResetDevice(int32_t) { return ACL_SUCCESS; }
inline aclError aclrtGetDevice(int32_t* device) { return *device = 0, ACL_SUCCESS; }
inline aclError aclrtGetDeviceCount(uint32_t* count) { return *count = 1, ACL_SUCCESS; }
inline const char* aclrtGetSocName() { return "Ascend910B1"; }
inline aclError aclrtGetHardwareSyncAddr(void** address) { return *address = nullptr, ACL_SUCCESS; }  // cores meet without one
inline const char* aclGetRecentErrMsg() { return ""; }
enum aclrtLastErrLevel { ACL_RT_THREAD_LEVEL };
inline aclError aclrtGetLastError(aclrtLastErrLevel) { return ACL_SUCCESS; }
inline aclError aclrtPeekAtLastError(aclrtLastErrLevel) { return ACL_SUCCESS; }

inline aclError aclrtCreateContext(aclrtContext* context, int32_t) { return *context = nullptr, ACL_SUCCESS; }
inline aclError aclrtDestroyContext(aclrtContext) { return ACL_SUCCESS; }
inline aclError aclrtSetCurrentContext(aclrtContext) { return ACL_SUCCESS; }

// Launches run when they are issued: there is nothing to wait for.
inline aclError aclrtCreateStream(aclrtStream* stream) { return *stream = nullptr, ACL_SUCCESS; }
inline aclError aclrtDestroyStream(aclrtStream) { return ACL_SUCCESS; }
inline aclError aclrtSynchronizeStream(aclrtStream) { return ACL_SUCCESS; }
inline aclError aclrtSynchronizeDevice() { return ACL_SUCCESS; }
inline aclError aclrtCreateEvent(aclrtEvent* event) { return *event = nullptr, ACL_SUCCESS; }
inline aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t) { return *event = nullptr, ACL_SUCCESS; }
inline aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t) { return *event = nullptr, ACL_SUCCESS; }
inline aclError aclrtStreamWaitEvent(aclrtStream, aclrtEvent) { return ACL_SUCCESS; }
inline aclError aclrtRecordEvent(aclrtEvent, aclrtStream) { return ACL_SUCCESS; }
inline aclError aclrtSynchronizeEvent(aclrtEvent) { return ACL_SUCCESS; }
inline aclError aclrtEventElapsedTime(float* milliseconds, aclrtEvent, aclrtEvent) { return *milliseconds = 0, ACL_SUCCESS; }
inline aclError aclrtDestroyEvent(aclrtEvent) { return ACL_SUCCESS; }

inline aclError tile_sim_acl_malloc(void** pointer, size_t bytes, const char* name)
{
    *pointer = tile_sim::device_malloc(bytes, name);
    return *pointer ? ACL_SUCCESS : ACL_ERROR_BAD_ALLOC;
}
#define aclrtMalloc(pointer, bytes, policy) tile_sim_acl_malloc(pointer, bytes, #pointer)

inline aclError aclrtFree(void* pointer) { return tile_sim::device_free(pointer) ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM; }

inline std::set<void*>& tile_sim_host_memory()
{
    static std::set<void*> handed_out;
    return handed_out;
}
inline aclError aclrtMallocHost(void** pointer, size_t bytes)
{
    *pointer = std::calloc(bytes ? bytes : 1, 1);
    if (*pointer) tile_sim_host_memory().insert(*pointer);
    return *pointer ? ACL_SUCCESS : ACL_ERROR_BAD_ALLOC;
}
inline aclError aclrtFreeHost(void* pointer)
{
    if (!tile_sim_host_memory().erase(pointer)) return ACL_ERROR_INVALID_PARAM;
    return std::free(pointer), ACL_SUCCESS;
}

inline aclError aclrtMemcpy(void* dst, size_t room, const void* src, size_t bytes, aclrtMemcpyKind, int line = __builtin_LINE(),
                            const char* file = __builtin_FILE())
{
    return tile_sim::copy(dst, room, src, bytes, tile_sim::placed(line, file)) ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM;
}
inline aclError aclrtMemcpyAsync(void* dst, size_t room, const void* src, size_t bytes, aclrtMemcpyKind kind, aclrtStream,
                                 int line = __builtin_LINE(), const char* file = __builtin_FILE())
{
    return aclrtMemcpy(dst, room, src, bytes, kind, line, file);
}
inline aclError aclrtMemset(void* dst, size_t room, int32_t value, size_t bytes)
{
    return tile_sim::fill(dst, room, value, bytes) ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM;
}
inline aclError aclrtMemsetAsync(void* dst, size_t room, int32_t value, size_t bytes, aclrtStream)
{
    return aclrtMemset(dst, room, value, bytes);
}
