"""What every test gets: asyncio, the counts of `--full`, an environment without this machine's own vault."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

# A machine that is busy with something else is no failure: nothing here depends on time.
# Explaining a failure traces every line, which takes many minutes where an example drives a server.
_PATIENT = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
settings.register_profile("normal", _PATIENT, derandomize=True)
settings.register_profile("full", _PATIENT, max_examples=1_000)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="more kills and more drawn examples; takes far longer")


def pytest_configure(config: pytest.Config) -> None:
    # A build server's shell may have it ignored, and so would every program that a test interrupts: children inherit.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.load_profile("full" if config.getoption("--full") else "normal")


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether `scripts/test --full` runs: `300 if full else 30`."""
    return bool(request.config.getoption("--full"))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _no_vault_of_this_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test may open, or make, the vault of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("SQUIRREL_")]:
            patch.delenv(name)
        patch.setenv("SQUIRREL_DATA_DIR", str(tmp_path_factory.mktemp("data")))
        patch.setenv("SQUIRREL_MEMORY_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        # The keyring of whoever runs the tests is not asked either.
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
        yield
