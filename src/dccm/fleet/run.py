"""All shards of what the user named, through one job, into one output: what is done stays, what is missing is done."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dccm.data.datasets import data_set_name
from dccm.data.sources.several import Sources
from dccm.data.sources.shards import Shard, shards_at
from dccm.data.storage import is_address
from dccm.errors import UserError, require
from dccm.fleet.engines import done_by, require_engine
from dccm.fleet.jobs import Job
from dccm.fleet.output import Output
from dccm.fleet.shard import Done, result_name
from dccm.fleet.table import require_pyarrow

_SECONDS_BETWEEN_NOTES = 20.0


@dataclass(frozen=True)
class Pace:
    """How far the shards are."""

    shards: int
    """That are done."""
    of: int
    images_per_second: float
    seconds_left: float
    share: float
    """Of the bytes, 0 to 1."""


@dataclass(frozen=True)
class Summary:
    """What is in an output."""

    output: str
    shards: int
    images: int
    skipped: int
    missing: list[Done]
    """Shards without a result, each with the reason."""
    passing: int
    """Images that could not be read for what may pass."""


def do_shards(
    job: Job,
    images: Any,
    output: str | Path,
    *,
    engine: str = "processes",
    processes: int | None = None,
    threads: int | None = None,
    on_pace: Callable[[Pace], None],
    say: Callable[[str], None],
) -> Summary:
    """Do every shard that has no result yet.

    Args:
        job: What is done.
        images: A path, an address or a pattern, or several of them as `Sources`.
        output: A folder, or an address.
        engine: `processes` of this machine, or `ray`.
        processes: At work beside each other.
        threads: That decode.
        on_pace: Called as it gets on.
        say: Called with a sentence that the user should read.
    """
    require_pyarrow()
    require_engine(engine)
    places = _places(images)
    there = Output(output, job.identity, ", ".join(map(_absolute, places)))
    _require_apart(there.place, places)
    shards = [shard for shard in _shards_of(places) if not _is_below(there.place, shard.files[0].place)]
    with there.held():
        there.begin()
        left = [shard for shard in shards if not there.is_done(shard)]
        if len(left) < len(shards):
            say(f"{len(shards) - len(left):,} of {len(shards):,} shards are done already.")
        if others := there.others(shards):
            say(f"{others:,} results in {there.place} are of shards that are not there any more; they stay.")
        made = done_by(engine, job, there.place, left, processes, threads) if left else iter(())
        _follow(made, there, left, on_pace)
        there.finish(shards)
    return _summary(there, shards)


def _follow(made: Iterator[Done], there: Output, left: Sequence[Shard], on_pace: Callable[[Pace], None]) -> None:
    """Note what is done, now and then and at the end, and say how it gets on."""
    sizes = {shard.name: sum(file.size for file in shard.files) + 1 for shard in left}
    started = noted = time.monotonic()
    total, behind, images = sum(sizes.values()), 0, 0
    fresh: list[Done] = []
    try:
        for number, done in enumerate(made, start=1):
            _require_not_stopped(done)
            fresh.append(done)
            behind, images = behind + sizes[done.shard], images + done.images + done.skipped
            now = time.monotonic()
            passed, share = max(now - started, 1e-9), behind / total
            on_pace(Pace(number, len(left), images / passed, passed * (1 - share) / share, share))
            if now - noted > _SECONDS_BETWEEN_NOTES:
                there.note(fresh)
                noted, fresh = now, []
    except BaseException:
        with suppress(UserError):  # A full output has no room for them; the results say it themselves.
            there.note(fresh)
        raise
    finally:
        if isinstance(made, Generator):
            made.close()  # Now, and not when nobody needs it any more: it ends processes.
    there.note(fresh)


def _require_not_stopped(done: Done) -> None:
    require(
        not done.stops,
        f"The result of the shard {done.shard} could not be written on {done.node}, nor could others be: {done.reason} "
        "Finished shards are kept; the same command does the others.",
    )


def _summary(there: Output, shards: Sequence[Shard]) -> Summary:
    known = [there.known[shard.name] for shard in shards]
    return Summary(
        there.place,
        len(shards),
        sum(done.images for done in known),
        sum(done.skipped for done in known),
        [done for done in known if done.reason],
        sum(done.passing for done in known),
    )


def _places(images: Any) -> list[str]:
    places = list(images) if isinstance(images, Sources) else [images]
    for place in places:
        named = isinstance(place, str | Path) and str(place) != "-" and not data_set_name(place)
        require(
            named,
            "engine and processes are for images at a path or an address, as they are done shard by shard; "
            f"got {place if isinstance(place, str) else type(place).__name__}. Leave them out.",
        )
    return [str(place) for place in places]


def _require_apart(output: str, places: Sequence[str]) -> None:
    """Results among the images would be taken for images by the next run."""
    for place in map(_absolute, places):
        require(
            not _is_below(place.rstrip("/"), output),
            f"The output must not lie among the images, got {output} below {place}. Choose another one.",
        )


def _is_below(folder: str, place: str) -> bool:
    return _absolute(place).startswith(f"{folder}/") or _absolute(place) == folder


def _absolute(place: str) -> str:
    return place if is_address(place) else str(Path(place).absolute())


def _shards_of(places: Sequence[str]) -> list[Shard]:
    """All shards; those of several places are told apart by their names."""
    for place in places:
        require(
            is_address(place) or any(character in place for character in "*?[") or Path(place).exists(),
            f"There is no file or folder {place}. Give a path, or an address such as s3://bucket/photos.",
        )
    shards = [shard for place in places for shard in shards_at(place)]
    if len(places) > 1:
        shards = [shard if shard.names else replace(shard, prefix=f"{shard.name}/") for shard in shards]
    seen: dict[str, Shard] = {}
    for shard in shards:
        other = seen.setdefault(result_name(shard.name), shard)
        require(
            other is shard,
            f"Two shards would have the result {result_name(shard.name)}: {other.files[0].place} and "
            f"{shard.files[0].place}. Name the folder above both, or do them one after the other.",
        )
    return shards
