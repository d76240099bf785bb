// How long a run may compute: seconds of processor time, of all its processes together, so that a busy machine changes no verdict.
#pragma once

namespace tile_sim
{

void limit_time(double seconds);  // the process ends by SIGPROF when they are used up
void begin_workers();             // called by their parent
void limit_worker_time();         // a worker has what its parent has left
void count_worker_time();         // called by the parent when its workers have ended
[[noreturn]] void end_late();

}  // namespace tile_sim
