"""The commands of `squirrel-server`, as a person types them."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
import stat
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from squirrel_server.api_keys import read_invite
from squirrel_server.cli import main
from squirrel_server.http import serving, tls
from squirrel_server.http.options import Rate, ServerOptions
from squirrel_server.store import InviteRefused, SqlStore
from squirrel_server.store.server_store import Opening, ServerStore
from tests.certificates import issue
from tests.squirrel_server.store.builder import Client


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], prog_name="squirrel-server")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


class Served:
    """What `serve` would have served with."""

    options: ServerOptions
    certificate: serving.Certificate | None
    workers: int


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    """Lets `serve` do everything but serve."""
    found = Served()

    def note(
        options: ServerOptions, listening: socket.socket, workers: int, certificate: serving.Certificate | None
    ) -> None:
        listening.close()
        found.options, found.workers, found.certificate = options, workers, certificate

    monkeypatch.setattr(serving, "serve", note)
    return found


def test_no_arguments_show_the_help() -> None:
    result = run()
    assert result.exit_code == 0
    for command in ("serve", "invite", "backup"):
        assert f"\n  {command} " in result.output


def test_an_invite_is_printed_alone_and_opens_one_account(data: Path) -> None:
    result = run("invite", "--data-dir", data)
    assert result.exit_code == 0
    token = result.stdout.rstrip("\n")
    invite = read_invite(token)
    assert invite is not None and "squirrel-mcp init" in result.stderr and token not in result.stderr
    store = ServerStore(f"sqlite:///{data / 'server.db'}")
    client = Client()
    opening = Opening(client.account_id, *client.first())  # type: ignore[arg-type]
    now = int(time.time())
    with pytest.raises(InviteRefused):
        store.open_account(opening, invite, "a" * 12, bytes(32), now + 7 * 86_400 + 5)
    store.open_account(opening, invite, "a" * 12, bytes(32), now + 7 * 86_400 - 60)
    store.close()


@pytest.mark.skipif(os.name != "posix", reason="about POSIX files")
def test_the_data_folder_is_made_for_its_owner_alone(data: Path) -> None:
    assert run("invite", "--data-dir", data).exit_code == 0
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert stat.S_IMODE((data / "server.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("expires", ["", "7", "0d", "-1d", "7 d", "1w", "366d", "99999d"])
def test_a_time_that_cannot_be_meant_is_refused(data: Path, expires: str) -> None:
    result = run("invite", "--data-dir", data, f"--expires={expires}")
    assert result.exit_code == 2 and "--expires" in result.stderr
    assert result.stdout == ""


def test_a_backup_is_made_and_its_size_told(data: Path, tmp_path: Path) -> None:
    assert run("invite", "--data-dir", data).exit_code == 0
    result = run("backup", tmp_path / "copy.db", "--data-dir", data)
    assert result.exit_code == 0 and result.output.startswith(f"{tmp_path / 'copy.db'}: ")
    SqlStore(f"sqlite:///{tmp_path / 'copy.db'}", create=False).close()


def test_a_backup_of_nothing_fails_in_a_sentence_and_makes_no_folder(data: Path, tmp_path: Path) -> None:
    result = run("backup", tmp_path / "copy.db", "--data-dir", data)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ") and result.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_for_postgresql_another_program_makes_the_backup(tmp_path: Path) -> None:
    result = run("backup", tmp_path / "x", "--database", "postgresql+psycopg://me:hunter2@localhost/x")
    assert result.exit_code == 1 and "pg_dump" in result.stderr and "hunter2" not in result.output


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_plain_http_is_refused_where_others_could_listen(data: Path, host: str) -> None:
    result = run("serve", "--data-dir", data, "--host", host)
    assert result.exit_code == 2 and "--tls-self-signed" in result.stderr and "--behind-proxy" in result.stderr
    assert not data.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--tls-self-signed", "--tls-cert", __file__, "--tls-key", __file__],
        ["--tls-self-signed", "--behind-proxy"],
        ["--tls-cert", __file__, "--tls-key", __file__, "--behind-proxy"],
        ["--tls-cert", __file__],
        ["--tls-key", __file__],
        ["--tls-name", "example.org"],
        ["--tls-self-signed", "--tls-name", "nötes.example.org"],
        ["--tls-self-signed", "--tls-name", ""],
        ["--key-rate", "fast"],
        ["--address-rate", "1:"],
        ["--workers", "0"],
        ["--port", "65536"],
    ],
)
def test_options_that_do_not_go_together_are_refused(data: Path, arguments: list[str]) -> None:
    assert run("serve", "--data-dir", data, *arguments).exit_code == 2
    assert not data.exists()


def test_a_server_behind_a_proxy_may_listen_anywhere(data: Path, served: Served) -> None:
    result = run("serve", "--data-dir", data, "--host", "0.0.0.0", "--port", "0", "--behind-proxy", "--key-rate", "7:9")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Squirrel server at http://0.0.0.0:")
    assert served.options == ServerOptions(
        f"sqlite:///{data / 'server.db'}", Rate(7, 9), Rate(200, 2_000), behind_proxy=True
    )
    assert served.certificate is None


def test_a_rate_without_a_burst_lets_a_second_of_it_through(data: Path, served: Served) -> None:
    assert run("serve", "--data-dir", data, "--port", "0", "--key-rate", "20", "--address-rate", "0").exit_code == 0
    assert (served.options.key_rate, served.options.address_rate) == (Rate(20, 20), Rate(0, 1))


def test_a_certificate_of_its_own_is_made_once_and_kept(data: Path, served: Served) -> None:
    command = ["serve", "--data-dir", data, "--host", "0.0.0.0", "--port", "0", "--tls-self-signed"]
    first = run(*command, "--tls-name", "notes.example.org", "--tls-name", "192.0.2.7")
    assert first.exit_code == 0, first.output
    pem = data / "tls.pem"
    made = pem.read_bytes()
    again = run(*command, "--tls-name", "192.0.2.7")
    assert pem.read_bytes() == made
    shown = [result.stdout.splitlines()[-1] for result in (first, again)]
    assert shown[0] == shown[1] == f"Certificate SHA-256 {tls.fingerprint(pem)}"
    assert served.certificate == serving.Certificate(pem)
    if os.name == "posix":
        assert stat.S_IMODE(pem.stat().st_mode) == 0o600
    assert set(os.listdir(data)) == {"tls.pem", "server.db"}
    wrong = run(*command, "--tls-name", "other.example.org")
    assert wrong.exit_code == 1 and "other.example.org" in wrong.stderr
    assert pem.read_bytes() == made


def test_the_certificate_holds_the_names_and_signs_no_other(data: Path) -> None:
    from cryptography import x509

    data.mkdir()
    tls.self_signed(data / "tls.pem", ["localhost", "127.0.0.1", "::1", "notes.example.org"])
    certificate = x509.load_pem_x509_certificate((data / "tls.pem").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "notes.example.org"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert tls.names_missing(data / "tls.pem", ["localhost", "10.0.0.1"]) == ["10.0.0.1"]


def test_a_file_without_a_certificate_has_no_fingerprint(data: Path) -> None:
    data.mkdir()
    (data / "x.pem").write_text("-----BEGIN PRIVATE KEY-----\n", "ascii")
    with pytest.raises(ValueError, match="no certificate"):
        tls.fingerprint(data / "x.pem")


def test_a_port_that_is_taken_is_told_in_a_sentence(data: Path, served: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("serve", "--data-dir", data, "--port", str(taken.getsockname()[1]))
    assert result.exit_code == 1 and result.stderr.startswith("Error: Cannot listen at 127.0.0.1")
    assert result.stdout == ""


def test_a_database_that_cannot_be_used_is_told_without_its_password(data: Path, served: Served) -> None:
    for url in ("sqlite:///relative.db", "mysql://me:hunter2@localhost/x"):
        result = run("serve", "--data-dir", data, "--database", url)
        assert result.exit_code == 1 and result.stderr.startswith("Error: ") and "hunter2" not in result.output


def test_a_certificate_and_key_from_elsewhere_are_used(data: Path, tmp_path: Path, served: Served) -> None:
    tls.self_signed(tmp_path / "own.pem", ["localhost"])
    own = tmp_path / "own.pem"
    result = run("serve", "--data-dir", data, "--port", "0", "--tls-cert", own, "--tls-key", own, "--workers", "3")
    assert result.exit_code == 0, result.output
    assert (served.certificate, served.workers) == (serving.Certificate(own, own), 3)
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(own)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_a_server_for_everybody_has_and_prints_addresses_that_others_can_use(
    data: Path, served: Served, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setattr(tls, "own_addresses", lambda: ["192.0.2.50", "2001:db8::50"])
    command = ("serve", "--data-dir", data, "--host", host, "--port", "0", "--tls-self-signed")
    result = run(*command, "--tls-name", "a.example")
    assert result.exit_code == 0, result.output
    *addresses, print_of_it = result.stdout.splitlines()
    assert print_of_it.startswith("Certificate SHA-256 ")
    hosts = [line.removeprefix("Squirrel server at https://").rpartition(":")[0] for line in addresses]
    assert hosts[:3] == ["a.example", "192.0.2.50", "[2001:db8::50]"]
    assert not {"0.0.0.0", "[::]", "localhost", "127.0.0.1", "[::1]"} & set(hosts)
    held = tls.names_missing(data / "tls.pem", ["192.0.2.50", "2001:db8::50", "a.example", "localhost", "127.0.0.1"])
    assert held == []
    monkeypatch.setattr(tls, "own_addresses", lambda: ["192.0.2.51"])  # another lease
    later = run(*command)
    assert later.exit_code == 0 and "without 192.0.2.51" in later.stderr and "192.0.2.51" not in later.stdout


def test_a_server_on_one_address_prints_that_one(data: Path, served: Served) -> None:
    result = run("serve", "--data-dir", data, "--port", "0", "--tls-self-signed", "--tls-name", "a.example")
    assert [line.rpartition(":")[0] for line in result.stdout.splitlines()[:-1]] == [
        "Squirrel server at https://127.0.0.1"
    ]


def test_the_addresses_of_this_machine_are_addresses_for_others() -> None:
    for address in map(ipaddress.ip_address, tls.own_addresses()):
        assert not (address.is_loopback or address.is_unspecified or address.is_link_local)


@pytest.fixture
def pems(tmp_path: Path) -> Path:
    """Certificates and keys, some of which are none."""
    from cryptography.hazmat.primitives import serialization

    one, two = issue(tmp_path, "one"), issue(tmp_path, "two")
    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (tmp_path / "locked.pem").write_bytes(one.key.private_bytes(*pem, serialization.BestAvailableEncryption(b"x")))
    (tmp_path / "empty.pem").write_bytes(b"")
    (tmp_path / "text.pem").write_text("no certificate")
    (tmp_path / "binary.pem").write_bytes(bytes(range(256)))
    (tmp_path / "cut.pem").write_bytes(two.file.read_bytes()[:200])
    (tmp_path / "bad.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    return tmp_path


@pytest.mark.parametrize(
    ("cert", "key", "said"),
    [
        ("one.pem", "two-key.pem", "does not belong"),
        ("one.pem", "one.pem", "no certificate and unencrypted key"),
        ("one-key.pem", "one-key.pem", "no certificate"),
        ("one.pem", "locked.pem", "unencrypted"),
        ("one.pem", "empty.pem", "no certificate and"),
        ("one.pem", "binary.pem", "no certificate and"),
        ("empty.pem", "one-key.pem", "no certificate"),
        ("text.pem", "one-key.pem", "no certificate"),
        ("binary.pem", "one-key.pem", "no certificate"),
        ("cut.pem", "two-key.pem", "no certificate"),
        ("bad.pem", "one-key.pem", "no certificate"),
        ("none.pem", "one-key.pem", "does not exist"),
        ("one.pem", "none.pem", "does not exist"),
    ],
)
def test_certificate_files_that_cannot_be_used_are_told_before_an_address_is(
    pems: Path, data: Path, served: Served, cert: str, key: str, said: str
) -> None:
    result = run("serve", "--data-dir", data, "--port", "0", "--tls-cert", pems / cert, "--tls-key", pems / key)
    assert result.exit_code in (1, 2) and said in result.stderr and result.stdout == ""
    assert isinstance(result.exception, SystemExit) and not hasattr(served, "options")


@pytest.mark.parametrize("content", ["empty", "text", "binary", "cut", "bad", "one", "one-key"])
def test_a_certificate_of_its_own_that_was_damaged_is_told_and_left(
    pems: Path, data: Path, served: Served, content: str
) -> None:
    data.mkdir()
    damaged = (pems / f"{content}.pem").read_bytes()
    (data / "tls.pem").write_bytes(damaged)
    result = run("serve", "--data-dir", data, "--port", "0", "--tls-self-signed")
    assert result.exit_code == 1 and "tls.pem" in result.stderr and result.stdout == ""
    assert result.stderr.count("\n") == 1 and (data / "tls.pem").read_bytes() == damaged


def test_a_folder_that_cannot_hold_the_certificate_is_told(data: Path, served: Served) -> None:
    (data / "tls.pem").parent.mkdir()
    (data / "tls.pem").symlink_to("nowhere/else.pem")
    result = run("serve", "--data-dir", data, "--port", "0", "--tls-self-signed")
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit) and result.stderr.count("\n") == 1


def test_no_backup_is_written_to_a_file_that_is_named_like_stdout(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("invite", "--data-dir", data).exit_code == 0
    (empty := tmp_path / "empty").mkdir()
    monkeypatch.chdir(empty)
    result = run("backup", "-", "--data-dir", data)
    assert result.exit_code == 1 and "give its name" in result.stderr and not list(empty.iterdir())
