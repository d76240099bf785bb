// Sorting by score, downwards: 32 elements at a time, and merges of sorted lists. A record is 8 bytes: the score first, the
// index in the upper four.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "lanes.h"
#include "numbers.h"
#include "schedule.h"

namespace tile_sim
{
namespace
{

constexpr int64_t record = 8;

struct Scored {
    float score;
    uint8_t bytes[record];
};

float score_of(const uint8_t* p, DType type)
{
    uint16_t half;
    float single;
    std::memcpy(&half, p, 2), std::memcpy(&single, p, 4);
    return type == DType::f16 ? half_to_float(half) : single;
}

// Equal scores keep their order. The vendor says nothing of NaN: here it comes first.
bool before(const Scored& a, const Scored& b)
{
    if (std::isnan(a.score) || std::isnan(b.score)) return std::isnan(a.score) && !std::isnan(b.score);
    return a.score > b.score;
}

}  // namespace

void vector_sort32(Operand dst, Operand scores, Operand indices, int64_t repeat, int line)
{
    if (queued(line, [=] { vector_sort32(dst, scores, indices, repeat, line); }, dst, scores, indices)) return;
    Instruction sort("Sort32", Pipe::V, line);
    if (!repeat) return;
    const int64_t size = size_of(scores.type), count = repeat * 32;
    for (const Operand* o : {&dst, &scores, &indices}) sort.needs(*o, Space::UB, "operand"), sort.align(*o, 32, "operand");
    sort.reads(scores, 0, count * size), sort.reads(indices, 0, count * 4);
    sort.writes(dst, 0, count * record);
    sort.keeps_apart();
    sort.check();
    sort.counts("vector", count * size);
    for (int64_t r = 0; r < repeat; ++r) {
        std::vector<Scored> lanes(32);
        for (int64_t i = 0; i < 32; ++i) {
            Scored& lane = lanes[size_t(i)];
            std::memset(lane.bytes, 0, record);
            std::memcpy(lane.bytes, sort.data(scores, (r * 32 + i) * size), size_t(size));
            std::memcpy(lane.bytes + 4, sort.data(indices, (r * 32 + i) * 4), 4);
            lane.score = score_of(lane.bytes, scores.type);
        }
        std::stable_sort(lanes.begin(), lanes.end(), before);
        for (int64_t i = 0; i < 32; ++i) std::memcpy(sort.data(dst, (r * 32 + i) * record), lanes[size_t(i)].bytes, record);
    }
}

namespace
{

using List = std::vector<Scored>;

List read_list(const Instruction& merge, const Operand& at, int64_t first, int64_t count, DType type)
{
    List list(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
        std::memcpy(list[size_t(i)].bytes, merge.data(at, (first + i) * record), record);
        list[size_t(i)].score = score_of(list[size_t(i)].bytes, type);
    }
    return list;
}

// Merges until all lists, or the first of them, are at their end; says how many records came from each.
List merged(const std::vector<List>& lists, bool stop, uint16_t* taken)
{
    List result;
    for (;;) {
        int best = -1;
        for (int i = 0; i < int(lists.size()); ++i) {
            if (taken[i] == lists[size_t(i)].size()) {
                if (stop) return result;
                continue;
            }
            if (best < 0 || before(lists[size_t(i)][taken[i]], lists[size_t(best)][taken[best]])) best = i;
        }
        if (best < 0) return result;
        result.push_back(lists[size_t(best)][taken[best]++]);
    }
}

void check_repeat(const Operand* lists, const MergeShape& s, int line)
{
    bool in_a_row = s.lists == 4 && !s.stop_when_exhausted;
    for (int i = 1; i < 4; ++i)
        in_a_row = in_a_row && s.lengths[i] == s.lengths[0] &&
                   lists[i].address == lists[0].address + i * s.lengths[0] * record;
    if (!in_a_row)
        misuse("field", line,
               "MrgSort repeats only over four lists of one length that lie one after the other, with validBit 15 and without "
               "ifExhaustedSuspension");
}

}  // namespace

void vector_merge(Operand dst, const Operand* lists, MergeShape s, int line)
{
    Instruction merge("MrgSort", Pipe::V, line);
    if (!s.repeat) return;
    if (s.repeat > 1) check_repeat(lists, s, line);
    merge.needs(dst, Space::UB, "destination"), merge.align(dst, 32, "destination");
    int64_t total = 0;
    for (int64_t i = 0; i < s.lists; ++i) total += s.lengths[i];
    for (int64_t i = 0; i < s.lists; ++i) {
        merge.needs(lists[i], Space::UB, "list"), merge.align(lists[i], 8, "list");
        for (int64_t r = 0; r < s.repeat; ++r) merge.reads(lists[i], r * total * record, s.lengths[i] * record);
    }
    uint16_t taken[4] = {0, 0, 0, 0};
    List all;
    for (int64_t r = 0; r < s.repeat; ++r) {
        std::vector<List> sources;
        for (int64_t i = 0; i < s.lists; ++i)
            sources.push_back(read_list(merge, lists[i], r * total, s.lengths[i], dst.type));
        std::fill_n(taken, 4, uint16_t(0));
        const List part = merged(sources, s.stop_when_exhausted, taken);
        all.insert(all.end(), part.begin(), part.end());
    }
    merge.writes(dst, 0, int64_t(all.size()) * record);
    merge.keeps_apart();
    merge.check();
    merge.counts("vector", s.repeat * total * record);
    for (size_t i = 0; i < all.size(); ++i) std::memcpy(merge.data(dst, int64_t(i) * record), all[i].bytes, record);
    std::copy_n(taken, 4, machine.core->merged);
}

void merge_result(uint16_t* counts) { std::copy_n(machine.core->merged, 4, counts); }

}  // namespace tile_sim
