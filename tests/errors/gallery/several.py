import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
@T.prim_func
def gemm(A: T.Tensor((256, 256), "float16"), B: T.Tensor((256, 256), "float16"), C: T.Tensor((256, 256), "float16")):
    with T.Kernel(4, 2) as (i, j):
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 128), "float61")
        c = T.alloc_fragment((64, 128), "float32")
        T.clear(cc)
        for k in T.Pipelined(4):
            T.copy(A[i * 64, k * 64], a)
            T.copy(B[k * 64, j * 128], b)
            T.gemm(a, a, c)
        T.copy(c, C[i * 64, j * 128, 0])
