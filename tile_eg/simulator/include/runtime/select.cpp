// Compare gives one bit an element; Select picks by such bits.
#include <cstring>

#include "lanes.h"
#include "rounding.h"
#include "schedule.h"

namespace tile_sim
{
namespace
{

constexpr int64_t reserved = 8192;  // bytes at the end of UB that Select uses itself

double load(const uint8_t* p, DType type)
{
    uint16_t half;
    float single;
    int32_t whole;
    std::memcpy(&half, p, 2);
    if (type == DType::f16) return half_to_float(half);
    std::memcpy(&single, p, 4), std::memcpy(&whole, p, 4);
    return type == DType::i32 ? double(whole) : double(single);
}

bool holds(Comparison how, double a, double b)
{
    switch (how) {
        case Comparison::lt: return a < b;
        case Comparison::gt: return a > b;
        case Comparison::eq: return a == b;
        case Comparison::le: return a <= b;
        case Comparison::ge: return a >= b;
        default: return a != b;
    }
}

void put_bit(uint8_t* bits, int64_t i, bool value)
{
    const uint8_t bit = uint8_t(1 << i % 8);
    bits[i / 8] = uint8_t(value ? bits[i / 8] | bit : bits[i / 8] & ~bit);
}

bool get_bit(const uint8_t* bits, int64_t i) { return bits[i / 8] >> (i % 8) & 1; }

// Byte offset of lane `i` of round `r`.
int64_t place(const VectorSide& side, int64_t r, int64_t i)
{
    const int64_t block = block_of(side.at.type);
    return (r * side.stride.repeat + i / block * side.stride.block) * 32 + i % block * size_of(side.at.type);
}

void read_rounds(Instruction& test, const VectorSide& side, int64_t rounds, int64_t width, const char* what)
{
    const int64_t block = block_of(side.at.type);
    test.needs(side.at, Space::UB, what), test.align(side.at, 32, what);
    for (int64_t r = 0; r < rounds; ++r)
        for (int64_t i = 0; i < width; i += block) test.reads(side.at, place(side, r, i), 32, Instruction::Poison::carry);
}

bool unwritten_at(const VectorSide& side, int64_t r, int64_t i)
{
    const int64_t at = side.at.address + place(side, r, i);
    return machine.memory(side.at).poisoned(at, at + size_of(side.at.type));
}

// From the first to the last byte that an instruction reads of an operand.
struct Stretch {
    int64_t begin = INT64_MAX, end = 0;
    void add(int64_t at, int64_t bytes) { begin = std::min(begin, at), end = std::max(end, at + bytes); }
    bool unwritten(const Operand& of) const
    {
        return begin < end && machine.memory(of).poisoned(of.address + begin, of.address + end);
    }
};

bool some_unwritten(const VectorSide& side, int64_t rounds, int64_t width)
{
    Stretch all;
    for (int64_t r = 0; r < rounds; ++r) all.add(place(side, r, 0), 0), all.add(place(side, r, width - 1), size_of(side.at.type));
    return all.unwritten(side.at);
}

// Which bits come of an element that nothing has written; empty where none does.
std::vector<bool> unwritten_bits(const VectorSide& a, const VectorSide* b, int64_t rounds, int64_t width)
{
    std::vector<bool> found;
    if (!some_unwritten(a, rounds, width) && !(b && some_unwritten(*b, rounds, width))) return found;
    for (int64_t r = 0; r < rounds; ++r)
        for (int64_t i = 0; i < width; ++i)
            if (unwritten_at(a, r, i) || (b && unwritten_at(*b, r, i)))
                found.resize(size_t(rounds * width)), found[size_t(r * width + i)] = true;
    return found;
}

// In sixteenths of the rounds: whether both sources begin in one half of 512 bytes of UB, where reading both takes twice as long.
int64_t conflict(const VectorSide& a, const VectorSide* b)
{
    return b && a.at.address % 512 / 256 == b->at.address % 512 / 256 ? 16 : 0;
}

// All bits of `rounds` rounds of 256 bytes, one after the other.
void compare(const VectorSide& dst, const VectorSide& a, const VectorSide* b, double scalar, Comparison how, const Lanes& lanes,
             int line)
{
    Instruction test(b ? "Compare" : "CompareScalar", Pipe::V, line);
    const int64_t width = 256 / size_of(a.at.type), rounds = rounds_of(lanes, width);
    if (lanes.count >= 0 && lanes.count % width)
        misuse("misaligned", line, "Compare works on whole 256-byte rounds, and %lld elements are none", (long long)lanes.count);
    if (!rounds) return;
    test.needs(dst.at, Space::UB, "destination"), test.align(dst.at, 32, "destination");
    read_rounds(test, a, rounds, width, "source");
    if (b) read_rounds(test, *b, rounds, width, "second source");
    test.writes(dst.at, 0, rounds * width / 8);
    const std::vector<bool> unwritten = unwritten_bits(a, b, rounds, width);
    test.check();
    test.sized(rounds * 16, size_of(a.at.type), conflict(a, b), lanes.count >= 0);
    test.counts("vector", rounds * 256);
    for (int64_t r = 0; r < rounds; ++r)
        for (int64_t i = 0; i < width; ++i) {
            const double right = b ? load(test.data(b->at, place(*b, r, i)), a.at.type) : scalar;
            put_bit(test.data(dst.at), r * width + i, holds(how, load(test.data(a.at, place(a, r, i)), a.at.type), right));
        }
    keep_unwritten_bits(test, dst.at, unwritten);
}

void check_reserve(int line)
{
    const int64_t most = machine.settings.capacity[int(Space::UB)] - reserved;
    if (machine.core->allocated[int(Space::UB)] > most)
        misuse("capacity", line, "Select keeps the last %lld bytes of UB for itself: buffers may end at byte %lld",
               (long long)reserved, (long long)most);
}

const uint8_t* in_register() { return reinterpret_cast<const uint8_t*>(machine.core->compare_mask); }

// The bits that select: of the register or of a tensor, from the start for each round or one after the other.
struct Selector {
    const Operand* bits;
    bool same_each_round;
    const uint8_t* data(const Instruction& pick) const
    {
        return bits ? pick.data(*bits) : in_register();
    }
};

void select(const VectorSide& dst, const Selector& selector, const VectorSide& a, const VectorSide* b, const uint8_t* scalar,
            const Lanes& lanes, int line)
{
    Instruction pick("Select", Pipe::V, line);
    const int64_t size = size_of(a.at.type), width = 256 / size, rounds = rounds_of(lanes, width);
    for (const Operand* o : {&dst.at, &a.at}) pick.needs(*o, Space::UB, "operand"), pick.align(*o, 32, "operand");
    if (b) pick.needs(b->at, Space::UB, "second source"), pick.align(b->at, 32, "second source");
    const auto each = [&](auto&& visit) {
        for (int64_t r = 0; r < rounds; ++r)
            for (int64_t i = 0; i < width; ++i)
                if (lane_active(lanes, r, i, width)) visit(r, i, (selector.same_each_round ? 0 : r * width) + i);
    };
    constexpr auto carry = Instruction::Poison::carry;
    int64_t elements = 0, last_bit = -1;
    Stretch of_a, of_b;
    each([&](int64_t r, int64_t i, int64_t bit) {
        ++elements, last_bit = std::max(last_bit, bit);
        of_a.add(place(a, r, i), size);
        if (b) of_b.add(place(*b, r, i), size);
        pick.reads(a.at, place(a, r, i), size, carry);
        if (b) pick.reads(b->at, place(*b, r, i), size, carry);
        pick.writes(dst.at, place(dst, r, i), size);
    });
    if (!elements) return;
    if (selector.bits) {
        pick.needs(*selector.bits, Space::UB, "mask"), pick.align(*selector.bits, 32, "mask");
        pick.reads(*selector.bits, 0, last_bit / 8 + 1, carry);
    }
    else
        pick.reads_compare_mask();
    if (scalar == in_register()) pick.reads_compare_mask();
    const bool known = !selector.bits || !Stretch{0, last_bit / 8 + 1}.unwritten(*selector.bits);
    std::vector<Place> unwritten;
    if (!known || of_a.unwritten(a.at) || (b && of_b.unwritten(b->at)))
        each([&](int64_t r, int64_t i, int64_t bit) {
            const bool first = get_bit(selector.data(pick), bit);
            const bool chosen = first ? unwritten_at(a, r, i) : b && unwritten_at(*b, r, i);
            if (chosen || (!known && unwritten_bit(machine.memory(*selector.bits), selector.bits->address, bit)))
                unwritten.push_back({place(dst, r, i), place(dst, r, i) + size});
        });
    pick.check();
    pick.sized(rounds * 16, size, conflict(a, b), lanes.count >= 0);
    pick.counts("vector", elements * size);
    each([&](int64_t r, int64_t i, int64_t bit) {
        const uint8_t* other = b ? pick.data(b->at, place(*b, r, i)) : scalar;
        const uint8_t* from = get_bit(selector.data(pick), bit) ? pick.data(a.at, place(a, r, i)) : other;
        std::memmove(pick.data(dst.at, place(dst, r, i)), from, size_t(size));
    });
    keep_unwritten(pick, dst.at, unwritten);
}

}  // namespace

void vector_compare(VectorSide dst, VectorSide a, VectorSide b, Comparison how, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_compare(dst, a, b, how, lanes, line); }, dst, a, b)) return;
    compare(dst, a, &b, 0, how, lanes, line);
}

void vector_compare_scalar(VectorSide dst, VectorSide a, double scalar, Comparison how, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_compare_scalar(dst, a, scalar, how, lanes, line); }, dst, a)) return;
    compare(dst, a, nullptr, scalar, how, lanes, line);
}

// One round; bits of lanes that do not take part are 0.
void vector_compare_register(VectorSide a, VectorSide b, Comparison how, Lanes lanes, int line)
{
    Instruction test("Compare", Pipe::V, line);
    const int64_t size = size_of(a.at.type), width = 256 / size;
    for (const VectorSide* side : {&a, &b}) test.needs(side->at, Space::UB, "source"), test.align(side->at, 32, "source");
    for (int64_t i = 0; i < width; ++i)
        if (lane_active(lanes, 0, i, width)) test.reads(a.at, place(a, 0, i), size), test.reads(b.at, place(b, 0, i), size);
    test.check(), test.wrote_compare_mask();
    test.counts("vector", 256);
    uint8_t* bits = reinterpret_cast<uint8_t*>(machine.core->compare_mask);
    std::memset(bits, 0, 16);
    for (int64_t i = 0; i < width; ++i)
        if (lane_active(lanes, 0, i, width))
            put_bit(bits, i, holds(how, load(test.data(a.at, place(a, 0, i)), a.at.type), load(test.data(b.at, place(b, 0, i)), a.at.type)));
}

void get_compare_mask(Operand dst, int line)
{
    Instruction get("GetCmpMask", Pipe::V, line);
    get.needs(dst, Space::UB, "destination"), get.align(dst, 16, "destination");
    get.writes(dst, 0, 16), get.reads_compare_mask();
    get.check();
    get.counts("vector", 16);
    std::memcpy(get.data(dst), machine.core->compare_mask, 16);
}

void set_compare_mask(Operand src, int line)
{
    Instruction set("SetCmpMask", Pipe::V, line);
    set.needs(src, Space::UB, "source"), set.align(src, 16, "source");
    set.reads(src, 0, 16);
    set.check(), set.wrote_compare_mask();
    set.counts("vector", 16);
    std::memcpy(machine.core->compare_mask, set.data(src), 16);
}

void vector_select(VectorSide dst, Operand mask, VectorSide a, VectorSide b, SelectMode mode, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_select(dst, mask, a, b, mode, lanes, line); }, dst, mask, a, b)) return;
    if (mode != SelectMode::from_register) check_reserve(line);
    const bool tensor = mask.end > mask.address;
    select(dst, {tensor ? &mask : nullptr, mode == SelectMode::from_register}, a, &b, nullptr, lanes, line);
}

void vector_select_scalar(VectorSide dst, Operand mask, VectorSide a, double scalar, Lanes lanes, int line)
{
    if (queued(line, [=] { vector_select_scalar(dst, mask, a, scalar, lanes, line); }, dst, mask, a)) return;
    check_reserve(line);
    const float single = float(scalar);
    const uint16_t half = double_to_half(scalar);
    const uint8_t* bytes =
        a.at.type == DType::f16 ? reinterpret_cast<const uint8_t*>(&half) : reinterpret_cast<const uint8_t*>(&single);
    select(dst, {&mask, false}, a, nullptr, bytes, lanes, line);
}

void vector_select_register_scalar(VectorSide dst, Operand mask, VectorSide a, Lanes lanes, int line)
{
    select(dst, {&mask, false}, a, nullptr, in_register(), lanes, line);
}

}  // namespace tile_sim
