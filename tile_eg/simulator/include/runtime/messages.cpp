// Messages of Matmul objects: from the vector cores of a block to its cube core, and the cube core's answers. They go by flags
// between two cores (mode 4), which other kernels of 2201 do not have.
#include "host.h"
#include "schedule.h"

namespace tile_sim
{
namespace
{

thread_local int64_t in_vain = 0;  // questions for a message since the last one that there was
int64_t posts = 0;
uint8_t* own_workspace = nullptr;

}  // namespace

uint8_t* system_workspace()
{
    constexpr int64_t room = int64_t(64) << 20;
    if (!own_workspace) own_workspace = static_cast<uint8_t*>(device_malloc(size_t(room), "workspace_of_the_system"));
    return own_workspace;
}

uint8_t* system_workspace(const void* given, int64_t nth, int64_t bytes, int line)
{
    const int64_t address = gm_address(given, line) + nth * bytes;
    if (address + bytes > gm_end(gm_address(given, line)))
        misuse("out_of_bounds", line, "Matmul objects of vector cores need %lld bytes of workspace for each vector core",
               (long long)bytes);
    return gm_pointer(address);
}

void wait_for_zero(const uint32_t* word, const char* what, int line)
{
    wait_until({[word] { return *static_cast<const volatile uint32_t*>(word) == 0; }, [what] { return std::string(what); }}, line);
}

int64_t vector_cores() { return machine.vector_cores(); }

void post_message(int line)
{
    ++posts;
    set_between(Pipe::MTE3, message_posted, line);
}

bool take_message(int64_t core, int64_t cores, int line)
{
    const int64_t id = message_posted + 16 * core;
    if (has_come(id)) {
        in_vain = 0;
        wait_between(id, line);
        return true;
    }
    if (++in_vain < cores) return false;
    const auto come = [before = posts] { return posts != before; };
    wait_until({come, [] { return std::string("waits for a message of a Matmul object, and no vector core posts one"); }}, line);
    return false;
}

void put_message_back() { ++in_vain; }

}  // namespace tile_sim
