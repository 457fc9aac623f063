from functools import partial
from pathlib import Path

import pytest

from dccm.commands.one_run import make_run
from dccm.evaluation.probe import ProbeConfig
from dccm.experiments.data_sets import DataSets
from dccm.experiments.grid import merged
from dccm.experiments.probing import PROBE
from dccm.experiments.request import Request
from dccm.experiments.table import Table
from dccm.experiments.targets import find_target
from dccm.experiments.targets.table6 import runs
from dccm.experiments.worker import Outcome, Work, do
from tests.experiments.results_of import finish_all, opened

TARGET = find_target("table6")


def test_each_strategy_learns_from_the_pairs_of_the_same_fixed_model() -> None:
    needs = merged(TARGET.needs(Request(datasets=("digits",), seeds=(0, 1))))
    assert len(needs) == 2 * (1 + 4)
    fixed = [need.spec for need in needs if not need.spec.after]
    assert [dict(spec.settings) for spec in fixed] == [{"information_weight": 0.0}] * 2
    for need in needs:
        assert need.spec.split == "train"
        assert [(name, other) for name, other in need.spec.after] in ([], [("mined_by", fixed[need.spec.seed])])


def test_strategies_are_those_of_the_paper() -> None:
    found = {name: dict(runs(Request(datasets=("digits",)), "digits", name)[0].settings) for name in ("V1", "V2", "V4")}
    alone = {"clean_weight": 0.0, "perturbed_weight": 0.0, "own_pairs": False}
    assert found["V1"] == alone  # What the preset says anyway.
    assert found["V2"] == alone | {"pairs": "nearest+farthest"}
    assert found["V4"] == alone | {"pairs": "top_n+random"}


def test_presets_with_several_starts_will_do_too() -> None:
    request = Request(datasets=("digits",), methods=("dccm:fast",))
    fixed, new = (need.spec for need in merged([next(iter(TARGET.needs(request)))]))
    assert "starts" not in dict(fixed.settings)
    assert dict(new.settings)["starts"] == 1


def test_a_fixed_model_and_a_strategy_are_made_and_probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dccm.experiments.probing.ProbeConfig", partial(ProbeConfig, epochs=1, fewest_steps=1))
    request = Request(datasets=("digits",), limit=96, budget="passes:1")
    needs = merged([next(iter(TARGET.needs(request)))])
    results = opened(tmp_path / "results")
    for need in needs:
        assert do(Work(results, DataSets(), make_run), need, lambda *_: None) == Outcome("finished")
    new = needs[-1].spec
    found = results.measured(new, PROBE)
    assert found is not None
    assert (found.train_images, found.test_images) == (77, 19)
    history = results.run(new).read_history()
    assert {record["graph"] for record in history} == {record["label"] for record in history} == {0}
    assert history[-1]["information"] > 0
    table = TARGET.make(request, results)
    assert isinstance(table, Table)
    assert [bool(cells[0].values) for cells in table.rows.values()] == [True, False, False, False]


def test_numbers_of_the_paper_stand_beside_ours(tmp_path: Path) -> None:
    results, request = opened(tmp_path), Request()
    finish_all(results, TARGET, request, {"probe": {"conv": 0.9, "y": 0.7}})
    table = TARGET.make(request, results)
    assert isinstance(table, Table)
    assert [(cells[0].values, cells[0].paper) for cells in table.rows.values()] == [
        ((0.7,), "0.744"),
        ((0.7,), "0.713"),
        ((0.7,), "0.731"),
        ((0.7,), "0.698"),
    ]
