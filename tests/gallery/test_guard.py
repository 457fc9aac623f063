"""Who gets an answer from the server, and who does not."""

import asyncio
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="starlette comes with dccm[serve]")
pytest.importorskip("httpx2", reason="the test client needs httpx")
from starlette.testclient import TestClient

from dccm.gallery.app import make_app
from dccm.gallery.gallery import opened
from dccm.gallery.guard import MOST_BYTES, POLICY, Guard
from tests.gallery.runs import TOKEN, served, write_gallery_run

OWN = "http://127.0.0.1:8765"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gallery_run(tmp_path_factory.mktemp("guarded"), 60)


@pytest.fixture(scope="module")
def guard(run: Path) -> Iterator[Guard]:
    gallery = opened(run)
    yield Guard(make_app(gallery, "tester"), TOKEN, ["127.0.0.1", "localhost"])
    gallery.log.close()


@pytest.fixture(scope="module")
def client(guard: Guard) -> TestClient:
    return TestClient(guard, base_url=OWN)


def test_whoever_has_the_token_gets_the_page(client: TestClient) -> None:
    answer = client.get(f"/{TOKEN}/")
    assert answer.status_code == 200
    assert "<!doctype html>" in answer.text
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "unsafe" not in POLICY


def test_the_page_names_no_other_place(client: TestClient) -> None:
    for name in ("", "app.js", "index.css"):
        text = client.get(f"/{TOKEN}/{name}").text.replace("http://www.w3.org/", "")  # Names of XML, not places.
        assert "http://" not in text, name
        assert "https://" not in text, name


def test_an_address_without_its_last_slash_leads_to_the_page(client: TestClient) -> None:
    answer = client.get(f"/{TOKEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, f"/{TOKEN}/")


@pytest.mark.parametrize("path", ["/", "/api/run", "/wrong/api/run", f"/{TOKEN}x/api/run", "/%ff/api/run", "//api/run"])
def test_without_the_token_nothing_is_told(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 403
    assert "token" in answer.text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "10.0.0.1", ""])
def test_another_name_of_the_server_is_refused(client: TestClient, host: str) -> None:
    answer = client.get(f"/{TOKEN}/api/run", headers={"host": host})
    assert answer.status_code == 421
    assert "images" not in answer.text


def test_a_server_for_other_machines_goes_by_addresses_but_not_by_names(guard: Guard) -> None:
    remote = TestClient(Guard(guard._app, TOKEN, ["localhost"], any_address=True), base_url=OWN)
    assert remote.get(f"/{TOKEN}/api/run", headers={"host": "192.168.1.7:8765"}).status_code == 200
    assert remote.get(f"/{TOKEN}/api/run", headers={"host": "[fe80::1]:8765"}).status_code == 200
    assert remote.get(f"/{TOKEN}/api/run", headers={"host": "evil.example"}).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:9999", "https://127.0.0.1:8765", "null"])
def test_pages_of_other_origins_are_refused_even_with_the_token(client: TestClient, origin: str) -> None:
    change = {"kind": "rename", "cluster": 1, "name": "evil"}
    assert client.post(f"/{TOKEN}/api/changes", json=change, headers={"origin": origin}).status_code == 403
    assert client.get(f"/{TOKEN}/api/log").json() == []


def test_the_page_itself_may_change_things(client: TestClient) -> None:
    change = {"kind": "rename", "cluster": 1, "name": "ones"}
    headers = {"origin": OWN, "sec-fetch-site": "same-origin"}
    assert client.post(f"/{TOKEN}/api/changes", json=change, headers=headers).status_code == 200


def test_pictures_are_not_shown_inside_other_sites(client: TestClient) -> None:
    image = f"/{TOKEN}/image/x/3/thumb"
    assert client.get(image, headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}).status_code == 403
    assert client.get(image, headers={"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"}).status_code == 403
    answer = client.get(image, headers={"sec-fetch-site": "same-origin"})
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_a_form_of_another_site_cannot_send_a_change(client: TestClient) -> None:
    answer = client.post(
        f"/{TOKEN}/api/changes", content=b'{"kind": "undo", "change": 1}', headers={"content-type": "text/plain"}
    )
    assert answer.status_code == 400
    assert "application/json" in answer.text


def test_a_gigabyte_is_refused_before_it_is_read(client: TestClient) -> None:
    answer = client.post(f"/{TOKEN}/api/example", content=b"", headers={"content-length": str(2**30)})
    assert answer.status_code == 413
    assert client.post(f"/{TOKEN}/api/example", content=b"", headers={"content-length": "-1x"}).status_code == 413


def test_a_body_that_does_not_say_how_large_it_is_is_cut_off(guard: Guard) -> None:
    sent, answers = 0, []

    async def endless() -> dict:
        nonlocal sent
        sent += 2**20
        return {"type": "http.request", "body": bytes(2**20), "more_body": True}

    async def send(message: dict) -> None:
        answers.append(message)

    scope = {
        "type": "http", "method": "POST", "path": f"/{TOKEN}/api/example", "scheme": "http", "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8765")], "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    asyncio.run(guard(scope, endless, send))  # type: ignore[arg-type]
    assert answers[0]["status"] == 413
    assert sent <= MOST_BYTES + 2**20


@pytest.mark.parametrize(
    "path",
    [
        "../app.py",
        "..%2fapp.py",
        "%2e%2e/app.py",
        "../../../../etc/passwd",
        "/etc/passwd",
        "static/../../app.py",
        "image/x/../../../run/config.toml",
        "image/x/..%2f..%2fconfig.toml/full",
        "image/x/-1/full",
        "image/x/3.png/full",
    ],
)
def test_paths_lead_nowhere(guard: Guard, path: str) -> None:
    assert status_of(guard, f"/{TOKEN}/{path}") in (307, 403, 404, 405)


def status_of(guard: Guard, path: str) -> int:
    """The answer to a path as it is: clients tidy it before they send it."""
    from urllib.parse import unquote

    answers: list[dict] = []

    async def receive() -> dict:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict) -> None:
        answers.append(message)

    scope = {
        "type": "http", "method": "GET", "path": unquote(path), "raw_path": path.encode(), "scheme": "http",
        "query_string": b"", "headers": [(b"host", b"127.0.0.1:8765")], "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    asyncio.run(guard(scope, receive, send))  # type: ignore[arg-type]
    assert b"root:" not in b"".join(message.get("body", b"") for message in answers)
    return int(answers[0]["status"])


def test_two_hundred_connections_at_once_do_no_harm(run: Path) -> None:
    with served(run, 8871) as (_, address):
        import httpx2 as httpx

        idle = [socket.create_connection(("127.0.0.1", 8871)) for _ in range(200)]
        try:
            with ThreadPoolExecutor(20) as pool:
                answers = list(pool.map(lambda _: httpx.get(f"{address}api/version").status_code, range(40)))
            assert answers == [200] * 40
        finally:
            for connection in idle:
                connection.close()
