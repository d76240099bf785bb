import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def embedding(tokens=100, rows=1000, width=256, BLOCK=16):
    @T.prim_func
    def embedding(
        W: T.Tensor((rows, width), "float16"), ids: T.Tensor((tokens,), "int32"), Y: T.Tensor((tokens, width), "float16")
    ):
        with T.Kernel(T.ceildiv(tokens, BLOCK)) as pid:
            y = T.alloc_shared((BLOCK, width), "float16")
            for i in range(BLOCK):
                T.copy(W[ids[pid * BLOCK + i], 0:width], y[i, 0:width])
            T.copy(y, Y[pid * BLOCK, 0])

    return embedding
