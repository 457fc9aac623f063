"""What the browser can ask for; every answer is of one run, and images are asked for by number alone."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dccm.corrections.change import change_from
from dccm.errors import UserError
from dccm.gallery.choosing import Wanted
from dccm.gallery.gallery import Gallery
from dccm.gallery.guard import TooLargeError

STATIC = Path(__file__).parent / "static"
_LONGEST_PAGE = 1000
_MOST_THUMBNAILS = 64
_FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}
"""Addresses of pictures hold a checksum of the run's images."""
_NEW: dict[str, Any] = {"cluster": 0, "name": "", "images": []}
"""What need not be said of a new cluster; its number is chosen here."""
_NOT_KEPT = {"cache-control": "no-store"}

Answer = Callable[[Request], Awaitable[Response]]


def make_app(gallery: Gallery, who: str) -> Starlette:
    """The application for a run.

    Args:
        gallery: The run.
        who: In whose name changes are logged.
    """
    api = _Api(gallery, who)
    routes = [
        Route("/api/run", api.run),
        Route("/api/clusters", api.clusters),
        Route("/api/version", api.version),
        Route("/api/images", api.images),
        Route("/api/rows", api.rows),
        Route("/api/image/{row:int}", api.image),
        Route("/api/judgement", api.judgement),
        Route("/api/map", api.map),
        Route("/api/points", api.points),
        Route("/api/log", api.log),
        Route("/api/changes", api.change, methods=["POST"]),
        Route("/api/split", api.split, methods=["POST"]),
        Route("/api/example", api.example, methods=["POST"]),
        Route("/image/{checksum}/{row:int}/{size}", api.picture),
        Route("/thumbnails/{checksum}", api.thumbnails),
        Mount("/", _Page(directory=STATIC, html=True)),
    ]
    return Starlette(
        routes=routes, exception_handlers={UserError: _refused, ValueError: _refused, TooLargeError: _too_large}
    )


class _Page(StaticFiles):
    """The page itself, asked for anew each time: it may be of another version."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response


async def _refused(_: Request, error: Exception) -> Response:
    text = str(error) if isinstance(error, UserError) else f"The request is wrong: {error}."
    return _json({"error": text}, 400)


async def _too_large(_: Request, error: Exception) -> Response:
    return _json({"error": str(error)}, 413)


def _json(content: Any, status: int = 200) -> Response:
    return JSONResponse(content, status, headers=_NOT_KEPT)


class _Api:
    """Answers, each computed on a thread: others are served meanwhile."""

    def __init__(self, gallery: Gallery, who: str) -> None:
        self._gallery, self._who = gallery, who

    async def run(self, _: Request) -> Response:
        gallery = self._gallery
        name, result = gallery.directory.path.resolve().name, gallery.result
        about = {"name": name, "method": result.method, "images": len(gallery), "side": gallery.side}
        about |= {"checksum": gallery.checksum or "none", "who": self._who, "warnings": result.warnings}
        return _json(about | {"embedding": gallery.directory.embedding.is_file()})

    async def clusters(self, _: Request) -> Response:
        return _json(await _aside(self._gallery.describe))

    async def version(self, _: Request) -> Response:
        return _json({"version": await _aside(self._gallery.log.sync), "map": self._gallery.map_kind})

    async def images(self, request: Request) -> Response:
        rows = _rows(request)[:_LONGEST_PAGE]
        return _json(await _aside(lambda: self._gallery.details(rows)))

    async def rows(self, request: Request) -> Response:
        asked = request.query_params
        like = int(asked["like"]) if "like" in asked else None
        rows = await _aside(lambda: self._gallery.rows(_wanted(asked), like))
        return _numbers(rows)

    async def image(self, request: Request) -> Response:
        return _json(await _aside(lambda: self._gallery.neighbours(request.path_params["row"])))

    async def judgement(self, _: Request) -> Response:
        return _json(await _aside(self._gallery.judgement))

    async def map(self, _: Request) -> Response:
        return _binary(await _aside(self._gallery.map))

    async def points(self, _: Request) -> Response:
        return _binary(await _aside(self._gallery.points))

    async def log(self, _: Request) -> Response:
        return _json(await _aside(self._gallery.changes))

    async def change(self, request: Request) -> Response:
        asked = await _document(request)
        change, key = change_from(_NEW | asked), str(asked.get("key", ""))
        return _json(await _aside(lambda: self._gallery.change(change, self._who, key)))

    async def split(self, request: Request) -> Response:
        asked = await _document(request)
        cluster, parts, key = int(asked.get("cluster", -1)), int(asked.get("parts", 2)), str(asked.get("key", ""))
        return _json(await _aside(lambda: self._gallery.split(cluster, parts, self._who, key)))

    async def example(self, request: Request) -> Response:
        content = await request.body()

        def found() -> Any:
            return self._gallery.rows(Wanted(), feature=self._gallery.examples.feature(content))

        return _numbers(await _aside(found))

    async def picture(self, request: Request) -> Response:
        row, size = request.path_params["row"], request.path_params["size"]
        pictures = self._gallery.pictures
        make = pictures.full if size == "full" else pictures.thumbnail
        try:
            made = await _aside(lambda: make(self._gallery.row(row)))
        except UserError as error:
            return _json({"error": str(error)}, 404)
        return Response(made.content, media_type=made.media_type, headers=_FOR_EVER)

    async def thumbnails(self, request: Request) -> Response:
        """Many at once: a request for each costs the browser more than the picture."""
        rows = _rows(request)[:_MOST_THUMBNAILS]
        made = await _aside(lambda: [self._gallery.thumbnail(row) for row in rows])
        return JSONResponse(made, headers=_NOT_KEPT if None in made else _FOR_EVER)


async def _aside(work: Callable[[], Any]) -> Any:
    return await anyio.to_thread.run_sync(work)


def _rows(request: Request) -> list[int]:
    """The images that are asked for."""
    return [int(row) for row in request.query_params.get("rows", "").split(",") if row]


def _numbers(rows: Any) -> Response:
    """Numbers of images, four bytes each."""
    return _binary(rows.astype("<i4").tobytes())


def _binary(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream", headers=_NOT_KEPT)


async def _document(request: Request) -> dict[str, Any]:
    """The JSON object that was sent; another media type may come from a form of another site."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise UserError("A change must be sent as application/json.")
    try:
        document = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise UserError(f"What was sent is no JSON ({error}).") from error
    if not isinstance(document, dict):
        raise UserError("What was sent must be a JSON object.")
    return document


def _wanted(asked: Any) -> Wanted:
    return Wanted(
        cluster=int(asked["cluster"]) if "cluster" in asked else None,
        text=asked.get("text", ""),
        low=float(asked.get("low", 0)),
        high=float(asked.get("high", 1)),
        mark=asked.get("mark"),
        order=asked.get("order", "sure"),
    )
