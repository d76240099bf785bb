// A simulated kernel does not outlive the process that called the simulator: the time that it may take is counted there.
#pragma once

#include <sys/types.h>

namespace tile_sim
{

void end_with(pid_t parent);  // this process ends when its parent does, or now where that has happened

}  // namespace tile_sim
