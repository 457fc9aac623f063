import numpy as np
import pytest

from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.evaluation.metrics import accuracy
from dccm.methods.nmf import NMFConfig, Reduced, link, new_amounts, new_parts, unit_parts
from dccm.runs.config import make_config
from dccm.runs.fitting import fit

RANDOM = np.random.default_rng(0)
POINTS, AXES = RANDOM.random((12, 5), np.float32), np.eye(5, dtype=np.float32)
ROWS = Reduced(POINTS, AXES)
PARTS, AMOUNTS = RANDOM.random((5, 3), np.float32), RANDOM.random((12, 3), np.float32)
LINKS = link(np.stack([np.roll(np.arange(12), -1), np.roll(np.arange(12), -2)], axis=1))


def objective(parts: np.ndarray, amounts: np.ndarray, graph_weight: float) -> float:
    """|X - V U'|^2 + lambda tr(V' L V)."""
    laplacian = np.diag(LINKS.sum(axis=1)) - LINKS.toarray()
    missed = POINTS @ AXES.T - amounts @ parts.T
    return float((missed**2).sum() + graph_weight * np.trace(amounts.T @ laplacian @ amounts))


def test_links_are_symmetric_ones() -> None:
    links = link(np.array([[1], [0], [1]])).toarray()
    np.testing.assert_array_equal(links, [[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def test_updates_worked_by_hand() -> None:
    rows = Reduced(np.array([[4.0]], np.float32), np.array([[1.0]], np.float32))
    one, two = np.array([[1.0]], np.float32), np.array([[2.0]], np.float32)
    # X = 4, U = 1, V = 2: U (X V) / (U V V) = 8 / 4; V (X U) / (V U U) = 2 * 4 / 2.
    assert new_parts(rows, one, two).item() == 2
    assert new_amounts(rows, one, two, link(np.zeros((1, 0), np.int64)), 100.0).item() == 4


@pytest.mark.parametrize("graph_weight", [0.0, 1.0, 100.0])
def test_no_update_raises_the_objective_and_all_stays_non_negative(graph_weight: float) -> None:
    parts, amounts = PARTS, AMOUNTS
    before = objective(parts, amounts, graph_weight)
    for _ in range(30):
        parts = new_parts(ROWS, parts, amounts)
        amounts = new_amounts(ROWS, parts, amounts, LINKS, graph_weight)
        after = objective(parts, amounts, graph_weight)
        assert after <= before * (1 + 1e-5)
        before = after
    assert min(parts.min(), amounts.min()) >= 0


def test_linked_images_become_alike_under_a_strong_graph() -> None:
    free, tied = AMOUNTS, AMOUNTS
    for _ in range(50):
        free = new_amounts(ROWS, PARTS, free, LINKS, 0.0)
        tied = new_amounts(ROWS, PARTS, tied, LINKS, 100.0)
    assert tied.std(axis=0).max() < 0.2 * free.std(axis=0).max()


def test_unit_parts_have_length_one_and_leave_the_product() -> None:
    parts, amounts = unit_parts(PARTS, AMOUNTS)
    np.testing.assert_allclose(np.linalg.norm(parts, axis=0), 1, rtol=1e-5)
    np.testing.assert_allclose(amounts @ parts.T, AMOUNTS @ PARTS.T, rtol=1e-5)


def test_bars_of_four_directions_are_mostly_told_apart() -> None:
    found = bars(120, side=12)
    assert found.labels is not None
    config = make_config("nmf", overrides={"n_clusters": 4, "graph_weight": 1.0})
    labels = fit(found.images, config).model.predict_proba(found.images).argmax(axis=1)
    assert accuracy(found.labels, labels) > 0.8


def test_black_images_do_no_harm() -> None:
    images = bars(20, side=8).images
    images[::2] = 0
    probability = fit(images, make_config("nmf", overrides={"n_clusters": 2})).model.predict_proba(images)
    assert np.isfinite(probability).all()
    assert len(np.unique(probability[::2].argmax(axis=1))) == 1


def test_parts_are_never_below_zero() -> None:
    text = "scaling must be 'none' or 'unit' for nmf, got 'centred': parts cannot be below zero. Take 'unit'."
    with pytest.raises(UserError, match=f"^{text}$"):
        NMFConfig(scaling="centred")
