// The machine: memories with their shadows, cores with their pipes, and what was found wrong.
#pragma once
#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "blocks_interface.h"
#include "cube_interface.h"
#include "interface.h"
#include "memory.h"

namespace tile_sim
{

constexpr int pipes = int(Pipe::count), spaces = int(Space::count), most_cores = 3;
constexpr int cross_ids = 16, single_ids = 32;  // flags between cores; those of mode 4 come after the others
constexpr int first_event = 8, event_ids = 16;  // a kernel's flags have the ids below, the events of queues those from there
enum { AIC = 0, AIV0 = 1, AIV1 = 2 };

const char* name_of(Pipe pipe);
const char* name_of(Space space);
const char* core_name(int core);

// clock[core * pipes + pipe]: how many instructions of that pipe are known to have finished.
using Clock = std::array<uint32_t, most_cores * pipes>;
void join(Clock& into, const Clock& other);

using Foreign = std::map<uint32_t, Clock>;  // of other blocks, by their numbers

// What is known to have finished, as one core hands it to another.
struct Known {
    uint32_t block = 0;
    Clock clock{};
    std::shared_ptr<const Foreign> others;
};

struct Flag {
    bool set = false;
    bool set_twice = false;  // before a wait, which is reported; in texts of others each set then may have its wait
    int again = 0;           // such sets that have had none
    Clock payload{};
    int set_line = 0, wait_line = 0;
    uint32_t wait_epoch = 0;  // the wait among the instructions of its pipe
};

// A flag between cores as one core has it: the sets that it has not waited for, by who set it (key_of), and their mode.
struct CrossFlag {
    int mode = 2, line = 0;
    std::map<uint32_t, std::deque<Known>> from;
};

// The unit flag of a block of L0C, and the instruction that met it last (unit_flags.cpp).
constexpr int64_t unit_bytes = 512;
struct UnitFlag {
    enum Bit : uint8_t { clear, set, either };
    Bit bit = clear;
    Pipe pipe = Pipe::S;  // M or FIX; S: none yet
    uint8_t value = 0;
    int line = 0;
    uint32_t epoch = 0;
    const char* name = "";
};

// Why a core stands still. `what` tells it where nothing will ever end it; a poll looks again now and then.
struct Wait {
    std::function<bool()> over;
    std::function<std::string()> what;
    bool poll = false;
};

// A line of the data cache between a scalar unit and GM (cache.cpp).
constexpr int64_t line_bytes = 64;
struct CacheLine {
    uint8_t data[line_bytes] = {};
    uint64_t dirty = 0;                             // bytes that GM has not yet, a bit each
    uint32_t writer[line_bytes / granule] = {};     // who had written them when the line was fetched, or through it since
    int fetched_at = 0, changed_at = 0;             // lines of the kernel
    uint32_t changed_by = 0;
};

// A core that reads GM again and again, and does nothing else.
struct Poll {
    int64_t times = 0;
    uint32_t work = 0;                     // instructions that it had issued
    std::array<int64_t, 5> copied{};       // the last small copy out of GM: line, places, and what had been done by then
};

// What instructions take from registers: as it is when they are issued.
struct Control {
    AtomicOp atomic = AtomicOp::none;
    bool pad_given = false, hf32 = false, hf32_to_zero = false;
    DType atomic_type = DType::f32;
    uint64_t pad_value = 0;
    uint64_t deq_scale = 0;
    Deq deq = Deq::none;
    ImageRegister image;
    FixpipeRegister fixpipe;
};

struct Core : Control {
    int index = 0;
    std::array<Clock, pipes> clock{};
    std::array<uint32_t, pipes> issued{}, last{};  // of all, and of the last instruction
    Flag flags[pipes][pipes][event_ids];
    std::vector<UnitFlag> units;
    CrossFlag cross[cross_ids + single_ids];
    Memory memory[spaces];
    std::map<int64_t, CacheLine> cache;  // by address in GM
    std::map<int64_t, bool> let_go;      // lines that DataCacheCleanAndInvalid has thrown out, and nothing has fetched since
    uint32_t settled = 0;                // scalar instructions that a DataSyncBarrier has waited for
    Poll poll;
    int64_t allocated[spaces] = {};
    const Wait* waits = nullptr;
    int waiting_line = 0;
    bool present = false, finished = false;
    bool managed = false;  // by a TPipe
    bool behind = false;  // goes on when no other core can
    bool saturates = false;    // what is computed now becomes no infinity
    bool mask_counts = false;  // the mask register holds a number of elements
    uint64_t mask[2] = {~uint64_t(0), ~uint64_t(0)};
    uint64_t compare_mask[2] = {0, 0};
    uint32_t compared = 0;  // the event that has written it
    uint64_t extreme = 0, sum = 0;  // of the last reduction, and its type (i4: there was none)
    DType extreme_type = DType::i4, sum_type = DType::i4;
    uint16_t merged[4] = {0, 0, 0, 0};  // elements that the last merge took from each list
    std::shared_ptr<const Foreign> others;  // what it knows of other blocks, with all its pipes
    std::set<uint32_t> read;                // scalar writes to GM of which it has read the value (events)

    void reset();
    bool has(Pipe pipe) const;
    bool has(Space space) const;
};

// The cores of the block that runs now.
class Cores
{
public:
    Core& operator[](int index) { return at_[index]; }
    Core* begin() { return at_; }
    Core* end() { return at_ + most_cores; }
    void point(Core* at) { at_ = at; }

private:
    Core* at_ = nullptr;
};

struct FileLine {  // `file` is empty for the kernel's own
    int line;
    std::string file;
};
FileLine of_line(int line);
std::string with_files(const std::string& message);  // the lines in it with their files

struct Finding {
    std::string kind, message, core, pipe;
    int line, other_line;
    uint32_t block;
};

// Bytes of an on-chip memory that an instruction reads or writes, from the first to the last through one tensor.
struct Touched {
    Space space;
    int64_t begin, end;
    bool written;
};

constexpr size_t most_rows = 1'500'000;  // of the trace; simulator/findings.py, MOST_ROWS

struct TraceRow {
    uint32_t block;
    int core;
    const char* pipe;
    std::string name;
    int line;
    int64_t bytes;
    std::string path, tensor;           // as it is counted; the GM tensor that it touches
    int64_t offset = 0;                 // where in that tensor, in bytes
    std::array<int64_t, 4> sizes{};     // findings.py, TraceRow
    std::vector<Touched> touched{};
    bool past_l2 = false;
    int unit_flag = 0;
    bool makes_nz = false;
};

struct Settings {
    KernelType type = KernelType::AIV_ONLY;
    int64_t launch = 1;
    bool trace = false;
    int64_t architecture = 2201;
    bool direct_paths() const { return architecture == 3510; }  // L0C to UB, and UB to L1 and back
    bool auto_sync = false;  // the compiler orders what meets on V and S of a vector core
    bool lenient = false;    // early sets (docs/machine.md, clause 8) and loads of what lies there are no findings
    int64_t cores = 24;      // that the chip has: AICs
    int64_t capacity[spaces] = {};
    int64_t memory = int64_t(8) << 30;  // bytes that the run may touch
    std::vector<uint32_t> only;         // the blocks that run, where not all do
    // What a kernel may reserve: of the Fixpipe buffer, with the parts that no instruction here reaches.
    int64_t reservable(Space space) const { return space == Space::FB ? (direct_paths() ? 16384 : 7168) : capacity[int(space)]; }
};

// How much of each thing there was. The names are literals, of which there are few: most are found by their address.
class Tally
{
public:
    void add(const char* name, int64_t count)
    {
        for (auto& [known, sum] : by_address_)
            if (known == name) return void(sum += count);
        by_address_.push_back({name, count});
    }
    void add(const std::string& name, int64_t count) { others_[name] += count; }
    std::map<std::string, int64_t> all() const
    {
        std::map<std::string, int64_t> sums = others_;
        for (const auto& [name, sum] : by_address_) sums[name] += sum;
        return sums;
    }
    void clear() { by_address_.clear(), others_.clear(); }

private:
    std::vector<std::pair<const char*, int64_t>> by_address_;
    std::map<std::string, int64_t> others_;
};

struct Stop {};  // thrown to end the run after an error that nothing sensible can follow

struct Machine {
    Settings settings;
    Memory gm;
    std::vector<Region> regions;
    Cores cores;
    Core* core = nullptr;  // the one that runs now
    uint32_t block = 0;
    std::vector<Event> events{Event{}};
    std::map<uint32_t, std::vector<Overwritten>> overwritten;  // by event (live.cpp)
    int64_t gm_writes = 0;
    std::map<uint32_t, Known> releases;      // what a scalar write to GM tells the core that reads it, by event
    std::map<int64_t, Core*> dirty_lines;    // by address in GM: whose data cache holds what GM has not
    std::vector<Finding> findings;
    std::vector<TraceRow> rows;
    Tally instructions, bytes;

    bool is(KernelType type) const { return settings.type == type; }
    bool has_aic() const { return !is(KernelType::AIV_ONLY) && !is(KernelType::MIX_AIV_1_0); }
    int vector_cores() const
    {
        return is(KernelType::MIX_AIC_1_2) ? 2 : is(KernelType::AIC_ONLY) || is(KernelType::MIX_AIC_1_0) ? 0 : 1;
    }
    bool mixed() const { return has_aic() && vector_cores(); }
    bool has_flags() const { return !is(KernelType::AIC_ONLY) && !is(KernelType::AIV_ONLY); }  // between cores
    Memory& memory(Space space) { return space == Space::GM ? gm : core->memory[int(space)]; }
    Memory& memory(const Operand& at) { return at.core < 0 ? memory(at.space) : cores[at.core].memory[int(at.space)]; }
    void report(const char* kind, const char* pipe, int line, int other_line, std::string message);
};

extern Machine machine;

// A row of the trace that is no instruction: a flag, a barrier, a launch.
void trace_mark(const char* pipe, const std::string& name, int line, const char* path = "", std::array<int64_t, 4> sizes = {});
std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));
uint32_t key_of(uint32_t block, int core);
void learn(const std::vector<Known>& known);  // the core that runs knows this from now on
Clock finished(const Core& core, Pipe pipe, bool early = false);  // what a pipe has finished and knows; `early`: without its last
void wait_until(Wait wait, int line);         // the core that runs stands still
void each_core(const std::function<void(uint32_t block, Core&)>& visit);  // of all blocks that are alive
void needs_all_blocks(int line);               // a wait that ends only if all blocks run at once
bool blocks_to_come();                        // that have not begun
void forget_meetings();                       // meet.cpp, cross.cpp: a new launch
void forget_cross_flags();
void uses_flags_of_sync_all(int line);
void join_cross_flags(Core& core);            // sets that came before the core's block began
void check_meetings();                        // what is left over when a launch ends
void check_unit_flags_left();                 // when a kernel ends
void poll(int line);                          // the scalar unit reads GM: where it does nothing else, it waits for a write
void poll_by_copy(int line, int64_t src, int64_t dst);  // the same of a small copy out of GM
bool ready(const Core& core, int64_t id);     // whether a flag between cores has been set by all who must
void wait_for_turn();        // gives the turn to another core; comes back when this one may go on
void let_others_go_first();  // comes back when the other cores have issued all that they can
using Kernel = std::function<void()>;
bool run_blocks(const Kernel& kernel);  // false: an error ended the run
void raise_flag(Pipe src, Pipe dst, int64_t id, int line);  // a set and a wait without the checks of a kernel's own flags
void lower_flag(Pipe src, Pipe dst, int64_t id, int line);

// scalar.cpp, cache.cpp
uint64_t cached_read(const Operand& at, int64_t index, int line);
void cached_write(const Operand& at, int64_t index, uint64_t bits, int line);
bool lets_go(int64_t address);  // that the next read of it goes to GM, and was asked to
void flush_cache();             // the kernel ends

void meet(Operand& operand, int core, int line);  // the operand lies in the memory of another core
void carry(const Operand& dst, int64_t to, const Operand& src, int64_t from, int64_t bytes);  // what is unwritten stays so
void apply_atomic(uint8_t* dst, const uint8_t* src, int64_t bytes, DType type, int line);

// One instruction on its way: says what it reads and writes, is checked, then takes effect.
class Instruction
{
public:
    Instruction(const char* name, Pipe pipe, int line);
    ~Instruction() noexcept(false);
    Instruction(const Instruction&) = delete;
    enum class Poison { error, carry };

    void reads(const Operand& at, int64_t offset, int64_t bytes, Poison poison = Poison::error);
    void writes(const Operand& at, int64_t offset, int64_t bytes);
    // The same as one after the other of the `each` bytes that they are made of, which is what a finding speaks of.
    void reads_in_a_row(const Operand& at, int64_t offset, int64_t bytes, int64_t each, Poison poison = Poison::error);
    void writes_in_a_row(const Operand& at, int64_t offset, int64_t bytes, int64_t each);
    void align(const Operand& at, int64_t to, const char* what) const;
    void needs(const Operand& at, Space space, const char* what) const;
    void unit_flag(int64_t value);
    void guarded(bool value) { event_.guarded = value; }
    void atomic(bool value) { event_.atomic = value; }
    void sized(int64_t a, int64_t b, int64_t c, int64_t d) { sizes_ = {a, b, c, d}; }  // for the trace
    void makes_nz() { makes_nz_ = true; }  // of row-major data, for the trace
    void counts(const char* path, int64_t bytes);
    void rewrites(const Operand& at, int64_t offset, int64_t bytes, uint32_t by);  // as they were, beside what `by` has changed
    void signals() { event_.signal = true; }
    void reads_compare_mask() { reads_compare_mask_ = true; }
    void wrote_compare_mask() const { machine.core->compared = uint32_t(machine.events.size()) - 1; }  // after its check
    void keeps_apart() const;  // reports a source and a destination that overlap
    bool lies_in_gm(const Operand& at, int64_t begin, int64_t end) const;  // reports what lies beyond the tensor
    void check();              // bounds, order, initialisation; afterwards all that it writes counts as initialised

    uint8_t* data(const Operand& at, int64_t offset = 0) const { return machine.memory(at).at(at.address + offset); }
    int line() const { return event_.line; }
    const char* name() const { return event_.name; }

private:
    struct Span {
        Memory* memory;
        int64_t begin, end;
        Poison poison;
        Place tensor;
    };
    void add(std::vector<Span>& spans, const Operand& at, int64_t offset, int64_t bytes, Poison poison) const;
    bool within(const Operand& at, int64_t begin, int64_t end) const;
    void bounds(const Operand& at, int64_t begin, int64_t end) const;
    void bounds_in_gm(const Operand& at, int64_t begin, int64_t end) const;
    bool ordered(const Event& earlier, Space space) const;
    bool guards(const Event& earlier) const;
    bool compiler_orders(const Event& earlier) const;
    void yield_if_it_polls();
    void check_order();
    void check_unit_flags();
    void check_units(int64_t begin, int64_t end, bool accumulates);
    UnitFlag::Bit bit_after(UnitFlag::Bit before) const;
    void tell_unit_flag(int64_t unit, const UnitFlag& before, const std::string& fault);
    void take_effect();
    bool check_row(const Track& row, const Span& span, const char* kind);
    void check_write(const Span& span);
    void check_poison(const Span& span);
    void check_compare_mask() const;
    void check_live(const Span& span) const;
    void note_overwritten(uint32_t id, const Span& span);
    void note_overwritten(uint32_t id, uint32_t before, const Place& bytes);
    void count_down(uint32_t id, const Span& span);
    void tell_unread(const Span& span, const Event& earlier) const;
    void tell_overwritten(const Span& span, const Event& later) const;
    void check_dirty(const Span& span) const;
    void check_rewritten(const Span& span);
    void record();
    void race(const char* kind, Memory& memory, int64_t begin, int64_t end, const Event& earlier);
    bool may_agree(const char* kind, const Memory& memory, int64_t begin, const Event& earlier) const;
    uint64_t load_of_inputs() const;
    bool loads_again(const char* kind, Memory& memory, int64_t first, int64_t last) const;

    void trace(const char* path, int64_t bytes) const;
    std::vector<Touched> touched() const;

    struct Meeting {  // bytes as they were that another one has written or read, and this instruction writes
        const char* kind;
        Memory* memory;
        int64_t begin;
        std::vector<uint8_t> bytes;
        Event earlier;
    };

    Event event_;
    std::array<int64_t, 4> sizes_{};
    bool past_l2_ = false, makes_nz_ = false;
    std::vector<Meeting> meetings_;
    static std::vector<Span> reads_, writes_, rewrites_;  // one instruction is on its way at a time
    uint32_t rewritten_by_ = 0;
    bool reads_compare_mask_ = false;
};

}  // namespace tile_sim
