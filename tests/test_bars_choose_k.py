"""What docs/choosing_k.md says of real images. Minutes long: run by `make slow`."""

import os
from pathlib import Path

import pytest
from benchmarks.choose_k import SETS, is_close, tried

from dccm.networks.encoders import is_installed


@pytest.mark.data
def test_the_suggestion_is_within_a_fifth_on_five_of_six_sets() -> None:
    if not is_installed():
        pytest.skip("the weights of EfficientNet-Lite0 are not installed")
    folder = Path(os.environ.get("DCCM_DATA", ""))
    for wanted in SETS.values():
        if wanted.file and not (folder / f"{wanted.file}.parquet").is_file():
            pytest.skip(f"DCCM_DATA names no folder with {wanted.file}.parquet")
    rows = [tried(folder, name, seed=0) for name in SETS]
    assert sum(map(is_close, rows)) >= 5, rows
