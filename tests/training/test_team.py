"""How processes that learn together are connected; what they do together is in `tests/test_together.py`."""

import os

import pytest

from dccm.training.team import _patient_threads


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="Linux has this policy")
def test_threads_that_begin_together_wait_for_a_free_processor_and_later_ones_do_not() -> None:
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
    with _patient_threads():
        assert os.sched_getscheduler(0) == os.SCHED_BATCH
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
