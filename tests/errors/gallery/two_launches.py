import tile_eg
import tile_eg.language as T


@tile_eg.jit
def rows(X):
    X: T.Tensor((64, 128), "float32")
    Y = T.empty((64, 128), "float32")
    with T.Kernel(1) as b:
        x = T.alloc_shared((64, 128), "float32")
        T.copy(X[b, 0], x)
    with T.Kernel(1) as b:
        x[:, :] = x * 2.0
        T.copy(x, Y[b, 0])
    return Y
