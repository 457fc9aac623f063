"""Serve a run to the browser: on this machine alone, unless more is asked for."""

import hashlib
import ipaddress
import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path

from dccm.errors import UserError, require
from dccm.files import cache_folder
from dccm.gallery.gallery import Gallery

PORT = 8765
_PORTS_TRIED = 20
_MOST_CONNECTIONS = 512
REMOTE = (
    "Whoever can reach {host} and knows the address with its token can see the images and change the clusters; "
    "nothing on the way is encrypted."
)


def require_parts() -> None:
    """Say what is missing before anything else is done."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UserError("The gallery needs starlette and uvicorn. Get them with: pip install 'dccm[serve]'") from error


def require_allowed(host: str, allow_remote: bool) -> None:
    """Refuse to listen to other machines by accident."""
    require(
        allow_remote or is_loopback(host),
        f"host must be this machine alone (127.0.0.1), got {host}. {REMOTE.format(host=host)} If that is what you "
        "want, add --allow-remote.",
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def token_of(run: Path) -> str:
    """The token of a run, the same each time, so that open pages go on when the server is back.

    It lies in the user's cache, which others cannot read, and not in the run, which may be given away.
    """
    name = hashlib.sha256(str(run.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:24]
    path = cache_folder() / "serve" / f"{name}.token"
    try:
        return path.read_text("ascii").strip() or _new_token(path)
    except (OSError, UnicodeDecodeError):
        return _new_token(path)


def _new_token(path: Path) -> str:
    token = secrets.token_urlsafe(24)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(token)
    return token


def listen(host: str, port: int | None) -> socket.socket:
    """A socket to be served on: the port asked for, or else the first free one from the usual one on."""
    tried = [port] if port is not None else list(range(PORT, PORT + _PORTS_TRIED))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in tried:
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host.strip("[]"), number))
            listening.listen(_MOST_CONNECTIONS)  # Who comes before the first answer waits.
            return listening
        except OSError as error:
            listening.close()
            reason = error.strerror
    ports = f"port {tried[0]}" if len(tried) == 1 else f"ports {tried[0]} to {tried[-1]}"
    raise UserError(f"Cannot listen on {host}, {ports}: {reason}. Choose another one with --port.")


def serve(gallery: Gallery, listening: socket.socket, host: str, who: str, ready: Callable[[str], None]) -> None:
    """Answer until Ctrl-C.

    Args:
        gallery: The run.
        listening: Where requests come in.
        host: What the user called it.
        who: In whose name changes are logged.
        ready: Called with the address before the first request.
    """
    import uvicorn

    from dccm.gallery.app import make_app
    from dccm.gallery.guard import Guard

    token, port = token_of(gallery.directory.path), listening.getsockname()[1]
    everywhere = host in ("0.0.0.0", "::", "[::]")
    names = {"127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host}
    names |= set() if is_loopback(host) else {socket.gethostname()}
    app = Guard(make_app(gallery, who), token, names, any_address=not is_loopback(host))
    called = socket.gethostname() if everywhere else f"[{host}]" if ":" in host else host
    ready(f"http://{called}:{port}/{token}/")
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[listening])
