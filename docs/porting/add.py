import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def add(BLOCK_SIZE=1024):
    n = T.symbolic("n")  # each call tells it

    @T.prim_func
    def add(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32"), OUT: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, BLOCK_SIZE)) as pid:
            x = T.alloc_shared((BLOCK_SIZE,), "float32")
            y = T.alloc_shared((BLOCK_SIZE,), "float32")
            T.copy(X[pid * BLOCK_SIZE], x)
            T.copy(Y[pid * BLOCK_SIZE], y)
            T.copy(x + y, OUT[pid * BLOCK_SIZE])

    return add


if __name__ == "__main__":
    kernel = add()
    for n in (98432, 1000):
        x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
        print(n, "elements: largest error", np.abs(kernel(x, y) - (x + y)).max())
