"""Bytes that learn which way they go: `python -m tests.fuzz --minutes 60 [reader ...]`.

Each reader has a process of its own, in which atheris follows the branches that Python takes (and nothing is followed
where it is not installed: then bytes are changed blindly). A traceback, a hang of 10 seconds, and more than 2 GB of
memory are findings; the bytes are kept below `fuzz-findings`, and belong into `tests/fuzz/corpus` when they are mended.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from dccm.errors import UserError

SECONDS, MEGABYTES = 10, 2048
"""How long one reading may take, and how much memory the process may have."""
CORPUS = Path(__file__).parent / "corpus"
FINDINGS = Path("fuzz-findings")


def main() -> int:
    """Give each reader its share of the time; 1 if anything was found."""
    from tests.fuzz.readers import READERS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("readers", nargs="*", default=list(READERS))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        return _child(asked.child, asked.seed, asked.minutes)
    print(f"seed {asked.seed}, {'atheris' if _can_learn() else 'without atheris: bytes are changed blindly'}")
    share = asked.minutes / len(asked.readers)
    for name in asked.readers:
        _give_time(name, share, asked.seed)
    found = sorted(FINDINGS.glob("*/*")) if FINDINGS.is_dir() else []
    print("\n".join(f"FOUND {path}" for path in found) or "nothing found")
    return int(bool(found))


def _can_learn() -> bool:
    try:
        import atheris  # noqa: F401
    except ImportError:
        return False
    return True


def _give_time(name: str, minutes: float, seed: int) -> None:
    """Run the process of one reader again and again until its time is over: it ends with each finding."""
    end, begun = time.monotonic() + 60 * minutes, 0
    while (left := end - time.monotonic()) > 1 and begun < 20:
        words = [sys.executable, "-m", "tests.fuzz", "--child", name, "--minutes", str(left / 60)]
        done = subprocess.run([*words, "--seed", str(seed + begun)], stderr=subprocess.PIPE, text=True, check=False)
        begun += 1
        said = [line for line in done.stderr.splitlines() if line.strip()]
        if done.returncode:
            print(f"{name}: ended with {done.returncode}\n  " + "\n  ".join(said[-30:]), flush=True)
        else:
            print(f"{name}: {said[-1] if said else 'done'}", flush=True)


def _child(name: str, seed: int, minutes: float) -> int:
    findings = FINDINGS / name
    findings.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        _write_corpus(name, Path(folder))
        if not _can_learn():
            return _change_blindly(name, Path(folder), seed, minutes)
        _learn(name, Path(folder), seed, minutes)
    return 0


def _write_corpus(name: str, folder: Path) -> None:
    from tests.fuzz.readers import READERS

    for number, content in enumerate(READERS[name].seeds()):
        (folder / f"seed-{number}").write_bytes(content)
    for path in CORPUS.glob(f"{name}/*"):
        shutil.copy(path, folder)


def _learn(name: str, corpus: Path, seed: int, minutes: float) -> None:
    """atheris ends the process when its time is over, or with a finding."""
    import atheris

    with atheris.instrument_imports(include=["tarfile", "zipfile", "csv", "tomllib", "json", "PIL", "dccm"]):
        for module in [known for known in sys.modules if known.split(".")[0] in ("dccm", "tests", "PIL", "tarfile")]:
            if not module.startswith("tests.fuzz.__main__"):
                del sys.modules[module]
        from tests.fuzz.readers import READERS

    attempt(READERS[name].read, b"")  # What a first reading imports would be a hang on a busy machine.
    flags = [f"-timeout={SECONDS}", f"-rss_limit_mb={MEGABYTES}", f"-seed={seed % 2**31}", "-max_len=40000"]
    flags += [f"-max_total_time={max(1, round(60 * minutes))}", f"-artifact_prefix={FINDINGS / name}{os.sep}"]
    atheris.Setup([sys.argv[0], *flags, "-print_final_stats=0", str(corpus)], lambda b: attempt(READERS[name].read, b))
    atheris.Fuzz()


def attempt(read: object, content: bytes) -> None:
    """Read bytes in a folder of their own; a sentence is what should come of bad ones."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            read(content, Path(folder))  # type: ignore[operator]
        except ValueError as error:  # By its name: modules that are followed have classes of their own.
            if type(error).__name__ != UserError.__name__:
                raise


def _change_blindly(name: str, corpus: Path, seed: int, minutes: float) -> int:
    from tests.data.test_fuzz import damaged
    from tests.fuzz.readers import READERS

    chance, end = Random(seed), time.monotonic() + 60 * minutes
    seeds = [content for path in sorted(corpus.iterdir()) if len(content := path.read_bytes()) > 1]
    while time.monotonic() < end:
        content, begun = damaged(chance.choice(seeds), chance.choice(seeds), chance), time.monotonic()
        try:
            attempt(READERS[name].read, content)
            slow = time.monotonic() - begun > SECONDS
        except Exception:
            slow = True
        if slow:
            (FINDINGS / name / f"blind-{chance.getrandbits(32):08x}").write_bytes(content)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
