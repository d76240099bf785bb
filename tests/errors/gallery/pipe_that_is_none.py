import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
@T.prim_func
def add(X: T.Tensor((128, 128), "float32"), Z: T.Tensor((128, 128), "float32"), Y: T.Tensor((128, 128), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        x = T.alloc_ub((64, 128), "float32")
        z = T.alloc_ub((64, 128), "float32")
        with T.Scope("V"):
            T.copy(X[vid * 64, 0], x)
            T.copy(Z[vid * 64, 0], z)
            T.set_flag("mte2", "v", 0)
            T.wait_flag("mte2", "v", 0)
            T.tile.add(x, x, z)
            T.set_flag("vec", "mte3", 0)
            T.wait_flag("v", "mte3", 0)
            T.copy(x, Y[vid * 64, 0])
