// A division of integers by 0: the cores go on, with 0 and the dividend as its remainder, and so does aarch64; x86 traps.
#include "zero_division.h"

#if defined(__x86_64__) && defined(__linux__)
#include <ucontext.h>

#include <cstdint>

namespace tile_sim
{
namespace
{

struct Division {
    const uint8_t* end = nullptr;  // nullptr: it is none
    bool bytes = false, words = false, wide = false, is_signed = false;
};

// The instruction DIV or IDIV at a place: prefixes, F6 or F7, ModRM, SIB, displacement (Intel's manual, volume 2, chapter 2).
Division division_at(const uint8_t* at)
{
    Division found;
    for (; *at == 0x66 || *at == 0x67 || *at == 0x2e || *at == 0x3e || *at == 0x64 || *at == 0x65; ++at)
        found.words |= *at == 0x66;
    if ((*at & 0xf0) == 0x40) found.wide = *at++ & 8;
    found.bytes = *at == 0xf6;
    if (*at != 0xf6 && *at != 0xf7) return found;
    const uint8_t modrm = *++at;
    const int mod = modrm >> 6, operation = modrm >> 3 & 7, rm = modrm & 7;
    if (operation < 6) return found;
    found.is_signed = operation == 7;
    ++at;
    int displacement = mod == 1 ? 1 : mod == 2 || (mod == 0 && rm == 5) ? 4 : 0;
    if (mod != 3 && rm == 4 && (*at++ & 7) == 5 && mod == 0) displacement = 4;
    found.end = at + (mod == 3 ? 0 : displacement);
    return found;
}

}  // namespace

bool past_division(void* context)
{
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const Division found = division_at(reinterpret_cast<const uint8_t*>(registers[REG_RIP]));
    if (!found.end || found.bytes || found.words) return false;
    const uint64_t low = found.wide ? uint64_t(registers[REG_RAX]) : uint32_t(registers[REG_RAX]);
    if (found.is_signed && low == (found.wide ? uint64_t(1) << 63 : uint64_t(1) << 31)) return false;  // it may be one by -1
    registers[REG_RDX] = greg_t(low), registers[REG_RAX] = 0;
    registers[REG_RIP] = reinterpret_cast<greg_t>(found.end);
    return true;
}

}  // namespace tile_sim
#else
namespace tile_sim
{
bool past_division(void*) { return false; }
}  // namespace tile_sim
#endif
