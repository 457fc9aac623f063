"""Images in a zip or tar archive, read in place: nothing is ever unpacked onto the disk."""

import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import Self

from dccm.data.decode import MOST_BYTES, SUFFIXES
from dccm.data.images import Skipped
from dccm.data.names import Names, is_too_long, shortened
from dccm.data.sources.base import Source
from dccm.data.sources.webdataset import Classes
from dccm.errors import UserError, counted, require

TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
MOST_GROWTH = 200
"""Times its own size that a compressed tar archive may grow; pictures hardly shrink at all."""
_EXTENSIONS = (
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
)
"""Headers that tarfile reads whole: long names, and notes about the next member."""
_MOST_EXTENSION = 1024 * 1024
_PIECE = 1024 * 1024
_BROKEN = (OSError, EOFError, RuntimeError, zlib.error, LZMAError, zipfile.BadZipFile, tarfile.TarError, ValueError)


class Archive(Source):
    """What zip and tar have in common: which members are images, and how much of one is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = str(path.resolve())
        self.skipped: list[Skipped] = []
        self._fingerprint = self._stamp()  # Now, so that a later change of the archive shows.

    def fingerprint(self) -> str:
        """Size and time of the archive."""
        return self._fingerprint

    def changed(self) -> bool:
        """Whether size or time are others now."""
        return self._stamp() != self._fingerprint

    def _stamp(self) -> str:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return "gone"
        return f"{found.st_size} {found.st_mtime_ns}"

    def _accept(self, name: str, size: int) -> bool:
        """Whether a member is an image to be read; hostile ones are noted."""
        place = PurePosixPath(name.replace("\\", "/"))
        if place.suffix.lower() not in SUFFIXES:
            return False
        reason = ""
        if is_too_long(name):
            reason = "its name is too long"
        elif place.is_absolute() or ".." in place.parts:
            reason = "its name leads out of the archive"
        elif size > MOST_BYTES:
            reason = f"it would unpack to {size:,} bytes, more than {MOST_BYTES:,}"
        if reason:
            self.skipped.append(Skipped(shortened(name), reason))
        return not reason

    def _require_images(self) -> None:
        require(
            len(self.names) > 0,
            f"There is no image in {self.path}: none of its members has the suffix of one and is sound. "
            "Give an archive that holds images.",
        )


class Zip(Archive):
    """Images in a zip archive."""

    kind = "zip archive"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._zip = zipfile.ZipFile(path)
        except _BROKEN as error:
            raise _broken(path, error) from error
        members = [member for member in self._zip.infolist() if not member.filename.endswith("/")]
        self._members = [
            member for member in members if self._accept(member.filename, member.file_size) and self._can_unpack(member)
        ]
        self.names = Names(member.filename for member in self._members)
        self._require_images()

    def close(self) -> None:
        """Let go of the archive."""
        self._zip.close()

    def read(self, index: int) -> bytes:
        """The bytes of one member."""
        with self._zip.open(self._members[index]) as file:
            return file.read(self._members[index].file_size)  # No more, even if its size was a lie.

    def _can_unpack(self, member: zipfile.ZipInfo) -> bool:
        """Other ways to compress are unpacked by Python without a limit, however small they say they are."""
        known = member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if not known:
            self.skipped.append(Skipped(shortened(member.filename), "it is compressed in another way than by deflate"))
        return known


class _Header(tarfile.TarInfo):
    """The header of a member; one that announces a long name may not fill the memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)
        if header.size < 0 or (header.type in _EXTENSIONS and header.size > _MOST_EXTENSION):
            raise tarfile.HeaderError(f"a header with the size {header.size:,}")
        return header


class Tar(Archive):
    """Images in a tar archive, compressed or not."""

    kind = "tar archive"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._tar = tarfile.open(path, tarinfo=_Header)  # noqa: SIM115 - it stays open for reading
        except _BROKEN as error:
            raise _broken(path, error) from error
        self.in_order = not isinstance(self._tar.fileobj, io.BufferedReader)  # But a decompressor.
        self._places: list[tuple[int, int]] = []
        classes = Classes()
        self.names = Names(self._listed(classes))
        self._require_images()
        self.labels = classes.labels()

    def close(self) -> None:
        """Let go of the archive."""
        self._tar.close()

    def _listed(self, classes: Classes) -> Iterator[str]:
        """Names of the images; a damaged archive ends where the damage is."""
        limit = MOST_GROWTH * self.path.stat().st_size + MOST_BYTES
        while (member := self._next()) is not None:
            self._require_growth(self._tar.offset, limit)
            if member.isdir():
                continue
            if not member.isreg() or member.issparse():
                self.skipped.append(Skipped(shortened(member.name), "not a regular file"))
            elif self._accept(member.name, member.size):
                self._places.append((member.offset_data, member.size))
                classes.image(member.name)
                yield member.name
            elif classes.is_class(member.name, member.size):
                classes.note(member.name, self._content(member.offset_data, member.size))

        self._check_rest(limit)

    def _require_growth(self, size: int, limit: int) -> None:
        require(
            not self.in_order or size <= limit,
            f"{self.path} unpacks to more than {MOST_GROWTH} times its size, so it is not read further. "
            "If that is right, unpack it and give the folder.",
        )

    def _check_rest(self, limit: int) -> None:
        """Read a compressed archive to its end, where its checksum is."""
        file = self._tar.fileobj
        assert file is not None
        try:
            while self.in_order and file.read(_PIECE):
                self._require_growth(file.tell(), limit)
        except UserError:
            raise
        except _BROKEN as error:
            self.skipped.append(Skipped(self.path.name, f"the archive is damaged, and so may be its images: {error}"))

    def _next(self) -> tarfile.TarInfo | None:
        """The next member; none at the end, or where the damage is, which is noted."""
        try:
            member = self._tar.next()
            self._require_progress(member)
        except _BROKEN as error:
            reason = f"the archive is damaged behind its first {counted(len(self._places), 'image')}: {error}"
            self.skipped.append(Skipped(self.path.name, reason))
            return None
        self._tar.members = []  # type: ignore[attr-defined]  # They are of no further use, and would fill the memory.
        return member

    def _require_progress(self, member: tarfile.TarInfo | None) -> None:
        """Members must lead forward, up to a block of zeros: tarfile takes a damaged header for the end."""
        file = self._tar.fileobj
        assert file is not None
        if member is None:
            file.seek(self._tar.offset)
            if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                raise tarfile.ReadError("there is no header, and no mark of the end")
        elif member.size < 0 or self._tar.offset <= member.offset:
            raise tarfile.ReadError("a member of negative size")

    def read(self, index: int) -> bytes:
        """The bytes of one member."""
        content = self._content(*self._places[index])
        if len(content) < self._places[index][1]:
            raise OSError("the archive ends within it")
        return content

    def _content(self, start: int, size: int) -> bytes:
        file = self._tar.fileobj
        assert file is not None
        file.seek(start)
        return bytes(file.read(size))


def _broken(path: Path, error: Exception) -> UserError:
    return UserError(f"{path} cannot be read as an archive ({error}). Give a sound zip or tar file.")
