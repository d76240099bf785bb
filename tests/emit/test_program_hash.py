"""A program's hash is its own: found once, of equal programs the same, and not taken to another process."""

from __future__ import annotations

import pickle
from dataclasses import replace

from tests.emit.test_tasks import program


def test_equal_programs_have_one_hash() -> None:
    one = program("softmax", 1)
    assert hash(replace(one)) == hash(one) != hash(replace(one, blocks=2))


def test_a_program_that_was_stored_finds_its_hash_anew() -> None:
    one = program("softmax", 1)
    stored = {name for name in vars(pickle.loads(pickle.dumps(one))) if name not in type(one).__dataclass_fields__}
    assert hash(one) and not stored
