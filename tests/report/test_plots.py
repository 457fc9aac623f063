import re

import pytest

from dccm.report import plots


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0, 2100, ["0", "500", "1,000", "1,500", "2,000", "2,500"]),
        (-0.03, 0.04, ["-0.04", "-0.02", "0.00", "0.02", "0.04"]),
    ],
)
def test_ticks_are_round_and_enclose_the_values(low: float, high: float, expected: list[str]) -> None:
    assert [tick.text for tick in plots.ticks(low, high)] == expected


@pytest.mark.parametrize("value", [0.0, 0.7, -3.0, 1e-12, 1e12])
def test_ticks_of_a_constant_stand_on_both_sides_of_it(value: float) -> None:
    found = [tick.value for tick in plots.ticks(value, value)]
    assert found[0] <= value <= found[-1]
    assert found[0] < found[-1]


def test_counts_have_whole_ticks() -> None:
    assert [tick.text for tick in plots.ticks(0, 2, whole=True)] == ["0", "1", "2"]


def test_a_curve_is_broken_where_a_value_is_missing() -> None:
    chart = plots.line_chart({"loss": [3.0, 2.0, float("nan"), 1.0]}, [1, 2, 3, 4], title="Loss", y_label="Loss")
    path = re.search(r'<path d="([^"]*)"', chart)
    assert path is not None
    assert re.sub(r"[^ML]", "", path[1]) == "MLM"
    assert chart.count("<circle") == 3


def test_a_chart_of_shares_always_reaches_from_zero_to_one() -> None:
    chart = plots.line_chart({"linked": [0.4, 0.5]}, [1, 2], title="Links", y_label="Share", at_least=(0, 1))
    assert re.findall(r'text-anchor="end">([^<]+)', chart) == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]


def test_a_long_history_is_a_line_without_markers_except_for_lone_points() -> None:
    values = [1.0] * 98 + [float("nan"), 1.0]
    chart = plots.line_chart({"loss": values}, list(range(100)), title="Loss", y_label="Loss")
    assert chart.count("<circle") == 1


def test_histogram_has_twenty_bins_and_takes_in_both_ends() -> None:
    chart = plots.histogram([0.0, 0.5, 1.0, float("nan")], title="Confidence")
    assert chart.count("<rect") == 20
    assert "0.00–0.05: 1 image<" in chart
    assert "0.95–1.00: 1 image<" in chart
