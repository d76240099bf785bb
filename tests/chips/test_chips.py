"""Chip tables: what the loader accepts and refuses, and that the numbers are sourced and agree with each other."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

import tile_eg.chips
from tile_eg.chips import DEFAULT_CHIP, known_chips, load_chip
from tile_eg.errors import TileError
from tile_eg.ir.machine import ALIGNMENT, CROSS_IDS, FIELD_LIMITS, MAX_CROSS_COUNT, MAX_REPEAT, REPEAT_BYTES, USABLE_EVENT_IDS
from tile_eg.ops.types import Level

FOLDER = Path(tile_eg.chips.__file__).parent


def unsourced(table: dict[str, Any], path: str, sourced: bool = False) -> Iterator[str]:
    """Paths of numbers that neither their own table nor one around it gives a source."""
    sourced = sourced or "source" in table
    for key, value in table.items():
        if isinstance(value, dict):
            yield from unsourced(value, f"{path}.{key}", sourced)
        elif isinstance(value, int | float | list) and not sourced:
            yield f"{path}.{key}"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.toml")), ids=lambda f: f.stem)
def test_every_number_has_a_source(file: Path) -> None:
    assert list(unsourced(tomllib.loads(file.read_text("utf-8")), file.stem)) == []


@pytest.mark.parametrize("name", known_chips(None))
def test_sources_are_explained(name: str) -> None:
    chip = load_chip(name)
    assert all(p.source.split(",")[0].split(" ")[0].rstrip(";:") in chip.sources for p in chip.paths.values())


def test_known_chips() -> None:
    assert known_chips() == ("910B1", "910B2", "910B3", "910B4", "910C")
    assert known_chips("dav-3510") == ("950",)
    assert known_chips(None) == (*known_chips(), *known_chips("dav-3510"))


@pytest.mark.parametrize("name", ["950", "Ascend950PR", "ascend910_95"])
def test_the_950_has_paths_between_its_cores(name: str) -> None:
    assert {"l0c_to_ub", "l0c_to_ub_dual", "ub_to_l1", "l1_to_ub"} <= load_chip(name).paths.keys()


def test_a_fixpipe_into_both_vector_cores_takes_half_the_time() -> None:
    paths = load_chip("950").paths
    assert paths["l0c_to_ub_dual"].peak == 2 * paths["l0c_to_ub"].peak


@pytest.mark.parametrize("name", ["910B2", "910b2", "Ascend910B2", "ascend910b2", "ASCEND-910B2"])
def test_a_chip_has_several_spellings(name: str) -> None:
    assert load_chip(name) is load_chip("910B2")


def test_the_die_of_a_910c_goes_by_its_number_too() -> None:
    assert load_chip("Ascend910_9391").name == "910C"


def test_the_default_chip_is_known() -> None:
    assert load_chip().name == DEFAULT_CHIP


def test_an_unknown_chip_lists_the_known_ones() -> None:
    with pytest.raises(TileError, match="unknown chip '910X'") as error:
        load_chip("910X")
    assert all(name in error.value.help for name in known_chips())


@pytest.mark.parametrize("name", ["Ascend950DT", "950DT", "Ascend910_5591", "310P", "Ascend310P3"])
def test_chips_without_tables_are_refused_by_name(name: str) -> None:
    with pytest.raises(TileError, match=f"chip '{name}' is known but not supported"):
        load_chip(name)


@pytest.mark.parametrize(
    ("name", "tflops"), [("910B1", 363.7), ("910B2", 353.9), ("910B3", 294.9), ("910B4", 245.8), ("950", 432.5)]
)
def test_peak_is_the_published_one(name: str, tflops: float) -> None:
    assert load_chip(name).peak_f16_tflops == pytest.approx(tflops, abs=0.06)


@pytest.mark.parametrize("name", known_chips(None))
def test_there_are_two_vector_cores_to_a_cube_core(name: str) -> None:
    chip = load_chip(name)
    assert chip.vector_cores == 2 * chip.cube_cores


def test_usable_ub_leaves_what_the_framework_takes() -> None:
    assert load_chip().level_bytes(Level.UB) == 192 * 1024 - 256 - 8 * 1024


def test_usable_l1_leaves_its_last_256_bytes() -> None:
    assert load_chip().level_bytes("L1") == 512 * 1024 - 256


def test_a_file_overrides_its_base() -> None:
    assert load_chip("910B4").shared.hbm_read < load_chip("910B1").shared.hbm_read


def test_a_file_keeps_what_it_does_not_override() -> None:
    assert load_chip("910B4").shared.l2_read == load_chip("910B1").shared.l2_read


def test_a_chip_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        load_chip().clock_mhz = 1  # type: ignore[misc]


def test_its_tables_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        load_chip().paths["gm_to_ub"] = None  # type: ignore[index]


@pytest.mark.parametrize(
    ("chip", "name"),
    [(c, n) for c in ("910B2", "950") for n, p in load_chip(c).paths.items() if p.curve and not n.startswith("l1_to")],
)
def test_startup_and_rate_reproduce_the_measured_curve(chip: str, name: str) -> None:
    path = load_chip(chip).paths[name]
    errors = [abs(path.cycles(size, 1, cold=True) * rate / size - 1) for size, rate in path.curve]
    assert sum(errors) / len(errors) < 0.13


@pytest.mark.parametrize("name", ["l1_to_l0a", "l1_to_l0b"])
def test_the_rate_into_l0_is_what_its_measured_curve_tends_to(name: str) -> None:
    path = load_chip().paths[name]
    assert path.peak == pytest.approx(path.curve[-1][1], rel=0.03)


def test_a_path_alone_runs_at_its_peak() -> None:
    path = load_chip("910B1").paths["gm_to_l1_nd2nz"]
    assert path.rate(1) == path.peak


def test_all_cores_share_what_l2_gives() -> None:
    path = load_chip("910B1").paths["gm_to_l1_nd2nz"]
    assert path.rate(24) == pytest.approx(5.2e12 / 1850e6 / 24)


def test_a_private_path_is_not_shared() -> None:
    assert load_chip().paths["l1_to_l0a"].rate(24) == 256


@pytest.mark.parametrize("name", known_chips())
def test_chip_limits_are_those_of_the_contract(name: str) -> None:
    limits = load_chip(name).limits
    contract = (len(USABLE_EVENT_IDS), len(CROSS_IDS), MAX_CROSS_COUNT, MAX_REPEAT, FIELD_LIMITS["Nd2NzParams.nValue"][1])
    assert (limits.usable_event_ids, limits.cross_ids, limits.cross_count, limits.repeat, limits.nd2nz_rows) == contract


@pytest.mark.parametrize("name", known_chips())
def test_chip_alignments_are_those_of_the_contract(name: str) -> None:
    assert {level: load_chip(name).align(level) for level in ALIGNMENT} == ALIGNMENT


def test_a_repeat_holds_64_floats() -> None:
    from tile_eg.ops.types import F32

    assert load_chip().vector.lanes(F32) == 64
    assert load_chip().vector.repeat_bytes == REPEAT_BYTES


def test_chips_of_both_architectures_are_targets() -> None:
    from tile_eg.search.planned import compiled_for

    assert {compiled_for(name).architecture for name in known_chips(None)} == {"dav-2201", "dav-3510"}
