"""The weighted sum of everything that is mined."""

from typing import NamedTuple

from torch import Tensor


class LossTerms(NamedTuple):
    """The terms of the objective, unweighted, by name."""

    graph: Tensor
    """L_PG, of clean and perturbed images together."""
    label: Tensor
    """L_PL, of clean and perturbed images together."""
    information: Tensor
    """L_MI."""


def objective(terms: LossTerms, *, label_weight: float, information_weight: float) -> Tensor:
    """L_DCCM = L_PG + α L_PL + β L_MI (Eq. (15)); with β = 0 and clean images only it is L_CDS (Eq. (10)).

    Args:
        terms: The three terms.
        label_weight: α.
        information_weight: β.
    """
    return terms.graph + label_weight * terms.label + information_weight * terms.information
