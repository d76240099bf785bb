// What a confined process may open: a Landlock ruleset. The numbers are those of linux/landlock.h, which older systems lack.
#include "confine.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __NR_landlock_create_ruleset  // the same on every architecture
#define __NR_landlock_create_ruleset 444
#define __NR_landlock_add_rule 445
#define __NR_landlock_restrict_self 446
#endif

namespace tile_sim
{
namespace
{

enum : uint64_t {
    execute = 1 << 0,
    write_file = 1 << 1,
    read_file = 1 << 2,
    read_folder = 1 << 3,
    remove_folder = 1 << 4,
    remove_file = 1 << 5,
    make_folder = 1 << 7,
    make_file = 1 << 8,
    refer = 1 << 13,
    truncate_file = 1 << 14,
    control_device = 1 << 15,
};
constexpr uint64_t of_files = execute | write_file | read_file | truncate_file | control_device;  // the rest is about folders
constexpr uint64_t to_read = read_file | read_folder;
constexpr uint64_t to_write = to_read | write_file | truncate_file | remove_folder | remove_file | make_folder | make_file | refer;

struct Ruleset {
    uint64_t files, network, scopes;
};
struct __attribute__((packed)) Beneath {
    uint64_t allowed;
    int32_t folder;
};

// Everything that a version of Landlock can refuse.
Ruleset everything(int version)
{
    uint64_t files = (uint64_t(1) << 13) - 1;
    if (version >= 2) files |= refer;
    if (version >= 3) files |= truncate_file;
    if (version >= 5) files |= control_device;
    return {files, version >= 4 ? uint64_t(3) : 0, version >= 6 ? uint64_t(3) : 0};  // bind and connect; sockets by name, signals
}

// What the C and C++ libraries and the loader read by themselves.
constexpr const char* readable[] = {"/usr", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/etc/locale.alias",
                                    "/proc/self", "/proc/sys", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system",
                                    "/sys/fs/cgroup", "/sys/kernel/mm", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"};

class Rules
{
public:
    explicit Rules(int version) : all_(everything(version)), rules_(int(syscall(__NR_landlock_create_ruleset, &all_, sizeof all_, 0))) {}
    ~Rules()
    {
        if (rules_ >= 0) close(rules_);
    }
    // What is not there cannot be opened either.
    void allow(const std::string& path, uint64_t how) const
    {
        const int at = open(path.c_str(), O_PATH | O_CLOEXEC);
        if (at < 0) return;
        struct stat what{};
        const bool folder = !fstat(at, &what) && S_ISDIR(what.st_mode);
        const Beneath rule{how & all_.files & (folder ? ~uint64_t(0) : of_files), at};
        syscall(__NR_landlock_add_rule, rules_, 1, &rule, 0);
        close(at);
    }
    bool restrict_self() const { return rules_ >= 0 && !syscall(__NR_landlock_restrict_self, rules_, 0); }

private:
    Ruleset all_;
    int rules_;
};

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

// The folders of the libraries that are loaded: a library may need one that lies beside them.
int allow_folder(dl_phdr_info* loaded, size_t, void* rules)
{
    const std::string path = loaded->dlpi_name ? loaded->dlpi_name : "";
    if (path.rfind('/', 0) == 0 && path.find(".so") != std::string::npos) static_cast<const Rules*>(rules)->allow(folder_of(path), to_read);
    return 0;
}

}  // namespace

int landlock_version() { return int(syscall(__NR_landlock_create_ruleset, nullptr, 0, 1)); }

bool confine_files(const Grants& grants, const char* library)
{
    const Rules rules(landlock_version());
    for (const char* path : readable) rules.allow(path, to_read);
    rules.allow(library, read_file);
    rules.allow("/dev/null", read_file | write_file);
    dl_iterate_phdr(allow_folder, const_cast<Rules*>(&rules));
    for (const std::string& path : grants.reads) rules.allow(path, to_read);
    for (const std::string& path : grants.writes) rules.allow(path, to_write);
    return rules.restrict_self();
}

}  // namespace tile_sim

#endif
