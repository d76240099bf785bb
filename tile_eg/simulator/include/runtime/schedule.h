// Instructions that take effect later than they are issued, in an order that the seed chooses among those that the contract
// (docs/machine.md) allows: a pipe starts its instructions in order, but only flags and barriers say what has finished.
#pragma once
#include <array>
#include <deque>
#include <functional>

#include "machine.h"
#include "mutation.h"

namespace tile_sim
{

class Schedule
{
    struct Item {
        std::function<void()> run;
        Control control;
        std::vector<uint32_t> after, before;
        uint64_t key = 0;
        size_t missing = 0;
        int core = 0;
        bool late = false, done = false;
    };
    struct Queue {  // of one pipe
        std::vector<uint32_t> open, before;  // what a set or a barrier has to wait for: now, and before the last instruction
        uint32_t gate = 0;                   // the last wait or barrier
    };
    struct Side {  // of one core
        std::array<Queue, pipes> queue;
        uint32_t flag[pipes][pipes][event_ids] = {};
        std::deque<uint32_t> cross[16];           // sets of this core that nothing has waited for yet
        int64_t arrived[most_cores][16] = {};     // from which core, by id
        std::vector<uint32_t> issued;  // and not known to have run
        uint64_t count = 0;
    };

public:
    struct Pending {  // what one block has issued
        std::deque<Item> items;
        std::array<Side, most_cores> sides;
        std::vector<uint32_t> ready;
    };

    bool configure(const char* argument);  // takes "order=SEED"; false for any other argument
    bool on() const { return on_; }
    bool executing() const { return phase_ == Phase::executing; }
    bool probing() const { return phase_ == Phase::probing; }
    bool direct() const { return on_ && phase_ == Phase::program; }  // an instruction that is not queued runs now

    uint32_t block(uint32_t nth, int64_t count);  // which block runs as the nth
    std::array<int, most_cores> cores();          // in which order the cores take their turns
    void enter(Pending& block) { now_ = &block; }
    void begin_block();
    void finish_block();  // what is still queued runs

    void issue(int line, std::function<void()> run);
    [[noreturn]] void issued(Pipe pipe);  // called by the instruction itself, when all about it is known
    uint32_t next() const { return now_ ? uint32_t(now_->items.size()) : 0; }
    void follows(uint32_t item) { extra_.push_back(item); }  // the hardware orders the instruction after this one
    void touched(Memory& memory, int64_t begin, int64_t end, bool write);

    void set(Pipe src, Pipe dst, int64_t id, bool early);
    void wait(Pipe src, Pipe dst, int64_t id);
    void barrier(Pipe pipe);
    void cross_set(Pipe pipe, int64_t id, bool early);
    void run_until_now(Pipe pipe, bool early);  // what a set of this pipe stands for
    void cross_wait(int64_t id);
    void drain();  // all that this core has issued runs

    int64_t instructions() const { return instructions_; }
    uint64_t fingerprint() const { return fingerprint_; }

private:
    enum class Phase : uint8_t { program, probing, executing };

    uint64_t random();
    bool is_late(Pipe pipe, int line);
    uint32_t add(Item item);
    uint32_t add_set(Pipe pipe, bool early, std::function<void()> run);
    void execute(uint32_t id);
    void settle();
    void force(uint32_t id);
    Side& side() { return now_->sides[size_t(machine.core->index)]; }

    bool on_ = false;
    int64_t seed_ = 0;
    uint64_t state_ = 0;
    Phase phase_ = Phase::program;
    uint32_t current_ = 0;
    Pending* now_ = nullptr;
    std::vector<uint32_t> extra_, blocks_;
    int64_t instructions_ = 0;
    uint64_t fingerprint_ = 0;
};

extern Schedule schedule;

// The first line of every instruction: applies the table of mutations to its operands, and, where instructions take effect
// later, keeps `run`, which is the call itself, for then. True: the caller is done for now.
template <class Run, class... Operands>
bool queued(int line, Run run, Operands&... operands)
{
    if (mutates_operands()) {
        int index = 0;
        (shift_operand(line, index++, operands), ...);
    }
    if (!schedule.direct()) return false;
    schedule.issue(line, std::move(run));
    return true;
}

}  // namespace tile_sim
