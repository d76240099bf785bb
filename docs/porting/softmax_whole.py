import tile_eg
import tile_eg.language as T


@tile_eg.jit
def softmax(X: T.Tensor((200, 781), "float32")):
    e = T.exp(X - T.max(X, axis=1, keepdims=True))
    return e / T.sum(e, axis=1, keepdims=True)
