// What the Ascend C headers ask of the runtime where cores and blocks meet: flags between cores, barriers of all blocks, signals by way
// of GM.
#pragma once
#include "interface.h"

namespace tile_sim
{

// cross.cpp
void cross_set(int mode, Pipe pipe, int64_t id, int line);
void cross_wait(int mode, Pipe pipe, int64_t id, int line);

// The flags of mode 4, between a cube core and one vector core: AIC counts those of the second vector core from 16 on.
void set_between(Pipe pipe, int64_t id, int line);
void wait_between(int64_t id, int line, Pipe pipe = Pipe::S);
bool has_come(int64_t id);

// messages.cpp: what Matmul objects of vector cores tell the cube core of their block.
constexpr int64_t pieces_freed = 8, message_posted = 10;  // of these flags; those of the objects are 0 to 7
uint8_t* system_workspace();  // nullptr: there is no room
uint8_t* system_workspace(const void* given, int64_t nth, int64_t bytes, int line);  // the part of the nth vector core
int64_t vector_cores();                                                              // of a block
void wait_for_zero(const uint32_t* word, const char* what, int line);
void post_message(int line);
// Whether vector core `core` of `cores` has posted one. Who has asked all of them in vain stands still until one posts.
bool take_message(int64_t core, int64_t cores, int line);
void put_message_back();

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
