"""TileLang's switches at `jit`: what each may say here. One that asks for something else is refused, with the reason."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from tile_eg.chips import DEFAULT_CHIP, known_chips, load_chip
from tile_eg.errors import TileError, TileWarning, did_you_mean


class PassConfigKey(StrEnum):
    """TileLang's pass switches. What those of Ascend switch on is always on here: True is taken, False is refused."""

    TL_ASCEND_AUTO_SYNC = "tl.ascend_auto_sync"
    TL_ASCEND_AUTO_CV_COMBINE = "tl.ascend_auto_cv_combine"
    TL_ASCEND_AUTO_CV_SYNC = "tl.ascend_auto_cross_core_sync"
    TL_ASCEND_MEMORY_PLANNING = "tl.ascend_memory_planning"
    TL_SIMPLIFY = "tl.Simplify"
    TL_DYNAMIC_ALIGNMENT = "tl.dynamic_alignment"
    TL_DISABLE_DYNAMIC_TAIL_SPLIT = "tl.disable_dynamic_tail_split"
    TL_DISABLE_WARP_SPECIALIZED = "tl.disable_warp_specialized"
    TL_CONFIG_INDEX_BITWIDTH = "tl.config_index_bitwidth"
    TL_DISABLE_TMA_LOWER = "tl.disable_tma_lower"
    TL_DISABLE_SAFE_MEMORY_ACCESS = "tl.disable_safe_memory_legalize"
    TL_DEBUG_MERGE_SHARED_MEMORY_ALLOCATIONS = "tl.debug_merge_shared_memory_allocations"
    TIR_MERGE_STATIC_SMEM = "tir.merge_static_smem"
    NPUIR_ENABLE_AUTO_MULTI_BUFFER = "npuir.enable_auto_multi_buffer"
    NPUIR_DISABLE_HIVM_AUTO_INJECT_SYNC = "npuir.disable_hivm_auto_inject_sync"
    TL_ENABLE_FAST_MATH = "tl.enable_fast_math"
    TL_DISABLE_FAST_MATH = "tl.disable_fast_math"
    TL_DISABLE_THREAD_STORAGE_SYNC = "tl.disable_thread_storage_sync"
    TL_PTXAS_REGISTER_USAGE_LEVEL = "tl.ptxas_register_usage_level"
    TL_ENABLE_PTXAS_VERBOSE_OUTPUT = "tl.enable_ptxas_verbose_output"
    TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE = "tl.enable_aggressive_shared_memory_merge"
    TL_DISABLE_SHUFFLE_ELECT = "tl.disable_shuffle_elect"
    TL_DISABLE_VECTORIZE_256 = "tl.disable_vectorize_256"
    TL_FORCE_LET_INLINE = "tl.force_let_inline"
    TL_DISABLE_WGMMA = "tl.disable_wgmma"
    TL_LAYOUT_VISUALIZATION_ENABLE = "tl.layout_visualization_enable"


_BY_AUTHOR = {
    **{f"tl.ascend_{name}": False for name in ("auto_sync", "auto_cv_combine", "auto_cross_core_sync", "memory_planning")},
    PassConfigKey.NPUIR_DISABLE_HIVM_AUTO_INJECT_SYNC.value: True,
}
"""What switches say that leave something to the author, as they may in a kernel that is kept as written."""
_BY_HAND = "a kernel cannot set flags, places and scopes by hand: they are always found"
_NO_SIZES = "sizes are known when a kernel is compiled: there is no tail of unknown length"
_PASSES: dict[str, tuple[tuple[Any, ...], str]] = {
    PassConfigKey.TL_ASCEND_AUTO_SYNC: ((True,), _BY_HAND),
    PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: ((True,), _BY_HAND),
    PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: ((True,), _BY_HAND),
    PassConfigKey.TL_ASCEND_MEMORY_PLANNING: ((True,), _BY_HAND),
    PassConfigKey.TL_SIMPLIFY: ((True,), "index expressions are always simplified"),
    PassConfigKey.TL_DYNAMIC_ALIGNMENT: ((16,), _NO_SIZES),
    PassConfigKey.TL_DISABLE_DYNAMIC_TAIL_SPLIT: ((True, False), _NO_SIZES),
    PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: ((True, False), "an NPU has no warps"),
    PassConfigKey.TL_CONFIG_INDEX_BITWIDTH: ((64,), "offsets are as wide as their bounds ask for"),
    PassConfigKey.TL_DISABLE_TMA_LOWER: ((True, False), "an NPU has no TMA"),
    PassConfigKey.TL_DISABLE_SAFE_MEMORY_ACCESS: ((False,), "windows always end where their tensor ends"),
    PassConfigKey.TL_DEBUG_MERGE_SHARED_MEMORY_ALLOCATIONS: ((False,), "tile-eg explain shows where each buffer lies"),
    PassConfigKey.TIR_MERGE_STATIC_SMEM: ((True,), "buffers always share memory as their lifetimes allow"),
    PassConfigKey.NPUIR_ENABLE_AUTO_MULTI_BUFFER: ((True, False), "num_stages says how many buffers a loop has"),
    PassConfigKey.NPUIR_DISABLE_HIVM_AUTO_INJECT_SYNC: ((False,), _BY_HAND),
    PassConfigKey.TL_ENABLE_FAST_MATH: ((True, False), "faster forms of operations are chosen by the chip's own instructions"),
    PassConfigKey.TL_DISABLE_FAST_MATH: ((True, False), "it is exact_math=True here"),
    PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: ((True, False), "a block has no threads: who waits for whom is found"),
    PassConfigKey.TL_PTXAS_REGISTER_USAGE_LEVEL: (tuple(range(11)), "an NPU has no ptxas"),
    PassConfigKey.TL_ENABLE_PTXAS_VERBOSE_OUTPUT: ((True, False), "an NPU has no ptxas"),
    PassConfigKey.TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE: ((True, False), "buffers always share memory as lifetimes allow"),
    PassConfigKey.TL_DISABLE_SHUFFLE_ELECT: ((True, False), "an NPU has no warps"),
    PassConfigKey.TL_DISABLE_VECTORIZE_256: ((True, False), "how wide an instruction is, is found"),
    PassConfigKey.TL_FORCE_LET_INLINE: ((True, False), "index expressions are always simplified"),
    PassConfigKey.TL_DISABLE_WGMMA: ((True, False), "an NPU has no warps"),
    PassConfigKey.TL_LAYOUT_VISUALIZATION_ENABLE: ((False,), "tile-eg explain shows where each buffer lies"),
}
"""What each switch may be, and why it can be nothing else. Those of a GPU that change no result may be anything."""

TARGETS = ("auto", "ascendc", "ascend", "npu", "npuir", "pto")
"""Targets of TileLang that mean an Ascend NPU, of the kind that `chip` says. npuir is a dialect, whose words are taken too; pto
is another code generator for the same kernels: what comes out here is Ascend C whichever is named."""
PLATFORMS = {"A2": ("910B2", "dav-2201"), "A3": ("910C", "dav-2201"), "A5": ("950", "dav-3510")}
"""TileLang's names of platforms: the chip that each stands for, and its architecture."""
_BACKENDS = ("cython", "ctypes", "dlpack", "auto", "tvm_ffi", "npu")
_OTHERS: dict[str, tuple[tuple[Any, ...], str]] = {
    "target_host": ((None,), "the host's part is C++ for CANN: tile-eg emit --host"),
    "execution_backend": ((None, *_BACKENDS), "a kernel takes NumPy arrays and torch tensors, whichever of these is named"),
    "verbose": ((None, False), "tile-eg explain shows what was decided"),
    "debug_root_path": ((None,), "tile-eg emit FILE -o OUT keeps the text; so does str(kernel.compile().source)"),
}
"""Further options of TileLang's `jit`: what each may be, and what does its work here."""
_OF_MEANING = ("-D", "--define-macro", "-I", "--include", "-l", "-L")
"""How flags of a C++ compiler begin that could change what a text means."""


def chosen_chip(chip: str | None, target: Any, platform: Any) -> str:
    """The chip that `chip`, `target` and `platform` agree on. TileError where one is unknown, or they do not agree."""
    wanted = {"chip": chip, "target": _of_target(target), "platform": _of_platform(platform)}
    named = {what: name for what, name in wanted.items() if name is not None}
    found = next(iter(named.values()), DEFAULT_CHIP)
    for what, name in named.items():
        agrees = load_chip(name).name == load_chip(found).name
        if what == "platform":
            agrees = load_chip(found).architecture == load_chip(name).architecture
        if not agrees:
            given = {"chip": chip, "target": target, "platform": platform}
            first = next(iter(named))
            message = f"{first}={given[first]!r} and {what}={given[what]!r} name different machines"
            raise TileError(message, help="give one of them")
    return load_chip(found).name if target is not None or platform is not None else found


def _of_target(target: Any) -> str | None:
    """The chip that a target names; None where it names Ascend NPUs in general."""
    if isinstance(target, str) and target == "pto":
        text = "target='pto' names another code generator; what comes out here is Ascend C, of the same kernel"
        warnings.warn(text, TileWarning, stacklevel=4)
    if target is None or (isinstance(target, str) and target in TARGETS):
        return None
    if isinstance(target, str) and target.removeprefix("Ascend") in known_chips(None):
        return target.removeprefix("Ascend")
    kinds = f"{', '.join(TARGETS)}, or a chip: {', '.join(known_chips(None))}"
    raise TileError(f"target={target!r} is nothing that kernels are compiled for", help=f"there are {kinds}")


def _of_platform(platform: Any) -> str | None:
    if platform in (None, "auto"):
        return None
    if not isinstance(platform, str) or platform not in PLATFORMS:
        raise TileError(f"platform={platform!r} is unknown", help="there are auto, " + ", ".join(PLATFORMS))
    return PLATFORMS[platform][0]


def check_passes(configs: Mapping[Any, Any] | None) -> None:
    """TileError for a pass switch that is unknown, or that asks for what is not there in any kernel."""
    if configs is not None and not isinstance(configs, Mapping):
        raise TileError(f"pass_configs is a dictionary of switches, not {type(configs).__name__}")
    for key, value in (configs or {}).items():
        name = str(key.value) if hasattr(key, "value") else str(key)
        if name not in _PASSES:
            raise TileError(f"pass_configs: there is no switch {name!r}", help=did_you_mean(name, map(str, _PASSES)))
        if value is not _BY_AUTHOR.get(name, ...):
            _check(f"pass_configs: {name}", value, *_PASSES[name])


def _switched(configs: Mapping[Any, Any] | None) -> dict[str, Any]:
    return {str(getattr(key, "value", key)): value for key, value in (configs or {}).items()}


def check_searched(configs: Mapping[Any, Any] | None) -> None:
    """TileError where a switch leaves to the author what he has not written: the kernel has no flags, barriers or scopes. That he
    plans no memory gets a note: where a buffer lies changes no number."""
    for name, value in _switched(configs).items():
        if name == PassConfigKey.TL_ASCEND_MEMORY_PLANNING and value is False:
            text = f"pass_configs: {name} is False, and the kernel gives its buffers no addresses: they are found"
            warnings.warn(text, TileWarning, stacklevel=4)
            continue
        if value is _BY_AUTHOR.get(name, ...):
            what = f"pass_configs: {name} is {value}, and the kernel has no flags, barriers, addresses or scopes of its own"
            raise TileError(what, help="leave the switch out: they are found")


def asks_exact(configs: Mapping[Any, Any] | None) -> bool:
    """Whether sums keep the order in which they are written: fast math is disabled."""
    return _switched(configs).get(PassConfigKey.TL_DISABLE_FAST_MATH.value) is True


def kept_barriers(configs: Mapping[Any, Any] | None) -> str:
    """Who orders the instructions of one core in a kernel that is kept as written (`ir.kept.KeptKernel.barriers`): a switch that
    is absent is off."""
    return "all" if _switched(configs).get(PassConfigKey.TL_ASCEND_AUTO_SYNC.value) is True else "vendor"


def switched_by(target: Any, configs: Mapping[Any, Any] | None) -> Mapping[Any, Any] | None:
    """The switches of a kernel for a target: AscendNPU-IR's compiler orders the instructions of a core by itself,
    unless it is told not to."""
    given, auto = _switched(configs), PassConfigKey.TL_ASCEND_AUTO_SYNC.value
    by_hand = given.get(PassConfigKey.NPUIR_DISABLE_HIVM_AUTO_INJECT_SYNC.value) is True
    return {auto: not by_hand, **given} if target == "npuir" else configs


def kept_planning(configs: Mapping[Any, Any] | None) -> bool:
    """Whether buffers of a kernel that is kept as written may share memory (`ir.kept.KeptKernel.planned`)."""
    return _switched(configs).get(PassConfigKey.TL_ASCEND_MEMORY_PLANNING.value) is True


def finds_meetings(configs: Mapping[Any, Any] | None) -> bool:
    """Whether flags between the cores of a kernel that is kept as written are to be found where it has none."""
    return _switched(configs).get(PassConfigKey.TL_ASCEND_AUTO_CV_SYNC.value) is True


def two_streams(configs: Mapping[Any, Any] | None) -> bool:
    """Whether the cores of a kernel are two streams of statements where the order of the text does not do."""
    asked = PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE, PassConfigKey.TL_ASCEND_AUTO_CV_SYNC
    return all(_switched(configs).get(key.value) is True for key in asked)


def check_others(given: Mapping[str, Any], known: Iterable[str]) -> None:
    """TileError for an option of `jit` that is unknown (`known` are its own), or that asks for what is not there."""
    for name, value in given.items():
        if name == "compile_flags":
            _check_flags(value)
            continue
        if name not in _OTHERS:
            raise TileError(f"jit has no option {name!r}", help=did_you_mean(name, (*known, *_OTHERS)))
        _check(f"jit: {name}", value, *_OTHERS[name])


def _check_flags(flags: Any) -> None:
    """A warning for flags of a GPU's compiler, which gets no text here; TileError where they define or include something."""
    given = flags.split() if isinstance(flags, str) else list(flags or ())
    for flag in given:
        if not isinstance(flag, str) or (flag.startswith(_OF_MEANING) and flag != "-DNDEBUG"):
            why = "the text is compiled for the NPU by CANN, and here by the simulator"
            raise TileError(f"jit: compile_flags has no {flag!r} here: {why}", help="leave it out")
    if given:
        text = "compile_flags are those of a GPU's compiler, and mean nothing here: CANN compiles the text"
        warnings.warn(text, TileWarning, stacklevel=4)


def _check(what: str, value: Any, allowed: tuple[Any, ...], why: str) -> None:
    if not any(type(value) is type(a) and value == a for a in allowed):
        instead = " or ".join(map(repr, allowed))
        raise TileError(f"{what} is {instead} here, not {value!r}: {why}", help="leave it out")


def set_log_level(level: Any) -> None:
    """How much the logger `tile_eg` tells: a name such as "INFO", or a number of `logging`. TileError for another name."""
    import logging

    names = logging.getLevelNamesMapping()
    found = names.get(level.upper()) if isinstance(level, str) else level
    if not isinstance(found, int):
        raise TileError(f"there is no log level {level!r}", help="there are " + ", ".join(names))
    logging.getLogger("tile_eg").setLevel(found)
