import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
@T.prim_func
def rows(X: T.Tensor((256, 128), "float32"), Y: T.Tensor((256, 48), "float32")):
    with T.Kernel(4) as b:
        x = T.alloc_shared((64, 128), "float32")
        s = T.alloc_shared((64, 48), "float32")
        t = T.alloc_shared((64, 48), "float32")
        T.clear(s)
        T.clear(x)
        for k in T.serial(3):
            T.copy(X[b * 64, k * 48], t)
            T.tile.add(s, s, t)
        T.copy(s, Y[b * 64, 0])
