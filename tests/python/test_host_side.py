"""TileLang's host names: each works, or is refused by name with what does its work."""

from __future__ import annotations

import importlib
import logging
import subprocess
import sys
import warnings

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError, TileWarning
from tile_eg.profiler import Profiler, TensorSupplyType, do_bench

X = np.arange(64, dtype=np.float32).reshape(8, 8)


@T.prim_func
def twice(A: T.Tensor((8, 8), "float32"), B: T.Tensor((8, 8), "float32")):
    with T.Kernel(1) as _:
        a = T.alloc_shared((8, 8), "float32")
        T.copy(A[0, 0], a)
        a[:, :] = a * 2.0
        T.copy(a, B[0, 0])


@tile_eg.jit(out_idx=[-1])
def rows_by(M, N, rows):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(M // rows) as cid:
            a = T.alloc_shared((rows, N), "float32")
            T.copy(A[cid * rows, 0], a)
            a[:, :] = a + 1.0
            T.copy(a, B[cid * rows, 0])

    return main


@pytest.fixture(scope="module")
def kernel() -> tile_eg.JITKernel:
    return tile_eg.compile(twice, out_idx=[-1])


# ---- compile ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_compile_gives_a_kernel_that_computes(kernel) -> None:
    assert (kernel(X) == 2 * X).all()


@pytest.mark.slow
def test_compile_gives_a_kernel_of_any_size() -> None:
    M = T.symbolic("M")

    @T.prim_func
    def main(A: T.Tensor((M, 8), "float32"), B: T.Tensor((M, 8), "float32")):
        with T.Kernel(T.ceildiv(M, 8)) as cid:
            a = T.alloc_shared((8, 8), "float32")
            T.copy(A[cid * 8, 0], a)
            T.copy(a, B[cid * 8, 0])

    assert (tile_eg.compile(main, out_idx=[-1])(X[:5]) == X[:5]).all()


def test_compile_takes_kernels_alone() -> None:
    with pytest.raises(TileError, match="compile takes a function under @T.prim_func"):
        tile_eg.compile(lambda: None)


def test_a_kernel_tells_its_texts(kernel) -> None:
    assert kernel.kernel_source == kernel.get_kernel_source()
    assert "__aicore__" in kernel.kernel_source and "launch" in kernel.get_host_source()


def test_engine_lower_is_a_compiled_kernel() -> None:
    assert "__aicore__" in importlib.import_module("tile_eg.engine").lower(twice, target="ascendc").kernel_source


def test_params_are_the_tensors_in_order(kernel) -> None:
    assert [(t.name, t.shape) for t in kernel.params] == [("A", (8, 8)), ("B", (8, 8))]


@pytest.mark.parametrize("name", ["adapter", "artifact", "prim_func"])
def test_what_a_kernel_lacks_says_what_does_its_work(kernel, name: str) -> None:
    with pytest.raises(TileError, match=f"a kernel has no {name} here"):
        getattr(kernel, name)


def test_an_unknown_attribute_of_a_kernel_is_an_attribute_error(kernel) -> None:
    with pytest.raises(AttributeError, match="no_such"):
        kernel.no_such  # noqa: B018


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("tile_eg.jit.adapter", "CythonKernelAdapter"),
        ("tile_eg.jit.adapter.libgen", "LibraryGenerator"),
        ("tile_eg.carver", "ConvTemplate"),
    ],
)
def test_a_name_without_a_counterpart_is_refused_with_a_way_out(module: str, name: str) -> None:
    with pytest.raises(TileError, match=f"{name} is not here") as caught:
        getattr(importlib.import_module(module), name)
    assert caught.value.help


def test_the_target_of_jit_can_be_read_inside_the_function() -> None:
    assert rows_by.__jit_impl__.target == "auto"


def test_pto_is_another_name_for_the_same_kernel() -> None:
    with pytest.warns(TileWarning, match="what comes out here is Ascend C"):
        assert tile_eg.compile(twice, out_idx=[-1], target="pto").kernel == tile_eg.compile(twice, out_idx=[-1]).kernel


@pytest.mark.slow
def test_a_package_that_an_import_hook_renamed_finds_its_files() -> None:
    """Such a hook gives the module another spec, one that has no folder."""
    text = "kernel k[N=8](A: f32[N]) -> B: f32[N] {\n  grid b = 1\n  shared a: f32[N]\n  a = A[0]\n  B[0] = a\n}\n"
    code = (
        "import importlib.util, tile_eg\n"
        "tile_eg.__spec__ = importlib.util.spec_from_loader('tilelang', None)\n"
        "from tile_eg.frontend.text import load_text\n"
        "from tile_eg.chips import known_chips\n"
        "from tile_eg.rules.theory import theories\n"
        f"load_text({text!r}, 'k')\n"
        "print(len(known_chips(None)) > 3 and len(theories()) > 3)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


# ---- profiler ------------------------------------------------------------------------------------------------


def test_do_bench_gives_the_predicted_milliseconds(kernel) -> None:
    with pytest.warns(TileWarning, match="predicted for 910B2, not measured"):
        assert do_bench(lambda: kernel(X)) == kernel.predicted_ms == kernel.compile().cost.microseconds / 1000


def test_do_bench_adds_up_the_kernels_that_are_launched(kernel) -> None:
    with pytest.warns(TileWarning):
        assert do_bench(lambda: (kernel(X), kernel(X))) == 2 * kernel.predicted_ms


def test_do_bench_of_no_kernel_says_that_the_cpu_was_measured() -> None:
    with pytest.warns(TileWarning, match="measured on the CPU: it launches no kernel"):
        assert do_bench(lambda: X @ X) >= 0


def test_an_unknown_mode_of_do_bench_is_refused() -> None:
    with pytest.raises(TileError, match="return_mode='fastest' is unknown"):
        do_bench(lambda: None, return_mode="fastest")


def test_a_profiler_compares_with_a_reference(kernel) -> None:
    profiler = kernel.get_profiler()
    profiler.assert_allclose(lambda a: 2 * a)
    profiler.assert_consistent(repeat=1)
    with pytest.raises(AssertionError, match="output 0: .* differ from the reference's"):
        profiler.assert_allclose(lambda a: 3 * a)


def test_a_profiler_tells_two_shapes_apart(kernel) -> None:
    (rows, cols), profiler = kernel.params[-1].shape, kernel.get_profiler()
    way = rf"the reference's \({rows}, {cols}, 1\): let the reference give \({rows}, {cols}\), e.g. by .reshape\({rows}, {cols}\)"
    with pytest.raises(AssertionError, match=way):
        profiler.assert_allclose(lambda *given: kernel(*given)[:, :, None])
    with pytest.raises(AssertionError, match=rf"the kernel's has the shape \({rows}, {cols}\), the reference's \(1, {cols}\)$"):
        profiler.assert_allclose(lambda *given: kernel(*given)[:1])


def test_a_profiler_counts_the_outputs(kernel) -> None:
    with pytest.raises(AssertionError, match="the kernel gives 1 tensors, the reference 2"):
        Profiler(kernel).assert_allclose(lambda a: [a, a])


@pytest.mark.parametrize(("kind", "value"), [(TensorSupplyType.Zero, 0.0), (TensorSupplyType.One, 2.0)])
def test_inputs_are_drawn_as_the_supply_type_says(kernel, kind: TensorSupplyType, value: float) -> None:
    assert (np.asarray(kernel.get_profiler(kind).run_once()) == value).all()


# ---- autotune ------------------------------------------------------------------------------------------------


CONFIGS = [{"rows": 1}, {"rows": 16}, {"rows": 64}]


@pytest.mark.slow
def test_autotune_takes_the_configuration_that_is_predicted_fastest() -> None:
    tuned = tile_eg.autotune(configs=CONFIGS)(rows_by)(64, 64)
    times = {rows: rows_by(64, 64, rows).predicted_ms for rows in (1, 16, 64)}
    assert tuned.get_tuner_result() == {"latency": min(times.values()), "config": tuned.config, "ref_latency": None}
    assert times[tuned.config["rows"]] == min(times.values()) < max(times.values())


def test_a_call_that_gives_the_parameter_is_not_tuned() -> None:
    kernel = tile_eg.autotune(configs=CONFIGS)(rows_by)(64, 64, rows=16)
    with pytest.raises(ValueError, match="was not tuned"):
        kernel.get_tuner_result()


def test_configurations_that_do_not_compile_are_left_out() -> None:
    assert tile_eg.autotune(configs=[{"rows": 0}, {"rows": 16}])(rows_by)(64, 64).config == {"rows": 16}


def test_autotune_tells_why_nothing_compiles() -> None:
    with pytest.raises(TileError, match="none of the 1 configurations compiles"):
        tile_eg.autotune(configs=[{"rows": -1}])(rows_by)(64, 64)


@pytest.mark.slow
def test_autotune_holds_what_it_takes_against_the_reference() -> None:
    given = lambda _: [np.ones((64, 64), np.float32)]  # noqa: E731
    right = tile_eg.autotune(configs=CONFIGS, ref_prog=lambda a: a + 1, supply_prog=given)(rows_by)
    wrong = tile_eg.autotune(configs=CONFIGS, ref_prog=lambda a: a, supply_prog=given)(rows_by)
    assert right(64, 64).config
    with pytest.raises(AssertionError, match="differ from the reference's"):
        wrong(64, 64)


@pytest.mark.slow
def test_autotune_compares_on_the_inputs_that_are_set() -> None:
    from tile_eg.autotuner import set_autotune_inputs

    seen: list[float] = []
    tuned = tile_eg.autotune(configs=CONFIGS, ref_prog=lambda a: seen.append(float(a.max())) or a + 1)(rows_by)
    with set_autotune_inputs([np.full((64, 64), 7.0, np.float32)]):
        assert tuned(64, 64).config and seen == [7.0]
    with set_autotune_inputs(X, X), pytest.raises(TileError, match="2 arrays are given for 1 inputs"):
        tuned(64, 128)


def test_configurations_may_follow_from_the_arguments() -> None:
    tuned = tile_eg.autotune(configs=lambda args, kwargs: [{"rows": args[0] // 4}])(rows_by)
    assert tuned(64, 64).config == {"rows": 16}


def test_autotune_names_an_unknown_parameter() -> None:
    with pytest.raises(TileError, match="rows_by has no parameter 'columns'"):
        tile_eg.autotune(configs=[{"columns": 4}])(rows_by)(64, 64)


def test_autotune_stands_above_jit() -> None:
    with pytest.raises(TileError, match="stands above @tile_eg.jit"):
        tile_eg.autotune(configs=CONFIGS)(lambda: None)


# ---- sizes and dtypes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("x", "power"), [(1, 1), (2, 2), (3, 4), (64, 64), (65, 128)])
def test_next_power_of_2(x: int, power: int) -> None:
    assert tile_eg.math.next_power_of_2(x) == power


@pytest.mark.parametrize(("a", "b", "up"), [(0, 4, 0), (1, 4, 1), (4, 4, 1), (5, 4, 2)])
def test_cdiv_rounds_up(a: int, b: int, up: int) -> None:
    assert tile_eg.cdiv(a, b) == tile_eg.math.cdiv(a, b) == up


@pytest.mark.parametrize(
    ("name", "bits"),
    [("float16", 16), ("float", 32), ("bfloat16", 16), ("uint8", 8), ("int", 32), ("int64", 64), ("float8_e4m3", 8)],
)
def test_a_dtype_tells_its_bits(name: str, bits: int) -> None:
    assert (tile_eg.DataType(name).bits, tile_eg.DataType(name).itemsize) == (bits, bits // 8)


def test_what_is_no_dtype_says_so() -> None:
    with pytest.raises(TileError, match="'floaty' is not a dtype"):
        tile_eg.DataType("floaty")


def test_a_word_on_plain_numbers_has_a_value() -> None:
    assert T.ceildiv(10, 4).value == 3 and T.min(T.ceildiv(10, 4), 2).value == 2 and T.align_up(10, 4).value == 12


def test_a_file_may_import_tvm_that_does_not_use_it() -> None:
    from tile_eg import tvm

    with pytest.raises(TileError, match="tile_eg.tvm is not here"):
        tvm.IRModule()


@pytest.mark.slow
def test_hints_of_the_carver_divide_the_product_and_fit() -> None:
    hints = tile_eg.carver.MatmulTemplate(1024, 768, 512).with_arch(tile_eg.carver.arch.ascend.Ascend()).recommend_hints(5)
    assert len(hints) == 5 and all(1024 % h.block[0] == 0 == 768 % h.block[1] for h in hints)


@pytest.mark.parametrize("platform", ["A2", "A3", "A5"])
def test_a_named_platform_is_itself(platform: str) -> None:
    assert importlib.import_module("tile_eg.utils.target").determine_platform(platform) == platform


def test_an_unknown_platform_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="there are auto, A2, A3, A5"):
        importlib.import_module("tile_eg.utils.target").determine_platform("A9")


def test_the_log_level_is_that_of_our_logger() -> None:
    before = logging.getLogger("tile_eg").level
    tile_eg.set_log_level("warning")
    assert logging.getLogger("tile_eg").level == logging.WARNING
    logging.getLogger("tile_eg").setLevel(before)
    with pytest.raises(TileError, match="there is no log level 'loud'"):
        tile_eg.set_log_level("loud")


def test_nothing_is_told_of_a_plain_compilation() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tile_eg.compile(twice, out_idx=[-1])


def made_by_rows():
    return lambda rows: rows_by.function(8, 8, rows)


@pytest.mark.slow
def test_a_tuner_without_decorators_finds_the_fastest_configuration() -> None:
    from tile_eg.autotuner import AutoTuner

    tuner = AutoTuner.from_kernel(made_by_rows(), [{"rows": 4}, {"rows": 8}]).set_compile_args(out_idx=[-1], target="auto")
    found = tuner.set_profile_args(ref_prog=lambda a: a + 1.0, backend="event").run(warmup=1, rep=1, early_stop=True)
    assert found.config in ({"rows": 4}, {"rows": 8}) and found.latency > 0
    np.testing.assert_array_equal(found.kernel(X), X + 1)


def test_tensors_are_compared_with_a_share_that_may_differ() -> None:
    torch = pytest.importorskip("torch")
    from tile_eg.utils.tensor import get_tensor_supply, torch_assert_close

    x, (y, _) = torch.zeros(100), (torch.zeros(100), None)
    y[3] = 1
    assert torch_assert_close(x, y, max_mismatched_ratio=0.01)
    with pytest.raises(AssertionError, match=r"1 of 100 elements differ, 0 may; the first is \[3\]"):
        torch_assert_close(x, y)
    assert get_tensor_supply(TensorSupplyType.One)(twice_tensor()).sum() == 64


def twice_tensor():
    return tile_eg.compile(twice).params[0]


def test_a_test_that_needs_a_device_runs_and_one_of_a_kind_of_gpu_is_skipped() -> None:
    from tile_eg import testing

    def test() -> None: ...

    assert testing.requires_cuda(test) is test
    assert testing.requires_cuda_compute_version_ge(9, 0)(test).pytestmark[0].name == "skip"


def test_floats_of_8_bits_and_cores_are_those_of_the_machine() -> None:
    from tile_eg.carver.arch import driver
    from tile_eg.language.fp8 import determine_fp8_type

    assert determine_fp8_type() == T.float8_e4m3fn and driver.get_num_sms() == 24


@pytest.mark.parametrize(("given", "name"), [("float", "float32"), (float, "float32"), (np.dtype("int8"), "int8")])
def test_a_dtype_is_its_name(given: object, name: str) -> None:
    assert T.dtype(given) == name and repr(T.dtype(given)) == f"T.{name}"


def test_a_gpu_compilers_flags_are_told_to_mean_nothing() -> None:
    with pytest.warns(TileWarning, match="mean nothing here"):
        tile_eg.jit(compile_flags=["-O3", "-DNDEBUG"])(twice)


NOT_HERE = [("tools", "Analyzer", "explain"), ("contrib", "nvcc", "get_kernel_source"), ("carver.arch", "CUDA", "Ascend")]


@pytest.mark.parametrize(("module", "name", "help"), NOT_HERE)
def test_names_of_tilelangs_own_compiler_are_refused_where_they_are_used(module: str, name: str, help: str) -> None:
    found = getattr(importlib.import_module(f"tile_eg.{module}"), name)
    for use in (lambda: found(), lambda: found.version):
        with pytest.raises(TileError, match=f"tile_eg.{module}.{name} is not here") as caught:
            use()
        assert help in caught.value.help


@pytest.mark.parametrize("module", ["tools.trace", "tools.trace.core", "contrib.rocm", "engine.callback"])
def test_modules_under_those_are_found_and_their_names_refused(module: str) -> None:
    found = importlib.import_module(f"tile_eg.{module}").viewer
    with pytest.raises(TileError, match=f"tile_eg.{module}.viewer is not here"):
        found.show()


def test_other_modules_that_are_not_there_are_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match="tile_eg.math.trace"):
        importlib.import_module("tile_eg.math.trace")


def test_names_of_tilelangs_insides_that_kernels_of_others_use() -> None:
    from tile_eg.intrinsics import make_mma_swizzle_layout

    assert make_mma_swizzle_layout is T.make_swizzled_layout
    drawn = Profiler(rows_by(8, 8, 8), TensorSupplyType.Normal)._get_inputs()
    assert [x.shape for x in drawn] == [(8, 8)]
    with pytest.raises(TileError, match="draws the inputs of a call"):
        Profiler(rows_by(8, 8, 8))._get_inputs(with_output=True)


@pytest.mark.slow
def test_hints_of_elements_are_blocks_of_their_shape() -> None:
    blocks = [h.block for h in tile_eg.carver.ElementwiseTemplate([3, 100, 255]).recommend_hints(5)]
    assert blocks and all(b[0] == 1 and b[1] <= 100 and b[2] <= 255 for b in blocks)


def test_hints_of_a_reduction_are_rows() -> None:
    assert all(len(h.block) == 1 for h in tile_eg.carver.GeneralReductionTemplate("SR", [64, 512]).recommend_hints(5))


def test_host_code_may_ask_for_the_cores_of_the_chip() -> None:
    utils = importlib.import_module("tile_eg.utils")
    assert utils.NPUUtils.get().get_aicore_num() == utils.AscendArch().aicube_core_num == 24
    assert utils.AscendArch("Ascend950").ub_cap > utils.AscendArch("Ascend910B2").ub_cap
