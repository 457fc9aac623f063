import pytest

from dccm.config import TrainingConfig, build
from dccm.errors import UserError, counted, require


def test_a_sentence_with_a_value_without_end_keeps_its_beginning_and_its_way_out() -> None:
    with pytest.raises(UserError) as caught:
        require(False, f"colour must be red, got {'x' * 10**6}. Take red.")
    text = str(caught.value)
    assert len(text) < 2000
    assert text.startswith("colour must be red, got x")
    assert text.endswith("x. Take red.")


def test_a_sentence_stays_one_line_whatever_name_is_in_it() -> None:
    assert str(UserError("No kind of change '\x1b[2J\n\u202e'.")) == "No kind of change '\\x1b[2J\\n\\u202e'."


def test_a_sentence_of_the_usual_length_stays_whole() -> None:
    assert str(UserError("x" * 1600)) == "x" * 1600


def test_a_setting_of_any_length_is_refused_in_a_short_sentence() -> None:
    with pytest.raises(UserError, match=r"^No setting 'x{200}\.\.\.' in config\.toml\. See") as caught:
        build([TrainingConfig], {"x" * 10**6: 1}, "config.toml")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(("count", "words"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (1234, "1,234 files")])
def test_one_is_one(count: int, words: str) -> None:
    assert counted(count, "file") == words
