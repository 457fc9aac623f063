from pathlib import Path

import pytest
from benchmarks.features import LATEST, missed
from benchmarks.scale import Step, tables
from benchmarks.speed import compared


@pytest.mark.parametrize(
    ("name", "before", "now", "worse"),
    [
        ("fast / published", 6.0, 5.0, True),
        ("fast / published", 6.0, 7.5, False),
        ("import dccm / import torch", 1.0, 1.3, True),
        ("import dccm / import torch", 1.0, 0.7, False),
        ("cost an image, 60,000 / 10,000 images", 1.0, 1.3, True),
        ("cost an image, 60,000 / 10,000 images", 1.0, 0.7, False),
        ("images/s fast", 200.0, 100.0, False),
    ],
)
def test_the_check_knows_which_ratios_should_be_large(name: str, before: float, now: float, worse: bool) -> None:
    assert bool(compared({name: now}, {name: before})) == worse


def test_the_check_leaves_out_what_was_not_measured() -> None:
    assert not compared({}, {"cost an image, 60,000 / 10,000 images": 1.0})


def test_slow_extraction_and_a_late_start_miss_their_bars() -> None:
    share = "extraction / fastest bare pass"
    assert not missed({share: 0.95, LATEST: 2.5, "images/s extraction": 0.1})
    assert missed({share: 0.8}) == [f"{share}: 0.800, must be at least 0.9"]
    assert missed({LATEST: 3.5}) == [f"{LATEST}: 3.50, must be at most 3.0"]


def test_the_page_on_scale_has_the_tables_that_the_program_prints() -> None:
    page = (Path(__file__).parent.parent / "docs" / "scale.md").read_text(encoding="utf-8")
    for table in tables():
        assert table in page


def test_more_images_on_each_gpu_leave_less_of_the_time_to_the_network() -> None:
    assert Step(1, 64).useful == 1
    assert Step(8, 64).useful < Step(8, 512).useful < 1
    assert Step(8, 512).pass_seconds(1e6) == pytest.approx(1e6 / 4096 * (512 / 20_000 + Step(8, 512).sending))
