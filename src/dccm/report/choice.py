"""How the number of clusters was chosen, as a drawing and in words."""

from markupsafe import Markup

from dccm.report.plots import line_chart
from dccm.runs.choice import Choice

_MEANING = {
    "sure": "All halves of the images that were compared say so, and no other number comes close.",
    "fairly sure": "Most halves of the images that were compared say so, but other numbers come close: look at both.",
    "not sure": "Halves of the images that were compared speak for different numbers: take it as a first guess.",
}


def choice_chart(choice: Choice) -> Markup:
    """The score over the number of clusters, with what it is made of."""
    best = max(max(choice.score), 1e-12)
    curves = {"score, of the best": [score / best for score in choice.score], "links": choice.links}
    curves |= {"separation": choice.separation, "stability": choice.stability}
    marks = {f"suggested {choice.suggestion}": choice.suggestion}
    if choice.runner_up is not None:
        marks[f"runner-up {choice.runner_up}"] = choice.runner_up
    numbers = [float(number) for number in choice.candidates]
    return line_chart(
        curves, numbers, title="Number of clusters", y_label="0 to 1", at_least=(0, 1), x_label="Clusters", marks=marks
    )


def choice_note(choice: Choice) -> str:
    """How sure that is, in sentences."""
    return f"{choice.sentence()} {_MEANING.get(choice.sureness, '')}".strip()
