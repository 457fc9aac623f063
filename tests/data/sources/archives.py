"""Archives to be read, sound and hostile ones."""

import io
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path


def zipped(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    """A zip archive of these members."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def tar(path: Path, members: dict[str, bytes], special: Iterable[tarfile.TarInfo] = ()) -> Path:
    """A tar archive, compressed as its suffix says; members that are no files come first."""
    suffix = path.suffix.removeprefix(".t").removeprefix(".")
    mode = {"gz": "w:gz", "bz2": "w:bz2", "bz": "w:bz2", "xz": "w:xz"}.get(suffix, "w:")
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for member in special:
            archive.addfile(member)
        for name, content in members.items():
            archive.addfile(described(name, len(content)), io.BytesIO(content))
    return path


def described(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    """The header of a member of a tar archive."""
    member = tarfile.TarInfo(name)
    member.size, member.type, member.linkname = size, kind, target
    return member
