// A memory with its shadow: who wrote and who read each of its bytes last (shadow.cpp).
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "interface.h"
#include "track.h"

namespace tile_sim
{

struct Place {
    int64_t begin = 0, end = 0;
    bool same(const Place& other) const { return begin == other.begin && end == other.end; }
    bool meets_in_part(const Place& other) const
    {
        return (begin < other.begin && other.begin < end && end < other.end) ||
               (other.begin < begin && begin < other.end && other.end < end);
    }
};

// An instruction that was issued, as long as some byte remembers it.
struct Event {
    const char* name = "";
    int line = 0;
    uint32_t epoch = 0, block = 0;
    uint8_t core = 0;
    Pipe pipe = Pipe::S;
    uint32_t item = 0;  // where it stands in the order of a run that delays instructions
    uint8_t unit_flag = 0;
    bool atomic = false;
    bool signal = false;   // a scalar access to GM that cores may agree by: past the data cache, or right after it let go
    Place written;         // the tensor that it writes, where it is on chip
    uint64_t load = 0;     // of a copy of inputs: what it copies, and where to (again.cpp)
    bool read = false;     // something has read what it wrote, or a part of that
    int64_t left = 0;      // granules that it wrote and nothing has overwritten
    bool guarded = false;  // an Mmad large enough for the hardware to order accumulations by itself
};

// Bytes that an instruction has overwritten, and the tensor through which they had been written.
struct Overwritten {
    Place tensor, bytes;
};

class Memory
{
public:
    void open(Space space, int64_t bytes, int file = -1);  // a file: what the memory holds at first
    void forget();  // everything poisoned and free of history again (a new block)
    void forget_order();  // free of history, and holding what it held (a new launch)
    uint8_t* at(int64_t address) { return data_.get() + address; }
    int64_t bytes() const { return bytes_; }
    Space space() const { return space_; }
    bool poisoned(int64_t begin, int64_t end)
    {
        return space_ == Space::GM ? poisoned_in_gm(begin, end) : unwritten_.any(begin / granule, (end + granule - 1) / granule);
    }
    std::vector<std::pair<int64_t, int64_t>> unwritten(int64_t begin, int64_t end);  // the stretches that nothing has written
    void poison(int64_t begin, int64_t end, bool value);
    void touch(int64_t begin, int64_t end);
    void renew(int64_t begin, int64_t end);  // of GM: zero and unwritten, as it is given out
    bool awake(int64_t chunk) { return awake_[chunk] != 0; }
    void carry_unwritten(int64_t to, int64_t from, int64_t bytes);  // what holds nothing there holds nothing here
    int slot(int core, Pipe pipe) const;

    static constexpr int slots = 3;
    static constexpr int64_t chunk = 8192;  // bytes of GM that come to life together
    Track writer, reader[slots];
    Lazy<uint32_t> met;  // by granule: the write that came last, where instructions are delayed
    std::map<int64_t, uint32_t> rewritten;  // by line of a data cache that was written back whole: the event that changed it

private:
    Space space_ = Space::UB;
    bool poisoned_in_gm(int64_t begin, int64_t end);
    void wake(int64_t chunk);
    void pay_for(int64_t chunk);
    void pay(int64_t bytes);
    template <class Visit>
    void each_awake(int64_t begin, int64_t end, Visit visit);

    int64_t bytes_ = 0, touched_ = 0, paid_ = 0;
    Lazy<uint8_t> data_, awake_;
    Marks unwritten_;
};

struct Region {  // one tensor in GM
    std::string name;
    int64_t begin, end;
    bool output, input;
    bool alike = false;  // blocks may write there what others have written or read: the same bytes again
};

}  // namespace tile_sim
