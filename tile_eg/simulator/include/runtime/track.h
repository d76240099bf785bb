// What a memory remembers of each granule: a number (who wrote it last, who read it last) and a mark (nothing has written it).
//
// Instructions go over whole blocks of 32 bytes almost always, so a block whose granules agree is one entry. A block whose granules
// differ has an entry that says where its numbers stand one by one.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "reserved.h"

namespace tile_sim
{

constexpr int64_t granule = 2;     // bytes that share a number
constexpr int64_t per_entry = 16;  // granules of a block

// A number below 2^31 for each granule, 0 at first. Granules are counted from the beginning of the memory.
class Track
{
public:
    void resize(int64_t granules) { entries_.resize(granules / per_entry + 1); }
    uint32_t operator[](int64_t i) const { return number(entries_[i / per_entry], i % per_entry); }
    void fill(int64_t first, int64_t last, uint32_t number);       // [first, last)
    void fill_empty(int64_t first, int64_t last, uint32_t number);  // those that are 0
    // The first granule from `i` on whose number is neither 0 nor `known`; `end` where there is none before it.
    int64_t skip(int64_t i, int64_t end, uint32_t known) const;
    int64_t end_of_run(int64_t i, int64_t end) const;  // the first granule behind `i` with another number than it has
    bool agrees(int64_t block) const { return !(entries_[block] & split); }  // all granules of the block have one number

private:
    static constexpr uint32_t split = uint32_t(1) << 31;
    uint32_t number(uint32_t entry, int64_t at) const { return entry & split ? numbers_[(entry & ~split) * per_entry + at] : entry; }
    uint32_t* one_by_one(int64_t block);
    void fill_part(int64_t block, int64_t first, int64_t last, uint32_t number);
    void fill_whole(int64_t block, int64_t last, uint32_t number);
    int64_t skip_whole(int64_t block, int64_t last, uint32_t known) const;

    int64_t end_of_same(int64_t block, int64_t last, uint32_t number) const;

    Lazy<uint32_t> entries_;
    std::vector<uint32_t> numbers_, free_;  // of blocks whose granules differ; which of these places are free
};

// A mark for each granule, none at first.
class Marks
{
public:
    void resize(int64_t granules) { bits_.resize(granules / per_entry + 1); }
    bool any(int64_t first, int64_t last) const;  // in [first, last)
    void set(int64_t first, int64_t last, bool value);
    uint16_t of_block(int64_t block) const { return bits_[block]; }

private:
    // The bits of the granules from `first` up to `last` of one block.
    static uint16_t bits(int64_t first, int64_t last) { return uint16_t((0xffffu << first) & (0xffffu >> (per_entry - last))); }
    bool any_whole(int64_t block, int64_t last) const;

    Lazy<uint16_t> bits_;
};

inline bool Marks::any(int64_t first, int64_t last) const
{
    if (last <= first) return false;
    const int64_t block = first / per_entry, end = (last - 1) / per_entry;
    if (block == end) return bits_[block] & bits(first % per_entry, last - end * per_entry);
    return bits_[block] & bits(first % per_entry, per_entry) || bits_[end] & bits(0, last - end * per_entry) ||
           any_whole(block + 1, end);
}

}  // namespace tile_sim
