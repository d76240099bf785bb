"""D = relu(A @ B + bias) by hand: slots and flags for the cube core, a workspace and flags between cores for the vector cores.

`tile-eg run` does it as it is written; `tile-eg diff` shows what the search makes of it.
"""

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1], workspace_idx=[3])
def linear_relu(M=512, N=512, K=512, block_M=128, block_N=128, block_K=64):
    tiles_n = N // block_N
    half = block_M // 2

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        bias: T.Tensor((M, N), "float16"),
        workspace: T.Tensor((M, N), "float"),
        D: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel((M // block_M) * tiles_n, is_npu=True) as (cid, vid):
            row = cid // tiles_n * block_M
            col = cid % tiles_n * block_N
            a = T.alloc_L1((2, block_M, block_K), "float16")
            b = T.alloc_L1((2, block_K, block_N), "float16")
            c = T.alloc_L0C((block_M, block_N), "float")
            x = T.alloc_ub((half, block_N), "float")
            y16 = T.alloc_ub((half, block_N), "float16")
            y = T.alloc_ub((half, block_N), "float")

            with T.Scope("C"):
                T.copy(A[row, 0], a[0, :, :])
                T.copy(B[0, col], b[0, :, :])
                T.barrier_all()
                for k in T.serial(K // block_K):
                    if k < K // block_K - 1:  # the next trip's operands
                        T.copy(A[row, (k + 1) * block_K], a[(k + 1) % 2, :, :])
                        T.copy(B[(k + 1) * block_K, col], b[(k + 1) % 2, :, :])
                    T.gemm_v0(a[k % 2, :, :], b[k % 2, :, :], c, init=(k == 0))
                    T.barrier_all()
                T.copy(c, workspace[row, col])
                T.set_cross_flag("FIX", 0)

            with T.Scope("V"):
                T.copy(bias[row + vid * half, col], y16)
                T.set_flag("mte2", "v", 0)
                T.wait_flag("mte2", "v", 0)
                T.copy(y16, y)
                T.wait_cross_flag(0)
                T.copy(workspace[row + vid * half, col], x)
                T.set_flag("mte2", "v", 1)
                T.wait_flag("mte2", "v", 1)
                T.tile.add(x, x, y)
                T.pipe_barrier("v")
                T.tile.relu(x, x)
                T.pipe_barrier("v")
                T.copy(x, y16)
                T.set_flag("v", "mte3", 0)
                T.wait_flag("v", "mte3", 0)
                T.copy(y16, D[row + vid * half, col])

    return main
