// Queues: AllocTensor, EnQue, DeQue and FreeTensor, and what goes wrong with them.
#include "queue.h"

#include <exception>

#include "machine.h"

namespace tile_sim
{

namespace
{

std::string event_name(PipePair pipes, int64_t id)
{
    return text("%s_%s, %lld", name_of(pipes.src), name_of(pipes.dst), (long long)id);
}

}  // namespace

int64_t set_event(PipePair pipes, int line)
{
    for (int64_t id = first_event; id < event_ids; ++id) {
        if (machine.core->flags[int(pipes.src)][int(pipes.dst)][id].set) continue;
        trace_mark(name_of(pipes.src), "SetFlag " + event_name(pipes, id), line);
        raise_flag(pipes.src, pipes.dst, id, line);
        return id;
    }
    misuse("queue", line,
           "more than %d events %s_%s are pending: each free and each filled buffer of a queue holds one, and there are no more ids",
           event_ids - first_event, name_of(pipes.src), name_of(pipes.dst));
}

void wait_event(PipePair pipes, int64_t id, int line)
{
    trace_mark(name_of(pipes.dst), "WaitFlag " + event_name(pipes, id), line);
    lower_flag(pipes.src, pipes.dst, id, line);
}

QueueBuffers::~QueueBuffers()
{
    if (std::uncaught_exceptions() || !machine.core) return;
    for (int64_t i = 0; i < count_; ++i)
        if (buffers_[i].stage == Stage::filled)
            machine.report("queue", "", buffers_[i].line, 0, "a tensor is enqueued here, and never dequeued");
        else if (buffers_[i].stage != Stage::idle)
            machine.report("queue", "", buffers_[i].line, 0, "a tensor is allocated or dequeued here, and never freed or enqueued");
}

void QueueBuffers::open(int64_t count, int64_t bytes, int64_t depth, int line)
{
    if (count < 1 || count > most) misuse("queue", line, "a queue has 1 to %lld buffers, and %lld are asked for", (long long)most,
                                          (long long)count);
    close();
    count_ = count, bytes_ = bytes, depth_ = depth > 0 ? depth : 1;
}

void QueueBuffers::close()
{
    for (Buffer& buffer : buffers_) buffer = Buffer{};
    count_ = 0;
}

int64_t QueueBuffers::count(Stage stage) const
{
    int64_t n = 0;
    for (int64_t i = 0; i < count_; ++i) n += buffers_[i].stage == stage;
    return n;
}

int64_t QueueBuffers::filled() const { return count(Stage::filled); }
int64_t QueueBuffers::idle() const { return count(Stage::idle); }

// The free buffer that was freed first, as the framework goes round.
int64_t QueueBuffers::allocate(PipePair free, int line)
{
    Buffer* best = nullptr;
    for (int64_t i = 0; i < count_; ++i)
        if (buffers_[i].stage == Stage::idle && (!best || buffers_[i].order < best->order)) best = &buffers_[i];
    if (!count_) misuse("queue", line, "the queue has no buffers yet: InitBuffer comes first");
    if (!best)
        misuse("queue", line, "all %lld buffers of the queue are in use (one since line %d): FreeTensor is missing, or InitBuffer gives too few",
               (long long)count_, buffers_[0].line);
    if (best->event >= 0) wait_event(free, best->event, line);
    best->event = -1, best->stage = Stage::allocated, best->line = line;
    return best->address;
}

QueueBuffers::Buffer& QueueBuffers::holding(int64_t address, const char* call, int line)
{
    for (int64_t i = 0; i < count_; ++i)
        if (address >= buffers_[i].address && address < buffers_[i].address + bytes_) return buffers_[i];
    misuse("queue", line, "%s of a tensor that is none of this queue's", call);
}

void QueueBuffers::put(int64_t address, PipePair fill, int line)
{
    Buffer& buffer = holding(address, "EnQue", line);
    if (buffer.stage == Stage::filled)
        misuse("queue", line, "the tensor is in the queue already, since line %d", buffer.line);
    if (buffer.stage == Stage::idle) misuse("queue", line, "EnQue of a tensor that was freed: AllocTensor comes first");
    if (full())
        misuse("queue", line, "the queue overflows: its depth is %lld, and as many tensors wait in it", (long long)depth_);
    buffer.event = set_event(fill, line);
    buffer.stage = Stage::filled, buffer.line = line, buffer.order = ++puts_;
}

int64_t QueueBuffers::take(PipePair fill, int line)
{
    Buffer* oldest = nullptr;
    for (int64_t i = 0; i < count_; ++i)
        if (buffers_[i].stage == Stage::filled && (!oldest || buffers_[i].order < oldest->order)) oldest = &buffers_[i];
    if (!oldest) misuse("queue", line, "DeQue of an empty queue: no EnQue comes before it");
    wait_event(fill, oldest->event, line);
    oldest->event = -1, oldest->stage = Stage::taken, oldest->line = line;
    return oldest->address;
}

void QueueBuffers::release(int64_t address, PipePair free, int line)
{
    Buffer& buffer = holding(address, "FreeTensor", line);
    if (buffer.stage == Stage::idle) misuse("queue", line, "the tensor was freed before, at line %d", buffer.line);
    if (buffer.stage == Stage::filled)
        misuse("queue", line, "the tensor is freed while it waits in the queue (line %d): DeQue comes first", buffer.line);
    buffer.event = set_event(free, line);
    buffer.stage = Stage::idle, buffer.line = line, buffer.order = ++puts_;
}

void QueueBuffers::settle(PipePair free, int line)
{
    for (int64_t i = 0; i < count_; ++i) {
        Buffer& buffer = buffers_[i];
        if (buffer.stage != Stage::idle || buffer.event < 0) continue;
        wait_event(free, buffer.event, line);
        buffer.event = -1;
    }
}

}  // namespace tile_sim
