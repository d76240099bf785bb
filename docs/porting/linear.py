import tile_eg as tilelang
import tile_eg.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def linear(M=300, N=512, K=256, block_M=128, block_N=128, block_K=64):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        bias: T.Tensor((N,), "float32"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(M, block_M) * T.ceildiv(N, block_N), is_npu=True) as (cid, _):
            row = cid // T.ceildiv(N, block_N) * block_M
            col = cid % T.ceildiv(N, block_N) * block_N
            a = T.alloc_shared((block_M, block_K), "float16")
            b = T.alloc_shared((block_K, block_N), "float16")
            c = T.alloc_fragment((block_M, block_N), "float32")
            v = T.alloc_shared((block_N,), "float32")
            T.copy(bias[col], v)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[row, k * block_K], a)
                T.copy(B[k * block_K, col], b)
                T.gemm(a, b, c, init=(k == 0))
            for i, j in T.Parallel(block_M, block_N):
                c[i, j] = T.max(c[i, j] + v[j], 0)
            T.copy(c, C[row, col])

    return main


if __name__ == "__main__":
    import numpy as np

    a, b = (np.random.uniform(-1, 1, shape).astype(np.float16) for shape in ((300, 256), (256, 512)))
    bias = np.random.uniform(-1, 1, 512).astype(np.float32)
    c = linear()(a, b, bias)  # in the simulator; torch tensors on the CPU too, NPU tensors on the NPU
    assert np.allclose(c, np.maximum(a.astype(np.float32) @ b.astype(np.float32) + bias, 0), rtol=1e-2, atol=1e-2)
