"""Who may ask the server for anything: whoever knows the token, from a page of the server itself.

A page of another site that is open in the same browser must not get at the images: not by guessing the address (the
token), not by a name of its own that suddenly means this machine (the Host header), not by sending a form (the Origin).
"""

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 32 * 1024 * 1024
"""Of one request: a large photograph, or the numbers of millions of images."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
_TOO_LARGE = f"A request may have {MOST_BYTES:,} bytes at most."
_OWN_PAGES = ("same-origin", "none")
"""What browsers say of requests that a page of this server, or the person at the address bar, made."""


class TooLargeError(Exception):
    """A request is larger than anything that could be meant; the application answers it."""


class Guard:
    """Lets requests through to the application that may be answered.

    Args:
        app: The application; it sees paths without the token.
        token: The first part of every path.
        hosts: Names by which this server may be called, without port.
        any_address: Whether it may be called by any address in numbers, as a server for other machines is.
    """

    def __init__(self, app: App, token: str, hosts: Iterable[str], *, any_address: bool = False) -> None:
        self._app, self._token = app, token.encode()
        self._hosts = frozenset(host.lower() for host in hosts)
        self._any_address = any_address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        _, token, path = ("/" + scope["path"].lstrip("/") + "/").split("/", 2)
        refused = self._refused(scope, headers, token)
        if refused:
            await _answer(send, *refused)
            return
        if scope["path"] == f"/{token}":  # Addresses in the page are relative, and need the slash.
            await _answer(send, 307, "The address ends with a slash.", (b"location", f"/{token}/".encode()))
            return
        scope = dict(scope, path="/" + path.rstrip("/"), root_path="", raw_path=None)
        await self._within_limits(scope, receive, send)

    def _refused(self, scope: Scope, headers: dict[bytes, bytes], token: str) -> tuple[int, str] | None:
        """Status and reason of a request that gets no answer; None: it gets one."""
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._is_own(host):
            return 421, "This server does not go by that name. Take the address that dccm serve printed."
        if not hmac.compare_digest(token.encode("utf-8", "surrogateescape"), self._token):
            return 403, "The address lacks the right token. Take the one that dccm serve printed."
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() != f"{scope['scheme']}://{host.lower()}":
            return 403, "Another site may not ask for this."
        site = headers.get(b"sec-fetch-site", b"none").decode("latin-1")
        opens_page = scope["method"] == "GET" and headers.get(b"sec-fetch-mode") == b"navigate"
        if site not in _OWN_PAGES and not opens_page:
            return 403, "Another site may not ask for this."
        if _number(headers.get(b"content-length", b"0")) > MOST_BYTES:
            return 413, _TOO_LARGE
        return None

    def _is_own(self, host: str) -> bool:
        name = _without_port(host).lower()
        return name in self._hosts or (self._any_address and _is_address(name))

    async def _within_limits(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application; stop reading where a request does not say how large it is, and is too large."""
        taken = 0

        async def counted() -> MutableMapping[str, Any]:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MOST_BYTES:
                raise TooLargeError(_TOO_LARGE)
            return message

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        await self._app(scope, counted, guarded)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _number(text: bytes) -> int:
    try:
        return int(text)
    except ValueError:
        return MOST_BYTES + 1


async def _answer(send: Send, status: int, reason: str, *more: tuple[bytes, bytes]) -> None:
    """A short answer in plain text; the connection is closed, as the rest of the request is not read."""
    head = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close"), *HEADERS, *more]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": reason.encode() + b"\n"})
