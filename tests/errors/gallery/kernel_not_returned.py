import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def rows(M=256):
    @T.prim_func
    def rows(X: T.Tensor((M, 128), "float32"), Y: T.Tensor((M, 128), "float32")):
        with T.Kernel(M // 64) as b:
            T.copy(X[b * 64 : b * 64 + 64, :], Y[b * 64, 0])


rows()
