// Where blocks meet: barriers of all cores, signals between two vector cores, turns in the order of the blocks, groups.
#pragma once
#include "sync.h"
#include "tensor.h"

namespace AscendC
{

// All cores of all blocks, or all vector cores, come here before one goes on; all pipes have finished what came before.
template <bool isAIVOnly = true>
void SyncAll(Line line = Line(__builtin_LINE()))
{
    tile_sim::sync_all(isAIVOnly, line);
}
template <bool isAIVOnly = true>
void SyncAll(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace, int32_t usedCores = 0,
             Line line = Line(__builtin_LINE()))
{
    static_assert(isAIVOnly, "SyncAll with a workspace is for vector cores only");
    tile_sim::sync_all_by_memory(gmWorkspace.operand(), ubWorkspace.operand(), usedCores, line);
}

template <bool isAIVOnly = true>
void IBSet(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace, int32_t blockIdx, int32_t eventID,
           Line line = Line(__builtin_LINE()))
{
    tile_sim::block_set(gmWorkspace.operand(), ubWorkspace.operand(), blockIdx, eventID, line);
}
template <bool isAIVOnly = true>
void IBWait(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace, int32_t blockIdx, int32_t eventID,
            Line line = Line(__builtin_LINE()))
{
    tile_sim::block_wait(gmWorkspace.operand(), ubWorkspace.operand(), blockIdx, eventID, line);
}

inline void InitDetermineComputeWorkspace(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace,
                                          Line line = Line(__builtin_LINE()))
{
    tile_sim::sequence_begin(gmWorkspace.operand(), ubWorkspace.operand(), line);
}
inline void WaitPreBlock(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace,
                         Line line = Line(__builtin_LINE()))
{
    tile_sim::sequence_wait(gmWorkspace.operand(), ubWorkspace.operand(), line);
}
inline void NotifyNextBlock(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace,
                            Line line = Line(__builtin_LINE()))
{
    tile_sim::sequence_pass(gmWorkspace.operand(), ubWorkspace.operand(), line);
}

enum class PipeMode : uint8_t { SCALAR_MODE, MTE3_MODE, MAX };

// Some vector cores arrive, others wait until all of them have.
template <PipeMode pipeMode>
class GroupBarrier
{
    static_assert(pipeMode == PipeMode::MTE3_MODE, "GroupBarrier takes MTE3_MODE only");

public:
    GroupBarrier(GM_ADDR groupWorkspace, uint32_t arriveSizeIn, uint32_t waitSizeIn, Line line = Line(__builtin_LINE()))
        : shape_{tile_sim::gm_address(groupWorkspace, line), arriveSizeIn, waitSizeIn}
    {
    }
    void Arrive(uint32_t arriveIndex, Line line = Line(__builtin_LINE())) { tile_sim::group_arrive(shape_, arriveIndex, line); }
    void Wait(uint32_t waitIndex, Line line = Line(__builtin_LINE())) { tile_sim::group_wait(shape_, waitIndex, line); }
    uint64_t GetWorkspaceLen() const { return uint64_t(shape_.wait) * 512; }

private:
    tile_sim::GroupShape shape_;
};

}  // namespace AscendC
