import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
@T.prim_func
def gemm(A: T.Tensor((256, 8192), "float16"), B: T.Tensor((8192, 256), "float16"), C: T.Tensor((256, 256), "float16")):
    with T.Kernel(4, 2) as (i, j):
        a = T.alloc_L1((64, 2048), "float16")
        b = T.alloc_L1((2048, 128), "float16")
        c = T.alloc_L0C((64, 128), "float32")
        for k in T.serial(4):
            T.copy(A[i * 64, k * 2048], a)
            T.copy(B[k * 2048, j * 128], b)
            T.barrier_all()
            T.gemm_v0(a, b, c, init=(k == 0))
            T.barrier_all()
        T.copy(c, C[i * 64, j * 128])
