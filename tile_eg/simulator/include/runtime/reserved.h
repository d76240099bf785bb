// Address space for memories and what is noted of them, of which a page costs memory from its first touch on.
#pragma once
#include <cstdint>
#include <utility>

namespace tile_sim
{

// Address space that is none of what a run may use (Settings::memory): what is touched of GM is counted apart (Memory::pay). `flags` are
// those of mmap. Throws std::runtime_error.
uint8_t* reserve(int64_t bytes, int flags, int file = -1, int64_t offset = 0);
void release(uint8_t* at, int64_t bytes);
void limit_memory();  // for everything that is not reserved, from now on

// Address space of so many bytes, zeroed or with what a file holds (as it is now: nothing is written to it).
class Reserved
{
public:
    Reserved() = default;
    explicit Reserved(int64_t bytes, int file = -1);
    Reserved(Reserved&& other) noexcept { swap(other); }
    Reserved& operator=(Reserved&& other) noexcept { return swap(other), *this; }
    ~Reserved();
    uint8_t* get() const { return at_; }

private:
    void swap(Reserved& other) { std::swap(at_, other.at_), std::swap(bytes_, other.bytes_); }
    uint8_t* at_ = nullptr;
    int64_t bytes_ = 0;
};

// An array in reserved memory.
template <class T>
class Lazy
{
public:
    void resize(int64_t count, int file = -1) { data_ = Reserved((count + 1) * int64_t(sizeof(T)), file); }
    T& operator[](int64_t i) { return get()[i]; }
    const T& operator[](int64_t i) const { return get()[i]; }
    T* get() const { return reinterpret_cast<T*>(data_.get()); }

private:
    Reserved data_;
};

}  // namespace tile_sim
