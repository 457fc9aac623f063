"""What the user asked for, and the runs of a table or figure under it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dccm.config import parse_budget
from dccm.data.datasets import DATASETS
from dccm.errors import require
from dccm.experiments.spec import RunSpec, frozen
from dccm.runs.config import has_epochs, make_config


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which data, seeds and methods, and how long a run may be: the same for every table and figure."""

    budget: str = ""
    """`minutes:M` or `passes:P`; empty: the schedule of the preset, which is the paper's."""
    seeds: tuple[int, ...] = (0,)
    datasets: tuple[str, ...] = ()
    """Empty: those of the paper's table or figure."""
    methods: tuple[str, ...] = ()
    """Names, or `name:preset` for another preset than the paper's; empty: all of the table or figure."""
    settings: tuple[tuple[str, Any], ...] = ()
    """For the runs of all methods that know them; what a table or figure changes itself comes first."""
    limit: int | None = None
    """Images that are drawn from each data set; None: all."""
    absent: frozenset[str] = field(default=frozenset())
    """Data sets that are not there: nothing is planned for them."""

    def __post_init__(self) -> None:
        require(bool(self.seeds), "seeds must name at least one, for example 0,1,2.")
        for seed in self.seeds:
            require(0 <= seed <= _LARGEST_SEED, f"seeds must lie in [0, {_LARGEST_SEED}], got {seed}. Use 0,1,2.")
        require(self.limit is None or self.limit >= 2, f"limit_images must be at least 2, got {self.limit}.")
        many = self.limit is not None and self.limit >= 2**63
        require(not many, f"limit_images must be a number of 64 bits, got {self.limit}. Leave it out for all images.")

    def datasets_of(self, usual: Sequence[str]) -> list[str]:
        """The data sets of a table or figure: those that were asked for, or the usual ones, if they are there."""
        return [name for name in self.datasets or usual if name not in self.absent]

    def methods_of(self, usual: Sequence[str]) -> list[str]:
        """Of the methods of a table or figure, those that were asked for."""
        named = [word.partition(":")[0] for word in self.methods]
        for name in named:
            require(
                named.count(name) == 1 or name not in usual,
                f"methods must name '{name}' once for this table or figure, got {', '.join(self.methods)}. "
                'Several presets stand beside each other in the table "systems".',
            )
        return [name for name in usual if not named or name in named]

    def preset_of(self, method: str) -> str:
        """The preset that was asked for with a method, or the paper's."""
        words = [word.partition(":") for word in self.methods]
        return next((preset for name, _, preset in words if name == method and preset), PAPER)

    def spec(
        self,
        method: str,
        dataset: str,
        seed: int = 0,
        *,
        preset: str | None = None,
        settings: Mapping[str, object] | None = None,
        split: str = "",
        variant: str = "",
        after: Mapping[str, RunSpec] | None = None,
    ) -> RunSpec:
        """A run under this request, written so that equal runs are equal: only what differs from the preset is stated.

        Args:
            method: See "dccm methods".
            dataset: One of `datasets_of`.
            seed: One of `seeds`.
            preset: Of the method; None: `preset_of` it.
            settings: On top of the preset.
            split: `train` leaves the test images to a probe.
            variant: Of the data set, such as `fine`.
            after: Settings that want the folder of another run, and that run.
        """
        preset = preset or self.preset_of(method)
        usual = make_config(method, preset, known_data_set(dataset)).settings()
        own = {name: value for name, value in (settings or {}).items() if usual.get(name, _NOTHING) != value}
        as_it_is = method in _FOLLOWED and not (own or split or variant or after)
        given = {"milestones": MILESTONES if as_it_is else 0}
        given |= {name: value for name, value in self.settings if name in usual} | dict(settings or {})
        differs = {name: value for name, value in given.items() if usual.get(name, _NOTHING) != value}
        return RunSpec(
            method=method,
            dataset=dataset,
            seed=seed,
            preset=preset,
            settings=frozen(differs),
            budget=_one_spelling(self.budget) if has_epochs(method) else "",
            limit=self.limit,
            split=split,
            variant=variant,
            after=tuple(sorted((after or {}).items())),
        )

    def over_seeds(self, method: str, dataset: str, **others: Any) -> list[RunSpec]:
        """The same run with each seed; the other arguments are those of `spec`."""
        return [self.spec(method, dataset, seed, **others) for seed in self.seeds]

    def sentence(self) -> str:
        """Budget, images and seeds, for captions."""
        schedule = f"budget {_one_spelling(self.budget)} for each run" if self.budget else "the paper's schedule"
        images = f"at most {self.limit:,} images of each data set, drawn at random" if self.limit else "all images"
        seeds = f"{len(self.seeds)} seeds" if len(self.seeds) > 1 else f"one seed, {self.seeds[0]}"
        presets = [
            f"preset {word.partition(':')[2]} of {word.partition(':')[0]}" for word in self.methods if ":" in word
        ]
        changed = [f"{name} = {value} where a method has it" for name, value in self.settings]
        return "; ".join([schedule, images, seeds, *presets, *changed, "last epoch"])


_LARGEST_SEED = 2**32 - 1
_NOTHING = object()
_FOLLOWED = ("dccm", "dac")
"""Methods into whose runs figures look: as they are on all images they keep predictions, so that tables share them."""
MILESTONES = 10
"""Steps after which they do."""
PAPER = "paper"
"""The preset of all tables and figures, unless another one is asked for."""


def known_data_set(name: str) -> str:
    """The name under which presets know a data set; empty if they do not."""
    return name if name in DATASETS else ""


def _one_spelling(budget: str) -> str:
    """`passes:1` and `passes:1.0` are the same."""
    if not budget:
        return ""
    ((name, amount),) = parse_budget(budget).items()
    return f"{name.removeprefix('budget_')}:{amount:g}"
