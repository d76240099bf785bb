"""Small hand-written files: a kernel in queue style, one with a main, and specs for them."""

from __future__ import annotations

from pathlib import Path

from tile_eg.simulator.asc_file import AscFile
from tile_eg.simulator.findings import Simulation
from tile_eg.simulator.kernel_run import run_kernel
from tile_eg.simulator.program import Options, run_program
from tile_eg.simulator.spec import read_spec

QUEUES = """#include "kernel_operator.h"
struct Tiling { uint32_t total; uint32_t tiles; float scale; };
extern "C" __global__ __aicore__ void scaled(GM_ADDR x, GM_ADDR z, Tiling t)
{
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> in;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> out;
    const uint32_t each = t.total / AscendC::GetBlockNum(), tile = each / t.tiles;
    AscendC::GlobalTensor<float> gx, gz;
    gx.SetGlobalBuffer((__gm__ float*)x + AscendC::GetBlockIdx() * each, each);
    gz.SetGlobalBuffer((__gm__ float*)z + AscendC::GetBlockIdx() * each, each);
    pipe.InitBuffer(in, 2, tile * sizeof(float));
    pipe.InitBuffer(out, 2, tile * sizeof(float));
    for (uint32_t i = 0; i < t.tiles; ++i) {
        auto a = in.AllocTensor<float>();
        AscendC::DataCopy(a, gx[i * tile], tile);
        in.EnQue(a);
        a = in.DeQue<float>();
        auto c = out.AllocTensor<float>();
        AscendC::Muls(c, a, t.scale, tile);
        out.EnQue(c);
        in.FreeTensor(a);
        c = out.DeQue<float>();
        AscendC::DataCopy(gz[i * tile], c, tile);
        out.FreeTensor(c);
    }
}
"""

SPEC = """blocks = 2
[[arguments]]
name = "x"
shape = [2048]
generator = "arange"
[[arguments]]
name = "z"
shape = [2048]
output = true
[[arguments]]
fields = {total = 2048, tiles = 4, scale = 0.5}
"""

MAIN = """#include <cstdio>
#include "acl/acl.h"
#include "kernel_operator.h"

template <typename T, uint32_t LENGTH>
__global__ __vector__ void doubled(__gm__ T* x, __gm__ T* z)
{
    AscendC::LocalMemAllocator<AscendC::Hardware::UB> ub;
    AscendC::LocalTensor<T> a = ub.Alloc<T, LENGTH>();
    AscendC::GlobalTensor<T> gx, gz;
    gx.SetGlobalBuffer(x + AscendC::GetBlockIdx() * LENGTH);
    gz.SetGlobalBuffer(z + AscendC::GetBlockIdx() * LENGTH);
    AscendC::DataCopy(a, gx, LENGTH);
    AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID0);
    AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID0);
    AscendC::Add(a, a, a, LENGTH);
    AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID0);
    AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID0);
    AscendC::DataCopy(gz, a, LENGTH);
}

int main(int argc, char** argv)
{
    constexpr uint32_t length = 64;
    float host[2 * length];
    for (uint32_t i = 0; i < 2 * length; ++i) host[i] = float(i);
    float *xDevice, *zDevice;
    aclrtStream stream;
    aclInit(nullptr);
    aclrtCreateStream(&stream);
    aclrtMalloc((void**)&xDevice, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc((void**)&zDevice, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(xDevice, sizeof host, host, sizeof host, ACL_MEMCPY_HOST_TO_DEVICE);
    doubled<float, length><<<2, 0, stream>>>(
        xDevice, zDevice);
    aclrtSynchronizeStream(stream);
    aclrtMemcpy(host, sizeof host, zDevice, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST);
    printf("last %g\\n", host[2 * length - 1]);
    return host[1] == 2 ? 0 : 3;
}
"""


def file_of(folder: Path, source: str) -> AscFile:
    path = folder / "k.asc"
    path.write_text(source)
    return AscFile(path, source)


def launched(folder: Path, source: str = QUEUES, spec: str = SPEC, **options: object) -> Simulation:
    (folder / "spec.toml").write_text(spec)
    return run_kernel(file_of(folder, source), read_spec(folder / "spec.toml"), Options(**options))  # type: ignore[arg-type]


def ran(folder: Path, source: str = MAIN, **options: object) -> Simulation:
    return run_program(file_of(folder, source), Options(**options))  # type: ignore[arg-type]


def without(source: str, *parts: str) -> str:
    """The text without these parts, each of which it has."""
    for part in parts:
        assert part in source
        source = source.replace(part, "", 1)
    return source
