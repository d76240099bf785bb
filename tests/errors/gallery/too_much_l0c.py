import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
@T.prim_func
def gemm(A: T.Tensor((256, 256), "float16"), B: T.Tensor((256, 1024), "float16"), C: T.Tensor((256, 1024), "float16")):
    with T.Kernel(4, 1) as (i, j):
        a = T.alloc_L1((64, 64), "float16")
        b = T.alloc_L1((64, 1024), "float16")
        c = T.alloc_L0C((64, 1024), "float32")
        for k in T.serial(4):
            T.copy(A[i * 64, k * 64], a)
            T.copy(B[k * 64, j * 1024], b)
            T.barrier_all()
            T.gemm_v0(a, b, c, init=(k == 0))
            T.barrier_all()
        T.copy(c, C[i * 64, j * 1024])
