import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def matmul(M=500, N=384, K=300, BLOCK_M=T.auto, BLOCK_N=T.auto, BLOCK_K=T.auto):
    @T.prim_func
    def matmul(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, BLOCK_M), T.ceildiv(N, BLOCK_N)) as (pid_m, pid_n):
            a = T.alloc_shared((BLOCK_M, BLOCK_K), "float16")
            b = T.alloc_shared((BLOCK_K, BLOCK_N), "float16")
            acc = T.alloc_fragment((BLOCK_M, BLOCK_N), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, BLOCK_K)):
                T.copy(A[pid_m * BLOCK_M, k * BLOCK_K], a)
                T.copy(B[k * BLOCK_K, pid_n * BLOCK_N], b)
                T.gemm(a, b, acc)
            acc[:, :] = T.where(acc >= 0, acc, 0.01 * acc)
            T.copy(acc, C[pid_m * BLOCK_M, pid_n * BLOCK_N])

    return matmul
