import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from dccm.errors import UserError
from dccm.runs.choice import Asked, Choice, asked_number, read_choice, write_choice

CHOICE = Choice(
    asked="2..5",
    space="pixels",
    images=1234,
    seed=0,
    candidates=[2, 3, 4, 5],
    links=[0.4, 0.6, 0.7, 0.6],
    separation=[1.0, 1.0, 1.0, 1.0],
    stability=[0.5, 0.9, 0.6, 0.5],
    score=[0.2, 0.54, 0.42, 0.3],
    suggestion=3,
    runner_up=4,
    sureness="fairly sure",
    merges=[[0, 1, 2.5], [0, 2, 3.5]],
)


def test_numbers_ranges_and_auto_are_read() -> None:
    assert asked_number("12") == 12
    assert asked_number("-3") == -3  # The setting itself refuses it.
    assert asked_number("5..30") == Asked("5..30", 5, 30)
    assert asked_number("auto") == Asked("auto", 2, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "autoo",
            "n_clusters must be a whole number, a range such as 5..30, or auto, got 'autoo'. Did you mean",
        ),
        ("5..", "got '5..'"),
        ("..5", "got '..5'"),
        ("5...9", "got '5...9'"),
        ("5-30", "got '5-30'"),
        ("", "got ''"),
        ("1e99", "got '1e99'"),
        ("9" * 30, "must be a whole number"),
        ("30..5", "n_clusters must not fall from the first to the second number, got '30..5'"),
        ("1..5", "n_clusters must begin at 2 or more in a range, got '1..5'"),
    ],
)
def test_anything_else_is_refused_in_one_sentence(text: str, expected: str) -> None:
    with pytest.raises(UserError) as refused:
        asked_number(text)
    assert expected in str(refused.value)


def test_auto_tries_up_to_fifty_clusters_of_ten_images_each() -> None:
    assert Asked("auto").within(100_000) == (2, 50)
    assert Asked("auto").within(180) == (2, 18)
    assert Asked("auto").within(8) == (2, 2)


def test_a_range_needs_four_images_per_cluster() -> None:
    assert Asked("5..30", 5, 30).within(120) == (5, 30)
    with pytest.raises(UserError, match=r"at most 29 clusters of 119 images, got '5..30'"):
        Asked("5..30", 5, 30).within(119)
    with pytest.raises(UserError, match="7 images, which are too few to choose from"):
        Asked("auto").within(7)


def test_a_choice_is_said_in_one_line_and_drawn_as_text() -> None:
    assert CHOICE.sentence() == (
        "K = 3 suggested from 2..5 (runner-up 4; fairly sure): two halves of 1,234 images agree on such clusters of "
        "their pixels by 0.90 of 1."
    )
    lines = CHOICE.curve(width=10).splitlines()
    assert lines[1] == "    3  0.540  ##########  suggested"
    assert lines[2].endswith("########  runner-up")
    assert len(lines) == 4
    assert "runner-up" not in replace(CHOICE, runner_up=None).sentence()


def test_a_choice_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    write_choice(tmp_path / "choice.json", CHOICE)
    assert read_choice(tmp_path / "choice.json") == CHOICE
    assert read_choice(tmp_path / "nothing.json") is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"suggestion": 9}, "suggestion must be one of the candidates"),
        ({"runner_up": 9}, "runner_up must be one of the candidates"),
        ({"candidates": [5, 4, 3, 2]}, "candidates must be rising whole numbers"),
        ({"candidates": []}, "candidates must be rising whole numbers"),
        ({"score": [1.0]}, "score must be a number for each candidate"),
        ({"score": [float("nan")] * 4}, "score must be a number for each candidate"),
        ({"space": 3}, "space must be a short text"),
        ({"images": -1}, "images must be a whole number"),
        ({"merges": [[1, 2]]}, "merges must be a list of three numbers each"),
        ({"more": 1}, "not an object of asked"),
    ],
)
def test_a_broken_choice_is_named_in_one_sentence(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    path = tmp_path / "choice.json"
    path.write_text(json.dumps(asdict(CHOICE) | changes))
    with pytest.raises(UserError, match="choice.json is broken") as refused:
        read_choice(path)
    assert expected in str(refused.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, " " * 1_000_001])
def test_what_is_no_choice_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "choice.json").write_text(text)
    with pytest.raises(UserError, match="choice.json is broken"):
        read_choice(tmp_path / "choice.json")
