"""Show a run in the browser, and let people correct it."""

import getpass
from collections.abc import Callable
from pathlib import Path
from threading import Thread


def serve(
    run: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    allow_remote: bool = False,
    who: str = "",
    arranged: bool = False,
    ready: Callable[[str], None] = print,
) -> None:
    """Serve a run directory until Ctrl-C.

    Args:
        run: The run directory.
        host: Address to listen on.
        port: Where; None: 8765, or the next free one.
        allow_remote: Whether other machines may be listened to.
        who: In whose name changes are logged; empty: the user's.
        arranged: Whether the map is made by t-SNE, in the background; until then it is that of principal components.
        ready: Called with the address.
    """
    from dccm.gallery.server import listen, require_allowed, require_parts, serve

    require_parts()
    require_allowed(host, allow_remote)
    from dccm.gallery.gallery import opened

    gallery = opened(Path(run), arranged=arranged)
    with listen(host, port) as listening:
        Thread(target=gallery.warm, daemon=True).start()
        try:
            serve(gallery, listening, host, who or _user(), ready)
        finally:
            gallery.log.close()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # In containers nobody may have a name.
        return "somebody"
