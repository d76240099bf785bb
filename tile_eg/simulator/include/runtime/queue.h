// The buffers of one queue: which are free, filled or in use, and the events that order their users.
#pragma once
#include "interface.h"

namespace tile_sim
{

// An event of the framework, which numbers them by itself: never set twice, and free again after its wait.
int64_t set_event(PipePair pipes, int line);  // the event's id
void wait_event(PipePair pipes, int64_t id, int line);

class QueueBuffers
{
public:
    ~QueueBuffers();
    void open(int64_t count, int64_t bytes, int64_t depth, int line);
    void place(int64_t index, int64_t address) { buffers_[index].address = address; }
    void close();  // forgets its buffers and events
    int64_t bytes() const { return bytes_; }

    int64_t allocate(PipePair free, int line);  // the address of a free buffer, after its last reader
    void put(int64_t address, PipePair fill, int line);
    int64_t take(PipePair fill, int line);  // the address of the oldest filled buffer, after its writer
    void release(int64_t address, PipePair free, int line);
    void settle(PipePair free, int line);  // what fills the free buffers next waits for their last readers

    int64_t filled() const;
    int64_t idle() const;
    bool full() const { return filled() >= depth_; }
    bool is_free(int64_t address) const
    {
        for (int64_t i = 0; i < count_; ++i)
            if (buffers_[i].address == address) return buffers_[i].stage == Stage::idle;
        return false;
    }

private:
    enum class Stage : uint8_t { idle, allocated, filled, taken };
    struct Buffer {
        int64_t address = 0, event = -1, order = 0;
        Stage stage = Stage::idle;
        int line = 0;
    };
    static constexpr int64_t most = 64;
    Buffer& holding(int64_t address, const char* call, int line);
    int64_t count(Stage stage) const;

    Buffer buffers_[most];
    int64_t count_ = 0, bytes_ = 0, depth_ = 1, puts_ = 0;
};

}  // namespace tile_sim
