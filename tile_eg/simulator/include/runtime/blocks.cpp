// The run of the blocks: each core is a thread of control, and one of them runs at a time, until it waits for another.
#include <condition_variable>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "schedule.h"

namespace tile_sim
{
namespace
{

Core* const scheduler = nullptr;
std::mutex mutex;
std::condition_variable changed;
Core* turn = scheduler;
uint32_t barriers = 0;  // between blocks, that have opened
bool stopped = false;
constexpr int64_t very_patient = 1 << 16;
std::exception_ptr failure;  // what ended a core's thread other than a finding

void pass_turn(Core* to)
{
    std::unique_lock<std::mutex> lock(mutex);
    turn = to;
    changed.notify_all();
}

void await_turn(Core* mine)
{
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return turn == mine; });
}

void run_core(Core& core, const Kernel& kernel)
{
    await_turn(&core);
    try {
        if (!stopped) kernel(), flush_cache();
    } catch (const Stop&) {
        stopped = true;
    } catch (...) {
        failure = std::current_exception();
        stopped = true;
    }
    core.finished = true;
    pass_turn(scheduler);
}

bool can_go_on(const Core& core)
{
    if (!core.present || core.finished) return false;
    if (stopped) return true;
    if (core.barrier != Core::Barrier::none || still_polls(core)) return false;
    if (core.waiting_for < 0) return true;
    for (const Core& other : machine.cores)
        if (other.present && (core.index == AIC) != (other.index == AIC) &&
            core.cross[other.index][core.waiting_for].pending.empty())
            return false;
    return true;
}

void report_barrier(Core& core)
{
    machine.core = &core;
    machine.report("deadlock", "S", core.waiting_line, 0,
                   text("deadlock: %s waits in SyncAll, and not all cores of all blocks come to it", core_name(core.index)));
}

void report_poll(Core& core)
{
    machine.core = &core;
    machine.report("deadlock", "S", core.waiting_line, 0,
                   text("deadlock: %s reads GM again and again, and no core that can go on writes to it",
                        core_name(core.index)));
}

void report_deadlock()
{
    for (Core& core : machine.cores) {
        if (!core.present || core.finished) continue;
        if (core.barrier != Core::Barrier::none) {
            report_barrier(core);
            continue;
        }
        if (core.poll.waits) {
            report_poll(core);
            continue;
        }
        std::string missing;
        for (const Core& other : machine.cores)
            if (other.present && (core.index == AIC) != (other.index == AIC) &&
                core.cross[other.index][core.waiting_for].pending.empty())
                missing += std::string(missing.empty() ? "" : " and ") + core_name(other.index) +
                           (other.finished ? " (which has ended)" : text(" (which waits at line %d)", other.waiting_line));
        machine.core = &core;
        machine.report("deadlock", "S", core.waiting_line, 0,
                       text("deadlock: %s waits, with all its pipes, for cross-core flag %lld, and no set of it comes from %s",
                            core_name(core.index),
                            (long long)core.waiting_for, missing.c_str()));
    }
    stopped = true;
}

bool run_cores(bool behind)
{
    bool ran = false;
    for (int index : schedule.cores()) {
        Core& core = machine.cores[index];
        if (!can_go_on(core) || core.behind != behind) continue;
        machine.core = &core;
        pass_turn(&core);
        await_turn(scheduler);
        ran = true;
        if (behind) break;
    }
    return ran;
}

bool run_round() { return run_cores(false) || run_cores(true); }

bool all_finished()
{
    for (const Core& core : machine.cores)
        if (core.present && !core.finished) return false;
    return true;
}

void check_leftovers()
{
    for (Core& core : machine.cores) {
        machine.core = &core;
        for (int src = 0; src < pipes; ++src)
            for (int dst = 0; dst < pipes; ++dst)
                for (int id = 0; id < 8; ++id)
                    if (core.flags[src][dst][id].set)
                        machine.report(
                            "leftover_flag", name_of(Pipe(src)), core.flags[src][dst][id].set_line, 0,
                            text("flag %s_%s, %d is still set when the kernel ends", name_of(Pipe(src)), name_of(Pipe(dst)), id));
        for (auto& from : core.cross)
            for (int id = 0; id < 16; ++id)
                if (!from[id].pending.empty())
                    machine.report("leftover_flag", "", from[id].line, 0,
                                   text("cross-core flag %d of %s still counts %zu when the kernel ends", id,
                                        core_name(core.index), from[id].pending.size()));
    }
}

void finish_block()
{
    try {
        if (!stopped) schedule.finish_block();
    } catch (const Stop&) {
        stopped = true;
    }
}

// A block that has started. Several are alive at once only where one waits for the others.
struct Block {
    uint32_t number;
    std::unique_ptr<Core[]> cores;
    std::vector<std::thread> threads;
};
using Blocks = std::list<Block>;
std::vector<std::unique_ptr<Core[]>> spare;  // the cores of blocks that have ended, whose memories can be used again

void enter(const Block& block)
{
    machine.cores.point(block.cores.get());
    machine.block = block.number;
}

void prepare(Core& core, int index)
{
    core.index = index;
    core.present = index == AIC ? machine.settings.type != KernelType::AIV_ONLY : index - AIV0 < machine.vector_cores();
    for (int space = 1; space < spaces; ++space)
        if (core.present && core.has(Space(space)) && !core.memory[space].bytes())
            core.memory[space].open(Space(space), machine.settings.capacity[space]);
    core.reset();
}

void start(Blocks& blocks, uint32_t number, const Kernel& kernel)
{
    if (spare.empty()) spare.push_back(std::make_unique<Core[]>(most_cores));
    blocks.push_back({number, std::move(spare.back()), {}});
    spare.pop_back();
    Block& block = blocks.back();
    enter(block);
    schedule.begin_block();
    for (int index = 0; index < most_cores; ++index) prepare(block.cores[size_t(index)], index);
    for (Core& core : machine.cores)
        if (core.present) block.threads.emplace_back(run_core, std::ref(core), std::cref(kernel));
}

void end(Block& block)
{
    for (std::thread& thread : block.threads) thread.join();
    finish_block();
    if (!stopped) check_leftovers();
    spare.push_back(std::move(block.cores));
}

// Runs every block as far as it goes by itself; false: none went further.
bool advance(Blocks& blocks)
{
    bool ran = false;
    for (auto block = blocks.begin(); block != blocks.end();) {
        enter(*block);
        while (run_round()) ran = true;
        if (all_finished()) {
            end(*block);
            block = blocks.erase(block), ran = true;
        } else {
            ++block;
        }
    }
    return ran;
}

// Opens a barrier that all its cores have come to.
bool open_barrier(Blocks& blocks, Core::Barrier barrier)
{
    int64_t arrived = 0;
    const int64_t each = machine.vector_cores() + (barrier == Core::Barrier::all && machine.settings.type != KernelType::AIV_ONLY);
    for (const Block& block : blocks)
        for (int c = 0; c < most_cores; ++c) arrived += block.cores[size_t(c)].present && block.cores[size_t(c)].barrier == barrier;
    if (!arrived || arrived != each * machine.settings.launch) return false;
    ++barriers;
    for (const Block& block : blocks)
        for (int c = 0; c < most_cores; ++c) {
            Core& core = block.cores[size_t(c)];
            if (core.barrier != barrier) continue;
            core.barrier = Core::Barrier::none, core.phase = core.known[1] = barriers;
            if (barrier == Core::Barrier::all) core.known[0] = barriers;
        }
    return true;
}

// Nobody else can go on: what looked like waiting for a write may be a loop that ends by itself. Once for each core.
bool wake(Blocks& blocks)
{
    bool woken = false;
    for (const Block& block : blocks)
        for (int c = 0; c < most_cores; ++c)
            if (Poll& poll = block.cores[size_t(c)].poll; poll.waits && poll.patience < very_patient)
                poll.waits = false, poll.times = 0, poll.patience = very_patient, woken = true;
    return woken;
}

void stop(Blocks& blocks)
{
    for (const Block& block : blocks) {
        enter(block);
        report_deadlock();
    }
    stopped = true;
}

}  // namespace

void wait_for_turn()
{
    Core* const mine = machine.core;
    pass_turn(scheduler);
    await_turn(mine);
    if (stopped) throw Stop{};
}

void let_others_go_first()
{
    machine.core->behind = true;
    wait_for_turn();
    machine.core->behind = false;
}

bool run_blocks(const Kernel& kernel)
{
    Blocks blocks;
    barriers = 0;
    for (uint32_t next = 0; !blocks.empty() || (next < machine.settings.launch && !stopped);) {
        if (advance(blocks)) continue;
        if (next < machine.settings.launch && !stopped)
            start(blocks, schedule.block(next++, machine.settings.launch), kernel);
        else if (!open_barrier(blocks, Core::Barrier::vector) && !open_barrier(blocks, Core::Barrier::all) && !wake(blocks))
            stop(blocks);
    }
    if (failure) std::rethrow_exception(failure);
    return !stopped;
}

void sync_all(bool vector_only, int line)
{
    Core& core = *machine.core;
    if (vector_only && core.index == AIC && machine.mixed())
        misuse("wrong_core", line, "SyncAll<true> is for vector cores: AIC takes part in SyncAll<false> only");
    if (schedule.on()) misuse("unsupported", line, "an unfavourable order is known for blocks that do not wait for one another");
    pipe_barrier(Pipe::ALL, line);
    trace_mark("S", "SyncAll", line, "", {vector_only, 0, 0, 0});
    core.barrier = vector_only && machine.mixed() ? Core::Barrier::vector : Core::Barrier::all, core.waiting_line = line;
    while (core.barrier != Core::Barrier::none) wait_for_turn();
}

}  // namespace tile_sim
