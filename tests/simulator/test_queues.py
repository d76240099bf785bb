"""Queues order their users as the framework's flags would, and say what is wrong with their use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.simulator.asc import QUEUES, launched, without

pytestmark = pytest.mark.slow(but=3)


@pytest.mark.slow
def test_a_double_buffered_kernel_in_queue_style_computes_and_is_not_blamed(tmp_path: Path) -> None:
    done = launched(tmp_path)
    np.testing.assert_array_equal(done.outputs[0], np.arange(2048, dtype=np.float32) * 0.5)
    assert done.ok


@pytest.mark.slow
def test_without_enque_and_deque_the_consumer_races_with_the_producer(tmp_path: Path) -> None:
    source = without(QUEUES, "in.EnQue(a);", "a = in.DeQue<float>();")
    race = launched(tmp_path, source).findings[0]
    assert (race.kind, race.line, race.other_line) == ("race", 20, 16)


@pytest.mark.slow
def test_single_buffers_are_reused_after_their_reader(tmp_path: Path) -> None:
    assert launched(tmp_path, QUEUES.replace("(in, 2,", "(in, 1,").replace("(out, 2,", "(out, 1,")).ok


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("in.EnQue(a);", "DeQue of an empty queue"),
        ("in.FreeTensor(a);", "all 2 buffers of the queue are in use"),
        ("a = in.DeQue<float>();", "freed while it waits in the queue"),
        ("pipe.InitBuffer(in, 2, tile * sizeof(float));", "no buffers yet"),
    ],
)
def test_a_missing_call_is_named(part: str, message: str, tmp_path: Path) -> None:
    findings = launched(tmp_path, without(QUEUES, part)).findings
    assert any(f.kind == "queue" and message in f.message for f in findings)


@pytest.mark.slow
def test_a_second_enque_overflows_a_queue_of_depth_one(tmp_path: Path) -> None:
    twice = "in.EnQue(a); auto b = in.AllocTensor<float>(); in.EnQue(b);"
    finding = launched(tmp_path, QUEUES.replace("in.EnQue(a);", twice)).findings[0]
    assert finding.kind == "queue" and "overflows" in finding.message


def test_a_tensor_that_stays_in_a_queue_is_a_leak(tmp_path: Path) -> None:
    source = QUEUES.replace("    }\n}", "    }\n    auto rest = in.AllocTensor<float>();\n    in.EnQue(rest);\n}")
    assert any(f.kind == "queue" and "never dequeued" in f.message for f in launched(tmp_path, source).findings)


def test_the_compiler_orders_vector_instructions_only_when_it_may(tmp_path: Path) -> None:
    source = QUEUES.replace("out.EnQue(c);", "AscendC::Adds(c, c, 1.0f, tile);\n        out.EnQue(c);")
    assert launched(tmp_path, source).ok
    assert {f.kind for f in launched(tmp_path, source, auto_sync=False).findings} == {"race"}


@pytest.mark.parametrize(("waits", "kinds"), [("in.FreeAllEvent(); ", set()), ("", {"race"})])
def test_after_free_all_event_others_may_fill_the_free_buffers(waits: str, kinds: set[str], tmp_path: Path) -> None:
    again = f"in.FreeTensor(a); {waits}AscendC::DataCopy(a, gx, tile); AscendC::PipeBarrier<PIPE_MTE2>();"
    done = launched(tmp_path, QUEUES.replace("in.FreeTensor(a);", again))
    assert {finding.kind for finding in done.findings} == kinds
