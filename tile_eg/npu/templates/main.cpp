// Launches @NAME@ on the inputs in data/ and holds what comes back against what is meant. Written by tile_eg.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>
#include "acl/acl.h"
#include "@NAME@.h"

namespace
{

struct Tensor {
    const char *name, *type;
    size_t count, bytes;
    bool output, given;  // given: it begins with what data/ holds
};
const Tensor tensors[] = {
@ROWS@
};
constexpr int count = sizeof tensors / sizeof tensors[0];

std::vector<uint8_t> file(const std::string& name, size_t bytes)
{
    std::vector<uint8_t> held(bytes);
    FILE* const from = std::fopen(("data/" + name + ".bin").c_str(), "rb");
    const size_t read = from ? std::fread(held.data(), 1, bytes, from) : 0;
    if (from) std::fclose(from);
    if (read != bytes) std::printf("data/%s.bin holds %zu of %zu bytes: run this in the folder of data\n", name.c_str(), read, bytes);
    return read == bytes ? held : std::vector<uint8_t>();
}

template <class T>
double as(const uint8_t* at)
{
    T value;
    std::memcpy(&value, at, sizeof value);
    return double(value);
}

double half_of(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, rest = bits & 1023;
    const double size = exponent == 31 ? (rest ? NAN : INFINITY) : exponent ? std::ldexp(1024 + rest, exponent - 25) : std::ldexp(rest, -24);
    return bits & 0x8000 ? -size : size;
}

double element(const Tensor& t, const uint8_t* at)
{
    const std::string type = t.type;
    if (type == "f16") return half_of(uint16_t(as<uint16_t>(at)));
    if (type == "bf16") {
        const uint32_t bits = uint32_t(as<uint16_t>(at)) << 16;
        return as<float>(reinterpret_cast<const uint8_t*>(&bits));
    }
    if (type == "f32") return as<float>(at);
    if (type == "i8") return as<int8_t>(at);
    if (type == "u8") return as<uint8_t>(at);
    if (type == "i16") return as<int16_t>(at);
    if (type == "u16") return as<uint16_t>(at);
    if (type == "i32") return as<int32_t>(at);
    if (type == "u32") return as<uint32_t>(at);
    return as<int64_t>(at);
}

bool good(const Tensor& t, const std::vector<uint8_t>& got)
{
    const auto meant = file(std::string(t.name) + ".meant", 8 * t.count), allowed = file(std::string(t.name) + ".allowed", 8 * t.count);
    if (meant.empty() || allowed.empty()) return false;
    size_t wrong = 0;
    double largest = 0;
    for (size_t i = 0; i < t.count; ++i) {
        const double is = element(t, got.data() + i * (t.bytes / t.count)), want = as<double>(meant.data() + 8 * i);
        const bool same = is == want || (std::isnan(is) && std::isnan(want));
        const double off = same ? 0 : std::isfinite(is) && std::isfinite(want) ? std::fabs(is - want) : INFINITY;
        largest = std::max(largest, off);
        wrong += off > as<double>(allowed.data() + 8 * i);
    }
    std::printf("%s: %zu of %zu elements wrong, largest difference %g\n", t.name, wrong, t.count, largest);
    return wrong == 0;
}

bool fine(const char* step, int code)
{
    if (code) std::printf("%s: ACL gives %d: %s\n", step, code, aclGetRecentErrMsg());
    return code == 0;
}

}  // namespace

int main()
{
    aclrtStream stream = nullptr;
    if (!fine("start ACL", aclInit(nullptr)) || !fine("take device 0", aclrtSetDevice(0)) || !fine("make a stream", aclrtCreateStream(&stream)))
        return 2;
    std::vector<std::vector<uint8_t>> host;
    void* device[count] = {};
    for (int i = 0; i < count; ++i) {
        const Tensor& t = tensors[i];
        host.push_back(t.given ? file(t.name, t.bytes) : std::vector<uint8_t>(t.bytes));
        if (host[i].empty() || !fine("take memory", aclrtMalloc(&device[i], t.bytes, ACL_MEM_MALLOC_HUGE_FIRST))) return 2;
        if (t.given && !fine("copy to the device", aclrtMemcpy(device[i], t.bytes, host[i].data(), t.bytes, ACL_MEMCPY_HOST_TO_DEVICE))) return 2;
    }
    void* workspace = nullptr;
    const size_t bytes = @NAME@_workspace(@NUMBERS@);
    if (bytes && !fine("take a workspace", aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST))) return 2;
    if (!fine("launch @NAME@", @NAME@_launch(stream, @DEVICE@, workspace@MORE_NUMBERS@))) return 2;
    if (!fine("wait for the stream", aclrtSynchronizeStream(stream))) return 2;
    bool all = true;
    for (int i = 0; i < count; ++i) {
        const Tensor& t = tensors[i];
        if (t.output && !fine("copy from the device", aclrtMemcpy(host[i].data(), t.bytes, device[i], t.bytes, ACL_MEMCPY_DEVICE_TO_HOST)))
            return 2;
        all = (!t.output || good(t, host[i])) && all;
        aclrtFree(device[i]);
    }
    if (workspace) aclrtFree(workspace);
    aclrtDestroyStream(stream);
    aclrtResetDevice(0);
    aclFinalize();
    std::puts(all ? "good" : "BAD");
    return all ? 0 : 1;
}
