"""A few rounds of each reader with damaged bytes, and all that a fuzzer ever found: nothing but sentences."""

import time
from itertools import islice
from random import Random

import pytest

from tests.data.test_fuzz import damaged
from tests.fuzz.__main__ import CORPUS, SECONDS, attempt
from tests.fuzz.readers import READERS

FOUND = sorted(CORPUS.glob("*/*"))
ROUNDS = {"report": 3, "model": 8, "run": 12}


@pytest.mark.parametrize("name", READERS)
def test_damaged_bytes_end_in_a_sentence(name: str) -> None:
    reader, chance = READERS[name], Random(name)
    seeds = [seed for seed in islice(reader.seeds(), 20) if len(seed) > 1]
    for seed in seeds[:4]:
        attempt(reader.read, seed)
    for _ in range(ROUNDS.get(name, 40)):
        begun = time.monotonic()
        attempt(reader.read, damaged(chance.choice(seeds), chance.choice(seeds), chance))
        assert time.monotonic() - begun < SECONDS


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found_once_is_not_found_again(path: object) -> None:
    from pathlib import Path

    assert isinstance(path, Path)
    begun = time.monotonic()
    attempt(READERS[path.parent.name].read, path.read_bytes())
    assert time.monotonic() - begun < SECONDS
