// Pools: pieces of a memory that a kernel hands out to queues and buffers by itself (queue.h).
#pragma once
#include "tensor.h"

namespace AscendC
{

template <TPosition position>
class TBuf;

namespace detail
{

inline int64_t whole_blocks(int64_t bytes) { return (bytes + 31) / 32 * 32; }

// A piece of a memory that is handed out from its start.
class Piece
{
public:
    void open(int64_t start, int64_t bytes) { start_ = next_ = start, end_ = start + bytes; }
    int64_t hand_out(int64_t bytes, int line)
    {
        const int64_t start = next_;
        next_ += whole_blocks(bytes);
        if (next_ > end_)
            tile_sim::misuse("capacity", line, "the pool has %lld bytes, and %lld are asked for", (long long)(end_ - start_),
                             (long long)(next_ - start_));
        return start;
    }
    void reset() { next_ = start_; }
    int64_t start() const { return start_; }
    int64_t bytes() const { return end_ - start_; }

private:
    int64_t start_ = 0, next_ = 0, end_ = 0;
};

}  // namespace detail

template <TPosition position, uint32_t most = 4>
class TBufPool
{
public:
    static constexpr TPosition poolPos = position;

    template <class Queue>
    bool InitBuffer(Queue& queue, uint8_t num, uint32_t len, Line line = Line(__builtin_LINE()))
    {
        const int64_t each = detail::whole_blocks(len), start = piece.hand_out(num * each, line);
        queue.InitStartBufHandle(nullptr, num, uint32_t(each));
        for (uint32_t i = 0; i < num; ++i) queue.InitBufHandle(this, i, nullptr, uint32_t(start + i * each), uint32_t(each));
        return true;
    }
    template <TPosition home>
    bool InitBuffer(TBuf<home>& buffer, uint32_t len, Line line = Line(__builtin_LINE()))
    {
        buffer.place(piece.hand_out(len, line), detail::whole_blocks(len));
        return true;
    }
    template <class Pool>
    bool InitBufPool(Pool& pool, uint32_t len, Line line = Line(__builtin_LINE()))
    {
        pool.piece.open(piece.hand_out(len, line), detail::whole_blocks(len));
        return true;
    }
    template <class Pool, class Shared>
    bool InitBufPool(Pool& pool, uint32_t len, Shared& shared)
    {
        pool.piece.open(shared.piece.start(), len);
        return true;
    }
    void Reset()
    {
        tile_sim::pipe_barrier(tile_sim::Pipe::ALL, 0);
        piece.reset();
    }

    detail::Piece piece;
};

// The body of a pool that a kernel defines for itself.
#define EXTERN_IMPL_BUFPOOL(NAME, POSITION, MOST)                                                                        \
public:                                                                                                                  \
    static constexpr AscendC::TPosition poolPos = POSITION;                                                              \
    void Init() { count_ = 0; }                                                                                          \
    void Reset()                                                                                                         \
    {                                                                                                                    \
        ::tile_sim::pipe_barrier(::tile_sim::Pipe::ALL, 0);                                                              \
        count_ = 0, next_ = piece.start();                                                                               \
    }                                                                                                                    \
    AscendC::TBufHandle GetBufHandle(uint8_t) { return nullptr; }                                                        \
    uint32_t GetCurAddr() { return uint32_t(next_ < piece.start() ? piece.start() : next_); }                            \
    void SetCurAddr(uint32_t address) { next_ = address; }                                                               \
    uint8_t GetCurBufSize() { return count_; }                                                                           \
    void SetCurBufSize(uint8_t count) { count_ = count; }                                                                \
    AscendC::detail::Piece piece;                                                                                        \
                                                                                                                         \
private:                                                                                                                 \
    uint8_t count_ = 0;                                                                                                  \
    int64_t next_ = 0

}  // namespace AscendC
