import ast
from pathlib import Path

import pytest

import dccm

ROOT = Path(dccm.__file__).parent
LAYERS = (
    ["errors"], ["files"], ["machine"], ["config"], ["presets"],
    ["data.loader"], ["data.perturb"], ["data.images"], ["data.synthetic"], ["data.names"], ["data.decode"],
    ["data.duplicates"], ["data.cache"],
    ["data.sources.base"], ["data.sources.arrays"], ["data.sources.array_files"], ["data.sources.folder"],
    ["data.sources.listing"], ["data.sources.archive"], ["data.sources.parquet"], ["data.sources.objects"],
    ["data.sources"],
    ["data.benchmarks.download"], ["data.benchmarks.pickled"], ["data.benchmarks.official"], ["data.benchmarks.trees"],
    ["data.benchmarks.cifar"], ["data.benchmarks.stl"], ["data.benchmarks.mnist"], ["data.benchmarks.imagenet"],
    ["data.benchmarks.tiny_imagenet"], ["data.benchmarks"],
    ["data.prepare"], ["data.read"], ["data.datasets"], ["data"],
    ["networks.encoder"], ["networks.critic"], ["networks.decoder"], ["networks.autoencoder"],
    ["networks.discriminator"], ["networks"],
    ["correlations.pseudo_graph"], ["correlations.pseudo_label"], ["correlations.targets"],
    ["correlations.local_robustness"], ["correlations.triplets"], ["correlations.mutual_information"],
    ["correlations.objective"], ["correlations.degree_linkage"], ["correlations"],
    ["collapse"], ["checkpoint"], ["training"],
    ["evaluation.readout"], ["evaluation.neighbours"], ["evaluation.hierarchy"],
    ["evaluation.metrics"], ["evaluation.labels"], ["evaluation.baseline"], ["evaluation"],
    ["methods.base"],
    ["methods.starts"],
    ["methods.per_image"],
    ["methods.remembering"],
    ["methods.dac"],
    ["methods.dccm"],
    ["methods.dec"],
    ["methods.jule"],
    ["methods.kmeans"],
    ["methods.spectral"],
    ["methods.agglomerative"],
    ["methods.nmf"],
    ["methods.ae"],
    ["methods.decnn"],
    ["methods.bigan"],
    ["methods.aae"],
    ["methods.gan"],
    ["methods.dae"],
    ["methods.vae"],
    ["methods.rotnet"],
    ["methods.nat"],
    ["methods.dim"],
    ["methods.deepcluster"],
    ["methods"],
    ["model"], ["evaluation.probe"], ["results"], ["run"], ["progress"], ["estimator"],
    ["report.plots"], ["report.run_files"], ["report.page"], ["report"],
    ["clustering"], ["printing"], ["cli"], ["__main__"],
)  # fmt: skip
ORDER = {name: place for place, names in enumerate(LAYERS) for name in names}
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dccm":
            base = (node.module or "").removeprefix("dccm").removeprefix(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".removeprefix(".")
                found.add(inner if inner in ORDER else base)
    return found - {""}


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_a_file_imports_only_from_layers_above_its_own(path: Path) -> None:
    own = module_name(path)
    assert own in ORDER, f"Give {own} a place in the layers."
    assert {name for name in imported(path) if ORDER[name] >= ORDER[own]} == set()


def test_methods_know_nothing_that_compares_with_labels() -> None:
    allowed = {"evaluation.readout", "evaluation.neighbours", "evaluation.hierarchy"}
    for path in (ROOT / "methods").glob("*.py"):
        assert {name for name in imported(path) if name.startswith("evaluation")} <= allowed


def test_training_knows_no_method_and_no_label() -> None:
    text = (ROOT / "training.py").read_text(encoding="utf-8")
    assert "dccm.methods" not in text
    assert "dccm.evaluation" not in text


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_nothing_loads_pickled_data(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    # CIFAR is published as pickles: this one file reads them with an unpickler that can name and run nothing.
    assert "import pickle" not in text or path == ROOT / "data" / "published" / "pickled.py"
    assert "pickle.load" not in text
    assert "torch.load" not in text
    assert "allow_pickle=True" not in text
