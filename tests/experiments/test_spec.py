from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dccm.errors import UserError
from dccm.experiments.request import Request
from dccm.experiments.spec import RunSpec
from dccm.experiments.targets import chosen_targets
from tests.support import few_examples

REQUEST = Request(budget="passes:2", seeds=(0, 1), limit=512)


def test_keys_are_the_same_in_every_version() -> None:
    # Whoever has a folder of results wants to go on with it: a change of this key makes all runs anew.
    spec = RunSpec(method="dccm", dataset="cifar10", seed=1, settings=(("label_weight", 0.0),), budget="passes:1")
    assert spec.key == "dccm-cifar10-s1-5ebafbab3824"


def test_equal_runs_are_written_in_one_way() -> None:
    plain = REQUEST.spec("dccm", "cifar10")
    assert REQUEST.spec("dccm", "cifar10", settings={"label_weight": 5.0, "clean_weight": 1}) == plain
    assert replace(REQUEST, budget="passes:2.0").spec("dccm", "cifar10") == plain
    turned = {"label_weight": 1.0, "clean_weight": 0.5}
    other = dict(reversed(turned.items()))
    assert REQUEST.spec("dccm", "cifar10", settings=turned) == REQUEST.spec("dccm", "cifar10", settings=other) != plain


def test_a_method_without_epochs_has_no_budget() -> None:
    without = Request(limit=512)
    assert REQUEST.spec("kmeans", "cifar10") == without.spec("kmeans", "cifar10")
    assert REQUEST.spec("dac", "cifar10") != without.spec("dac", "cifar10")


@few_examples
@given(st.sampled_from(["seed", "limit", "split", "variant", "dataset", "settings", "after"]), st.integers(1, 10**6))
def test_whatever_differs_gives_another_key(name: str, number: int) -> None:
    spec = REQUEST.spec("dccm", "cifar10")
    values: dict[str, Any] = {"seed": number, "limit": number + 512, "settings": (("label_weight", number),)}
    values |= {"after": (("mined_by", replace(spec, seed=number)),)}
    assert replace(spec, **{name: values.get(name, str(number))}).key != spec.key


def test_ablations_and_systems_share_their_runs() -> None:
    request = Request(datasets=("cifar10",))
    keys = {name: {need.spec.key for need in target.needs(request)} for name, target in chosen_targets(["all"]).items()}
    assert len(keys["table2"] & keys["table3"]) == 1  # M4 is DCCM as it is.
    assert len(keys["table2"] & keys["table5"]) == 2  # DAC and DCCM; their probes learn from other images.
    assert keys["table1"] < keys["table2"]


def test_captions_say_budget_images_and_seeds() -> None:
    said = "budget passes:2 for each run; at most 512 images of each data set, drawn at random; 2 seeds; last epoch"
    assert REQUEST.sentence() == said
    assert Request().sentence() == "the paper's schedule; all images; one seed, 0; last epoch"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seeds": ()}, "seeds must name at least one, for example 0,1,2."),
        ({"seeds": (-1,)}, "seeds must lie in [0, 4294967295], got -1. Use 0,1,2."),
        ({"limit": 1}, "limit_images must be at least 2, got 1."),
    ],
)
def test_requests_that_cannot_be_met_are_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as error:
        replace(REQUEST, **changed)
    assert str(error.value) == said
