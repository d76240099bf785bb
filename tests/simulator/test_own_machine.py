"""The runtime is compiled for the machine that it runs on, and a cache that machines share keeps theirs apart."""

from __future__ import annotations

from pathlib import Path

from tile_eg.simulator.build import KERNEL_FLAGS, OWN_MACHINE, PROGRAM_FLAGS, RUNTIME_FLAGS, _own_machine, _runtime_key


def compiler(folder: Path, name: str, takes: str, macros: str = "") -> str:
    """A program that answers as a compiler does which knows one of the options, or none."""
    program = folder / name
    refused = "".join(f'    *"{option}"*) exit 1;;\n' for option in OWN_MACHINE if option != takes)
    program.write_text(f'#!/bin/sh\ncase "$*" in\n{refused}    *-dM*) echo "{macros}";;\n    *) echo "a compiler";;\nesac\n')
    program.chmod(0o755)
    return str(program)


def test_the_first_option_that_a_compiler_takes_is_used(tmp_path: Path) -> None:
    assert [_own_machine(compiler(tmp_path, f"takes{o}", o))[0] for o in OWN_MACHINE] == [(o,) for o in OWN_MACHINE]


def test_a_compiler_that_takes_none_compiles_for_every_machine_of_its_kind(tmp_path: Path) -> None:
    assert _own_machine(compiler(tmp_path, "old", "")) == ((), "")


def test_machines_with_other_instructions_have_another_runtime(tmp_path: Path) -> None:
    wide, narrow = (compiler(tmp_path, name, OWN_MACHINE[0], f"#define {name} 1") for name in ("__AVX512F__", "__AVX2__"))
    assert _runtime_key(wide) != _runtime_key(narrow)


def test_no_part_of_a_run_rounds_a_product_and_a_sum_at_once() -> None:
    assert all("-ffp-contract=off" in flags for flags in (RUNTIME_FLAGS, KERNEL_FLAGS, PROGRAM_FLAGS))
