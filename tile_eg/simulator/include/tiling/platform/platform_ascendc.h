// What the host side may ask of the chip.
#pragma once
#include <cstdint>

#include "../../runtime/host.h"

namespace platform_ascendc
{

enum class CoreMemType { L0_A, L0_B, L0_C, L1, L2, UB, HBM };
enum class SocVersion { ASCEND910B, ASCEND910_93 };

class PlatformAscendC
{
public:
    uint32_t GetCoreNum() const { return uint32_t(tile_sim::cube_cores()); }
    uint32_t GetCoreNumAic() const { return uint32_t(tile_sim::cube_cores()); }
    uint32_t GetCoreNumAiv() const { return uint32_t(2 * tile_sim::cube_cores()); }
    uint32_t GetVectorCoreNum() const { return GetCoreNumAiv(); }
    SocVersion GetSocVersion() const { return SocVersion::ASCEND910B; }
    uint32_t GetLibApiWorkSpaceSize() const { return 16u << 20; }
    void GetCoreMemSize(CoreMemType type, uint64_t& bytes) const
    {
        using tile_sim::Space;
        constexpr Space spaces[] = {Space::L0A, Space::L0B, Space::L0C, Space::L1, Space::GM, Space::UB, Space::GM};
        bytes = uint64_t(tile_sim::capacity(spaces[int(type)]));
    }
};

class PlatformAscendCManager
{
public:
    static PlatformAscendC* GetInstance(const char* = nullptr)
    {
        static PlatformAscendC chip;
        return &chip;
    }
};

}  // namespace platform_ascendc
