// Blocks that are independent of one another run in several processes at once.
//
// Each process runs its part of the blocks on a copy of what there is, and says at the end which bytes of GM it has read and written.
// Where it found nothing, met no other block, and no two processes met in GM, their results are put together. Otherwise they are thrown
// away, and the blocks run one after the other: what is reported does not depend on how a kernel was run.
#include "share.h"

#ifdef __linux__
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "confine.h"
#include "parent.h"
#include "progress.h"
#include "schedule.h"
#include "time_limit.h"
#include "watch.h"

namespace tile_sim
{
namespace
{

using Time = std::chrono::steady_clock;
constexpr double worth_seconds = 0.25;  // of work that is left
constexpr int64_t most_processes = 8;
constexpr int64_t block_bytes = granule * per_entry;

Time::time_point began;
bool tried = false, worker = false;

// That this process may run on.
int64_t processors()
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

int64_t gm_in_use()
{
    int64_t end = 0;
    for (const Region& region : machine.regions) end = std::max(end, region.end);
    return (end + block_bytes - 1) / block_bytes * block_bytes;
}

// The granules of a block of GM that a process has read and written, a bit each.
struct Accesses {
    uint16_t read = 0, written = 0;
    bool any() const { return read | written; }
    bool meet(const Accesses& other) const { return (written & (other.read | other.written)) | (read & other.written); }
    void join(const Accesses& other) { read |= other.read, written |= other.written; }
};

uint16_t since(const Track& track, int64_t block, uint32_t first_event)
{
    const int64_t first = block * per_entry;
    if (track.agrees(block)) return track[first] >= first_event ? 0xffff : 0;
    uint16_t bits = 0;
    for (int64_t i = 0; i < per_entry; ++i) bits |= uint16_t((track[first + i] >= first_event) << i);
    return bits;
}

// What one process hands back: the bytes of GM, the accesses to each block and whether each chunk was touched, and files with counts and
// with what was printed.
class Part
{
public:
    explicit Part(int64_t bytes) : bytes_(bytes)
    {
        try {
            data_ = reserve(room(), MAP_SHARED | MAP_ANONYMOUS);
        } catch (const std::runtime_error&) {
            return;
        }
        counts_ = worker_file(), printed_ = worker_file();
    }
    Part(const Part&) = delete;
    ~Part()
    {
        if (data_) release(data_, room());
        for (FILE* file : {counts_, printed_})
            if (file) std::fclose(file);
    }
    bool good() const { return data_ && counts_ && printed_; }
    Accesses* accesses() { return reinterpret_cast<Accesses*>(data_ + bytes_); }
    uint8_t* chunks() { return data_ + bytes_ + blocks() * int64_t(sizeof(Accesses)); }
    int64_t blocks() const { return bytes_ / block_bytes; }
    // The blocks of the chunks that the process has touched: visit(first, last).
    template <class Visit>
    void each_chunk(Visit visit)
    {
        constexpr int64_t size = Memory::chunk / block_bytes;
        for (int64_t i = 0; i * size < blocks(); ++i)
            if (chunks()[i]) visit(i * size, std::min(blocks(), (i + 1) * size));
    }
    void print_here() const { dup2(fileno(printed_), 1), dup2(fileno(printed_), 2); }
    void fill(uint32_t first_event);
    void take_data();
    void take_counts();
    void take_printed();

private:
    int64_t room() const { return bytes_ + blocks() * int64_t(sizeof(Accesses)) + bytes_ / Memory::chunk + 1; }
    void take(int64_t begin, int64_t end);
    void take_block(int64_t block, uint16_t written);
    void write_counts(char kind, const Tally& counts) const
    {
        for (const auto& [name, count] : counts.all()) std::fprintf(counts_, "%c %lld %s\n", kind, (long long)count, name.c_str());
    }

    int64_t bytes_;
    uint8_t* data_ = nullptr;
    FILE *counts_ = nullptr, *printed_ = nullptr;
};

void Part::fill(uint32_t first_event)
{
    Memory& gm = machine.gm;
    for (int64_t i = 0; i * Memory::chunk < bytes_; ++i) chunks()[i] = gm.awake(i);
    each_chunk([&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
            Accesses how{0, since(gm.writer, i, first_event)};
            for (const Track& slot : gm.reader) how.read |= since(slot, i, first_event);
            if (how.any()) accesses()[i] = how;
            if (how.written) std::memcpy(data_ + i * block_bytes, gm.at(i * block_bytes), block_bytes);
        }
    });
    write_counts('i', machine.instructions), write_counts('b', machine.bytes);
    std::fflush(counts_);
}

void Part::take_data()
{
    each_chunk([&](int64_t begin, int64_t end) {
        for (int64_t first = begin, last = 0; first < end; first = last) {
            for (last = first; last < end && accesses()[last].written == 0xffff;) ++last;
            take(first * block_bytes, last * block_bytes);
            if (last == first) take_block(last, accesses()[last].written), ++last;
        }
    });
}

void Part::take_block(int64_t block, uint16_t written)
{
    for (int64_t i = 0; i < per_entry; ++i)
        if (written >> i & 1) take(block * block_bytes + i * granule, block * block_bytes + (i + 1) * granule);
}

void Part::take(int64_t begin, int64_t end)
{
    if (end <= begin) return;
    machine.gm.poison(begin, end, false);
    std::memcpy(machine.gm.at(begin), data_ + begin, size_t(end - begin));
}

void Part::take_counts()
{
    char kind = 0, name[256];
    long long count = 0;
    std::rewind(counts_);
    while (std::fscanf(counts_, "%c %lld %255[^\n]\n", &kind, &count, name) == 3)
        (kind == 'i' ? machine.instructions : machine.bytes).add(std::string(name), count);
}

void Part::take_printed()
{
    char buffer[4096];
    std::rewind(printed_);
    for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, printed_)) > 0;) std::fwrite(buffer, 1, n, stdout);
    std::fflush(stdout);
}

// Of the events from this one on; those before it were looked at.
bool only_plain_accesses(uint32_t first)
{
    if (!machine.findings.empty() || !machine.gm.rewritten.empty()) return false;
    return std::none_of(machine.events.begin() + first, machine.events.end(), [](const Event& e) { return e.atomic; });
}

[[noreturn]] void work(pid_t parent, Part& part, int64_t first, int64_t last, const BlockRun& run)
{
    end_with(parent);
    worker = true;
    limit_worker_time();
    part.print_here();
    machine.instructions.clear(), machine.bytes.clear();
    const uint32_t first_event = uint32_t(machine.events.size());
    for (int64_t block = first; block < last; ++block) {
        const uint32_t looked_at = uint32_t(machine.events.size());
        if (!run(uint32_t(block)) || !only_plain_accesses(looked_at)) _exit(1);
    }
    part.fill(first_event);
    std::fflush(stdout);
    _exit(0);
}

// What ends a worker for good ends the run: it would end so without workers, or it was refused something.
void ended_by(int signal)
{
    if (signal == SIGSYS) end_refused();
    if (signal == SIGPROF || signal == SIGXCPU) end_late();
}

bool all_ended_well(const std::vector<pid_t>& processes)
{
    bool good = true;
    for (pid_t process : processes) {
        int status = 0;
        good = waitpid(process, &status, 0) == process && WIFEXITED(status) && !WEXITSTATUS(status) && good;
        ended_by(WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
    count_worker_time();
    return good;
}

bool meet(std::vector<std::unique_ptr<Part>>& parts)
{
    Lazy<Accesses> all;
    all.resize(parts[0]->blocks());
    bool met = false;
    for (auto& part : parts)
        part->each_chunk([&](int64_t first, int64_t last) {
            for (int64_t i = first; i < last; ++i) {
                const Accesses mine = part->accesses()[i];
                met = met || mine.meet(all[i]);
                all[i].join(mine);
            }
        });
    return met;
}

bool is_worth_it(int64_t begun, int64_t left)
{
    if (tried || worker || left < 2 || begun < 1 || schedule.on() || mutates_operands()) return false;
    if (machine.settings.trace || watching()) return false;  // they are of one process
    if (!machine.findings.empty() || processors() < 2) return false;
    const double seconds = std::chrono::duration<double>(Time::now() - began).count();
    return seconds / double(begun) * double(left) > worth_seconds;
}

}  // namespace

void begin_sharing() { tried = false, began = Time::now(); }
bool is_worker() { return worker; }

bool share_blocks(int64_t begun, const BlockRun& run)
{
    const int64_t left = machine.settings.launch - begun;
    if (!is_worth_it(begun, left)) return false;
    tried = true;
    const int64_t count = std::min({processors(), most_processes, left}), bytes = gm_in_use();
    std::vector<std::unique_ptr<Part>> parts;
    for (int64_t i = 0; i < count; ++i) parts.push_back(std::make_unique<Part>(bytes));
    if (!std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part->good(); })) return false;
    std::fflush(stdout);
    std::vector<pid_t> processes;
    const pid_t parent = getpid();
    begin_workers();
    for (int64_t i = 0; i < count; ++i) {
        const pid_t process = fork_worker();
        if (process == 0) worker_begins(i), work(parent, *parts[size_t(i)], begun + left * i / count, begun + left * (i + 1) / count, run);
        if (process > 0) processes.push_back(process);
    }
    const bool good = all_ended_well(processes) && int64_t(processes.size()) == count;
    if (!good || meet(parts)) return false;
    for (auto& part : parts) part->take_data(), part->take_counts(), part->take_printed();
    return true;
}

}  // namespace tile_sim

#else

namespace tile_sim
{
void begin_sharing() {}
bool is_worker() { return false; }
bool share_blocks(int64_t, const BlockRun&) { return false; }
}  // namespace tile_sim

#endif
