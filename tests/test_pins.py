"""The pinned set, and the same with all below it and with hashes."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"^([A-Za-z0-9_.-]+)==([^\s;]+)", re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    return {found[0].lower().replace("_", "-"): found[1] for found in PIN.findall((ROOT / name).read_text())}


def test_the_hashed_set_is_the_pinned_one_without_torch_and_whole() -> None:
    pinned, hashed = pins("requirements.txt"), pins("requirements-hashed.txt")
    del pinned["torch"]
    assert "torch" not in hashed
    assert {name: hashed.get(name) for name in pinned} == pinned
    assert len(hashed) > 2 * len(pinned)


def test_each_file_that_may_be_installed_has_a_hash_and_no_address_is_told() -> None:
    text = (ROOT / "requirements-hashed.txt").read_text()
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in block for block in blocks)
    assert not re.search(r"://|--index|--find-links|--extra", text)
