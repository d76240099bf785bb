// What Matmul objects of vector cores need below the vendor's templates: messages from a vector core to the cube core of its block,
// pieces of GM that go with them, and the cube core's answers. On the hardware both sides poll numbers in the system's workspace.
#pragma once
#include <exception>

#include "devkit.h"
#include "impl/basic_api/dav_c220/kfc/kfc_comm.h"

namespace AscendC
{
namespace detail
{
constexpr uint32_t message_slots = 8;

// What a vector core has in the system's workspace.
struct VectorCoreWorkspace {
    KfcMsg slots[message_slots];
    uint32_t freed[32];  // up to where pieces are free again, in the order of the answers
    alignas(512) uint8_t pieces[WORKSPACE_UB_SIZE];
};
inline VectorCoreWorkspace* workspace_of(GM_ADDR workspace, int64_t sub_block, Line line)
{
    const int64_t block = tile_sim::is_aic() ? GetBlockIdx() : GetBlockIdx() / tile_sim::vector_cores();
    return reinterpret_cast<VectorCoreWorkspace*>(
        tile_sim::system_workspace(workspace, block * MIX_NUM + sub_block, sizeof(VectorCoreWorkspace), line));
}
}  // namespace detail

class KfcCommClient
{
public:
    KfcMsg* ubMsg = &staged_;

    KfcCommClient(GM_ADDR workspace, int sub_block, uint8_t no_messages = 0, Line line = Line(__builtin_LINE()))
        : quiet_(no_messages || !tile_sim::is_aiv()), line_(line)
    {
        if (quiet_) return;
        own_ = detail::workspace_of(workspace, sub_block, line);
        for (KfcMsg& slot : own_->slots) slot.head = 0;
    }
    KfcCommClient(const KfcCommClient&) = delete;
    ~KfcCommClient() noexcept(false)
    {
        if (quiet_ || std::uncaught_exceptions()) return;
        staged_.head = KfcMsgMakeFlag(KFC_Enum::SERVICE_QUIT, 0), staged_.ubAddr = int32_t(tile_sim::vector_cores());
        PostMessage<false>(AllocMessage(), line_);
    }

    KfcMsg* AllocMessage() { return &own_->slots[next_++ % detail::message_slots]; }
    template <bool isAck>
    void PostMessage(KfcMsg* message, Line line = Line(__builtin_LINE()))
    {
        tile_sim::wait_for_zero(&message->head, "waits to post a message to AIC, which takes none of those before it", line);
        *message = staged_;
        tile_sim::post_message(line);
    }

    // A piece of GM, in turns; `tail` is what says that it is free again.
    GM_ADDR AllocUB(uint32_t size, int32_t& tail, Line line = Line(__builtin_LINE()))
    {
        while (tile_sim::has_come(tile_sim::pieces_freed)) take_freed(line);
        if (head_ + size >= WORKSPACE_UB_SIZE) {
            while (head_ < tail_ || tail_ == 0) take_freed(line);
            if (tail_ == head_ && size == tail_) tail_ = 0;
            head_ = 0;
        }
        while (head_ < tail_ && head_ + size >= tail_) take_freed(line);
        uint8_t* const piece = own_->pieces + head_;
        tail = int32_t(head_ += size);
        return piece;
    }

private:
    void take_freed(Line line)
    {
        tile_sim::wait_between(tile_sim::pieces_freed, line);
        tail_ = own_->freed[answers_++ % 32];
    }

    bool quiet_;
    Line line_;
    detail::VectorCoreWorkspace* own_ = nullptr;
    KfcMsg staged_;
    uint32_t next_ = 0, answers_ = 0, head_ = 0, tail_ = 0;
};

class KfcCommServer
{
public:
    uint8_t subBlockID = 0;

    void Init(GM_ADDR workspace, int sub_block, Line line = Line(__builtin_LINE()))
    {
        subBlockID = uint8_t(sub_block), own_ = detail::workspace_of(workspace, sub_block, line);
    }

    // The next message of this vector core; none: nullptr. A core that has asked all vector cores in vain stands still.
    KfcMsg* RcvMessage(Line line = Line(__builtin_LINE()))
    {
        KfcMsg* const message = &own_->slots[next_ % detail::message_slots];
        if (!put_back_ && !tile_sim::take_message(subBlockID, MIX_NUM, line)) return nullptr;
        put_back_ = false, ++next_;
        return message;
    }
    void FreeMessage(KfcMsg* message) { message->head = 0; }
    void RollBackMsg()
    {
        put_back_ = true, --next_;
        tile_sim::put_message_back();
    }
    void FreeUB(int32_t tail, Line line = Line(__builtin_LINE()))
    {
        own_->freed[answers_++ % 32] = uint32_t(tail);
        tile_sim::set_between(tile_sim::Pipe::MTE2, tile_sim::pieces_freed + 16 * subBlockID, line);
    }

private:
    detail::VectorCoreWorkspace* own_ = nullptr;
    uint32_t next_ = 0, answers_ = 0;
    bool put_back_ = false;
};
using KFC_COMM_SERVER_PTR = KfcCommServer*;
#define KFC_COMM_SERVER KfcCommServer

inline void ScmDataCopy(void*) { tile_sim::misuse("unsupported", 0, "copies into L1 by a message are not simulated"); }
inline void ScmDataCopyND2NZ(void* message) { ScmDataCopy(message); }
inline void ClearWorkspaceImpl(GM_ADDR) {}  // each vector core clears its own part
template <class T>
uint64_t GetAbsAddr(TPipe*, const LocalTensor<T>& tensor)
{
    return uint64_t(tensor.GetPhyAddr());
}

inline thread_local KfcCommClient* g_kfcClient = nullptr;
inline KfcCommClient* GetKfcClient() { return g_kfcClient; }

// An answer to the vector core that an event belongs to (events of an object: one for each), or to both.
template <pipe_t pipe, bool both>
void AnswerVectorCore(uint16_t event, Line line = Line(__builtin_LINE()))
{
    for (int core = 0; core < tile_sim::vector_cores(); ++core)
        if (both || core == event % 2) tile_sim::set_between(tile_sim::pipe_of(pipe), event / 2 + 16 * core, line);
}
inline void WaitForCubeCore(uint16_t event, Line line = Line(__builtin_LINE())) { tile_sim::wait_between(event / 2, line); }

}  // namespace AscendC
