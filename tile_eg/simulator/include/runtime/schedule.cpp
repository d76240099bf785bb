#include "schedule.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tile_sim
{

Schedule schedule;

namespace
{

struct Issued {  // leaves an instruction when it has said what it is, before it takes effect
    Pipe pipe;
};

uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

template <class T>
void shuffle(T& items, uint64_t seed)
{
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[(seed = mix(seed)) % i]);
}

void drop_done(std::vector<uint32_t>& ids, const std::function<bool(uint32_t)>& done)
{
    ids.erase(std::remove_if(ids.begin(), ids.end(), done), ids.end());
}

}  // namespace

bool Schedule::configure(const char* argument)
{
    constexpr const char prefix[] = "order=";
    if (std::strncmp(argument, prefix, sizeof prefix - 1)) return false;
    on_ = true, seed_ = std::atoll(argument + sizeof prefix - 1), state_ = mix(uint64_t(seed_));
    return true;
}

uint64_t Schedule::random() { return state_ = mix(state_); }

uint32_t Schedule::block(uint32_t nth, int64_t count)
{
    if (!on_ || seed_ < 0) return nth;
    if (blocks_.size() != size_t(count)) {
        blocks_.clear();
        for (int64_t i = 0; i < count; ++i) blocks_.push_back(uint32_t(i));
        shuffle(blocks_, mix(uint64_t(seed_)));
    }
    return blocks_[nth];
}

std::array<int, most_cores> Schedule::cores()
{
    std::array<int, most_cores> turns{AIC, AIV0, AIV1};
    if (on_ && seed_ >= 0) shuffle(turns, random());
    return turns;
}

void Schedule::begin_block()
{
    *now_ = Pending{};
    now_->items.emplace_back();  // item 0 stands for nothing, and is done
    now_->items[0].done = true;
}

// A negative seed -n holds back the nth instruction alone, as long as can be. The others hold back pipes, lines or single
// instructions by chance, or everything; what is not held back runs as soon as it may.
bool Schedule::is_late(Pipe pipe, int line)
{
    ++instructions_;
    if (seed_ < 0) return instructions_ == -seed_;
    const uint64_t where = uint64_t(machine.core->index) << 40 | uint64_t(pipe) << 32;
    switch (seed_ % 4) {
        case 0: return mix(uint64_t(seed_) ^ where) & 1;
        case 1: return mix(uint64_t(seed_) ^ where ^ uint64_t(line)) & 1;
        case 2: return random() & 1;
        default: return true;
    }
}

uint32_t Schedule::add(Item item)
{
    const uint32_t id = next();
    item.core = machine.core->index, item.control = *machine.core;
    item.key = mix(uint64_t(machine.block) << 34 | uint64_t(item.core) << 32 | ++side().count);
    for (uint32_t earlier : item.after)
        if (!now_->items[earlier].done) now_->items[earlier].before.push_back(id), ++item.missing;
    if (!item.missing && !item.late) now_->ready.push_back(id);
    side().issued.push_back(id);
    now_->items.push_back(std::move(item));
    return id;
}

void Schedule::issue(int line, std::function<void()> run)
{
    extra_.clear();
    phase_ = Phase::probing;
    try {
        run();
        phase_ = Phase::program;  // an instruction that does nothing
    } catch (const Issued& issued) {
        phase_ = Phase::program;
        Queue& queue = side().queue[size_t(issued.pipe)];
        Item item;
        item.run = std::move(run), item.late = is_late(issued.pipe, line), item.after = extra_;
        item.after.push_back(queue.gate);
        if (machine.settings.auto_sync && issued.pipe == Pipe::V)  // the compiler puts barriers where it has to
            item.after.insert(item.after.end(), queue.open.begin(), queue.open.end());
        queue.before = queue.open;
        queue.open.push_back(add(std::move(item)));
        settle();
    } catch (...) {
        phase_ = Phase::program;
        throw;
    }
}

void Schedule::issued(Pipe pipe) { throw Issued{pipe}; }

void Schedule::execute(uint32_t id)
{
    Item& item = now_->items[id];
    Core* const core = machine.core;
    const Phase phase = phase_;
    machine.core = &machine.cores[item.core];
    const Control control = *machine.core;
    static_cast<Control&>(*machine.core) = item.control;
    phase_ = Phase::executing, current_ = id;
    const auto restore = [&] {
        static_cast<Control&>(*machine.core) = control;
        machine.core = core, phase_ = phase, current_ = 0;
    };
    try {
        if (item.run) item.run();
    } catch (...) {
        restore();
        throw;
    }
    restore();
    item.run = nullptr, item.done = true;
    for (uint32_t later : item.before)
        if (--now_->items[later].missing == 0 && !now_->items[later].late) now_->ready.push_back(later);
}

void Schedule::settle()
{
    while (!now_->ready.empty()) {
        const size_t at = seed_ < 0 ? 0 : random() % now_->ready.size();
        const uint32_t id = now_->ready[at];
        now_->ready.erase(now_->ready.begin() + std::ptrdiff_t(at));
        if (!now_->items[id].done) execute(id);
    }
}

// Runs an item, and before it what it has to come after; what is held back otherwise stays so.
void Schedule::force(uint32_t target)
{
    std::vector<uint32_t> path{target};
    while (!path.empty()) {
        const uint32_t id = path.back();
        std::vector<uint32_t> missing;
        for (uint32_t earlier : now_->items[id].after)
            if (!now_->items[earlier].done) missing.push_back(earlier);
        if (now_->items[id].done)
            path.pop_back();
        else if (missing.empty())
            execute(id), settle();
        else
            path.push_back(missing[random() % missing.size()]);
    }
}

void Schedule::drain()
{
    drop_done(side().issued, [&](uint32_t id) { return now_->items[id].done; });
    std::vector<uint32_t> left = side().issued;
    if (seed_ % 2) std::reverse(left.begin(), left.end());
    if (seed_ % 4 == 2) shuffle(left, random());
    for (uint32_t id : left) force(id);
}

void Schedule::finish_block()
{
    for (int core : cores()) {
        machine.core = &machine.cores[core];
        if (machine.core->present) drain();
    }
}

uint32_t Schedule::add_set(Pipe pipe, bool early, std::function<void()> run)
{
    Queue& queue = side().queue[size_t(pipe)];
    drop_done(queue.open, [&](uint32_t id) { return now_->items[id].done; });
    Item item;
    item.run = std::move(run), item.after = early ? queue.before : queue.open;
    item.after.push_back(queue.gate);
    const uint32_t id = add(std::move(item));
    if (!early) queue.open.clear();  // the set stands for what it waits for
    queue.open.push_back(id);
    settle();
    return id;
}

void Schedule::set(Pipe src, Pipe dst, int64_t id, bool early) { side().flag[int(src)][int(dst)][id] = add_set(src, early, nullptr); }

void Schedule::wait(Pipe src, Pipe dst, int64_t id)
{
    const uint32_t set = side().flag[int(src)][int(dst)][id];
    if (dst == Pipe::S) {  // the scalar unit stands still
        if (!now_->items[set].done) let_others_go_first();
        return force(set);
    }
    Queue& queue = side().queue[size_t(dst)];
    Item item;
    item.after = {queue.gate, set};
    queue.gate = add(std::move(item));
    queue.open.push_back(queue.gate);
    settle();
}

void Schedule::barrier(Pipe pipe)
{
    Queue& queue = side().queue[size_t(pipe)];
    Item item;
    item.after = queue.open;
    item.after.push_back(queue.gate);
    queue.gate = add(std::move(item));
    queue.open = {queue.gate};
    settle();
}

void Schedule::cross_set(Pipe pipe, int64_t id, bool early)
{
    const int from = machine.core->index;
    const uint32_t set = add_set(pipe, early, [this, from, id] {
        for (int to = 0; to < most_cores; ++to)
            if ((from == AIC) != (to == AIC)) ++now_->sides[size_t(to)].arrived[from][id];
    });
    side().cross[id].push_back(set);
}

void Schedule::run_until_now(Pipe pipe, bool early) { force(add_set(pipe, early, nullptr)); }

void Schedule::cross_wait(int64_t id)
{
    for (int from = 0; from < most_cores; ++from) {
        if (!machine.cores[from].present || (from == AIC) == (machine.core->index == AIC)) continue;
        auto& arrived = side().arrived[from][id];
        auto& sets = now_->sides[size_t(from)].cross[id];
        if (!arrived) let_others_go_first();
        while (!arrived) {
            sets.erase(std::remove_if(sets.begin(), sets.end(), [&](uint32_t set) { return now_->items[set].done; }), sets.end());
            force(sets[random() % sets.size()]);
        }
        --arrived;
    }
}

// Which write every access meets: two runs with one fingerprint differ in the order of independent instructions only.
void Schedule::touched(Memory& memory, int64_t begin, int64_t end, bool write)
{
    const uint64_t scalar = uint64_t(machine.block) << 34 | uint64_t(machine.core->index) << 32;
    const uint64_t key = current_ ? now_->items[current_].key : mix(scalar);
    uint32_t* const met = memory.met.get();
    for (int64_t i = begin / granule; i < (end + granule - 1) / granule; ++i) {
        fingerprint_ += mix(key ^ uint64_t(met[i]) << 1 ^ mix(uint64_t(i) << 3 | uint64_t(memory.space())));
        if (write) met[i] = uint32_t(key);
    }
}

}  // namespace tile_sim
