// Loads kernels and launches them on an Ascend NPU through ACL. Each function is one step, and gives ACL's code for it (0: good).
#include <cstddef>
#include <cstdint>
#include "acl/acl.h"

#define STEP extern "C" __attribute__((visibility("default"))) int

namespace
{

// The device of the calling thread is `device` while this lives.
class OnDevice
{
public:
    explicit OnDevice(int32_t device) : wanted_(device)
    {
        if (aclrtGetDevice(&before_) != ACL_SUCCESS) before_ = -1;
        code = before_ == wanted_ ? int(ACL_SUCCESS) : int(aclrtSetDevice(wanted_));
    }
    ~OnDevice()
    {
        if (before_ >= 0 && before_ != wanted_) aclrtSetDevice(before_);
    }
    int code;

private:
    int32_t wanted_, before_ = -1;
};

}  // namespace

#define ON(device)             \
    const OnDevice on(device); \
    if (on.code != ACL_SUCCESS) return on.code;

STEP tile_eg_init()
{
    const int code = aclInit(nullptr);
    return code == 100002 ? 0 : code;  // ACL_ERROR_REPEAT_INITIALIZE: torch_npu, or another library, has done it
}

STEP tile_eg_devices(uint32_t* count) { return aclrtGetDeviceCount(count); }
STEP tile_eg_soc(int32_t device, const char** name)
{
    ON(device)
    *name = aclrtGetSocName();
    return *name ? 0 : 507008;  // ACL_ERROR_RT_SOC_VERSION
}
extern "C" __attribute__((visibility("default"))) const char* tile_eg_said() { return aclGetRecentErrMsg(); }

#ifdef TILE_EG_RT  // ACL has no launch functions yet: those of the runtime, as its header runtime/rt.h declares them
struct rtDevBinary_t {
    uint32_t magic, version;
    const void* data;
    uint64_t length;
};
extern "C" {
int32_t rtDevBinaryRegister(const rtDevBinary_t* bin, void** handle);
int32_t rtFunctionRegister(void* bin, const void* stub, const char* stub_name, const void* name, uint32_t mode);
int32_t rtKernelLaunch(const void* stub, uint32_t blocks, void* args, uint32_t bytes, void* unused, void* stream);
int32_t rtGetC2cCtrlAddr(uint64_t* address, uint32_t* length);
}
STEP tile_eg_load(int32_t device, const void* data, size_t bytes, uint32_t magic, void** binary)
{
    ON(device)
    const rtDevBinary_t given{magic, 0, data, bytes};
    return rtDevBinaryRegister(&given, binary);
}
STEP tile_eg_function(int32_t device, void* binary, const char* name, void** function)
{
    ON(device)
    auto* const stub = new char;  // its address names the function from now on
    *function = stub;
    return rtFunctionRegister(binary, stub, name, name, 0);
}
STEP tile_eg_sync(int32_t device, uint64_t* address)
{
    ON(device)
    uint32_t length = 0;
    return rtGetC2cCtrlAddr(address, &length);
}
STEP tile_eg_launch(int32_t device, void* function, uint32_t blocks, void* stream, void* args, size_t bytes)
{
    ON(device)
    return rtKernelLaunch(function, blocks, args, uint32_t(bytes), nullptr, stream);
}
#else
STEP tile_eg_load(int32_t device, const void* data, size_t bytes, uint32_t magic, aclrtBinHandle* binary)
{
    ON(device)
    aclrtBinaryLoadOption option{};
    option.type = ACL_RT_BINARY_LOAD_OPT_MAGIC;
    option.value.magic = magic;
    aclrtBinaryLoadOptions options{};
    options.options = &option;
    options.numOpt = 1;
    return aclrtBinaryLoadFromData(data, bytes, &options, binary);
}
STEP tile_eg_function(int32_t device, aclrtBinHandle binary, const char* name, aclrtFuncHandle* function)
{
    ON(device)
    return aclrtBinaryGetFunction(binary, name, function);
}
STEP tile_eg_sync(int32_t device, uint64_t* address)
{
    ON(device)
    void* found = nullptr;
    const int code = aclrtGetHardwareSyncAddr(&found);
    *address = reinterpret_cast<uint64_t>(found);
    return code;
}
STEP tile_eg_launch(int32_t device, aclrtFuncHandle function, uint32_t blocks, aclrtStream stream, void* args, size_t bytes)
{
    ON(device)
    return aclrtLaunchKernelWithHostArgs(function, blocks, stream, nullptr, args, bytes, nullptr, 0);
}
#endif

// Memory, streams and events, for those who come without torch_npu.
STEP tile_eg_malloc(int32_t device, size_t bytes, void** address)
{
    ON(device)
    return aclrtMalloc(address, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
}
STEP tile_eg_free(int32_t device, void* address)
{
    ON(device)
    return aclrtFree(address);
}
STEP tile_eg_upload(int32_t device, void* address, const void* from, size_t bytes)
{
    ON(device)
    return aclrtMemcpy(address, bytes, from, bytes, ACL_MEMCPY_HOST_TO_DEVICE);
}
STEP tile_eg_download(int32_t device, void* to, const void* address, size_t bytes)
{
    ON(device)
    return aclrtMemcpy(to, bytes, address, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
}
STEP tile_eg_fill(int32_t device, void* address, int32_t value, size_t bytes, aclrtStream stream)
{
    ON(device)
    return aclrtMemsetAsync(address, bytes, value, bytes, stream);
}
STEP tile_eg_stream(int32_t device, aclrtStream* stream)
{
    ON(device)
    return aclrtCreateStream(stream);
}
STEP tile_eg_wait(int32_t device, aclrtStream stream)
{
    ON(device)
    return aclrtSynchronizeStream(stream);
}
STEP tile_eg_event(int32_t device, aclrtEvent* event)
{
    ON(device)
    return aclrtCreateEventWithFlag(event, ACL_EVENT_TIME_LINE);
}
STEP tile_eg_record(int32_t device, aclrtEvent event, aclrtStream stream)
{
    ON(device)
    return aclrtRecordEvent(event, stream);
}
STEP tile_eg_elapsed(int32_t device, float* milliseconds, aclrtEvent from, aclrtEvent to)
{
    ON(device)
    return aclrtEventElapsedTime(milliseconds, from, to);
}
STEP tile_eg_forget(int32_t device, aclrtEvent event)
{
    ON(device)
    return aclrtDestroyEvent(event);
}
