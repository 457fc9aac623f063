"""The measures that need no label, as the page shows them."""

import math
from typing import NamedTuple

from dccm.runs.judgement import Judgement, measures

_TITLES = {
    "perturbation": "Slightly perturbed images",
    "seeds": "Another seed",
    "information": "What predictions tell",
    "silhouette": "Silhouette",
}
_WORDS = {"good": "good sign", "mixed": "mixed", "bad": "bad sign", "weak": "says little", "unknown": "not measured"}


class Shown(NamedTuple):
    """A measure on the page."""

    title: str
    value: float
    sign: str
    word: str
    """The sign, for those who see no colours."""
    says: str
    cannot: str


def judged(judgement: Judgement | None) -> list[Shown]:
    """All measures; none for a run that nobody judged."""
    found = measures(judgement) if judgement else []
    return [
        Shown(_TITLES[name], math.nan if value is None else value, sign, _WORDS[sign], says, cannot)
        for name, value, sign, says, cannot in found
    ]
