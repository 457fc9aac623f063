"""What `benchmarks.load` makes of its times."""

from benchmarks.load import ALONE, BESIDE, WORK, missed, ratios


def test_what_is_left_beside_busy_processes_is_a_share_of_the_same_contestants_speed_alone() -> None:
    rates = {f"as it was, {ALONE}": 100.0, f"as set, {ALONE}": 98.0, f"as it was, {BESIDE}": 20.0}
    found = ratios(rates | {f"as set, {BESIDE}": 49.0})
    assert found[f"as set / as it was, {ALONE}"] == 0.98
    assert found[f"as set, {BESIDE} / {ALONE}"] == 0.5
    assert found[f"as it was, {BESIDE} / {ALONE}"] == 0.2


def test_a_missed_bar_is_named_with_its_figure() -> None:
    good = {f"{table}, as set / as it was, {ALONE}": 1.0 for table in WORK}
    good |= {f"{table}, as set, {BESIDE} / {ALONE}": 0.45 for table in WORK}
    assert missed(good) == []
    slow = good | {f"digits, as set / as it was, {ALONE}": 0.9}
    assert missed(slow) == [f"digits, as set / as it was, {ALONE}: 0.900, must be at least 0.97"]
