import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def softmax(n_rows=200, n_cols=781, BLOCK_ROWS=16):
    @T.prim_func
    def softmax(X: T.Tensor((n_rows, n_cols), "float32"), Y: T.Tensor((n_rows, n_cols), "float32")):
        with T.Kernel(T.ceildiv(n_rows, BLOCK_ROWS)) as pid:
            x = T.alloc_shared((BLOCK_ROWS, n_cols), "float32")
            m = T.alloc_fragment((BLOCK_ROWS,), "float32")
            s = T.alloc_fragment((BLOCK_ROWS,), "float32")
            T.copy(X[pid * BLOCK_ROWS, 0], x)
            T.reduce_max(x, m, dim=1)
            x[:, :] = T.exp(x - m[:, None])
            T.reduce_sum(x, s, dim=1)
            x[:, :] = x / s[:, None]
            T.copy(x, Y[pid * BLOCK_ROWS, 0])

    return softmax
