"""Who a server runs as, and the directories that nobody else may enter."""

import os
import pwd
import stat
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


class EmbeddedError(ImproperlyConfigured):
    """A server could not be started; the message explains why to the person who runs it."""


@dataclass(frozen=True)
class Account:
    """The operating-system account that a server runs as."""

    uid: int
    gid: int

    @classmethod
    def current(cls) -> "Account":
        """Return the account of this process."""
        return cls(os.geteuid(), os.getegid())

    @classmethod
    def named(cls, name: str) -> "Account":
        """Return the account of that name."""
        try:
            entry = pwd.getpwnam(name)
        except KeyError as error:
            raise EmbeddedError(
                f"KBPO_EMBEDDED_USER={name!r}: this machine has no such account."
            ) from error
        return cls(entry.pw_uid, entry.pw_gid)

    def can_enter(self, directory: Path) -> bool:
        """Return whether the account may list the directory, and enter all of its parents."""
        if self == Account.current():
            return True  # by way of a group or an access list, perhaps: the kernel will say if not
        for place in (directory, *directory.parents):
            status = place.stat()
            bit = stat.S_IXOTH
            if status.st_uid == self.uid:
                bit = stat.S_IXUSR
            elif status.st_gid == self.gid:
                bit = stat.S_IXGRP
            if not status.st_mode & bit:
                return False
        return True

    def run(
        self, command: Sequence[str | Path], cwd: Path, **options: object
    ) -> subprocess.CompletedProcess[str]:
        """Return the finished command, run as the account, with nothing of the caller's environment
        (PGDATA, PGPORT, …).
        """
        if self != Account.current():
            options |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            [str(part) for part in command],
            cwd=cwd,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            umask=0o077,
            text=True,
            start_new_session=True,  # Ctrl-C in the caller's terminal is not for the servers
            **options,
        )

    def write(self, path: Path, content: str) -> None:
        """Write the file as the account: where it owns the directory, root must not follow its
        links.
        """
        self.run(["sh", "-c", 'cat > "$0"', path], path.parent, input=content, check=True)


def make_private(directory: Path, account: Account) -> None:
    """Make the directory accessible to the account only, or check that it is; only directories of
    the account are changed.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    if directory.lstat().st_uid == os.geteuid() != account.uid and not any(directory.iterdir()):
        try:
            os.chown(directory, account.uid, account.gid)
        except OSError as error:
            raise EmbeddedError(
                f"{directory} cannot be given to user id {account.uid} ({error.strerror}). Name"
                " another account in KBPO_EMBEDDED_USER, start as an ordinary user,"
                " or set DATABASE_URL."
            ) from error
    check_private(directory, directory.lstat(), account)


def check_private(path: Path, found: os.stat_result, account: Account) -> None:
    """Refuse a file or directory that belongs to another account, or that others may read
    or enter.
    """
    if found.st_uid != account.uid or stat.S_ISLNK(found.st_mode):
        raise EmbeddedError(
            f"{path} belongs to user id {found.st_uid}, not {account.uid}: start as the user who"
            " started it first."
        )
    if found.st_mode & 0o077:
        raise EmbeddedError(
            f"{path} is open to other users of this machine. Run: chmod go-rwx {path}"
        )


def check_parent(var: Path) -> None:
    """Refuse a directory in which other accounts could replace ours."""
    if var.exists() and var.stat().st_mode & stat.S_IWOTH:
        raise EmbeddedError(
            f"Everybody may write to {var}, so anybody could replace the database. Run: chmod o-w"
            f" {var}"
        )


def directory_outside_checkout() -> Path:
    """Return `/var/lib`: a directory outside the checkout that other accounts can reach and in
    which only root creates directories. Raises EmbeddedError if it cannot be written to.
    """
    place = Path("/var/lib")
    if not os.access(place, os.W_OK):
        raise EmbeddedError(
            f"{place} cannot be written to. Start as an ordinary user, or set DATABASE_URL."
        )
    return place
