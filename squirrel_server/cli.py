"""The commands of `squirrel-server`. The server itself is loaded by the command that runs it."""

from __future__ import annotations

import ipaddress
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
import platformdirs

from squirrel_server.store import StoreError

if TYPE_CHECKING:
    from squirrel_server.http.serving import Certificate
    from squirrel_server.store.server_store import ServerStore

_PORT = 8377
_DURATION = re.compile(r"([1-9][0-9]{0,4})([mhd])")
_SECONDS = {"m": 60, "h": 3_600, "d": 86_400}
_LONGEST_INVITE = 365 * 86_400
_RATE = re.compile(r"(0|[1-9][0-9]{0,5})(?::([1-9][0-9]{0,6}))?")


def _data_dir(_: click.Context, __: click.Parameter, value: Path | None) -> Path:
    return (value or Path(platformdirs.user_data_dir("squirrel-server", appauthor=False))).absolute()


def _rate(_: click.Context, __: click.Parameter, value: str) -> tuple[float, float]:
    found = _RATE.fullmatch(value)
    if found is None:
        raise click.BadParameter("A rate is a number of requests a second, or N:BURST.")
    return float(found[1]), float(found[2] or max(1, int(found[1])))


_RATE_HELP = "Requests a second of an API key, in each process; 0: any."
_TOO = "The same for an address."
_PEM = click.Path(exists=True, dir_okay=False, path_type=Path)

_database = click.option(
    "--database",
    metavar="URL",
    help="sqlite:///PATH (absolute) or postgresql+psycopg://USER@HOST/NAME. [default: server.db in the data folder]",
)
_folder = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    callback=_data_dir,
    help="Folder of the default database and of the self-signed certificate. [default: the system's place for data]",
)


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="squirrel-server", prog_name="squirrel-server")
@click.pass_context
def main(context: click.Context) -> None:
    """Keep sealed memories for several devices or people. This server cannot read them."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at; 0.0.0.0 for all.")
@click.option("--port", type=click.IntRange(0, 65_535), default=_PORT, show_default=True, help="0 for any free one.")
@_database
@_folder
@click.option("--tls-cert", type=_PEM, help="Certificate chain, PEM.")
@click.option("--tls-key", type=_PEM, help="Its key, PEM.")
@click.option("--tls-self-signed", is_flag=True, help="Make a certificate once, keep it, and print its fingerprint.")
@click.option("--tls-name", "names", multiple=True, metavar="NAME", help="A name or address for that certificate too.")
@click.option("--behind-proxy", is_flag=True, help="Plain http anywhere: a proxy does TLS and sets X-Forwarded-For.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes on the address.")
@click.option("--metrics", is_flag=True, help="Answer /metrics to everybody, not to this machine alone.")
@click.option("--key-rate", default="50:500", show_default=True, metavar="N[:BURST]", callback=_rate, help=_RATE_HELP)
@click.option("--address-rate", default="200:2000", show_default=True, metavar="N[:BURST]", callback=_rate, help=_TOO)
def serve(
    host: str,
    port: int,
    database: str | None,
    data_dir: Path,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_self_signed: bool,
    names: tuple[str, ...],
    behind_proxy: bool,
    workers: int,
    metrics: bool,
    key_rate: tuple[float, float],
    address_rate: tuple[float, float],
) -> None:
    """Answer requests until SIGTERM or Ctrl-C."""
    from squirrel_server.http import serving, tls
    from squirrel_server.http.options import Rate, ServerOptions

    if (tls_cert is None) != (tls_key is None) or (tls_cert and tls_self_signed):
        raise click.UsageError("Give --tls-cert and --tls-key together, or --tls-self-signed alone.")
    if behind_proxy and (tls_self_signed or tls_cert):
        raise click.UsageError("With --behind-proxy the proxy does TLS: leave out the --tls options.")
    if not all(map(tls.is_name, names)):
        raise click.UsageError("A --tls-name is an address or a host's name in ASCII, such as xn--nts-hoa.example.org.")
    if names and not tls_self_signed:
        raise click.UsageError("--tls-name goes with --tls-self-signed.")
    if not (tls_cert or tls_self_signed or behind_proxy or _is_loopback(host)):
        raise click.UsageError(
            f"Plain http is not offered at {host}: API keys would cross the network in the open. "
            "Add --tls-self-signed, or --tls-cert and --tls-key, or --behind-proxy if a proxy does TLS."
        )
    url = _url(database, data_dir)
    options = ServerOptions(url, Rate(*key_rate), Rate(*address_rate), behind_proxy, metrics)
    certificate = serving.Certificate(tls_cert, tls_key) if tls_cert else None
    if tls_self_signed:
        certificate = serving.Certificate(_own_certificate(data_dir, host, names))
    elif certificate is not None:
        _check(certificate)
    _open(url).close()  # migrate it once and say here what is wrong with it, rather than in every worker
    try:
        listening = serving.listen(host, port)
    except OSError as error:
        _fail(f"Cannot listen at {host} port {port}: {error.strerror or error}.")
    shown, number = listening.getsockname()[:2]
    # 0.0.0.0 is an address to listen at, and nowhere to go.
    others = [*names, *tls.reachable(certificate.certificate)] if certificate and shown in tls.EVERYWHERE else []
    for name in dict.fromkeys(others or [shown]):
        click.echo(_address("https" if certificate else "http", name, number))
    if certificate:
        click.echo(f"Certificate SHA-256 {tls.fingerprint(certificate.certificate)}")
    sys.stdout.flush()
    serving.serve(options, listening, workers, certificate)


@main.command()
@click.option("--expires", default="7d", show_default=True, metavar="TIME", help="Such as 30m, 12h, 7d.")
@_database
@_folder
def invite(expires: str, database: str | None, data_dir: Path) -> None:
    """Print a token with which one account can be opened, once."""
    from squirrel_server.api_keys import make_invite

    found = _DURATION.fullmatch(expires)
    seconds = int(found[1]) * _SECONDS[found[2]] if found else 0
    if not 0 < seconds <= _LONGEST_INVITE:
        raise click.BadParameter("Minutes, hours or days, such as 30m, 12h, 7d; 365d at most.", param_hint="--expires")
    token, digest = make_invite(os.urandom)
    now = int(time.time())
    store = _open(_url(database, data_dir))
    try:
        store.add_invite(digest, now, now + seconds)
    except StoreError as error:
        _fail(str(error))
    finally:
        store.close()
    click.echo(token)
    click.echo(f"For one account, within {expires}: squirrel-mcp init --api ADDRESS --invite TOKEN", err=True)


@main.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@_database
@_folder
def backup(file: Path, database: str | None, data_dir: Path) -> None:
    """Copy the SQLite database to FILE while the server goes on."""
    from squirrel_server.backup import BackupFailed, back_up

    url = _url(database, data_dir, make=False)
    if not url.startswith("sqlite:///"):
        _fail("This command copies SQLite files; for PostgreSQL use pg_dump, which makes a consistent copy too.")
    try:
        size = back_up(Path(url.removeprefix("sqlite:///")), file)
    except BackupFailed as error:
        _fail(str(error))
    click.echo(f"{file}: {size:,} bytes")


def _address(scheme: str, name: str, port: int) -> str:
    return f"Squirrel server at {scheme}://{f'[{name}]' if ':' in name else name}:{port}"


def _own_certificate(data_dir: Path, host: str, names: tuple[str, ...]) -> Path:
    """The self-signed one, made at the first start."""
    from squirrel_server.http import serving, tls

    _make_folder(data_dir)
    path = data_dir / tls.FILE
    try:
        tls.self_signed(path, dict.fromkeys([*names, *tls.own_names(host)]))
    except OSError as error:
        _fail(f"{path} cannot be made: {error.strerror}.")
    _check(serving.Certificate(path))
    if missing := tls.names_missing(path, names):
        _fail(f"{path} was made without {', '.join(missing)}. Delete it for a new one; every device joins again.")
    if host in tls.EVERYWHERE and (missing := tls.names_missing(path, tls.own_addresses())):
        click.echo(f"{path} was made without {', '.join(missing)}: clients will not trust it there.", err=True)
    return path


def _check(certificate: Certificate) -> None:
    from squirrel_server.http import tls

    try:
        tls.check_files(certificate.certificate, certificate.key)
    except ValueError as error:
        _fail(str(error))


def _url(database: str | None, data_dir: Path, *, make: bool = True) -> str:
    if database is not None:
        return database
    if make:
        _make_folder(data_dir)
    return f"sqlite:///{data_dir / 'server.db'}"


def _make_folder(data_dir: Path) -> None:
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        _fail(f"The folder {data_dir} cannot be made: {error.strerror}.")


def _open(url: str) -> ServerStore:
    from squirrel_server.store.server_store import ServerStore

    try:
        return ServerStore(url)
    except StoreError as error:
        _fail(str(error))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _fail(message: str) -> NoReturn:
    raise click.ClickException(message)
