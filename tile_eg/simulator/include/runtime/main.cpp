// The process that runs one kernel, or one file with a main of its own (host.h): arguments and inputs come in, findings, counts
// and outputs go out (simulator/run.py, simulator/program.py). What the kernel or the file prints goes to stderr.
//   argv: the library, kernel type (HOST: it has a main; what follows `--` are its arguments), launch, trace (0/1), memory limit in bytes,
//         then `name=bytes` for each level (L1 UB L0A L0B L0C), `order=` and `mutate=` if wanted (schedule.h, mutation.h), `only=1,5` for the
//         blocks to run, `seconds=` of processor time, `progress=` the number of a file (progress.h), `watch=` that of another
//         and a tile (watch.h), `parent=` the process that waits for it, `unconfined`, `reads=` and `writes=`
//         folders (confine.h), `image=` the descriptor of the file that holds the tensors, `--`, and
//         `name:begin:bytes:in|out|inout|scratch` for each of them: where it begins in the file, and in GM.
//   With `confinement` alone it prints why this machine cannot confine a run, or nothing.
//   stdout: the length of the report (8 bytes), and the report (JSON): with the stretches of outputs that nothing has written. Outputs go into the file.
#include <cxxabi.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>

#include "confine.h"
#include "parent.h"
#include "progress.h"
#include "schedule.h"
#include "share.h"
#include "time_limit.h"
#include "watch.h"
#include "zero_division.h"

namespace tile_sim
{
namespace
{

FILE* report_file = nullptr;
bool host = false;
int image = -1;  // the file that holds the tensors (simulator/image.py), where there are some
int64_t gm_bytes = int64_t(64) << 30;  // of a file with a main; address space, used as far as it is touched
Grants grants;
double seconds = 0;  // of processor time; 0: no limit

constexpr int64_t most_file_bytes = int64_t(1) << 30;  // that a file with a main, or what it prints, may write
constexpr uint8_t unwritten_byte = 0xff;
constexpr int64_t gap = 4096;  // bytes behind the last tensor

std::string quoted(const std::string& s)
{
    std::string out = "\"";
    for (char c : s) {
        if (c == '"' || c == '\\') out += '\\';
        if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out + "\"";
}

std::string finding_json(const Finding& f)
{
    const FileLine at = of_line(f.line), other = of_line(f.other_line);
    return text("{\"line\":%d,\"other_line\":%d,\"block\":%u,", at.line, other.line, f.block) + "\"file\":" + quoted(at.file) +
           ",\"other_file\":" + quoted(other.file) + ",\"kind\":" + quoted(f.kind) + ",\"message\":" + quoted(with_files(f.message)) + ",\"core\":" + quoted(f.core) + ",\"pipe\":" + quoted(f.pipe) + "}";
}

template <class Items, class Print>
std::string joined(const Items& items, Print print)
{
    std::string out;
    for (const auto& item : items) out += (out.empty() ? "" : ",") + print(item);
    return out;
}

std::string touched_json(const Touched& t)
{
    return text("[\"%s\",%lld,%lld,%d]", name_of(t.space), (long long)t.begin, (long long)t.end, int(t.written));
}

std::string row_json(const TraceRow& r)
{
    const char* core = r.core == AIV1 ? "AIV1" : core_name(r.core);  // the last launch may have had one vector core only
    return text("[%u,\"%s\",\"%s\",", r.block, core, r.pipe) + quoted(r.name) +
           text(",%d,%lld,", of_line(r.line).line, (long long)r.bytes) + quoted(r.path) + "," + quoted(r.tensor) +
           text(",%lld,[%lld,%lld,%lld,%lld],[", (long long)r.offset, (long long)r.sizes[0], (long long)r.sizes[1],
                (long long)r.sizes[2], (long long)r.sizes[3]) +
           joined(r.touched, touched_json) +
           (r.past_l2 || r.unit_flag || r.makes_nz ? text("],%d,%d,%d]", r.past_l2, r.unit_flag, r.makes_nz) : "]]");
}

int returned = 0;  // by the main of a file
bool ended = true;  // every block came to its end

// An output that starts unwritten, and of which some bytes still are when the kernel has ended.
bool left_unwritten(const Region& region)
{
    return ended && region.output && !region.input && machine.gm.poisoned(region.begin, region.end);
}

// By the tensor's number: the bytes between which nothing has written it.
std::string unwritten_json()
{
    std::string out;
    for (size_t i = 0; i < machine.regions.size(); ++i) {
        const Region& region = machine.regions[i];
        if (!left_unwritten(region)) continue;
        const auto stretch = [&](const std::pair<int64_t, int64_t>& s) {
            return text("[%lld,%lld]", (long long)(s.first - region.begin), (long long)(s.second - region.begin));
        };
        out += (out.empty() ? "\"" : ",\"") + std::to_string(i) + "\":[" + joined(machine.gm.unwritten(region.begin, region.end), stretch) + "]";
    }
    return out;
}

std::string unconfined;  // why the run is not, or not wholly, confined

std::string report_json()
{
    const auto pair = [](const auto& p) { return quoted(p.first) + ":" + std::to_string(p.second); };
    return "{\"findings\":[" + joined(machine.findings, finding_json) + "],\"instructions\":{" +
           joined(machine.instructions.all(), pair) + "},\"bytes\":{" + joined(machine.bytes.all(), pair) + "},\"trace\":[" +
           joined(machine.rows, row_json) + "],\"schedule\":" +
           text("[%lld,\"%016llx\",%lld]", (long long)schedule.instructions(), (unsigned long long)schedule.fingerprint(),
                (long long)mutations_applied()) +
           ",\"returned\":" + std::to_string(returned) + ",\"unwritten\":{" + unwritten_json() + "},\"unconfined\":" + quoted(unconfined) + "}";
}

void open_regions(int argc, char** argv, int first)
{
    int64_t last = 0;
    for (int i = first; i < argc; ++i) {
        std::string parts[4], item = argv[i];
        for (int part = 3; part; --part) {
            const size_t at = item.rfind(':');
            parts[part] = item.substr(at + 1), item.resize(at);
        }
        std::string& role = parts[3];
        const size_t further = role.find('+');
        const bool alike = further != std::string::npos && role.substr(further) == "+alike";
        role.resize(std::min(further, role.size()));
        const int64_t begin = std::atoll(parts[1].c_str()), end = begin + std::atoll(parts[2].c_str());
        machine.regions.push_back({item, begin, end, role == "out" || role == "inout", role == "in" || role == "inout", alike});
        last = std::max(last, end);
    }
    machine.gm.open(Space::GM, last + gap, image);
}

void configure_only(const char* list)
{
    for (const char* at = list; at && *at; at = std::strchr(at, ','), at += at != nullptr)
        machine.settings.only.push_back(uint32_t(std::atoll(at)));
}

bool configure_limits(const char* option)
{
    if (!std::strcmp(option, "unconfined")) return !(grants.confined = false);
    if (!std::strncmp(option, "reads=", 6)) return grants.reads.emplace_back(option + 6), true;
    if (!std::strncmp(option, "writes=", 7)) return grants.writes.emplace_back(option + 7), true;
    if (!std::strncmp(option, "parent=", 7)) return end_with(pid_t(std::atoi(option + 7))), true;
    if (!std::strncmp(option, "progress=", 9)) return tell_progress_to(std::atoi(option + 9)), true;
    if (long tile = 0, to = 0; std::sscanf(option, "watch=%ld:%ld", &to, &tile) == 2) return watch_into(int(to), tile), true;
    return std::sscanf(option, "seconds=%lf", &seconds) == 1;
}

bool configure_host(const char* option)
{
    if (std::sscanf(option, "arch=%ld", &machine.settings.architecture) == 1) {
        if (machine.settings.architecture == 3510)
            for (Space space : {Space::BT, Space::FB, Space::MXA, Space::MXB}) machine.settings.capacity[int(space)] = 4096;
        return true;
    }
    if (!std::strcmp(option, "auto_sync")) return machine.settings.auto_sync = true;
    if (!std::strcmp(option, "lenient")) return machine.settings.lenient = true;
    if (std::sscanf(option, "cores=%ld", &machine.settings.cores) == 1) return true;
    if (std::sscanf(option, "image=%d", &image) == 1) return true;
    if (!std::strncmp(option, "only=", 5)) return configure_only(option + 5), true;
    return std::sscanf(option, "gm=%ld", &gm_bytes) == 1;
}

// Says where a kernel was when it crashed; the signal then ends the process.
void tell_crash(int)
{
    if (machine.events.size() < 2) return;
    const Event& last = machine.events.back();
    char message[160];
    const FileLine at = of_line(last.line);
    const int length = std::snprintf(message, sizeof message, "after %s at line %d%s%s (%s, block %u)\n", last.name, at.line,
                                     at.file.empty() ? "" : " of ", at.file.c_str(), core_name(last.core), last.block);
    if (write(2, message, size_t(length)) < 0) return;
}

void go_on_or_tell(int signal, siginfo_t*, void* context)
{
    if (past_division(context)) return;
    tell_crash(signal);
    std::signal(signal, SIG_DFL);  // it is raised again, and ends the process
}

void limit_damage()
{
    const rlimit files{rlim_t(most_file_bytes), rlim_t(most_file_bytes)};
    setrlimit(RLIMIT_FSIZE, &files);
    struct sigaction told{};
    told.sa_handler = tell_crash, told.sa_flags = SA_RESETHAND;
    for (int signal : {SIGSEGV, SIGBUS, SIGILL}) sigaction(signal, &told, nullptr);
    told.sa_flags = SA_SIGINFO, told.sa_sigaction = go_on_or_tell;
    sigaction(SIGFPE, &told, nullptr);
}

int configure(int argc, char** argv)
{
    machine.settings.capacity[int(Space::BT)] = 1024, machine.settings.capacity[int(Space::FB)] = 2048;
    machine.settings.capacity[int(Space::IX)] = 16384;
    static const char* types[] = {"AIC_ONLY", "AIV_ONLY", "MIX_AIC_1_1", "MIX_AIC_1_2", "MIX_AIC_1_0", "MIX_AIV_1_0"};
    for (int i = 0; i < 6; ++i)
        if (!std::strcmp(argv[2], types[i])) machine.settings.type = KernelType(i);
    machine.settings.launch = std::atoll(argv[3]);
    machine.settings.trace = std::atoi(argv[4]) != 0;
    machine.settings.memory = std::atoll(argv[5]);
    int i = 6;
    for (; i < argc && std::strcmp(argv[i], "--"); ++i) {
        if (schedule.configure(argv[i]) || add_mutation(argv[i]) || configure_host(argv[i]) || configure_limits(argv[i])) continue;
        for (int space = 1; space < spaces; ++space)
            if (!std::strncmp(argv[i], (std::string(name_of(Space(space))) + "=").c_str(),
                              std::strlen(name_of(Space(space))) + 1))
                machine.settings.capacity[space] = std::atoll(std::strchr(argv[i], '=') + 1);
    }
    return i + 1;
}

// A tensor as it is now, into its place in the file; NaN where nothing has written.
void write_output(const Region& region)
{
    const int64_t bytes = region.end - region.begin;
    if (!bytes) return;
    uint8_t* const file = reserve(bytes, MAP_SHARED, image, region.begin) - region.begin;
    for (int64_t begin = region.begin, end = 0; begin < region.end; begin = end) {
        end = std::min(region.end, (begin / Memory::chunk + 1) * Memory::chunk);
        const bool awake = machine.gm.awake(begin / Memory::chunk), in_part = machine.gm.poisoned(begin, end);
        if (awake) std::memcpy(file + begin, machine.gm.at(begin), size_t(end - begin));
        const int64_t step = awake ? granule : end - begin;
        for (int64_t i = begin; in_part && i < end; i += step)
            if (machine.gm.poisoned(i, i + 1)) std::memset(file + i, unwritten_byte, size_t(std::min(step, end - i)));
    }
    release(file + region.begin, bytes);
}

int write_report()
{
    const std::string report = report_json();
    const uint64_t length = report.size();
    std::fwrite(&length, sizeof length, 1, report_file);
    std::fwrite(report.data(), 1, report.size(), report_file);
    for (const Region& region : machine.regions)
        if (region.output) write_output(region);
    return std::fflush(report_file) ? 3 : 0;
}

// What the loader says of a function that a file declares and does not define.
std::string readable(const std::string& message)
{
    constexpr const char mark[] = "undefined symbol: ";
    const size_t at = message.find(mark);
    if (at == std::string::npos) return message;
    const std::string symbol = message.substr(at + sizeof mark - 1);
    int status = 0;
    char* const name = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
    const std::string told = status ? symbol : name;
    std::free(name);
    return "'" + told + "' is used and not defined: one file is simulated, with what it includes";
}

void* load(const char* library, const char* name)
{
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void* symbol = handle ? dlsym(handle, name) : nullptr;
    if (!symbol) throw std::runtime_error(readable(dlerror()));
    return symbol;
}

void run_kernel(void* kernel)
{
    std::vector<uint8_t*> arguments;
    for (const Region& region : machine.regions) arguments.push_back(machine.gm.at(region.begin));
    ended = run_blocks([&] { reinterpret_cast<void (*)(uint8_t**)>(kernel)(arguments.data()); });
}

int run_program(void* main, int argc, char** argv)
{
    machine.gm.open(Space::GM, gm_bytes);
    limit_memory();
    std::atexit([] { write_report(); });  // also where the program ends by exit()
    try {
        returned = reinterpret_cast<int (*)(int, char**)>(main)(argc, argv);
    } catch (const Stop&) {
    }
    return 0;
}

// Ends the process with what was found until now. A worker leaves that to the process that then runs all blocks in order.
[[noreturn]] void end_now()
{
    if (is_worker()) _exit(1);
    write_report();
    _exit(0);
}

// A finding that ends the run, made in a destructor: nothing leaves it by an exception.
std::terminate_handler other_terminate = nullptr;
[[noreturn]] void end_or_terminate()
{
    try {
        if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    } catch (const Stop&) {
        end_now();
    } catch (...) {
    }
    other_terminate();
    std::abort();
}

int run(int argc, char** argv)
{
    report_file = fdopen(dup(1), "wb");
    other_terminate = std::set_terminate(end_or_terminate);
    dup2(2, 1);
    host = !std::strcmp(argv[2], "HOST");
    const int first = configure(argc, argv);
    limit_time(seconds);
    limit_damage();
    unconfined = grants.confined ? cannot_confine() : "it was asked for";
    confine(grants, argv[1]);  // before the library's global constructors run
    void* const symbol = load(argv[1], host ? "main" : "tile_sim_launch");
    if (host) return run_program(symbol, argc - first + 1, argv + first - 1);
    open_regions(argc, argv, first);
    limit_memory();
    run_kernel(symbol);
    return write_report();
}

// Whether it is what is known of each instruction that there is no memory for: a copy that is twice as long may have been asked for.
bool instructions_fill_it() { return int64_t(machine.events.size() * sizeof(Event)) > machine.settings.memory / 8; }

}  // namespace
}  // namespace tile_sim

// A failed assert, of a kernel or of its host side, is a finding.
#ifdef __APPLE__
extern "C" void __assert_rtn(const char*, const char* file, int line, const char* condition)
#else
extern "C" void __assert_fail(const char* condition, const char* file, unsigned line, const char*) noexcept
#endif
{
    tile_sim::machine.report("assert", "", tile_sim::placed(int(line), file), 0, tile_sim::text("the assertion %s does not hold", condition));
    tile_sim::end_now();
}

int main(int argc, char** argv)
{
    if (argc == 2 && !std::strcmp(argv[1], "confinement")) return std::puts(tile_sim::cannot_confine().c_str()) < 0;
    try {
        return tile_sim::run(argc, argv);
    } catch (const std::bad_alloc&) {
        std::fputs("out of memory\n", stderr);
        return tile_sim::instructions_fill_it() ? 6 : 4;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 5;
    }
}
