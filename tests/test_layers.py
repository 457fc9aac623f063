"""Which folder may know which: computed from the imports."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dccm

ROOT = Path(dccm.__file__).parent
ORDER = (
    "errors", "files", "locks", "documents", "npy", "tensors", "machine", "processes", "launched", "arrays", "config",
    "presets",
    "data", "networks", "correlations", "grouping", "training", "methods", "evaluation", "runs", "corrections",
    "fleet", "experiments", "progress", "estimators", "report", "gallery", "exporting", "commands", "printing",
    "options", "cli", "__main__",
)  # fmt: skip
"""Folders and single files beside them; each knows only those before it."""
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported(path: Path) -> Iterator[str]:
    """Modules of the package that a file imports, by their full names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dccm":
            base = (node.module or "").removeprefix("dccm").removeprefix(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".removeprefix(".")
                yield inner if _is_module(inner) else base


def _is_module(name: str) -> bool:
    place = ROOT.joinpath(*name.split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_a_file_imports_only_from_folders_above_its_own(path: Path) -> None:
    own = module_name(path).split(".")[0]
    others = {name.split(".")[0] for name in imported(path)} - {own, "", "__version__"}
    assert {name for name in others if ORDER.index(name) >= ORDER.index(own)} == set()


def test_no_file_imports_itself_through_others() -> None:
    graph = {module_name(path): set(imported(path)) - {""} for path in FILES}
    assert cycle_in(graph) == []


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """What is left when all that imports nothing of the rest was taken away, again and again."""
    left = {name: others & set(graph) - {name} for name, others in graph.items()}
    while free := [name for name, others in left.items() if not others]:
        left = {name: others - set(free) for name, others in left.items() if name not in free}
    return sorted(left)


def test_what_looks_for_cycles_finds_one() -> None:
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.parametrize("folder", ["data", "networks", "correlations", "grouping", "training", "methods"])
def test_what_learns_knows_nothing_that_looks_at_labels(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        assert not [name for name in imported(path) if name.startswith("evaluation")], path


def test_the_loop_knows_no_method() -> None:
    for path in (ROOT / "training").glob("*.py"):
        assert not [name for name in imported(path) if name.startswith("methods")], path


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_nothing_loads_pickled_data(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    # CIFAR is published as pickles: this one file reads them with an unpickler that can name and run nothing.
    assert "import pickle" not in text or path == ROOT / "data" / "published" / "pickled.py"
    assert "pickle.load" not in text
    # The published weights of an encoder are one: this one file reads them once, by the loader that runs nothing.
    allowed = path == ROOT / "networks" / "efficientnet_weights.py"
    assert text.count("torch.load") == text.count("weights_only=True") == int(allowed)
    assert "allow_pickle=True" not in text


def classes() -> dict[str, list[str]]:
    """The classes of the package, with the names of their bases."""
    found: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
                found[node.name] = [base.id for base in bases if isinstance(base, ast.Name)]
    return found


def test_nothing_inherits_over_more_than_two_levels() -> None:
    known = classes()

    def depth(name: str) -> int:
        return max((1 + depth(base) for base in known.get(name, []) if base in known), default=0)

    assert {name: depth(name) for name in known if depth(name) > 2} == {}


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_files_and_functions_are_read_in_one_sitting(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 300
    long = {node.name: size for node, size in bodies(text) if size > 40}
    assert long == {}


def bodies(text: str) -> Iterator[tuple[ast.FunctionDef, int]]:
    """Functions and the lines of their bodies, without the docstring."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = [
                part for part in node.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
            ]
            yield node, (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_most_functions_are_short() -> None:
    sizes = sorted(size for path in FILES for _, size in bodies(path.read_text(encoding="utf-8")))
    assert sizes[len(sizes) // 2] <= 6
