// What the Ascend C headers ask of the runtime where cores and blocks meet: flags between cores, barriers of all blocks, signals by way
// of GM.
#pragma once
#include "interface.h"

namespace tile_sim
{

// cross.cpp
void cross_set(int mode, Pipe pipe, int64_t id, int line);
void cross_wait(int mode, Pipe pipe, int64_t id, int line);

// meet.cpp. `gm` and `ub` are the workspaces: who uses the same one meets.
void sync_all(bool vector_only, int line);
void sync_all_by_memory(Operand gm, Operand ub, int64_t cores, int line);  // cores = 0: all vector cores
void block_set(Operand gm, Operand ub, int64_t block, int64_t event, int line);
void block_wait(Operand gm, Operand ub, int64_t block, int64_t event, int line);
void sequence_begin(Operand gm, Operand ub, int line);
void sequence_wait(Operand gm, Operand ub, int line);
void sequence_pass(Operand gm, Operand ub, int line);
struct GroupShape {
    int64_t address, arrive, wait;  // in GM; how many vector cores arrive, and how many wait
};
void group_arrive(GroupShape shape, int64_t index, int line);
void group_wait(GroupShape shape, int64_t index, int line);

// fill_gm.cpp
void fill_gm(Operand dst, int64_t count, uint64_t bits, int line);

}  // namespace tile_sim
