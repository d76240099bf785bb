// The run of the blocks: each core is a thread of control, and one of them runs at a time, until it waits for another.
#include <condition_variable>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "progress.h"
#include "schedule.h"
#include "share.h"

namespace tile_sim
{
namespace
{

Core* const scheduler = nullptr;
std::mutex mutex;
std::condition_variable changed;
Core* turn = scheduler;
bool stopped = false;
std::exception_ptr failure;  // what ended a core's thread other than a finding

// A block that has started. Several are alive at once only where one waits for the others.
struct Block {
    uint32_t number;
    std::unique_ptr<Core[]> cores;
    std::vector<std::thread> threads;
    Schedule::Pending pending;
};
std::list<Block> alive;
std::vector<std::unique_ptr<Core[]>> spare;  // the cores of blocks that have ended, whose memories can be used again

constexpr int most_nudges = 2000;  // how often what polls may look again while nothing changes
int nudges = 0;
bool nudged = false;
int64_t begun = 0;

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
    return stopped || !core.waits || core.waits->over() || (nudged && core.waits->poll);
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

// Pieces of GM that the cube core has given back, and that its vector core does not take again.
bool is_told_in_vain(int id)
{
    return machine.settings.architecture != 3510 && id >= cross_ids && (id - cross_ids) % 16 == pieces_freed;
}

bool all_finished()
{
    for (const Core& core : machine.cores)
        if (core.present && !core.finished) return false;
    return true;
}

void check_leftovers()
{
    for (Core& core : machine.cores) {
        if (!core.present) continue;
        machine.core = &core;
        check_unit_flags_left();
        for (int src = 0; src < pipes; ++src)
            for (int dst = 0; dst < pipes; ++dst)
                for (int id = 0; id < 8; ++id)
                    if (core.flags[src][dst][id].set && !core.flags[src][dst][id].set_twice)
                        machine.report(
                            "leftover_flag", name_of(Pipe(src)), core.flags[src][dst][id].set_line, 0,
                            text("flag %s_%s, %d is still set when the kernel ends", name_of(Pipe(src)), name_of(Pipe(dst)), id));
        for (int id = 0; id < cross_ids + single_ids; ++id)
            for (const auto& [key, sets] : core.cross[id].from)
                if (!sets.empty() && !is_told_in_vain(id))
                    machine.report("leftover_flag", "", core.cross[id].line, 0,
                                   text("cross-core flag %d%s of %s still counts %zu when the kernel ends", id % cross_ids, id < cross_ids ? "" : " of mode 4",
                                        core_name(core.index), sets.size()));
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

void enter(Block& block)
{
    machine.cores.point(block.cores.get());
    machine.block = block.number;
    schedule.enter(block.pending);
}

void prepare(Core& core, int index)
{
    core.index = index;
    core.present = index == AIC ? machine.has_aic() : index - AIV0 < machine.vector_cores();
    for (int space = 1; space < spaces; ++space)
        if (core.present && core.has(Space(space)) && !core.memory[space].bytes())
            core.memory[space].open(Space(space), machine.settings.capacity[space]);
    core.reset();
}

void start(uint32_t number, const Kernel& kernel)
{
    if (spare.empty()) spare.push_back(std::make_unique<Core[]>(most_cores));
    alive.push_back({number, std::move(spare.back()), {}, {}});
    spare.pop_back();
    Block& block = alive.back();
    enter(block);
    schedule.begin_block();
    for (int index = 0; index < most_cores; ++index) prepare(block.cores[size_t(index)], index);
    for (Core& core : machine.cores)
        if (core.present) join_cross_flags(core);
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
bool advance()
{
    bool ran = false;
    for (auto block = alive.begin(); block != alive.end();) {
        enter(*block);
        while (run_round() && !nudged) ran = true;
        if (all_finished()) {
            end(*block);
            block = alive.erase(block), ran = true;
            block_ended();
        } else {
            ++block;
        }
    }
    return ran;
}

bool anyone_polls()
{
    for (const Block& block : alive)
        for (int c = 0; c < most_cores; ++c) {
            const Core& core = block.cores[size_t(c)];
            if (core.present && !core.finished && core.waits && core.waits->poll) return true;
        }
    return false;
}

// Nobody can go on: what was issued and held back takes effect, and what polls looks again. False: that changed nothing.
bool nudge()
{
    const int64_t before = machine.gm_writes;
    if (schedule.on())
        for (Block& block : alive) enter(block), finish_block();
    if (machine.gm_writes != before) return true;
    if (!anyone_polls() || ++nudges > most_nudges) return false;
    nudged = true;
    advance();
    nudged = false;
    if (machine.gm_writes != before) nudges = 0;
    return true;
}

void stop()
{
    for (Block& block : alive) {
        enter(block);
        for (Core& core : machine.cores) {
            if (!core.present || core.finished || !core.waits) continue;
            machine.core = &core;
            machine.report("deadlock", "S", core.waiting_line, 0,
                           text("%s %s", core_name(core.index), core.waits->what().c_str()));
        }
    }
    stopped = true;
}

bool run_alone(uint32_t block, const Kernel& kernel)
{
    start(block, kernel);
    while (advance()) {
    }
    return alive.empty() && !stopped;
}

}  // namespace

void each_core(const std::function<void(uint32_t, Core&)>& visit)
{
    for (Block& block : alive)
        for (int c = 0; c < most_cores; ++c)
            if (block.cores[size_t(c)].present) visit(block.number, block.cores[size_t(c)]);
}

void wait_for_turn()
{
    Core* const mine = machine.core;
    pass_turn(scheduler);
    await_turn(mine);
    if (stopped) throw Stop{};
}

void wait_until(Wait wait, int line)
{
    Core& core = *machine.core;
    core.waiting_line = line;
    while (!wait.over()) {
        core.waits = &wait;
        wait_for_turn();
        core.waits = nullptr;
        if (wait.poll) return;
    }
}

void let_others_go_first()
{
    machine.core->behind = true;
    wait_for_turn();
    machine.core->behind = false;
}

namespace
{

int64_t to_run() { return machine.settings.only.empty() ? machine.settings.launch : int64_t(machine.settings.only.size()); }

uint32_t next_block()
{
    if (!machine.settings.only.empty()) return machine.settings.only[size_t(begun++)];
    return schedule.block(uint32_t(begun++), machine.settings.launch);
}

bool share(const Kernel& kernel)
{
    return machine.settings.only.empty() && share_blocks(begun, [&](uint32_t block) { return run_alone(block, kernel); });
}

}  // namespace

bool blocks_to_come() { return begun < to_run(); }

void needs_all_blocks(int line)
{
    if (is_worker()) throw Stop{};
    const bool pure = machine.is(KernelType::AIV_ONLY) || machine.is(KernelType::MIX_AIV_1_0);
    const int64_t most = machine.settings.cores * (pure ? 2 : 1);
    if (machine.settings.launch > most)
        misuse("deadlock", line, "%lld blocks wait for one another, and the chip runs %lld at a time: the rest never begins",
               (long long)machine.settings.launch, (long long)most);
}

bool run_blocks(const Kernel& kernel)
{
    forget_meetings(), forget_cross_flags(), machine.releases.clear();
    begin_sharing();
    launch_begins(machine.settings.launch);
    for (nudges = 0, begun = 0; !alive.empty() || (blocks_to_come() && !stopped);) {
        if (advance())
            nudges = 0;
        else if (alive.empty() && share(kernel))
            begun = machine.settings.launch;
        else if (blocks_to_come() && !stopped)
            start(next_block(), kernel);
        else if (!nudge())
            stop();
    }
    if (failure) std::rethrow_exception(failure);
    if (!stopped) check_meetings();
    return !stopped;
}

}  // namespace tile_sim
