"""Who else may write what a cache holds: a library that somebody else put there would run as ours, and an entry would
count as a proof.

As ssh looks at its keys: a file and every folder above it have to belong to this user or to the system, and be writable
by no other. Others are trusted only if the environment names them.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

if sys.platform != "win32":
    import grp
    import pwd

VARIABLE = "LAYOUTPROOF_CACHE_OWNERS"
REMEDY = f"make it writable by this user alone, name another place, or name those who may write it in {VARIABLE}"


class UnknownOwner(Exception):
    """The environment names a user or a group that this system does not have."""


@dataclass(frozen=True, slots=True)
class Owners:
    """Users and groups who may write to a cache, by number."""

    users: frozenset[int]
    groups: frozenset[int]


@lru_cache(maxsize=8)
def trusted_owners(named: str, user: int) -> Owners:
    """This user, the system's, and those of a text such as `ci,@team`. Raises UnknownOwner."""
    users, groups = {0, user}, {0}
    try:
        own = pwd.getpwuid(user)
        private = grp.getgrgid(own.pw_gid)
        if private.gr_name == own.pw_name and not set(private.gr_mem) - {own.pw_name}:
            groups.add(own.pw_gid)  # a group of this user alone, as many systems make it
    except KeyError:
        pass  # a user without a name, as in containers
    for name in named.replace(",", " ").split():
        bare = name.removeprefix("@")
        try:
            if name.startswith("@"):
                groups.add(int(bare) if bare.isdecimal() else grp.getgrnam(bare).gr_gid)
            else:
                users.add(int(bare) if bare.isdecimal() else pwd.getpwnam(bare).pw_uid)
        except KeyError as problem:
            raise UnknownOwner(f"{VARIABLE} names {name}, and there is none on this system") from problem
    return Owners(frozenset(users), frozenset(groups))


def others_may_write(path: Path) -> str | None:
    """Why somebody else may write a file or folder, or put another one in its place; None if no other can.

    What is not there yet is looked at from the folder that is. Raises OSError for a path that cannot be looked at.
    """
    if sys.platform == "win32":
        return None  # this system has other rights
    try:
        trusted = trusted_owners(os.environ.get(VARIABLE, ""), os.getuid())
    except UnknownOwner as problem:
        return str(problem)
    whole = path.absolute()
    ends = (whole, Path(os.path.realpath(whole)))  # a link may be replaced where it is, its target where that is
    for place in dict.fromkeys(part for end in ends for part in (end, *end.parents)):
        try:
            found = os.stat(place)
        except FileNotFoundError:
            continue
        for reason in _reasons(found, trusted, place in ends):
            return f"{place} {reason}"
    return None


def written_by_others(found: os.stat_result) -> str | None:
    """The same for one open file, whatever folder it is in."""
    if sys.platform == "win32":
        return None
    try:
        return next(_reasons(found, trusted_owners(os.environ.get(VARIABLE, ""), os.getuid()), True), None)
    except UnknownOwner as problem:
        return str(problem)


def make_private(folder: Path) -> None:
    """Make a folder with those above it, for this user alone. Raises OSError."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        if folder.parent == folder:
            break
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


def _reasons(found: os.stat_result, trusted: Owners, last: bool) -> Iterator[str]:
    mode = found.st_mode
    # In a folder such as /tmp everybody may make files, but only their owners may rename or remove them.
    shared = stat.S_ISDIR(mode) and mode & stat.S_ISVTX and not last
    if found.st_uid not in trusted.users:
        yield f"belongs to {_user(found.st_uid)}"
    if mode & stat.S_IWOTH and not shared:
        yield "can be written by everybody"
    if mode & stat.S_IWGRP and found.st_gid not in trusted.groups and not shared:
        yield f"can be written by {_group(found.st_gid)}"


def _user(number: int) -> str:
    try:
        return f"the user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"the user {number}"


def _group(number: int) -> str:
    try:
        return f"the group {grp.getgrgid(number).gr_name}"
    except KeyError:
        return f"the group {number}"
