// Fractals of 512 bytes on their way into L0A and L0B. Poison goes along, granule by granule.
#pragma once
#include <cstring>

#include "machine.h"

namespace tile_sim
{

constexpr int64_t fractal = 512;

// Where the bytes of one element go, from operand to operand. A granule of the shadow holds something when a part of it does: who
// moves less than a granule at a time says first that nothing is there (`empty`).
class Mover
{
public:
    Mover(const Operand& dst, const Operand& src)
        : dst_(machine.memory(dst)), src_(machine.memory(src)), to_(dst.address), from_(src.address)
    {
    }
    void empty(int64_t to, int64_t bytes) { dst_.poison(to_ + to, to_ + to + bytes, true); }
    void move_nibble(int64_t to, int64_t from)  // both count halves of a byte
    {
        uint8_t& byte = *dst_.at(to_ + to / 2);
        const int value = *src_.at(from_ + from / 2) >> (from % 2 ? 4 : 0) & 15;
        byte = uint8_t(to % 2 ? (byte & 15) | value << 4 : (byte & 240) | value);
        if (!src_.poisoned(from_ + from / 2, from_ + from / 2 + 1)) dst_.poison(to_ + to / 2, to_ + to / 2 + 1, false);
    }
    void put(int64_t to, const void* value, int64_t bytes)
    {
        std::memcpy(dst_.at(to_ + to), value, size_t(bytes));
        dst_.poison(to_ + to, to_ + to + bytes, false);
    }
    void move(int64_t to, int64_t from, int64_t bytes)
    {
        std::memcpy(dst_.at(to_ + to), src_.at(from_ + from), size_t(bytes));
        const bool holds = bytes >= granule || !src_.poisoned(from_ + from, from_ + from + bytes);
        if (holds) dst_.poison(to_ + to, to_ + to + bytes, false);
        if (bytes >= granule && src_.poisoned(from_ + from, from_ + from + bytes)) spread(to_ + to, from_ + from, bytes);
    }
    void turn(int64_t to, int64_t from);  // 16 x 16 elements of 2 bytes

private:
    void spread(int64_t to, int64_t from, int64_t bytes)
    {
        for (int64_t i = 0; i < bytes; i += granule)
            if (src_.poisoned(from + i, from + i + 1)) dst_.poison(to + i, to + std::min(i + granule, bytes), true);
    }
    Memory &dst_, &src_;
    int64_t to_, from_;
};

inline void Mover::turn(int64_t to, int64_t from)
{
    if (src_.poisoned(from_ + from, from_ + from + fractal)) {
        for (int64_t e = 0; e < 256; ++e) move(to + e * 2, from + (e % 16 * 16 + e / 16) * 2, 2);
        return;
    }
    uint16_t rows[16][16], turned[16][16];
    std::memcpy(rows, src_.at(from_ + from), fractal);
    for (int i = 0; i < 16; ++i)
        for (int j = 0; j < 16; ++j) turned[i][j] = rows[j][i];
    put(to, turned, fractal);
}

inline void check_places(const Instruction& load, const Operand& dst, const Operand& src)
{
    if (dst.space != Space::L0A && dst.space != Space::L0B) load.needs(dst, Space::L0A, "destination");
    load.align(dst, fractal, "destination");
    if (src.space == Space::GM) return;
    load.needs(src, Space::L1, "source");
    load.align(src, 32, "source");
}

inline const char* path(const Operand& dst, const Operand& src)
{
    const bool a = dst.space == Space::L0A;
    if (src.space == Space::GM) return a ? "GM->L0A" : dst.space == Space::L1 ? "GM->L1" : "GM->L0B";
    return a ? "L1->L0A" : "L1->L0B";
}

inline int64_t blocks(int64_t n, int64_t block) { return (n + block - 1) / block; }

}  // namespace tile_sim
