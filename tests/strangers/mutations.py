"""Run directories of a stranger: sound ones in which a file was harmed by somebody who knows the formats."""

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dccm.corrections.log import _TABLES
from dccm.training.checkpoint import read_tensors, write_tensors

Harm = Callable[[Path, random.Random], None]

VALUES: list[Any] = [
    None, True, 0, -1, 0.5, 1e308, float("nan"), 2**62, 10**30, "", "x" * 100_000, "\x1b[2J\n\u202e", [], {}, [[]] * 3,
    "onnx:/dev/zero", "../../etc/passwd", 1_000_000_000, 10_000_000, ["a"], {"a": 1}, -0.0, 3,
]  # fmt: skip
RAW = ["1e999", "-Infinity", "[" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000, "9" * 5000, "'", '"""', "\\ud800"]
HEAD = b"\x93NUMPY\x01\x00"


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values in a document."""
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    found = []
    for key, value in inner:
        found.append((*path, key))
        if isinstance(value, dict | list):
            found += places(value, (*path, key))
    return found


def harm_document(document: Any, draw: random.Random) -> Any:
    """Change, remove or add a value somewhere."""
    *path, last = draw.choice(places(document))
    whole = document
    for key in path:
        whole = whole[key]
    how = draw.random()
    if how < 0.75:
        whole[last] = draw.choice(VALUES)
    elif isinstance(whole, dict):
        value = whole.pop(last)
        if how > 0.9:
            whole["other"] = value
    else:
        whole.append(whole[last])
    return document


def harm_json(path: Path, draw: random.Random) -> None:
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    number = draw.randrange(len(lines))
    text = json.dumps(harm_document(json.loads(lines[number]), draw))
    if draw.random() < 0.2:
        text = text.replace(draw.choice(["1", "0", "null", '"']), draw.choice(RAW), 1)
    lines[number] = text
    path.write_text("\n".join(lines) + "\n")


def harm_lines(path: Path, draw: random.Random) -> None:
    """A cell of a table, or a value of TOML."""
    lines = path.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    number = draw.randrange(len(lines))
    mark = "=" if path.suffix == ".toml" else ","
    cells = lines[number].split(mark)
    cells[draw.randrange(len(cells))] = draw.choice([*RAW, *map(str, VALUES), "-1", "nan", "inf", "\x00", "a," * 5000])
    lines[number] = mark.join(cells)
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))


def harm_bytes(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(draw.choice([1, 1, 4, 50])):
        content[draw.randrange(len(content))] = draw.randrange(256)
    start = draw.randrange(len(content))
    cut = [lambda: content[:start], lambda: content + content[:start], lambda: content[start:], lambda: content]
    path.write_bytes(bytes(draw.choice(cut)()))


def harm_head(path: Path, draw: random.Random) -> None:
    """The head of an array promises what is not there."""
    shape = draw.choice(["(3000000, 2500000)", "(" + "9" * 40 + ",)", "(" * 4000, "(-1,)", "(24,)", "(24, 0)"])
    kind = draw.choice(["<f4", "|O", "<U0", "<f2", ">f4", "<c16"])
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    path.write_bytes(HEAD + len(text).to_bytes(2, "little") + text + b"\0" * 400)


def harm_arrays(path: Path, draw: random.Random) -> None:
    """An archive of other arrays."""
    with np.load(path) as stored:
        arrays = dict(stored)
    name = draw.choice(list(arrays))
    arrays[name] = draw.choice(
        [np.zeros((0, 8, 8, 1), np.uint8), np.array([2**62]), np.array(3), np.zeros((2, 8, 8, 7), np.uint8)]
    )
    np.savez(path, **arrays)


def harm_tensors(path: Path, draw: random.Random) -> None:
    """Weights and document of somebody who can compute a checksum."""
    tensors, document = read_tensors(path)
    if document and draw.random() < 0.6:
        write_tensors(path, tensors, harm_document(document, draw))
        return
    name = draw.choice(list(tensors))
    kinds: list[Callable[[torch.Tensor], torch.Tensor]] = [
        lambda tensor: torch.full_like(tensor.float(), torch.nan),
        lambda tensor: torch.full_like(tensor.float(), 3e38),
        lambda tensor: tensor.bfloat16(),
        lambda tensor: tensor.double(),
        lambda tensor: torch.zeros(3),
        lambda tensor: tensor.reshape(-1),
        lambda tensor: torch.full_like(tensor, -(2**31)) if not tensor.is_floating_point() else -tensor,
    ]
    tensors[name] = draw.choice(kinds)(tensors[name]).contiguous()
    if draw.random() < 0.1:
        del tensors[name]
    write_tensors(path, tensors, document)


def harm_log(path: Path, draw: random.Random) -> None:
    """One more change, which the log itself would have refused."""
    kind = draw.choice(["merge", "rename", "move", "split", "create", "undo", "other"])
    fields: dict[str, Any] = {"cluster": 1, "name": "a", "clusters": [0, 1], "images": [0], "parts": [[7, [0]]]}
    what = json.dumps(harm_document(fields, draw))
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("INSERT INTO changes (time, who, kind, what) VALUES ('', '', ?, ?)", (kind, what))


def harm_tables(path: Path, draw: random.Random) -> None:
    """Corrections of somebody who knows SQLite."""
    with closing(sqlite3.connect(path)) as database:
        for name in ("no_update", "no_delete"):
            database.execute(f"DROP TRIGGER {name}")
        number, what = draw.choice(database.execute("SELECT number, what FROM changes").fetchall())
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        columns = "i AS number, '' AS time, '' AS who, 'undo' AS kind, '{\"change\": 1}' AS what, '' AS key"
        kind = draw.randrange(6)
        if kind == 0:
            database.executescript(f"DROP TABLE changes; CREATE VIEW changes AS {endless} SELECT {columns} FROM n")
        elif kind == 1:
            database.executescript("DROP TABLE images; CREATE TABLE images (count TEXT, checksum TEXT)")
        elif kind == 2:
            database.executescript("DROP TABLE images; CREATE TABLE images (count, checksum)")
            database.execute("INSERT INTO images VALUES (?, 'x')", (draw.choice([None, -1, "x", 2**62, b"\xff"]),))
        else:
            column = draw.choice(["what", "what", "what", "kind", "who", "number"])
            text = json.dumps(harm_document(json.loads(what), draw))
            value = draw.choice([text, text, *RAW, None, -1, b"\xff\xfe"]) if column == "what" else draw.choice(VALUES)
            value = json.dumps(value) if isinstance(value, list | dict) else value
            with suppress(sqlite3.Error, OverflowError):
                database.execute(f"UPDATE changes SET {column} = ? WHERE number = ?", (value, number))
        with suppress(sqlite3.Error):  # Without them the rest would not be looked at.
            database.executescript("".join(line for line in _TABLES.splitlines() if "TRIGGER" in line))
        database.commit()


def harm_file(path: Path, draw: random.Random) -> None:
    """Something else stands in the place of a file."""
    path.unlink()
    kind = draw.randrange(5)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        os.mkfifo(path)
    elif kind == 2:
        path.symlink_to("/dev/zero")
    elif kind == 3:
        path.symlink_to(path)


HARMS: dict[str, list[Harm]] = {
    ".json": [harm_json, harm_json, harm_json, harm_bytes, harm_file],
    ".jsonl": [harm_json, harm_json, harm_bytes, harm_file],
    ".toml": [harm_lines, harm_lines, harm_bytes, harm_file],
    ".csv": [harm_lines, harm_lines, harm_bytes, harm_file],
    ".npy": [harm_head, harm_bytes, harm_file],
    ".npz": [harm_arrays, harm_bytes, harm_head, harm_file],
    ".sqlite": [harm_log, harm_log, harm_tables, harm_tables, harm_bytes, harm_file],
    ".safetensors": [harm_tensors, harm_tensors, harm_bytes, harm_file],
}
READS: dict[str, list[str]] = {
    "report": [
        "result.json", "history.jsonl", "assignments.csv", "thumbnails.npz", "skipped.csv", "choice.json",
        "embedding.npy", "judgement.json", "labels.csv", "duplicates.csv", "near_duplicates.csv", "map_thumbnails.npz",
        "corrections.sqlite",
    ],
    "judge": ["judgement.json", "result.json", "assignments.csv"],
    "evaluate": ["assignments.csv", "source.json"],
    "predict": [
        "model/model.json", "model/weights.safetensors", "model/outliers.safetensors", "result.json", "assignments.csv",
        "corrections.sqlite", "corrections.sqlite", "embedding.npy",
    ],
    "resume": ["config.toml", "checkpoints/*.safetensors", "choice.json"],
    "compare": ["assignments.csv"],
    "export": [
        "result.json", "assignments.csv", "corrections.sqlite", "embedding.npy", "labels.csv", "source.json",
        "model/model.json", "model/weights.safetensors", "skipped.csv",
    ],
    "serve": [
        "result.json", "assignments.csv", "corrections.sqlite", "embedding.npy", "source.json", "thumbnails.npz",
        "judgement.json",
    ],
    "improve": [
        "config.toml", "result.json", "assignments.csv", "corrections.sqlite", "embedding.npy", "model/model.json",
        "model/weights.safetensors",
    ],
}  # fmt: skip
"""Files that each command reads."""


def mutated(sound: Path, place: Path, command: str, seed: int) -> str:
    """A copy of a run in which one file that a command reads is harmed; which one and how, for the reader of a failure.

    Args:
        sound: The run.
        place: Where the copy goes.
        command: One of `READS`.
        seed: Decides the harm.
    """
    draw = random.Random(f"{command} {seed}")
    shutil.copytree(sound, place)
    pattern = draw.choice(READS[command])
    files = sorted(place.glob(pattern))
    if not files:
        return f"{pattern} is not there"
    harm = draw.choice(HARMS[Path(pattern).suffix])
    harm(files[-1], draw)
    return f"{harm.__name__} of {files[-1].name}, seed {seed}"
