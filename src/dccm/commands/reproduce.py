"""Make the runs that tables and figures need, then the tables and figures."""

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dccm.commands.one_run import make_run
from dccm.config import Section, TrainingConfig, read_presets, setting_names
from dccm.errors import choose, require
from dccm.experiments.data_sets import DataSets, parse_data_sets
from dccm.experiments.engines import ENGINES, new_engine
from dccm.experiments.estimate import estimated, in_words
from dccm.experiments.grid import UNSEEN, Observer, failed, merged, run_grid, unfinished
from dccm.experiments.making import make_all
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.spec import frozen
from dccm.experiments.targets import Need, Shown, Target, chosen_targets
from dccm.experiments.worker import Work
from dccm.methods import METHODS
from dccm.progress import SILENT, Watcher

FULL = "full"
"""The budget that is none: the paper's schedule."""
DEFAULT_OUTPUT = "dccm-results"


class Plan(NamedTuple):
    """What is to be made."""

    targets: dict[str, Target]
    request: Request
    data: DataSets
    needs: list[Need]
    """All runs, each once."""
    absent: dict[str, str]
    """Data sets that are not there, and why."""


class Reproduced(NamedTuple):
    """What was made."""

    results: Results
    shown: dict[str, Shown]
    """Tables and figures by name."""
    files: dict[str, list[Path]]
    """Of each."""
    missing: dict[str, str]
    """What is not there by name, with the reason: data sets, runs, tables and figures."""
    complete: bool
    """Whether all that could be planned was made."""


def plan(
    targets: Iterable[str],
    *,
    budget: str = FULL,
    seeds: Sequence[int] = (0,),
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    settings: Mapping[str, object] | None = None,
    limit_images: int | None = None,
    data_root: str | Path | None = None,
) -> Plan:
    """Find out which runs tables and figures need; nothing is made.

    Args:
        targets: Names of tables and figures; `all`: those of the paper, `beyond`: the others.
        budget: `minutes:M` or `passes:P`, the same for each run; `full`: the paper's schedule, for a GPU.
        seeds: Each run is made with each of them.
        datasets: Names of "dccm datasets", or `name=path`; empty: those of the paper that are there.
        methods: Of the methods of a table or figure, or `name:preset` for another preset than the paper's; empty: all.
        settings: By name, for the runs of all methods that know them; what a table changes itself comes first.
        limit_images: So many are drawn from each data set; None: all.
        data_root: Folder with the official files of data sets by name.
    """
    for word in methods:
        _require_method(*word.partition(":")[::2])
    for name in settings or {}:
        choose(name, _all_settings(), "setting", "dccm presets")
    chosen = chosen_targets(targets)
    names, paths = parse_data_sets(datasets)
    data = DataSets(data_root, paths)
    reasons = {name: data.why_absent(name) for name in names or dict.fromkeys(_usual(chosen.values()))}
    absent = {name: reason for name, reason in reasons.items() if reason}
    for name in names:
        require(name not in absent, absent.get(name, ""))
    request = Request(
        budget="" if budget == FULL else budget,
        seeds=tuple(seeds),
        datasets=names,
        methods=tuple(methods),
        settings=frozen(settings or {}),
        limit=limit_images,
        absent=frozenset(absent),
    )
    request.sentence()  # A wrong budget is refused here.
    needed = {name: list(target.needs(request)) for name, target in chosen.items()}
    wanted = {name: target for name, target in chosen.items() if needed[name]}
    require(bool(wanted), _nothing_to_do(chosen, absent))
    return Plan(wanted, request, data, merged(need for needs in needed.values() for need in needs), absent)


def _require_method(name: str, preset: str) -> None:
    choose(name, METHODS, "method", "dccm methods")
    if preset:
        choose(preset, read_presets(name), f"preset of {name}", f"dccm presets --method {name}")


def _all_settings() -> set[str]:
    """Of all methods that learn from images; the data set, seed and budget are asked for by their own names."""
    sections: list[type[Section]] = [
        TrainingConfig,
        *(kind.config_type for kind in METHODS.values() if not kind.needs_vectors),
    ]
    names = {name for section in sections for name in setting_names(section)}
    return names - {"seed", "budget_minutes", "budget_passes"}


def _usual(targets: Iterable[Target]) -> list[str]:
    return [name for target in targets for name in target.usual]


def _nothing_to_do(targets: Iterable[str], absent: dict[str, str]) -> str:
    why = f"of their data sets nothing is there: {' '.join(absent.values())}" if absent else "they have no such methods"
    return (
        f"Nothing can be made for {', '.join(targets)}: {why} Name others with datasets (NAME or NAME=PATH) or methods."
    )


def reproduce(
    targets: Iterable[str] = ("all",),
    *,
    output: str | Path = DEFAULT_OUTPUT,
    jobs: int = 1,
    engine: str = "processes",
    retry_failed: bool = False,
    only: Sequence[str] = (),
    estimate: bool = True,
    observer: Observer = UNSEEN,
    watcher: Watcher = SILENT,
    **planning: Any,
) -> Reproduced:
    """Make tables and figures of the paper, and the runs that they need; what is there already is not made again.

    Args:
        targets: Names of tables and figures; `all`: those of the paper, `beyond`: the others.
        output: The folder of results; other processes may work on it at the same time.
        jobs: Runs at a time.
        engine: `processes` of this machine, or `ray`.
        retry_failed: Make runs again that failed before.
        only: Keys of runs: these alone, and no tables.
        estimate: Say what it will cost, from a short measurement.
        observer: Is told how the runs get on.
        watcher: Is told sentences that the user should read.
        **planning: Budget, seeds, data sets, methods; see `plan`.
    """
    require(jobs >= 1, f"jobs must be at least 1, got {jobs}. Leave it out for one.")
    choose(engine, ENGINES, "engine", "dccm reproduce --help")
    planned = plan(targets, **planning)
    needs = _only(planned.needs, only)
    results = Results(output)
    results.open()
    for need in needs if retry_failed else ():
        results.forget_failure(need.spec)
    left = unfinished(needs, results)
    work = _work(results, planned.data, jobs)
    seconds = estimated(left, planned.data, work.threads) if estimate and left else {}
    watcher.say(_introduction(planned, needs, left, seconds if estimate else None, jobs))
    observer.planned(left, seconds)
    if left:
        run_grid(needs, results, new_engine(engine, work, jobs), observer)
    broken = failed(needs, results)
    missing = planned.absent | {spec.label(): reason for spec, reason in broken.items()}
    if only:
        return Reproduced(results, {}, {}, missing, complete=not broken)
    made = make_all(planned.targets, planned.request, results, planned.needs, missing)
    return Reproduced(results, *made, complete=not broken and len(made.shown) == len(planned.targets))


def _only(needs: list[Need], keys: Sequence[str]) -> list[Need]:
    known = {need.spec.key: need for need in needs}
    for key in keys:
        choose(key, known, "run", "dccm reproduce --print-commands")
    return merged(known[key] for key in keys) if keys else needs


def _work(results: Results, data: DataSets, jobs: int) -> Work:
    """Processes beside each other share the processors."""
    return Work(results, data, make_run, max(1, (os.cpu_count() or 1) // jobs) if jobs > 1 else None)


def _introduction(
    planned: Plan, needs: list[Need], left: list[Need], seconds: dict[str, float] | None, jobs: int
) -> str:
    """What will be made, what it will cost, and what is skipped."""
    lines = [f"{len(needs):,} runs for {', '.join(planned.targets)}, {len(needs) - len(left):,} of them done already."]
    if seconds:
        unknown = len(left) - len(seconds)
        beside = f", not counting {unknown:,} runs that cannot be foretold" if unknown else ""
        total = in_words(sum(seconds.values()) / jobs)
        lines.append(f"The rest takes about {total} of this machine alone, by a short measurement{beside}.")
    lines += [f"Skipped: {name}. {reason}" for name, reason in planned.absent.items()]
    return "\n".join(lines)


def command_lines(
    targets: Iterable[str], *, output: str | Path = DEFAULT_OUTPUT, retry_failed: bool = False, **planning: Any
) -> list[str]:
    """One command for each run that is left, for a scheduler; a run comes behind those that it needs.

    Args:
        targets: As for `reproduce`, and so are the others.
        output: The folder of results, which all machines see.
        retry_failed: List failed runs too.
        **planning: See `plan`.
    """
    targets, planned, results = list(targets), plan(targets, **planning), Results(output)
    results.open()
    needs = [need for need in planned.needs if retry_failed and results.failure(need.spec) is not None]
    keys = {need.spec.key for need in [*needs, *unfinished(planned.needs, results)]}
    words = [*targets, "--output", str(output), *(["--retry-failed"] if retry_failed else []), *_flags(planning)]
    return [
        shlex.join(["dccm", "reproduce", *words, "--quiet", "--only", need.spec.key])
        for need in planned.needs
        if need.spec.key in keys
    ]


def _flags(planning: dict[str, Any]) -> list[str]:
    """Arguments of `plan` as a person types them."""
    words = []
    for name, value in planning.items():
        if isinstance(value, Mapping):
            words += [word for key, one in value.items() for word in ("--set", f"{key}={one}")]
        elif value not in (None, (), []):
            several = isinstance(value, Sequence) and not isinstance(value, str)
            words += [f"--{name.replace('_', '-')}", ",".join(map(str, value)) if several else str(value)]
    return words
