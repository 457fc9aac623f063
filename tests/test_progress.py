import io

import pytest

from dccm.progress import Display, describe
from dccm.training.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def progress(
    done: float = 0.5, warnings: list[str] | None = None, epochs: int | None = 9, seconds_left: float = 125.0
) -> Progress:
    record = {"cluster_sizes": [3, 0], "dead_clusters": 1, "entropy": 0.0, "warnings": warnings or []}
    means = {"loss": 1.25, "graph": 0.5, "confident_share": 0.25, "linked_share": 0.1}
    return Progress(
        epoch=3, epochs=epochs, batch=2, batches=2, done=done, passes=3.0, images_per_second=812.4,
        seconds_left=seconds_left, means=means, record=record,
    )  # fmt: skip


def test_a_line_has_rate_time_left_losses_and_the_state_of_the_clusters() -> None:
    assert describe(progress()) == (
        "812 images/s  2:05 left  loss 1.250  graph 0.500  confident 25%  linked 10%  clusters used 1/2  balance 0.00"
    )


def test_hours_are_told_from_minutes() -> None:
    assert "  59:59 left  " in describe(progress(seconds_left=3599.4))
    assert "  1:00:00 left  " in describe(progress(seconds_left=3599.6))
    assert "  26:03:04 left  " in describe(progress(seconds_left=26 * 3600 + 3 * 60 + 4))


@pytest.mark.parametrize(
    ("epochs", "done", "seconds_left", "told"),
    [(9, 0.5, 3700, True), (9, 0.5, 3500, False), (9, 0.005, 3700, False), (None, 0.5, 3700, False)],
    ids=["long", "short", "just begun", "has a budget"],
)
def test_a_long_run_is_told_of_budgets_once(epochs: int | None, done: float, seconds_left: float, told: bool) -> None:
    stream = io.StringIO()
    with Display(stream=stream) as display:
        for _ in range(3):
            display.training(progress(done, epochs=epochs, seconds_left=seconds_left))
    assert stream.getvalue().count("A run with a budget (minutes:60, for example)") == told


def test_a_log_file_gets_plain_lines_but_not_too_many() -> None:
    stream = io.StringIO()
    with Display(stream=stream) as display:
        for _ in range(5):
            display.training(progress())
        display.training(progress(done=1.0))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("epoch 3/9   50%  812 images/s")
    assert "\x1b" not in stream.getvalue()


def test_a_terminal_gets_a_bar() -> None:
    stream = Terminal()
    with Display(stream=stream) as display:
        display.reading(1, 2)
        display.training(progress())
    assert "epoch 3/9" in stream.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_a_collapse_is_warned_of_once_even_when_quiet(stream: io.StringIO) -> None:
    with Display(quiet=True, stream=stream) as display:
        display.training(progress(warnings=["1 of 2 clusters hold no image."]))
        display.training(progress(warnings=["2 of 2 clusters hold no image."]))
    assert stream.getvalue().splitlines() == ["Warning (epoch 3): 1 of 2 clusters hold no image."]


def test_reading_is_shown_in_a_log() -> None:
    stream = io.StringIO()
    display = Display(stream=stream)
    display.reading(1, 3)
    display.reading(2, 3)
    display.reading(3, 3)
    assert stream.getvalue().splitlines() == ["reading images 1/3", "reading images 3/3"]
