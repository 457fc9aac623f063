"""What the server tells of a run, and what it changes."""

import io
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("starlette", reason="starlette comes with dccm[serve]")
pytest.importorskip("httpx2", reason="the test client needs httpx")
from starlette.testclient import TestClient

from dccm.gallery.app import make_app
from dccm.gallery.gallery import Gallery, opened
from dccm.runs.directory import RunDirectory
from dccm.runs.judgement import Judgement, write_judgement
from tests.gallery.runs import HOSTILE, write_gallery_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_gallery_run(tmp_path, 120)


@pytest.fixture
def gallery(run: Path) -> Iterator[Gallery]:
    gallery = opened(run)
    yield gallery
    gallery.log.close()


@pytest.fixture
def client(gallery: Gallery) -> TestClient:
    return TestClient(make_app(gallery, "tester"))


def rows_of(client: TestClient, **asked: object) -> list[int]:
    content = client.get("/api/rows", params=asked).content  # type: ignore[arg-type]
    return [int(row) for row in np.frombuffer(content, "<i4")]


def change(client: TestClient, **document: object) -> dict:
    answer = client.post("/api/changes", json=document)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def cluster_of(client: TestClient, number: int) -> dict:
    return next(cluster for cluster in client.get("/api/clusters").json()["clusters"] if cluster["id"] == number)


def test_clusters_are_told_with_sizes_and_the_surest_images(client: TestClient, gallery: Gallery) -> None:
    assignments = gallery.assignments
    told = cluster_of(client, 2)
    members = np.flatnonzero(assignments.clusters == 2)
    assert told["size"] == len(members)
    assert told["samples"][0] == members[np.argmax(assignments.confidences[members])]
    assert cluster_of(client, 9)["size"] == 0  # Empty clusters are there, too.


def test_images_come_by_cluster_text_confidence_and_order(client: TestClient, gallery: Gallery) -> None:
    confidences = gallery.assignments.confidences
    rows = rows_of(client, cluster=3)
    assert (gallery.assignments.clusters[rows] == 3).all()
    assert (np.diff(confidences[rows]) <= 0).all()
    assert (np.diff(confidences[rows_of(client, cluster=3, order="unsure")]) >= 0).all()
    assert rows_of(client, text="001", order="path") == [1, *range(10, 20)]
    assert rows_of(client, text="PNG", order="path") == list(range(120))
    assert rows_of(client, text="no such thing") == []
    between = rows_of(client, low=0.6, high=0.8)
    assert between
    assert ((confidences[between] >= 0.6) & (confidences[between] <= 0.8)).all()


def test_images_like_one_begin_with_itself_and_its_twin(client: TestClient, gallery: Gallery) -> None:
    nearest = rows_of(client, like=5)[:2]
    features = gallery.directory.read_embedding()
    features = features / np.linalg.norm(features, axis=1, keepdims=True)
    distances = np.linalg.norm(features - features[5], axis=1)
    assert nearest == np.argsort(distances)[:2].tolist()
    told = client.get("/api/image/5").json()
    assert told["image"][:2] == [5, "0005.png"]
    assert told["near"][0][0] == nearest[1]


def test_every_change_is_made_logged_and_taken_back(client: TestClient) -> None:
    size = cluster_of(client, 2)["size"]
    moved = rows_of(client, cluster=1)[:4]
    change(client, kind="move", images=moved, cluster=2)
    assert cluster_of(client, 2)["size"] == size + 4
    made = change(client, kind="create", name="odd", images=moved[:2])["cluster"]
    assert rows_of(client, cluster=made, order="path") == sorted(moved[:2])
    change(client, kind="merge", clusters=[1, 2, 3], cluster=2)
    assert 3 not in [cluster["id"] for cluster in client.get("/api/clusters").json()["clusters"]]
    change(client, kind="mark", images=moved, mark="outlier")
    assert sorted(rows_of(client, mark="outlier")) == sorted(moved)
    for _ in range(4):
        change(client, kind="undo", change=client.get("/api/clusters").json()["undo"]["number"])
    assert cluster_of(client, 2)["size"] == size
    assert client.get("/api/clusters").json()["undo"] is None
    log = client.get("/api/log").json()
    assert [entry["kind"] for entry in reversed(log)] == ["move", "create", "merge", "mark"] + ["undo"] * 4
    assert {entry["who"] for entry in log} == {"tester"}


def test_a_split_goes_by_the_embedding_and_the_largest_part_stays(client: TestClient) -> None:
    before = rows_of(client, cluster=3, order="path")
    answer = client.post("/api/split", json={"cluster": 3, "parts": 3}).json()
    parts = [rows_of(client, cluster=number, order="path") for number in answer["clusters"]]
    assert len(parts) == 3
    assert answer["clusters"][0] == 3
    assert sorted(row for part in parts for row in part) == before
    assert len(parts[0]) == max(map(len, parts))


def test_a_change_that_is_sent_twice_is_made_once(client: TestClient) -> None:
    first = change(client, kind="create", name="a", key="k")
    assert change(client, kind="create", name="a", key="k") == first
    split = {"cluster": 3, "parts": 2, "key": "s"}
    assert client.post("/api/split", json=split).json() == client.post("/api/split", json=split).json()
    assert client.get("/api/version").json()["version"] == 2


def test_the_map_has_two_numbers_for_each_image(client: TestClient) -> None:
    places = np.frombuffer(client.get("/api/map").content, "<f4").reshape(-1, 2)
    assert places.shape == (120, 2)
    assert np.isfinite(places).all()
    assert 0.3 < np.abs(places).max() < 3
    assert len(np.frombuffer(client.get("/api/points").content, "<i4")) == 120


def test_the_map_by_neighbours_comes_when_it_is_computed_and_is_kept(run: Path, tmp_path: Path) -> None:
    first = Gallery(RunDirectory(run), tmp_path / "cache", arranged=True)
    client = TestClient(make_app(first, "tester"))
    before = client.get("/api/map").content
    assert client.get("/api/version").json()["map"] == "pca"
    first.warm()
    deadline = time.monotonic() + 120
    while client.get("/api/version").json()["map"] == "pca" and time.monotonic() < deadline:
        time.sleep(0.1)
    arranged = client.get("/api/map").content
    assert len(arranged) == len(before)
    assert arranged != before
    again = Gallery(RunDirectory(run), tmp_path / "cache", arranged=True)
    again.warm()
    assert again.map_kind == "tsne"  # At once.
    assert again.map() == arranged


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"kind": "move", "images": [120], "cluster": 1}, "There is no image"),
        ({"kind": "move", "images": [1], "cluster": 44}, "no cluster 44"),
        ({"kind": "fly"}, "No kind of change"),
        ({"kind": "rename", "cluster": 1, "name": "x" * 300}, "at most 200"),
    ],
)
def test_wrong_changes_are_refused_in_one_sentence(client: TestClient, document: dict, said: str) -> None:
    answer = client.post("/api/changes", json=document)
    assert answer.status_code == 400
    assert said in answer.json()["error"]
    assert client.get("/api/version").json()["version"] == 0


@pytest.mark.parametrize(
    "address",
    ["/api/rows?order=odd", "/api/rows?low=x", "/api/rows?mark=odd", "/api/rows?like=500", "/api/images?rows=1,x",
     "/api/images?rows=500", "/api/image/120", "/api/rows?cluster=1e9"],
)  # fmt: skip
def test_wrong_questions_are_refused_in_one_sentence(client: TestClient, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(".")


@pytest.mark.parametrize("content", [b"[" * 100_000, b"{", b"[]", b"\xff"])
def test_what_is_no_document_is_refused(client: TestClient, content: bytes) -> None:
    answer = client.post("/api/changes", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 400


def test_names_with_markup_stay_text(client: TestClient) -> None:
    change(client, kind="rename", cluster=1, name=HOSTILE)
    answer = client.get("/api/clusters")
    assert answer.headers["content-type"] == "application/json"
    assert cluster_of(client, 1)["name"] == HOSTILE


def test_pictures_are_made_anew_and_never_the_file_itself(client: TestClient, run: Path) -> None:
    answer = client.get("/image/x/3/full")
    picture = Image.open(io.BytesIO(answer.content))
    assert picture.size == (80, 80)
    assert answer.headers["content-type"] in ("image/png", "image/jpeg")
    assert max(Image.open(io.BytesIO(client.get("/image/x/3/thumb").content)).size) == 80
    assert answer.content != (run.parent / "images" / "0003.png").read_bytes()


def test_a_link_that_leads_to_something_else_gives_nothing_away(client: TestClient, run: Path) -> None:
    secret = run.parent / "secret.txt"
    secret.write_text("root:secret")
    (run.parent / "images" / "0004.png").unlink()
    (run.parent / "images" / "0004.png").symlink_to(secret)
    for size in ("full", "thumb"):
        answer = client.get(f"/image/x/4/{size}")
        assert b"secret" not in answer.content
        assert Image.open(io.BytesIO(answer.content)).size == (8, 8)  # The run's own small copy.
    assert client.get("/image/x/5/full").status_code == 200  # The others are still there.


def test_small_copies_are_kept(client: TestClient, run: Path) -> None:
    first = client.get("/image/x/7/thumb").content
    (run.parent / "images" / "0007.png").unlink()
    assert client.get("/image/x/7/thumb").content == first


def test_a_run_that_nobody_can_find_the_images_of_still_shows_its_clusters(tmp_path: Path) -> None:
    run = write_gallery_run(tmp_path, 60)
    RunDirectory(run).source.unlink()
    RunDirectory(run).embedding.unlink()
    gallery = opened(run)
    client = TestClient(make_app(gallery, "tester"))
    assert client.get("/api/clusters").json()["images"] == 60
    kept = gallery.directory.read_thumbnails(60).row
    gone = next(row for row in range(60) if row not in kept) if len(kept) < 60 else None
    assert client.get(f"/image/x/{kept[0]}/thumb").status_code == 200  # The run keeps the surest ones itself.
    assert gone is None or client.get(f"/image/x/{gone}/thumb").status_code == 404
    assert client.get("/api/map").status_code == 400
    assert "embedding.npy" in client.get("/api/map").json()["error"]


def test_what_the_run_is_worth_is_told_with_words(client: TestClient, gallery: Gallery) -> None:
    assert client.get("/api/judgement").json()["record"] is None
    judged = Judgement(9, 0.9, 0.9, 0.3, [0.3], 9, 1.0, 1.0, [1.0])
    write_judgement(gallery.directory.judgement, judged)
    told = client.get("/api/judgement").json()
    assert told["record"]["unmoved"] == 1
    assert told["measures"][0]["name"] == "perturbation"
    assert told["trust"]["headline"].startswith("Do not trust")  # The run has a warning of its own.


def test_many_thumbnails_come_at_once_each_in_its_place(client: TestClient, gallery: Gallery, run: Path) -> None:
    (run.parent / "images" / "0100.png").unlink()
    gallery.pictures._copies.clear()  # type: ignore[attr-defined]
    answer = client.get("/thumbnails/x", params={"rows": "3,100,3"})
    first, gone, again = answer.json()
    assert first == again
    assert b64decode(first.removeprefix("data:image/jpeg;base64,")) == client.get("/image/x/3/thumb").content
    assert gone is None
    assert answer.headers["cache-control"] == "no-store"  # It may be readable later.
    assert "immutable" in client.get("/thumbnails/x?rows=3").headers["cache-control"]
    assert client.get("/thumbnails/x?rows=120").status_code == 400
    assert len(client.get("/thumbnails/x", params={"rows": ",".join(["3"] * 100)}).json()) == 64
