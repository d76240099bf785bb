// A stand-in for libascendcl: the functions of ACL that tile_eg calls, on a machine without an NPU. A kernel is a library that the
// stand-in's bisheng made for tile_eg's simulator; a launch runs it there, in a process of its own. Device memory is a file in
// memory that the simulator maps, streams are queues with a thread each. `standin_*` are for tests: faults, sizes, what was called.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "acl/acl.h"

extern char** environ;

namespace
{

constexpr size_t ROOM = size_t(32) << 30, GRAIN = 65536;
constexpr size_t FLUSH = size_t(64) << 20;
constexpr uint64_t SYNC_ADDRESS = 0x5afe5afe000ull;
constexpr int DEVICES = 2;

std::mutex lock;
std::map<std::string, int> faults;
std::map<std::string, long> calls;
std::string said, soc = "Ascend910B2";
size_t memory_left = size_t(8) << 30;
std::atomic<bool> null_launches{false};
bool initialised = false;
thread_local int device = -1;

// The code that a test has asked for, once, of a function; 0 else.
int fault(const char* function)
{
    const std::lock_guard<std::mutex> held(lock);
    ++calls[function];
    const auto found = faults.find(function);
    if (found == faults.end()) return 0;
    const int code = found->second;
    faults.erase(found);
    said = std::string("EE9999: the stand-in was asked to fail in ") + function;
    return code;
}
#define CALLED                           \
    if (const int code = fault(__func__)) \
        return code;
#define ON_DEVICE                  \
    CALLED if (device < 0) return 107002;

// Device memory: one sparse file in memory, so that the simulator sees what the host sees.
struct Arena {
    int fd = memfd_create("standin", 0);
    uint8_t* base = nullptr;
    size_t end = GRAIN;
    std::map<uint8_t*, size_t> held, free;
    Arena()
    {
        if (ftruncate(fd, ROOM)) std::abort();
        base = static_cast<uint8_t*>(mmap(nullptr, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0));
    }
    static size_t rounded(size_t bytes) { return (bytes + 4096 + GRAIN - 1) / GRAIN * GRAIN; }
    uint8_t* take(size_t bytes)
    {
        const std::lock_guard<std::mutex> guard(lock);
        if (bytes > memory_left) return nullptr;
        memory_left -= bytes;
        for (auto& [at, room] : free)
            if (room == rounded(bytes)) {
                uint8_t* const found = at;
                free.erase(found);
                held[found] = bytes;
                return found;
            }
        uint8_t* const found = base + end;
        end += rounded(bytes);
        held[found] = bytes;
        return found;
    }
    bool give(uint8_t* address)
    {
        const std::lock_guard<std::mutex> guard(lock);
        const auto found = held.find(address);
        if (found == held.end()) return false;
        memory_left += found->second;
        free[address] = rounded(found->second);
        held.erase(found);
        return true;
    }
    // The allocation that holds an address; (nullptr, 0) for none.
    std::pair<uint8_t*, size_t> around(uint8_t* address)
    {
        const std::lock_guard<std::mutex> guard(lock);
        auto found = held.upper_bound(address);
        if (found == held.begin()) return {nullptr, 0};
        --found;
        return address < found->first + std::max<size_t>(found->second, 1) ? std::pair(found->first, found->second)
                                                                             : std::pair<uint8_t*, size_t>(nullptr, 0);
    }
};
Arena& arena()
{
    static Arena* const one = new Arena;
    return *one;
}

// A queue of tasks with a thread of its own. A task that fails leaves its code until somebody waits for the stream.
struct Stream {
    std::deque<std::function<int()>> tasks;
    std::mutex own;
    std::condition_variable changed;
    int code = 0;
    bool busy = false;
    Stream() { std::thread([this] { work(); }).detach(); }
    void add(std::function<int()> task)
    {
        const std::lock_guard<std::mutex> held(own);
        tasks.push_back(std::move(task));
        changed.notify_all();
    }
    int wait()
    {
        std::unique_lock<std::mutex> held(own);
        changed.wait(held, [this] { return tasks.empty() && !busy; });
        return std::exchange(code, 0);
    }
    void work()
    {
        for (;;) {
            std::unique_lock<std::mutex> held(own);
            changed.wait(held, [this] { return !tasks.empty(); });
            const auto task = std::move(tasks.front());
            tasks.pop_front(), busy = true;
            held.unlock();
            const int found = task();
            held.lock();
            busy = false, code = code ? code : found;
            changed.notify_all();
        }
    }
};
std::set<Stream*> streams;

// The stream of a handle: nullptr is the device's own; null for one that is destroyed.
Stream* of(aclrtStream given)
{
    static Stream* own[DEVICES] = {};
    const std::lock_guard<std::mutex> held(lock);
    if (!given) return own[device] ? own[device] : own[device] = new Stream;
    return streams.count(static_cast<Stream*>(given)) ? static_cast<Stream*>(given) : nullptr;
}

struct Event {
    std::atomic<bool> happened{false};
    std::chrono::steady_clock::time_point time;
};

// What bisheng wrote behind the library: the simulator's path, the architecture, and `name type pointers numbers sync` for each kernel.
struct KernelOf {
    std::string type, library, simulator, architecture;
    int place = 0, pointers = 0, numbers = 0, sync = 0;
};
struct Binary {
    std::map<std::string, KernelOf> kernels;
};

// The libraries that were loaded, which go with the process.
struct Files : std::vector<std::string> {
    ~Files()
    {
        for (const auto& name : *this) unlink(name.c_str());
    }
} files;

constexpr char MARK[] = "TILE_EG_STANDIN";

Binary* opened(const char* data, size_t bytes)
{
    uint64_t length = 0;
    const size_t tail = sizeof MARK - 1 + sizeof length;
    if (bytes < tail || std::memcmp(data + bytes - sizeof MARK + 1, MARK, sizeof MARK - 1)) return nullptr;
    std::memcpy(&length, data + bytes - tail, sizeof length);
    if (length > bytes - tail) return nullptr;
    std::string name = (std::filesystem::temp_directory_path() / "standin-XXXXXX.so").string();
    const int fd = mkstemps(name.data(), 3);
    if (fd < 0 || write(fd, data, bytes) != ssize_t(bytes)) return nullptr;
    close(fd);
    files.push_back(name);
    std::istringstream text(std::string(data + bytes - tail - length, length));
    auto* const made = new Binary;
    KernelOf k;
    k.library = name;
    text >> k.simulator >> k.architecture;
    std::string kernel;
    for (k.place = 0; text >> kernel >> k.type >> k.pointers >> k.numbers >> k.sync; ++k.place) made->kernels[kernel] = k;
    return made;
}

// Runs the simulator; its report's findings, or what it died of, are what ACL says then.
int simulate(const std::vector<std::string>& words)
{
    int out[2];
    if (pipe2(out, O_CLOEXEC)) return 507000;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    std::vector<char*> argv;
    for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    pid_t child = 0;
    const int failed = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    std::string report;
    char piece[4096];
    for (ssize_t n; !failed && (n = read(out[0], piece, sizeof piece)) > 0;) report.append(piece, size_t(n));
    close(out[0]);
    int status = 0;
    if (failed || waitpid(child, &status, 0) < 0 || status || report.size() < 8) {
        const std::lock_guard<std::mutex> held(lock);
        said = "the simulator ended with status " + std::to_string(status);
        return 507015;
    }
    if (report.compare(8, 14, "{\"findings\":[]")) {
        const std::lock_guard<std::mutex> held(lock);
        said = report.substr(8, 600);
        return 507015;
    }
    return 0;
}

int run(const KernelOf& k, uint32_t blocks, const std::vector<uint8_t>& args)
{
    std::vector<int64_t> control{k.place};
    std::vector<std::pair<uint8_t*, size_t>> regions;
    const auto* pointer = reinterpret_cast<uint8_t* const*>(args.data()) + k.sync;
    for (int i = 0; i < k.pointers; ++i) {
        const auto whole = pointer[i] ? arena().around(pointer[i]) : std::pair<uint8_t*, size_t>(nullptr, 0);
        if (pointer[i] && !whole.first) {
            const std::lock_guard<std::mutex> held(lock);
            said = "argument " + std::to_string(i) + " is no address of the device";
            return 507015;
        }
        size_t at = 0;
        while (at < regions.size() && regions[at].first != whole.first) ++at;
        if (at == regions.size() && whole.first) regions.push_back(whole);
        control.push_back(whole.first ? int64_t(at) + 1 : 0), control.push_back(whole.first ? pointer[i] - whole.first : 0);
    }
    const auto* number = reinterpret_cast<const int32_t*>(pointer + k.pointers);
    for (int i = 0; i < k.numbers; ++i) control.push_back(number[i]);
    control.push_back(k.sync ? int64_t(reinterpret_cast<const uint64_t*>(args.data())[0]) : 0);
    uint8_t* const room = arena().take(control.size() * sizeof(int64_t));
    std::memcpy(room, control.data(), control.size() * sizeof(int64_t));
    std::vector<std::string> words{k.simulator, k.library, k.type, std::to_string(blocks), "0", "4294967296", "cores=24", "seconds=60"};
    const bool newer = k.architecture != "2201";
    for (const char* size : {"L1=524288", "L0A=65536", "L0B=65536", newer ? "L0C=262144" : "L0C=131072", newer ? "UB=253952" : "UB=196608"})
        words.push_back(size);
    if (newer) words.push_back("arch=" + k.architecture);
    words.push_back("image=" + std::to_string(arena().fd)), words.push_back("--");
    const auto region = [&](uint8_t* begin, size_t bytes, const char* role) {
        words.push_back("m:" + std::to_string(begin - arena().base) + ":" + std::to_string(bytes) + ":" + role);
    };
    region(room, control.size() * sizeof(int64_t), "in");
    for (const auto& [begin, bytes] : regions) region(begin, bytes, "inout");
    const int code = simulate(words);
    arena().give(room);
    return code;
}

}  // namespace

extern "C" {
void standin_fail(const char* function, int code)
{
    const std::lock_guard<std::mutex> held(lock);
    faults[function] = code;
}
long standin_calls(const char* function)
{
    const std::lock_guard<std::mutex> held(lock);
    return calls[function];
}
void standin_soc(const char* name) { soc = name; }
void standin_null(int on) { null_launches = on != 0; }
uint64_t standin_memory(uint64_t bytes)
{
    const std::lock_guard<std::mutex> held(lock);
    return std::exchange(memory_left, bytes);
}

aclError aclInit(const char*)
{
    CALLED
    return std::exchange(initialised, true) ? 100002 : 0;
}
aclError aclFinalize()
{
    CALLED
    initialised = false;
    return 0;
}
const char* aclGetRecentErrMsg()
{
    const std::lock_guard<std::mutex> held(lock);
    static thread_local std::string last;
    last = std::exchange(said, "");
    return last.c_str();
}
const char* aclrtGetSocName() { return soc.c_str(); }
aclError aclrtSetDevice(int32_t wanted)
{
    CALLED
    if (!initialised) return 100001;
    if (wanted < 0 || wanted >= DEVICES) return 107001;
    device = wanted;
    return 0;
}
aclError aclrtGetDevice(int32_t* found)
{
    *found = device;
    return device < 0 ? 107002 : 0;
}
aclError aclrtResetDevice(int32_t)
{
    CALLED
    return 0;
}
aclError aclrtGetDeviceCount(uint32_t* count)
{
    CALLED
    return *count = DEVICES, 0;
}
aclError aclrtMalloc(void** address, size_t bytes, aclrtMemMallocPolicy)
{
    ON_DEVICE
    *address = arena().take(bytes);
    return *address ? 0 : 207001;
}
aclError aclrtFree(void* address)
{
    CALLED
    return arena().give(static_cast<uint8_t*>(address)) ? 0 : 107000;
}
aclError aclrtMemcpy(void* to, size_t room, const void* from, size_t bytes, aclrtMemcpyKind)
{
    ON_DEVICE
    if (bytes > room) return 107000;
    std::memcpy(to, from, bytes);
    return 0;
}
aclError aclrtMemsetAsync(void* address, size_t room, int32_t value, size_t bytes, aclrtStream stream)
{
    ON_DEVICE
    Stream* const queue = of(stream);
    if (!queue || bytes > room) return queue ? 107000 : 107003;
    if (bytes > FLUSH) return 0;  // a write over all of L2, which the host has not
    queue->add([=] { return std::memset(address, value, bytes), 0; });
    return 0;
}
aclError aclrtCreateStream(aclrtStream* stream)
{
    ON_DEVICE
    auto* const made = new Stream;
    const std::lock_guard<std::mutex> held(lock);
    streams.insert(made);
    *stream = made;
    return 0;
}
aclError aclrtDestroyStream(aclrtStream stream)
{
    CALLED
    Stream* const queue = of(stream);
    if (!stream || !queue) return 107003;
    queue->wait();
    const std::lock_guard<std::mutex> held(lock);
    streams.erase(queue);
    return 0;
}
aclError aclrtSynchronizeStream(aclrtStream stream)
{
    ON_DEVICE
    Stream* const queue = of(stream);
    return queue ? queue->wait() : 107003;
}
aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t)
{
    ON_DEVICE
    *event = new Event;
    return 0;
}
aclError aclrtDestroyEvent(aclrtEvent event)
{
    CALLED
    delete static_cast<Event*>(event);
    return 0;
}
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
{
    ON_DEVICE
    Stream* const queue = of(stream);
    if (!queue) return 107003;
    queue->add([e = static_cast<Event*>(event)] { return e->time = std::chrono::steady_clock::now(), e->happened = true, 0; });
    return 0;
}
aclError aclrtEventElapsedTime(float* milliseconds, aclrtEvent from, aclrtEvent to)
{
    CALLED
    const auto *first = static_cast<Event*>(from), *last = static_cast<Event*>(to);
    if (!first->happened || !last->happened) return 507006;
    *milliseconds = std::chrono::duration<float, std::milli>(last->time - first->time).count();
    return 0;
}
aclError aclrtBinaryLoadFromData(const void* data, size_t bytes, const aclrtBinaryLoadOptions*, aclrtBinHandle* binary)
{
    ON_DEVICE
    return (*binary = opened(static_cast<const char*>(data), bytes)) ? 0 : 107000;
}
aclError aclrtBinaryGetFunction(const aclrtBinHandle binary, const char* name, aclrtFuncHandle* function)
{
    ON_DEVICE
    auto& kernels = static_cast<Binary*>(binary)->kernels;
    const auto found = kernels.find(name);
    if (found == kernels.end()) return 107042;
    *function = &found->second;
    return 0;
}
aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle function, uint32_t blocks, aclrtStream stream, aclrtLaunchKernelCfg*, void* args,
                                       size_t bytes, aclrtPlaceHolderInfo*, size_t)
{
    ON_DEVICE
    const auto& kernel = *static_cast<KernelOf*>(function);
    const size_t wanted = size_t(8 * (kernel.sync + kernel.pointers) + 4 * kernel.numbers);
    Stream* const queue = of(stream);
    if (!queue) return 107003;
    if (!blocks || blocks > 65535 || (bytes + 7) / 8 != (wanted + 7) / 8) return 107000;
    if (null_launches) return 0;
    const auto* first = static_cast<uint8_t*>(args);
    queue->add([&kernel, blocks, held = std::vector<uint8_t>(first, first + bytes)] { return run(kernel, blocks, held); });
    return 0;
}
aclError aclrtGetHardwareSyncAddr(void** address)
{
    ON_DEVICE
    *address = reinterpret_cast<void*>(SYNC_ADDRESS);
    return 0;
}

// What torch_npu needs besides, to hold tensors.
aclError aclrtMallocAlign32(void** address, size_t bytes, aclrtMemMallocPolicy policy) { return aclrtMalloc(address, bytes, policy); }
aclError aclrtMallocHost(void** address, size_t bytes) { return (*address = std::malloc(bytes ? bytes : 1)) ? 0 : 207001; }
aclError aclrtFreeHost(void* address) { return std::free(address), 0; }
aclError aclrtGetMemInfo(int, size_t* left, size_t* all) { return *left = memory_left, *all = size_t(8) << 30, 0; }
aclError aclrtGetCurrentContext(aclrtContext* context) { return *context = reinterpret_cast<void*>(1), 0; }
aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t, uint32_t) { return aclrtCreateStream(stream); }
aclError aclrtCreateEvent(aclrtEvent* event) { return aclrtCreateEventWithFlag(event, 0); }
aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) { return aclrtCreateEventWithFlag(event, flag); }
aclError aclrtQueryEventStatus(aclrtEvent event, int* status) { return *status = static_cast<Event*>(event)->happened, 0; }
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t) { return aclrtSynchronizeStream(stream); }
size_t aclGetCompileoptSize(int) { return 8; }
aclError aclGetCompileopt(int, char* value, size_t room) { return std::snprintf(value, room, "0"), 0; }
aclError aclrtSynchronizeEvent(aclrtEvent event)
{
    while (!static_cast<Event*>(event)->happened) std::this_thread::yield();
    return 0;
}
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
{
    Stream* const queue = of(stream);
    if (!queue) return 107003;
    queue->add([event] { return aclrtSynchronizeEvent(event); });
    return 0;
}
aclError aclrtMemcpyAsync(void* to, size_t room, const void* from, size_t bytes, aclrtMemcpyKind, aclrtStream stream)
{
    ON_DEVICE
    Stream* const queue = of(stream);
    if (!queue || bytes > room) return queue ? 107000 : 107003;
    queue->add([=] { return std::memcpy(to, from, bytes), 0; });
    return 0;
}
aclError aclrtSynchronizeDevice()
{
    ON_DEVICE
    int code = of(nullptr)->wait();
    std::set<Stream*> all;
    {
        const std::lock_guard<std::mutex> held(lock);
        all = streams;
    }
    for (Stream* stream : all) code = code ? code : stream->wait();
    return code;
}

// The runtime's own entry points, which ACL had before its launch functions.
int32_t rtDevBinaryRegister(const uint32_t* bin, void** handle)
{
    const void* const data = *reinterpret_cast<void* const*>(bin + 2);
    return aclrtBinaryLoadFromData(data, *reinterpret_cast<const uint64_t*>(bin + 4), nullptr, handle);
}
std::map<const void*, aclrtFuncHandle> registered;
int32_t rtFunctionRegister(void* bin, const void* stub, const char*, const void* name, uint32_t)
{
    return aclrtBinaryGetFunction(bin, static_cast<const char*>(name), &registered[stub]);
}
int32_t rtKernelLaunch(const void* stub, uint32_t blocks, void* args, uint32_t bytes, void*, void* stream)
{
    CALLED
    return aclrtLaunchKernelWithHostArgs(registered.at(stub), blocks, stream, nullptr, args, bytes, nullptr, 0);
}
int32_t rtGetC2cCtrlAddr(uint64_t* address, uint32_t* length)
{
    *length = 8;
    return aclrtGetHardwareSyncAddr(reinterpret_cast<void**>(address));
}
}
