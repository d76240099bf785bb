// What the host side may ask of the chip.
#pragma once
#include <cstdint>

#include "../../runtime/host.h"

#ifdef __NPU_ARCH__
#define TILE_SIM_ARCHITECTURE __NPU_ARCH__
#endif

enum class NpuArch : uint32_t {
    DAV_2002 = 2002,
    DAV_2201 = 2201,
    DAV_3002 = 3002,
    DAV_3003 = 3003,
    DAV_3102 = 3102,
    DAV_3113 = 3113,
    DAV_3510 = 3510,
    DAV_5102 = 5102
};

namespace platform_ascendc
{

enum class CoreMemType { L0_A, L0_B, L0_C, L1, L2, UB, HBM, FB, BT, RESERVED };
enum class SocVersion {
    ASCEND910,
    ASCEND910B,
    ASCEND310P,
    ASCEND310B,
    ASCEND950,
    ASCEND910_95 = ASCEND950,
    ASCEND910_93,
    ASCEND350,
    RESERVED_VERSION = 99999
};

class PlatformAscendC
{
public:
    uint32_t GetCoreNum() const { return uint32_t(tile_sim::cube_cores()); }
    uint32_t GetCoreNumAic() const { return uint32_t(tile_sim::cube_cores()); }
    uint32_t GetCoreNumAiv() const { return uint32_t(2 * tile_sim::cube_cores()); }
    uint32_t GetVectorCoreNum() const { return GetCoreNumAiv(); }
    uint32_t GetCoreNumVector() const { return 0; }  // of chips with vector cores beside the AI cores
    SocVersion GetSocVersion() const { return TILE_SIM_ARCHITECTURE == 3510 ? SocVersion::ASCEND950 : SocVersion::ASCEND910B; }
    NpuArch GetCurNpuArch() const { return NpuArch(TILE_SIM_ARCHITECTURE); }
    uint32_t GetVecRegLen() const { return 256; }
    uint32_t GetLibApiWorkSpaceSize() const { return 16u << 20; }
    void GetCoreMemSize(CoreMemType type, uint64_t& bytes) const
    {
        using tile_sim::Space;
        constexpr Space spaces[] = {Space::L0A, Space::L0B, Space::L0C, Space::L1, Space::GM,
                                    Space::UB,  Space::GM,  Space::FB,  Space::BT};
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
