// Compare gives one bit an element; Select picks by such bits.
#include <cstring>

#include "lanes.h"
#include "schedule.h"
#include "numbers.h"

namespace tile_sim
{
namespace
{

constexpr int64_t reserved = 8192;  // bytes at the end of UB that Select uses itself

double load(const uint8_t* p, DType type)
{
    uint16_t half;
    float single;
    std::memcpy(&half, p, 2);
    if (type == DType::f16) return half_to_float(half);
    std::memcpy(&single, p, 4);
    return single;
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

void check_count(const char* name, int64_t count, int64_t size, int line)
{
    if (count * size % 256)
        misuse("misaligned", line, "%s works on whole 256-byte rounds, and %lld elements are none", name, (long long)count);
}

void compare(Operand dst, Operand a, const Operand* b, double scalar, Comparison how, int64_t count, int line)
{
    Instruction test(b ? "Compare" : "CompareScalar", Pipe::V, line);
    const int64_t size = size_of(a.type);
    check_count("Compare", count, size, line);
    test.needs(dst, Space::UB, "destination"), test.needs(a, Space::UB, "source");
    test.align(dst, 32, "destination"), test.align(a, 32, "source");
    test.reads(a, 0, count * size);
    if (b) test.needs(*b, Space::UB, "second source"), test.align(*b, 32, "second source"), test.reads(*b, 0, count * size);
    test.writes(dst, 0, count / 8);
    test.check();
    test.counts("vector", count * size);
    for (int64_t i = 0; i < count; ++i) {
        const double right = b ? load(test.data(*b, i * size), a.type) : scalar;
        uint8_t& byte = *test.data(dst, i / 8);
        const uint8_t bit = uint8_t(1 << i % 8);
        byte = uint8_t(holds(how, load(test.data(a, i * size), a.type), right) ? byte | bit : byte & ~bit);
    }
}

void select(Operand dst, Operand mask, Operand a, const Operand* b, double scalar, int64_t count, int line)
{
    Instruction pick("Select", Pipe::V, line);
    const int64_t size = size_of(a.type), most = machine.settings.capacity[int(Space::UB)] - reserved;
    if (machine.core->allocated[int(Space::UB)] > most)
        misuse("capacity", line, "Select keeps the last %lld bytes of UB for itself: buffers may end at byte %lld",
               (long long)reserved, (long long)most);
    for (const Operand* o : {&dst, &mask, &a}) pick.needs(*o, Space::UB, "operand"), pick.align(*o, 32, "operand");
    pick.reads(mask, 0, (count + 7) / 8), pick.reads(a, 0, count * size);
    if (b) pick.needs(*b, Space::UB, "second source"), pick.align(*b, 32, "second source"), pick.reads(*b, 0, count * size);
    pick.writes(dst, 0, count * size);
    pick.check();
    pick.counts("vector", count * size);
    const float single = float(scalar);
    const uint16_t half = float_to_half(single);
    const uint8_t* other =
        a.type == DType::f16 ? reinterpret_cast<const uint8_t*>(&half) : reinterpret_cast<const uint8_t*>(&single);
    for (int64_t i = 0; i < count; ++i) {
        const bool first = *pick.data(mask, i / 8) >> (i % 8) & 1;
        std::memmove(pick.data(dst, i * size),
                     first ? pick.data(a, i * size)
                     : b   ? pick.data(*b, i * size)
                           : other,
                     size_t(size));
    }
}

}  // namespace

void vector_compare(Operand dst, Operand a, Operand b, Comparison how, int64_t count, int line)
{
    if (queued(line, [=] { vector_compare(dst, a, b, how, count, line); }, dst, a, b)) return;
    compare(dst, a, &b, 0, how, count, line);
}
void vector_compare_scalar(Operand dst, Operand a, double scalar, Comparison how, int64_t count, int line)
{
    if (queued(line, [=] { vector_compare_scalar(dst, a, scalar, how, count, line); }, dst, a)) return;
    compare(dst, a, nullptr, scalar, how, count, line);
}
void vector_select(Operand dst, Operand mask, Operand a, Operand b, int64_t count, int line)
{
    if (queued(line, [=] { vector_select(dst, mask, a, b, count, line); }, dst, mask, a, b)) return;
    select(dst, mask, a, &b, 0, count, line);
}
void vector_select_scalar(Operand dst, Operand mask, Operand a, double scalar, int64_t count, int line)
{
    if (queued(line, [=] { vector_select_scalar(dst, mask, a, scalar, count, line); }, dst, mask, a)) return;
    select(dst, mask, a, nullptr, scalar, count, line);
}

}  // namespace tile_sim
