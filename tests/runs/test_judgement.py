import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from dccm import UserError
from dccm.runs.judgement import Again, Judgement, judgement_from, measures, read_judgement, trust, write_judgement

SOUND = Judgement(
    images=100, sureness=0.9, balance=0.95, silhouette=0.4, silhouettes=[0.5, None, 0.3], perturbed=100, unmoved=0.97,
    beyond_chance=0.95, unmoved_of=[1.0, None, 0.9],
)  # fmt: skip
OTHER = Again(run="clusters-seed1", seed=1, images=100, ari=0.9, nmi=0.92, found=[0.9, None, 1.0])


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "judgement.json"
    assert read_judgement(path) is None
    for judged in (SOUND, replace(SOUND, again=[OTHER]), Judgement(0, None, None, None, [])):
        write_judgement(path, judged)
        assert read_judgement(path) == judged


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"unmoved": 1.5}, "a share outside 0 to 1"),
        ({"silhouette": float("nan")}, "a measure outside -1 to 1"),
        ({"images": -1}, "a count below 0"),
        ({"again": [asdict(OTHER) | {"ari": -3.0}]}, "a measure outside -1 to 1"),
        ({"again": [{"run": "x"}]}, "again is wrong, seed is missing"),
        ({"labels": []}, "'labels' is not among"),
    ],
)
def test_records_that_make_no_sense_are_refused_with_the_reason(change: dict, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        judgement_from(asdict(SOUND) | change)


def test_a_broken_record_is_named_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "judgement.json"
    path.write_text(json.dumps({"images": 3}))
    with pytest.raises(UserError, match=r'judgement.json is broken \(.*\); delete it, and "dccm judge" writes it anew'):
        read_judgement(path)


def test_information_is_sure_and_balanced_at_once() -> None:
    assert SOUND.information == pytest.approx(0.85)
    assert replace(SOUND, sureness=1.0, balance=0.0).information == 0
    assert replace(SOUND, sureness=None).information is None


def test_every_measure_says_what_it_cannot_say() -> None:
    for judged in (SOUND, replace(SOUND, again=[OTHER]), Judgement(0, None, None, None, [])):
        found = measures(judged)
        assert [measure.name for measure in found] == ["perturbation", "seeds", "information", "silhouette"]
        assert all(measure.says.endswith(".") and measure.cannot.endswith(".") for measure in found)
        assert all((measure.value is None) == (measure.sign == "unknown") for measure in found)


def test_trust_follows_what_is_steady_and_warnings_weigh_more() -> None:
    assert trust(SOUND).sign == "good"
    assert "single run" in trust(SOUND).headline
    assert "single run" not in trust(replace(SOUND, again=[OTHER])).headline
    assert trust(replace(SOUND, beyond_chance=0.7)).sign == "mixed"
    assert trust(replace(SOUND, again=[replace(OTHER, ari=0.1)])).sign == "bad"
    assert trust(replace(SOUND, sureness=0.1)).sign == "mixed"
    assert trust(SOUND, warnings=1).sign == "bad"
    assert trust(None).sign == trust(Judgement(0, None, None, None, [])).sign == "unknown"
