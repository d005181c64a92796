"""The vault as commands use it: opened with the passphrase of its sources, or of the person at the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import click

from squirrel_mcp import opening, passphrase
from squirrel_mcp.advice import NO_RECOVERY_CODE
from squirrel_mcp.cli import asking
from squirrel_mcp.crypto.wrap import Secret
from squirrel_mcp.edition import BASE, Edition
from squirrel_mcp.errors import PassphraseMissing, VaultMissing, WrongPassphrase
from squirrel_mcp.opening import Unlocker
from squirrel_mcp.service import MemoryService
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
        return asking.passphrase() if has_account(settings) else asking.new_passphrase()


def edition() -> Edition:
    """The program that this command is one of."""
    context = click.get_current_context(silent=True)
    return (context and context.find_object(Edition)) or BASE


def new_service(settings: Settings, source: Callable[[], Secret]) -> MemoryService:
    """The service of this edition, not opened yet."""
    chosen = edition()
    return MemoryService(
        settings, unlock=Unlocker(source), edition=chosen, ranker=chosen.patient_ranker, say=asking.say
    )


@contextmanager
def open_service(*, may_create: bool = False) -> Iterator[MemoryService]:
    """The service, open; `may_create`: whether a first memory may make the vault, as a first start does."""
    settings = Settings.read()
    if not may_create:
        require_vault(settings)
    is_new = may_create and not has_account(settings)
    source = PassphraseSource(settings)
    service = new_service(settings, source)
    try:
        retry(source, service.open)
        if is_new:
            say_made(settings)
        yield service
    finally:
        service.close()


@contextmanager
def open_vault(
    settings: Settings,
    secret: Callable[[], Secret] | None = None,
    *,
    may_create: bool = False,
    may_be_offline: bool = False,
) -> Iterator[Vault]:
    """The vault alone, without an index to search it; `secret` opens it instead of the passphrase.

    may_be_offline: whether what this device has seen will do while the server cannot be reached.
    """
    if not may_create:
        require_vault(settings)
    if secret is None or isinstance(secret, PassphraseSource):
        source = secret or PassphraseSource(settings)
        vault = retry(source, lambda: opening.open_vault(settings, Unlocker(source)))
    else:
        vault = opening.open_vault(settings, Unlocker(secret))
    try:
        if vault.offline and not may_be_offline:
            vault.sync()
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


def say_made(settings: Settings, *, has_code: bool = False) -> None:
    """Tell that a vault was made on this machine, where, and what it lacks."""
    asking.say(f"The vault is made: {settings.vault_path}")
    if not has_code:
        asking.say(NO_RECOVERY_CODE)


def has_account(settings: Settings) -> bool:
    """Whether there is something to open; of an account on a server only opening it tells more."""
    return settings.api_base_url is not None or opening.has_vault(settings)


def require_vault(settings: Settings) -> None:
    """VaultMissing, saying how to make one, where this device has never had a vault and no server is named."""
    if not has_account(settings):
        raise VaultMissing(f"There is no vault in {settings.data_dir} yet: make one with `squirrel-mcp init`.")
