// The PyTorch operator torch.ops.tile_eg.@NAME@ on NPU tensors, by lib@NAME@. Written by tile_eg.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>
#include "torch_npu/csrc/core/npu/NPUStream.h"
#include "@NAME@.h"

namespace
{

at::Tensor taken(const at::Tensor& x, const char* name, at::ScalarType type, at::IntArrayRef shape, at::Device device)
{
    TORCH_CHECK(x.device().is_privateuseone(), name, " is on ", x.device(), ", and this operator is for the NPU");
    TORCH_CHECK(x.device() == device, name, " is on ", x.device(), ", and other tensors are on ", device);
    TORCH_CHECK(x.scalar_type() == type, name, " is ", x.scalar_type(), ", and has to be ", type);
    TORCH_CHECK(x.sizes() == shape, name, " has the shape ", x.sizes(), ", and has to have ", shape);
    TORCH_CHECK(!x.requires_grad() || !at::GradMode::is_enabled(), name, " requires a gradient, and this operator has none");
    if (!x.is_contiguous()) {
        TORCH_WARN(name, " is not contiguous, and is copied for the call");
    }
    return x.contiguous();
}

@RETURNS@ launched(@PARAMETERS@)
{
@BODY@
}

@RETURNS@ shapes(@PARAMETERS@)
{
@META@
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(tile_eg, m) { m.def("@NAME@(@SCHEMA@) -> @SCHEMA_RETURNS@"); }
TORCH_LIBRARY_IMPL(tile_eg, PrivateUse1, m) { m.impl("@NAME@", launched); }
TORCH_LIBRARY_IMPL(tile_eg, Meta, m) { m.impl("@NAME@", shapes); }
