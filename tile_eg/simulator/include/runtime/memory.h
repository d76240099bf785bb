// A memory with its shadow: who wrote and who read each of its bytes last (shadow.cpp).
#pragma once
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "interface.h"

namespace tile_sim
{

constexpr int64_t granule = 2;  // bytes that share one shadow entry

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
    bool guarded = false;  // an Mmad large enough for the hardware to order accumulations by itself
};

// Bytes that an instruction has overwritten, and the tensor through which they had been written.
struct Overwritten {
    Place tensor, bytes;
};

// A zeroed array whose untouched pages cost nothing.
template <class T>
class Lazy
{
public:
    void resize(int64_t count)
    {
        data_.reset(static_cast<T*>(std::calloc(size_t(count) + 1, sizeof(T))));
        check();
    }
    T& operator[](int64_t i) { return data_.get()[i]; }
    T* get() { return data_.get(); }

private:
    struct Free {
        void operator()(T* p) const { std::free(p); }
    };
    void check() const;
    std::unique_ptr<T, Free> data_;
};

class Memory
{
public:
    void open(Space space, int64_t bytes);
    void forget();  // everything poisoned and free of history again (a new block)
    void forget_order();  // free of history, and holding what it held (a new launch)
    uint8_t* at(int64_t address) { return data_.get() + address; }
    int64_t bytes() const { return bytes_; }
    Space space() const { return space_; }
    bool poisoned(int64_t begin, int64_t end);
    void poison(int64_t begin, int64_t end, bool value);
    void touch(int64_t end) { touched_ = end > touched_ ? end : touched_; }
    int slot(int core, Pipe pipe) const;

    static constexpr int slots = 3;
    Lazy<uint32_t> writer, reader[slots];
    Lazy<uint32_t> met;  // the write that came last, where instructions are delayed
    std::map<int64_t, uint32_t> rewritten;  // by line of a data cache that was written back whole: the event that changed it

private:
    Space space_ = Space::UB;
    int64_t bytes_ = 0, touched_ = 0;
    Lazy<uint8_t> data_, poison_;
};

struct Region {  // one tensor in GM
    std::string name;
    int64_t begin, end;
    bool output, input;
};

}  // namespace tile_sim
