"""What to write in place of words that the language does not have."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from tile_eg import language
from tile_eg.errors import TileError
from tile_eg.language.words import developer_words

_LOAD, _STORE = "T.copy(X[i, j], x): a tile is loaded as a whole, from where it begins", "T.copy(x, Y[i, j])"
_BLOCK = "`with T.Kernel(blocks) as b`: b is the block's index"
_NO_THREADS = "for i, j in T.Parallel(m, n) over the elements of a tile: a block has no threads here"
_WAITS = "nothing in its place: who waits for whom is found"
_ALIGNED = "nothing in its place: how windows lie follows from their indices"
_ONE_CHIP = "T.copy between tensors of one device: a kernel runs on one device here"
_QUEUES = "T.alloc_shared(shape, dtype) for a buffer: queues, and who waits for whom, are found"
_ONE_ELEMENT = "T.atomic_add(C[i, j], x[i, j]) for each element of T.Parallel: whole rows are added at once"
_ONLY_SUMS = "each block's result to a place of its own, and join those in a second kernel: T.atomic_add, _max, _min are atomic"
_BARRIERS = "nothing in its place, nor barriers: who waits for whom is found"
_PRODUCT = "T.gemm(a, b, c) for a product: where its operands lie, and when it runs, is found"
_LOADED = "T.copy(A[i, j], a) for a load or a store: who waits for it is found"
_ROLES = "the statements in their order, without roles of warps: which core does what, and when, is found"
_LAUNCH = "`with T.Kernel(blocks) as b` for a launch: blocks are no clusters, and share nothing but GM"
_SOURCE = "the same in words of T: no source of another language is taken in"
INSTEAD = {
    **dict.fromkeys((
        "alloc_barrier", "alloc_cluster_barrier", "barrier_wait", "barrier_arrive", "mbarrier_wait_parity", "mbarrier_arrive",
        "mbarrier_arrive_expect_tx", "mbarrier_expect_tx", "fence_proxy_async", "cp_async_barrier_noinc", "ptx_wait_group",
        "ptx_commit_group", "sync_grid", "sync_global", "wait_wgmma", "cluster_sync", "tcgen05_before_thread_sync",
        "tcgen05_after_thread_sync", "any_sync", "warpgroup_arrive", "warpgroup_wait", "warpgroup_commit_batch",
        "pdl_trigger", "pdl_sync", "create_list_of_mbarrier", "get_mbarrier",
    ), _BARRIERS),
    **dict.fromkeys((
        "wgmma_gemm", "tcgen05_gemm", "tcgen05_gemm_blockscaled", "tcgen05_mma_arrive", "mma_gemm_blockscaled", "gemm_sp",
        "alloc_tmem", "deallocate_tmem", "mma_gemm", "ptx_mma", "ptx_ldmatrix", "tcgen05_cp_warpx4",
    ), _PRODUCT),
    **dict.fromkeys(("tma_copy", "ptx_cp_async", "tma_load", "tma_store", "tma_store_arrive", "tma_store_wait"), _LOADED),
    **dict.fromkeys(("ws", "WSSchedule", "WSScope", "WSRole", "ws_op", "annotate_ws_schedule", "WSPipeline", "WSSync"), _ROLES),
    **dict.fromkeys((
        "ClusterKernel", "block_rank_in_cluster", "launch_thread", "PersistentTileScheduler", "clc_try_cancel_multicast",
        "clc_is_canceled", "clc_get_first_ctaid_x", "cluster_block_rank", "cluster_ctarank",
    ), _LAUNCH),
    **dict.fromkeys(("import_source", "call_intrin", "call_pure_extern", "evaluate", "attr"), _SOURCE),
    **dict.fromkeys(("tvm_thread_allreduce", "tvm_warp_shuffle", "comm_reducer", "shfl_sync", "warp_reduce_sum"),
                    "T.reduce_sum(x, s, dim=1) of a tile: a block has no threads"),
    **dict.fromkeys(("alloc_reducer", "finalize_reducer"), "T.alloc_fragment for what is summed, and T.reduce_sum(x, s, dim=1)"),
    **dict.fromkeys(("rng_init", "rng_rand", "rng_rand_float"), "an argument that holds the random numbers"),
    **dict.fromkeys(("ptr", "make_tensor", "access_ptr", "address_of", "handle", "match_buffer"),
                    "A: T.Tensor(shape, dtype) for each tensor: a kernel has no pointers"),
    "alloc_global": "it before the launch, x = T.alloc_global(shape, dtype), or a tensor argument and workspace_idx",
    "alloc_buffer": "a tensor argument, and workspace_idx, for memory between blocks",
    **dict.fromkeys(("atomic_load", "atomic_store"), "T.copy: what other blocks write in the same kernel is not read"),
    "call_extern": "the words of T.tile that do the same",
    "get_block_binding": _BLOCK, "im2col": "T.copy of each row of the window into its place", "tfloat32": '"float32"',
    **dict.fromkeys(("truncmod", "indexmod"), "T.floormod(x, n), the same number where x and n are not below 0"),
    **dict.fromkeys(("truncdiv", "indexdiv"), "T.floordiv(x, n), the same number where x and n are not below 0"),
    "shift_left": "x << n", "shift_right": "x >> n", "dp4a": "T.gemm of int8 into int32",
    "maximum": "T.max(x, y)", "minimum": "T.min(x, y)", 
    "to": 'T.cast(x, "float32")', "square": "x * x", "power": "x ** y", "fabs": "T.abs(x)",
    "softmax": "T.reduce_max, T.exp and T.reduce_sum of the rows", "mean": "T.reduce_sum(x, dim=1) / n",
    "reduce_mean": "T.reduce_sum(x, dim=1) / n", "matmul": "T.gemm(a, b, c)", "dot": "T.gemm(a, b, c)",
    **dict.fromkeys(("atomic_or", "atomic_and", "atomic_xor", "atomic_cas"), _ONLY_SUMS),
    "atomic_addx2": _ONE_ELEMENT, "atomic_addx4": _ONE_ELEMENT,
    "any_of": "T.reduce_max of ones and zeros: T.if_then_else(x[i, j] > 0, 1.0, 0.0) in T.Parallel",
    "all_of": "T.reduce_min of ones and zeros: T.if_then_else(x[i, j] > 0, 1.0, 0.0) in T.Parallel",
    "reinterpret": "T.reinterpretcast(dst, src, dtype), of buffers",
    "tile.init_sort_buf": "nothing in its place: T.tile.sort pads what it sorts by itself",
    "tile.bilinear_interpolation": "T.tile.gather of the points, T.tile.mul by their weights, and T.tile.add",
    "tile.fill_experiment": "T.tile.fill(x[i, 0:n], value)",
    "tile.gathermask_experiment": "T.tile.gather_mask(dst, src, pattern)",
    "tile.reduce_sum_mask_experiment": "T.reduce_sum(x, s, dim=-1, real_shape=[rows, columns])",
    "tile.datacachecleanandinvalid_experiment": "nothing in its place: T.copy does not go through the scalar unit's cache",
    "shmem_put_nbi": _ONE_CHIP, "shmem_get_nbi": _ONE_CHIP, "shmem_ub_put_nbi": _ONE_CHIP, "shmem_ub_get_nbi": _ONE_CHIP,
    "c2d_im2col": "T.copy of each row of the window into its place",
    "median": "T.tile.sort(pairs, row, n) of each row, and T.tile.gather_mask(v, pairs, \"P0101\")",
    "zeros": "T.clear(buffer)", "ones": "T.fill(buffer, 1)", "sum": "T.reduce_sum(x, dim=1)", "isinf": "T.abs(x) == T.infinity()",
    "logical_and": "a and b", "logical_or": "a or b", "logical_not": "not a", "xor": "T.bitwise_xor(x, y)",
    "load": _LOAD, "store": _STORE, "program_id": _BLOCK, "block_idx": _BLOCK, "num_programs": _BLOCK,
    "get_block_bindings": _BLOCK, "make_block_ptr": _LOAD, "advance": _LOAD, "arange": _NO_THREADS,
    "get_thread_binding": _NO_THREADS, "tid": _NO_THREADS, "get_thread_bindings": _NO_THREADS, "thread_binding": _NO_THREADS,
    "alloc_local": "T.alloc_fragment(shape, dtype)", "sync_threads": _WAITS, "syncthreads": _WAITS, "debug_barrier": _WAITS,
    "cdiv": "T.ceildiv(x, y)", "trans": "x.T, or transpose_A and transpose_B of T.gemm", "range": "range(n), or T.serial(n)",
    "static_range": "range(n)", "associative_scan": "T.cumsum(x, dim=1)", "device_print": "T.printf(format, values)",
    "constexpr": "a parameter of the function that gives the kernel: its value is known when that is called",
    "max_contiguous": _ALIGNED, "multiple_of": _ALIGNED,
    "sync_warp": _WAITS, "async_copy": _LOAD, "DataCopy": _LOAD, "DataCopyPad": _LOAD,
    "LoadData": "T.gemm(a, b, c): what goes to L0, and how, is found", "Mmad": "T.gemm(a, b, c)", "Matmul": "T.gemm(a, b, c)",
    "Fixpipe": _STORE, "Add": "T.tile.add(c, a, b)", "Sub": "T.tile.sub(c, a, b)", "Mul": "T.tile.mul(c, a, b)",
    "Div": "T.tile.div(c, a, b)", "Exp": "T.tile.exp(y, x)", "Adds": "T.tile.add(y, x, 1.0)", "Muls": "T.tile.mul(y, x, 2.0)",
    "Duplicate": "T.fill(x, 0)", "ReduceMax": "T.reduce_max(x, m, dim=1)", "ReduceSum": "T.reduce_sum(x, m, dim=1)",
    "WholeReduceMax": "T.reduce_max(x, m, dim=1)", "GetBlockIdx": _BLOCK, "SetFlag": "T.set_flag(src, dst, n)",
    "WaitFlag": "T.wait_flag(src, dst, n)", "PipeBarrier": "T.pipe_barrier(pipe)", "SyncAll": "T.sync_all()",
    "AllocTensor": _QUEUES, "EnQue": _QUEUES, "DeQue": _QUEUES, "FreeTensor": _QUEUES, "InitBuffer": _QUEUES,
}  # fmt: skip
"""Words of other languages of arrays and kernels."""
FOREIGN = {
    "threadIdx": _NO_THREADS, "blockIdx": _BLOCK, "blockDim": _NO_THREADS, "tl": "T: a kernel's words are tile_eg.language's",
}  # fmt: skip
"""Names of other languages."""


def near_name(name: str, known: Sequence[str]) -> str:
    """A help line for a name that nothing binds: the nearest of those that are known, or what says the same here."""
    close = get_close_matches(name, known, 1)
    if name in developer_words(language):
        return f"write T.{name}"
    return f"did you mean {close[0]}?" if close else f"write {FOREIGN[name]}" if name in FOREIGN else ""


def instead(error: TileError, name: str) -> TileError:
    """The error for a word that has no meaning, with what to write in its place where that is known."""
    if name in INSTEAD:
        error.message = f"T.{name} has no meaning here"
        error.help = f"write {INSTEAD[name]}"
    return error


def near_word(prefix: str, words: Any, name: str) -> str:
    """A help line: the word of that name in the other half of the language, what says the same, or the nearest word."""
    if words is language and name in developer_words(language.tile):
        return f"did you mean {prefix}.tile.{name}?"
    if words is language.tile and name in developer_words(language):
        return f"did you mean {prefix.removesuffix('.tile')}.{name}?"
    if name in INSTEAD:
        return f"write {INSTEAD[name]}"
    close = get_close_matches(name, [*developer_words(words), *INSTEAD], 1)
    if close and close[0] in INSTEAD:
        return f"{close[0]} has no meaning here either: write {INSTEAD[close[0]]}"
    return f"did you mean {prefix}.{close[0]}?" if close else ""
