#include "track.h"

#include <cstring>

namespace tile_sim
{
namespace
{

constexpr int64_t at_once = 16;  // entries that are looked at together: as a vector, where the compiler can

}  // namespace

// The numbers of a block one by one, to be changed.
uint32_t* Track::one_by_one(int64_t block)
{
    const uint32_t entry = entries_[block];
    if (entry & split) return &numbers_[size_t(entry & ~split) * per_entry];
    if (free_.empty()) free_.push_back(uint32_t(numbers_.size() / per_entry)), numbers_.resize(numbers_.size() + per_entry);
    const uint32_t place = free_.back();
    free_.pop_back();
    entries_[block] = place | split;
    uint32_t* const numbers = &numbers_[size_t(place) * per_entry];
    std::fill_n(numbers, per_entry, entry);
    return numbers;
}

void Track::fill_part(int64_t block, int64_t first, int64_t last, uint32_t number)
{
    if (entries_[block] == number) return;
    uint32_t* const numbers = one_by_one(block);
    std::fill(numbers + first, numbers + last, number);
    if (std::all_of(numbers, numbers + per_entry, [&](uint32_t n) { return n == number; })) fill_whole(block, block + 1, number);
}

// A page of entries that are 0 stays untouched where they are to be 0.
void Track::fill_whole(int64_t block, int64_t last, uint32_t number)
{
    uint32_t* const entries = entries_.get();
    uint32_t any = 0;
    for (int64_t i = block; i < last; ++i) any |= entries[i];
    if (any & split)
        for (int64_t i = block; i < last; ++i)
            if (entries[i] & split) free_.push_back(entries[i] & ~split);
    if (any || number) std::fill(entries + block, entries + last, number);
}

void Track::fill(int64_t first, int64_t last, uint32_t number)
{
    if (last <= first) return;
    const int64_t block = first / per_entry, end = last / per_entry;
    if (block == end) return fill_part(block, first % per_entry, last % per_entry, number);
    const int64_t whole = (first + per_entry - 1) / per_entry;
    if (whole > block) fill_part(block, first % per_entry, per_entry, number);
    fill_whole(whole, end, number);
    if (last % per_entry) fill_part(end, 0, last % per_entry, number);
}

void Track::fill_empty(int64_t first, int64_t last, uint32_t number)
{
    for (int64_t i = first, end = 0; i < last; i = end) {
        end = end_of_run(i, last);
        if (!(*this)[i]) fill(i, end, number);
    }
}

// From the block on, the first block of which some granule may have a number other than 0 and `known`; `last` where there is none.
int64_t Track::skip_whole(int64_t block, int64_t last, uint32_t known) const
{
    const uint32_t* const entries = entries_.get();
    const auto other = [&](int64_t i) { return entries[i] != 0 && entries[i] != known; };
    for (; block + at_once <= last; block += at_once) {
        uint32_t any = 0;
        for (int64_t i = 0; i < at_once; ++i) any |= uint32_t(other(block + i));
        if (any) break;
    }
    while (block < last && !other(block)) ++block;
    return block;
}

int64_t Track::skip(int64_t i, int64_t end, uint32_t known) const
{
    while (i < end) {
        const int64_t block = i / per_entry;
        if (i % per_entry == 0 && end - i >= per_entry) {
            const int64_t next = skip_whole(block, end / per_entry, known);
            i = next * per_entry;
            if (next > block) continue;
        }
        for (const int64_t until = std::min(end, (block + 1) * per_entry); i < until; ++i)
            if (const uint32_t n = (*this)[i]; n && n != known) return i;
    }
    return end;
}

int64_t Track::end_of_run(int64_t i, int64_t end) const
{
    const uint32_t number = (*this)[i];
    for (++i; i < end;) {
        if (i % per_entry == 0) i = std::max(i, end_of_same(i / per_entry, end / per_entry, number) * per_entry);
        if (i < end && (*this)[i++] != number) return i - 1;
    }
    return end;
}

// From the block on, the first one whose entry is not this number.
int64_t Track::end_of_same(int64_t block, int64_t last, uint32_t number) const
{
    const uint32_t* const entries = entries_.get();
    for (; block + at_once <= last; block += at_once) {
        uint32_t other = 0;
        for (int64_t i = 0; i < at_once; ++i) other |= entries[block + i] ^ number;
        if (other) break;
    }
    while (block < last && entries[block] == number) ++block;
    return block;
}

bool Marks::any_whole(int64_t block, int64_t last) const
{
    const uint16_t* const bits = bits_.get();
    for (; block + at_once <= last; block += at_once) {
        uint16_t found = 0;
        for (int64_t i = 0; i < at_once; ++i) found |= bits[block + i];
        if (found) return true;
    }
    uint16_t found = 0;
    for (; block < last; ++block) found |= bits[block];
    return found;
}

void Marks::set(int64_t first, int64_t last, bool value)
{
    if (last <= first) return;
    const auto set_part = [&](int64_t block, uint16_t part) {
        if (value)
            bits_[block] |= part;
        else
            bits_[block] &= uint16_t(~part);
    };
    const int64_t block = first / per_entry, end = (last - 1) / per_entry;
    if (block == end) return set_part(block, bits(first % per_entry, last - end * per_entry));
    set_part(block, bits(first % per_entry, per_entry)), set_part(end, bits(0, last - end * per_entry));
    std::memset(bits_.get() + block + 1, value ? 0xff : 0, size_t(end - block - 1) * sizeof(uint16_t));
}

}  // namespace tile_sim
