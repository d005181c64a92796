"""The vault as commands use it: opened with the passphrase of its sources, or of the person at the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from squirrel_mcp import opening, passphrase
from squirrel_mcp.cli import asking
from squirrel_mcp.cli.no_ranker import NoRanker
from squirrel_mcp.crypto.wrap import Secret
from squirrel_mcp.errors import PassphraseMissing, VaultMissing, WrongPassphrase
from squirrel_mcp.opening import Unlocker
from squirrel_mcp.service import MemoryService, word_ranker
from squirrel_mcp.settings import Settings
from squirrel_mcp.vault import Vault

_T = TypeVar("_T")


class PassphraseSource:
    """The passphrase of one command, found once: a command that prints it may cost its owner a touch of a key."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.found: str | None = None
        self.asked = False

    def __call__(self) -> str:
        """PassphraseMissing where no source has one and nobody can be asked."""
        if self.found is None:
            self.found = self._find()
        return self.found

    def _find(self) -> str:
        settings = self._settings
        try:
            return passphrase.read(settings)
        except PassphraseMissing:
            # A source that is named and fails is mended, not replaced by typing.
            if settings.passphrase_file or settings.passphrase_command or not asking.can_ask():
                raise
        self.asked = True
        return asking.passphrase() if opening.has_vault(settings) else asking.new_passphrase()


@contextmanager
def open_service(*, ranking: bool = False, may_create: bool = False) -> Iterator[MemoryService]:
    """The service, open.

    ranking: whether it is asked what matches or looks alike; an index takes a while in a large vault. may_create:
    whether a first memory may make the vault, as a first start does.
    """
    settings = Settings.read()
    if not may_create:
        require_vault(settings)
    source = PassphraseSource(settings)
    service = MemoryService(settings, unlock=Unlocker(source), ranker=word_ranker if ranking else NoRanker)
    try:
        retry(source, service.open)
        yield service
    finally:
        service.close()


@contextmanager
def open_vault(
    settings: Settings, secret: Callable[[], Secret] | None = None, *, may_create: bool = False
) -> Iterator[Vault]:
    """The vault alone, without an index to search it; `secret` opens it instead of the passphrase."""
    if not may_create:
        require_vault(settings)
    if secret is None or isinstance(secret, PassphraseSource):
        source = secret or PassphraseSource(settings)
        vault = retry(source, lambda: opening.open_vault(settings, Unlocker(source)))
    else:
        vault = opening.open_vault(settings, Unlocker(secret))
    try:
        yield vault
    finally:
        vault.close()


def retry(source: PassphraseSource, open_it: Callable[[], _T]) -> _T:
    """Call `open_it`; who typed a wrong passphrase may type another."""
    try:
        return open_it()
    except WrongPassphrase:
        if not source.asked:
            raise
    asking.say("That passphrase does not open it.")

    def open_with(typed: str) -> _T:
        source.found = typed
        return open_it()

    return asking.open_with_typed("Passphrase", open_with, asking.TRIES - 1)


def require_vault(settings: Settings) -> None:
    """VaultMissing, saying how to make one, where this device has never had a vault."""
    if not opening.has_vault(settings):
        raise VaultMissing(f"There is no vault in {settings.data_dir} yet: make one with `squirrel-mcp init`.")
