// The queue style: a TPipe hands out UB, L1 and L0 to queues and buffers, and queues order those who use them.
#pragma once
#include "../runtime/queue.h"
#include "pool.h"
#include "sync.h"
#include "tensor.h"

namespace AscendC
{

using TEventID = int8_t;
enum class TBufState : uint8_t { FREE, OCCUPIED, ENQUE, DEQUE };

struct TQueConfig {
    bool nd2nz = false, nz2nd = false, scmBlockGroup = false;
    uint32_t bufferLen = 0, bufferNumber = 0, consumerSize = 0;
    TPosition consumer[8] = {};
    bool enableStaticEvtId = false, enableLoopQueue = false;
};

namespace detail
{

// Who writes, and who reads, what moves from one position to another.
constexpr tile_sim::PipePair pipes_between(TPosition src, TPosition dst)
{
    using tile_sim::Pipe;
    using tile_sim::Space;
    const Space from = space_of(src), to = space_of(dst);
    if (src == TPosition::CO1) return {Pipe::M, Pipe::FIX};
    if (to == Space::L0A || to == Space::L0B || dst == TPosition::C2) return {Pipe::MTE1, Pipe::M};
    if (to == Space::L1) return {from == Space::UB ? Pipe::MTE3 : Pipe::MTE2, Pipe::MTE1};
    if (from == Space::UB && to == Space::UB)
        return src == TPosition::VECIN && dst == TPosition::VECOUT ? tile_sim::PipePair{Pipe::MTE2, Pipe::MTE3}
                                                                  : tile_sim::PipePair{Pipe::V, Pipe::V};
    return to == Space::UB ? tile_sim::PipePair{Pipe::MTE2, Pipe::V} : tile_sim::PipePair{Pipe::V, Pipe::MTE3};
}

constexpr tile_sim::PipePair back(tile_sim::PipePair pipes) { return {pipes.dst, pipes.src}; }

// A position of a queue as the two ends of its road.
constexpr TPosition road(TPosition position, bool start)
{
    switch (position) {
        case TPosition::VECIN:
        case TPosition::A1:
        case TPosition::B1:
        case TPosition::C1: return start ? TPosition::GM : position;
        case TPosition::A2: return start ? TPosition::A1 : position;
        case TPosition::B2: return start ? TPosition::B1 : position;
        case TPosition::C2: return start ? TPosition::C1 : position;
        case TPosition::CO1: return start ? position : TPosition::CO2;
        case TPosition::VECOUT:
        case TPosition::CO2: return start ? position : TPosition::GM;
        default: return position;
    }
}

}  // namespace detail

template <TPosition src, TPosition dst, int32_t depth, auto mask = 0>
class TQueBind
{
public:
    static constexpr TPosition home = src == TPosition::GM || (src == TPosition::A1 || src == TPosition::B1 || src == TPosition::C1) ? dst : src;

    template <class T>
    LocalTensor<T> AllocTensor(Line line = Line(__builtin_LINE()))
    {
        return tensor<T>(buffers_.allocate(detail::back(pipes), line));
    }
    template <class T>
    void AllocTensor(LocalTensor<T>& result, Line line = Line(__builtin_LINE()))
    {
        result = AllocTensor<T>(line);
    }
    void FreeBuffer(TBufHandle handle, Line line = Line(__builtin_LINE()))
    {
        buffers_.release(address_of(handle), detail::back(pipes), line);
    }
    template <class T>
    void FreeTensor(const LocalTensor<T>& used, Line line = Line(__builtin_LINE()))
    {
        buffers_.release(used.operand().address, detail::back(pipes), line);
    }
    template <class T>
    bool EnQue(const LocalTensor<T>& filled, Line line = Line(__builtin_LINE()))
    {
        buffers_.put(filled.operand().address, pipes, line);
        return true;
    }
    template <TPosition from, TPosition to, class T>
    bool EnQue(const LocalTensor<T>& filled, Line line = Line(__builtin_LINE()))
    {
        buffers_.put(filled.operand().address, detail::pipes_between(from, to), line);
        return true;
    }
    TBufHandle DeQue(Line line = Line(__builtin_LINE())) { return handle_of(buffers_.take(pipes, line)); }
    template <class T>
    LocalTensor<T> DeQue(Line line = Line(__builtin_LINE()))
    {
        return tensor<T>(buffers_.take(pipes, line));
    }
    template <class T>
    void DeQue(LocalTensor<T>& result, Line line = Line(__builtin_LINE()))
    {
        result = DeQue<T>(line);
    }
    template <TPosition from, TPosition to, class T>
    LocalTensor<T> DeQue(Line line = Line(__builtin_LINE()))
    {
        return tensor<T>(buffers_.take(detail::pipes_between(from, to), line));
    }
    bool VacantInQue() const { return !buffers_.full(); }
    bool HasTensorInQue() const { return buffers_.filled() > 0; }
    int32_t GetTensorCountInQue() const { return int32_t(buffers_.filled()); }
    bool HasIdleBuffer() const { return buffers_.idle() > 0; }
    void FreeAllEvent(Line line = Line(__builtin_LINE())) { buffers_.settle(detail::back(pipes), line); }
    // Where the buffer lies that a tensor's GetBufferHandle names.
    TBuffAddr GetBufferAddr(TBufHandle handle) const { return tensor<uint8_t>(address_of(handle)).address_; }
    template <class T>
    TBufState GetState(const LocalTensor<T>& tensor) const
    {
        return buffers_.is_free(tensor.operand().address) ? TBufState::FREE : TBufState::OCCUPIED;
    }

    void InitStartBufHandle(TBufHandle, uint8_t num, uint32_t len, Line line = Line(__builtin_LINE())) { buffers_.open(num, len, depth, line); }
    template <class Pool>
    void InitBufHandle(Pool*, uint32_t index, TBufHandle, uint32_t address, uint32_t)
    {
        buffers_.place(index, address);
    }

private:
    static constexpr tile_sim::PipePair pipes = detail::pipes_between(src, dst);

    template <class T>
    LocalTensor<T> tensor(int64_t address) const
    {
        return LocalTensor<T>(home, {space_of(home), tile_sim::TypeOf<T>::value, address, address + buffers_.bytes()});
    }

    tile_sim::QueueBuffers buffers_;
};

template <TPosition position, int32_t depth, auto mask = 0>
class TQue : public TQueBind<detail::road(position, true), detail::road(position, false), depth, mask>
{
};

template <TPosition position, int32_t depth = 1, auto mask = 0>
using TSCM = TQueBind<position, TPosition::TSCM, depth, mask>;

template <TPosition position = TPosition::LCM>
class TBuf
{
public:
    static constexpr TPosition home = position;

    template <class T>
    LocalTensor<T> Get() const
    {
        return GetWithOffset<T>(uint32_t(bytes_ / int64_t(sizeof(T))), 0);
    }
    template <class T>
    LocalTensor<T> Get(uint32_t size, Line line = Line(__builtin_LINE())) const
    {
        return GetWithOffset<T>(size, 0, line);
    }
    template <class T>
    LocalTensor<T> GetWithOffset(uint32_t size, uint32_t offset, Line line = Line(__builtin_LINE())) const
    {
        const int64_t end = int64_t(offset) + int64_t(size) * int64_t(sizeof(T));
        if (end > bytes_)
            tile_sim::misuse("out_of_bounds", line, "the tensor ends at byte %lld of a TBuf of %lld bytes", (long long)end,
                             (long long)bytes_);
        return LocalTensor<T>(position, {space_of(position), tile_sim::TypeOf<T>::value, start_ + offset, start_ + end});
    }
    template <class T>
    LocalTensor<T> AllocTensor() const
    {
        return Get<T>();
    }
    template <class T>
    void FreeTensor(const LocalTensor<T>&) const
    {
    }
    void place(int64_t start, int64_t bytes) { start_ = start, bytes_ = bytes; }
    void InitStartBufHandle(TBufHandle, uint8_t, uint32_t len) { bytes_ = len; }
    template <class Pool>
    void InitBufHandle(Pool*, uint32_t, TBufHandle, uint32_t address, uint32_t)
    {
        start_ = address;
    }

private:
    int64_t start_ = 0, bytes_ = 0;
};

class TPipe
{
public:
    TPipe() { Init(); }
    ~TPipe()
    {
        if (current_ != this) return;
        give_l0(false);
        current_ = nullptr;
        tile_sim::reset_allocation(false);
    }
    void Init()
    {
        tile_sim::reset_allocation(true);
        current_ = this;
        give_l0(true);
    }
    template <class Queue>
    bool InitBuffer(Queue& queue, uint8_t num, uint32_t len, Line line = Line(__builtin_LINE()))
    {
        const int64_t each = detail::whole_blocks(len);
        queue.InitStartBufHandle(nullptr, num, uint32_t(each));
        for (uint32_t i = 0; i < num; ++i)
            queue.InitBufHandle(this, i, nullptr, uint32_t(tile_sim::allocate(space_of(Queue::home), each, line)), uint32_t(each));
        return true;
    }
    template <TPosition position>
    bool InitBuffer(TBuf<position>& buffer, uint32_t bytes, Line line = Line(__builtin_LINE()))
    {
        buffer.place(tile_sim::allocate(space_of(position), bytes, line), bytes);
        return true;
    }
    template <class Pool>
    bool InitBufPool(Pool& pool, uint32_t len, Line line = Line(__builtin_LINE()))
    {
        pool.piece.open(tile_sim::allocate(space_of(Pool::poolPos), len, line), len);
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
        tile_sim::reset_allocation(true);
    }
    void Destroy()
    {
        give_l0(false);
        tile_sim::pipe_barrier(tile_sim::Pipe::ALL, 0);
        tile_sim::reset_allocation(false);
    }

    template <HardEvent event>
    TEventID AllocEventID(Line line = Line(__builtin_LINE()))
    {
        const TEventID id = FetchEventID(event);
        if (id >= 8) tile_sim::misuse("flag_id", line, "all 8 event ids of this kind are allocated");
        taken_[int(event)] |= uint8_t(1u << id);
        return id;
    }
    template <HardEvent event>
    void ReleaseEventID(TEventID id)
    {
        taken_[int(event)] &= uint8_t(~(1u << id));
    }
    template <HardEvent event>
    TEventID FetchEventID() const
    {
        return FetchEventID(event);
    }
    TEventID FetchEventID(HardEvent event) const
    {
        TEventID id = 0;
        while (taken_[int(event)] >> id & 1) ++id;
        return id;
    }
    static TPipe* current() { return current_; }

private:
    // Matmul objects find L0 and the table of biases given to them (M_MTE1, 0 to 2), and leave them so.
    void give_l0([[maybe_unused]] bool begins, [[maybe_unused]] int line = 0)
    {
#ifdef TILE_SIM_MATMUL
        if (!tile_sim::is_aic() || begins == given_) return;
        for (const TEventID id : {0, 1, 2})
            begins ? tile_sim::set_flag(tile_sim::Pipe::M, tile_sim::Pipe::MTE1, id, line)
                   : tile_sim::wait_flag(tile_sim::Pipe::M, tile_sim::Pipe::MTE1, id, line);
        given_ = begins;
        taken_[int(HardEvent::M_MTE1)] = begins ? 7 : 0;
#endif
    }

    bool given_ = false;
    uint8_t taken_[64] = {};
    inline static thread_local TPipe* current_ = nullptr;
};


// A flag with a name: one direction between two pipes.
template <pipe_t src, pipe_t dst>
class TQueSync
{
public:
    void SetFlag(TEventID id, Line line = Line(__builtin_LINE()))
    {
        tile_sim::set_flag(tile_sim::pipe_of(src), tile_sim::pipe_of(dst), id, line);
    }
    void WaitFlag(TEventID id, Line line = Line(__builtin_LINE()))
    {
        tile_sim::wait_flag(tile_sim::pipe_of(src), tile_sim::pipe_of(dst), id, line);
    }
};

}  // namespace AscendC

inline AscendC::TPipe* GetTPipePtr() { return AscendC::TPipe::current(); }
