// What was computed from elements that nothing has written: as if nothing had written it.
#include <algorithm>
#include <cstring>
#include <map>

#include "lanes.h"

namespace tile_sim
{
namespace
{

std::map<const Memory*, std::vector<Carrier>> carriers;  // by granule
std::map<std::pair<const Memory*, int64_t>, uint16_t> some_bits;
constexpr int64_t bits_of_granule = 8 * granule;

}  // namespace

void keep_unwritten(const Instruction& instruction, const Operand& dst, const std::vector<Place>& bytes)
{
    if (bytes.empty()) return;
    Memory& memory = machine.memory(dst);
    std::vector<Carrier>& by_granule = carriers[&memory];
    by_granule.resize(size_t(memory.bytes() / granule + 1));
    for (const Place& part : bytes) {
        const int64_t begin = dst.address + part.begin, end = std::max(begin + 1, dst.address + part.end);
        memory.poison(begin, end, true);
        std::fill(by_granule.begin() + begin / granule, by_granule.begin() + (end + granule - 1) / granule,
                  Carrier{instruction.name(), instruction.line()});
    }
}

Carrier carrier_of(const Memory& memory, int64_t address)
{
    const auto found = carriers.find(&memory);
    return found == carriers.end() ? Carrier{} : found->second[size_t(address / granule)];
}

void forget_carriers(const Memory& memory)
{
    if (!carriers.empty()) carriers.erase(&memory);
}

bool unwritten_bit(Memory& memory, int64_t address, int64_t bit)
{
    const int64_t at = address + bit / 8;
    if (!memory.poisoned(at, at + 1)) return false;
    const auto found = some_bits.find({&memory, at / granule});
    return found == some_bits.end() || (found->second >> (at % granule * 8 + bit % 8) & 1);
}

void keep_unwritten_bits(const Instruction& instruction, const Operand& dst, const std::vector<bool>& bits)
{
    Memory& memory = machine.memory(dst);
    for (int64_t first = 0; first < int64_t(bits.size()); first += bits_of_granule) {
        uint16_t unwritten = 0;
        for (int64_t i = 0; i < bits_of_granule; ++i) unwritten = uint16_t(unwritten | (bits[size_t(first + i)] << i));
        if (!unwritten) continue;
        const int64_t begin = first / 8;
        uint8_t others[granule];
        std::memcpy(others, instruction.data(dst, begin), granule);
        keep_unwritten(instruction, dst, {{begin, begin + granule}});
        std::memcpy(instruction.data(dst, begin), others, granule);
        if (unwritten != 0xffff) some_bits[{&memory, (dst.address + begin) / granule}] = unwritten;
    }
}

void forget_bits(const Memory& memory, int64_t begin, int64_t end)
{
    if (some_bits.empty()) return;
    some_bits.erase(some_bits.lower_bound({&memory, begin / granule}), some_bits.lower_bound({&memory, (end + granule - 1) / granule}));
}

}  // namespace tile_sim
