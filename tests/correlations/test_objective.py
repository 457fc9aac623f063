import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dccm.correlations.objective import LossTerms, objective
from tests.support import few_examples


def terms(graph: float, label: float, information: float) -> LossTerms:
    values = (torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (graph, label, information))
    return LossTerms(*values)


def test_objective_worked_by_hand() -> None:
    # 1 + 5 x 2 + 0.1 x (-3) = 10.7
    assert objective(terms(1, 2, -3), label_weight=5, information_weight=0.1).item() == pytest.approx(10.7)


def test_objective_without_information_is_the_loss_of_highly_confident_supervision() -> None:
    # Eq. (10): 1 + 5 x 2
    assert objective(terms(1, 2, -3), label_weight=5, information_weight=0).item() == 11


WEIGHTS = st.floats(0, 10)


@few_examples
@given(label_weight=WEIGHTS, information_weight=WEIGHTS)
def test_each_term_gets_its_own_weight_as_gradient(label_weight: float, information_weight: float) -> None:
    parts = terms(0.3, 0.5, -0.7)
    objective(parts, label_weight=label_weight, information_weight=information_weight).backward()
    slopes = [part.grad.item() for part in parts if part.grad is not None]
    assert slopes == [1, label_weight, information_weight]


def test_objective_of_terms_that_are_all_zero_is_zero() -> None:
    assert objective(terms(0, 0, 0), label_weight=5, information_weight=0.1).item() == 0
    assert math.isfinite(objective(terms(1e30, 1e30, -1e30), label_weight=5, information_weight=0.1).item())
