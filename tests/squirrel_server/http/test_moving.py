"""An embedded vault is moved to a server: in batches, with its history, all of it or visibly not yet."""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Callable

import httpx
import pytest

from tests.squirrel_server.http.member import Member, batch_of, joined, key_set_of, problem
from tests.squirrel_server.http.moved_log import MovedLog, moved_log
from tests.squirrel_server.http.running import Running
from tests.squirrel_server.store.builder import Client, Pair, make_entry, make_object, make_wrap, sha256


@pytest.fixture
def log() -> MovedLog:
    return moved_log()


@pytest.fixture
def mover(server: Running, web: httpx.Client, log: MovedLog) -> Member:
    """The owner of the log, whose account is opened and empty but for its first entry."""
    return begun(server, web, log)


def begun(server: Running, web: httpx.Client, log: MovedLog, **changes: object) -> Member:
    answer = web.post("/v1/accounts", json=log.opening(server.invite(), **changes))
    assert answer.status_code == 201, answer.text
    return Member(web, log.client, answer.json()["apiKey"])


def entries_of(member: Member) -> list[Pair]:
    found = member.call("GET", "/v1/log?objects=all").json()["entries"]
    return [(b64decode(item["entry"]), item["object"] and b64decode(item["object"])) for item in found]


def finished(member: Member, log: MovedLog) -> None:
    """Everything is there as it was, and the account is one like any other."""
    shown = member.call("GET", "/v1/account").json()
    assert shown["head"] == {"seq": log.client.seq, "mac": log.client.mac.hex()}
    assert [b64decode(wrap) for wrap in shown["wraps"]] == list(log.client.wraps)
    assert b64decode(shown["previousKeys"]) == log.client.previous_keys
    entries = entries_of(member)
    assert [entry for entry, _ in entries] == [log.first.entry, *(entry for entry, _ in log.pairs)]
    assert {sha256(body) for _, body in entries if body} == log.kept.keys()
    assert member.append(log.client.put()).is_success
    request = log.client.rewrap()
    assert member.call("PUT", "/v1/account/key-set", key_set_of(request)).is_success


def test_a_vault_is_moved_in_one_batch(mover: Member, log: MovedLog) -> None:
    answer = mover.append(*log.pairs)
    assert answer.json() == {"head": {"seq": 13, "mac": log.client.mac.hex()}}
    finished(mover, log)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_vault_is_moved_in_batches_of_any_size_each_of_them_twice(mover: Member, log: MovedLog, size: int) -> None:
    for start in range(0, len(log.pairs), size):
        batch = log.pairs[start : start + size]
        first, again = mover.append(*batch), mover.append(*batch)
        assert first.is_success and first.content == again.content, again.text
    finished(mover, log)


def test_an_upload_that_was_interrupted_goes_on_from_any_point(mover: Member, log: MovedLog) -> None:
    assert mover.append(*log.pairs[:4]).is_success
    assert mover.append(*log.pairs[:2]).json()["head"]["seq"] == 5  # all of it there: told how far it is
    assert mover.append(*log.pairs[2:7]).json()["head"]["seq"] == 8  # a part of it there
    assert mover.append(*log.pairs).is_success
    finished(mover, log)


@pytest.mark.parametrize("done", [0, 5, 12])
@pytest.mark.parametrize("size", [3, 5, 20])
def test_an_owner_who_wrote_on_meanwhile_finishes_the_upload_with_it(
    mover: Member, log: MovedLog, done: int, size: int
) -> None:
    # The move was interrupted; the vault is still in use, and the owner does not remember the head that was named.
    assert not done or mover.append(*log.pairs[:done]).is_success
    log.pairs += [log.client.put() for _ in range(4)]
    log.kept |= {sha256(body): body for _, body in log.pairs[-4:] if body}
    for start in range(0, len(log.pairs), size):
        answer = mover.append(*log.pairs[start : start + size])
        assert answer.is_success, answer.text
    finished(mover, log)


def test_the_objects_of_what_is_forgotten_later_may_be_left_out(mover: Member, log: MovedLog) -> None:
    pairs = [(entry, body if body and sha256(body) in log.kept else None) for entry, body in log.pairs]
    assert mover.append(*pairs[:6]).is_success
    assert mover.append(*pairs[6:]).is_success
    problem(mover.call("GET", f"/v1/objects/{sha256(log.gone).hex()}"), 404, "unknown_object")
    finished(mover, log)


def test_an_object_left_out_is_known_by_its_hash_all_the_same(mover: Member, log: MovedLog) -> None:
    pairs = [(entry, body if body and sha256(body) in log.kept else None) for entry, body in log.pairs]
    assert mover.append(*pairs).is_success
    problem(mover.append(log.client.copy().put(body=log.gone)), 422, "malformed")


def test_until_the_head_is_reached_nothing_else_is_answered(mover: Member, log: MovedLog) -> None:
    requests = [
        ("GET", "/v1/account", None),
        ("GET", "/v1/log", None),
        ("GET", "/v1/objects/" + "0" * 64, None),
        ("GET", "/v1/keys", None),
        ("POST", "/v1/keys", {"scope": "read"}),
        ("DELETE", "/v1/keys/" + "0" * 12, None),
        ("PUT", "/v1/account/key-set", key_set_of(log.client.rewrap())),
    ]
    for batch in (log.pairs[:5], log.pairs[5:-1]):
        for method, path, body in requests:
            problem(mover.call(method, path, body), 409, "uploading")
        assert mover.append(*batch).is_success
    assert mover.append(log.pairs[-1]).is_success
    finished(mover, log)


def test_an_upload_can_be_given_up(server: Running, web: httpx.Client, mover: Member, log: MovedLog) -> None:
    assert mover.append(*log.pairs[:5]).is_success
    problem(mover.call("DELETE", "/v1/account", squirrel_append=None), 403, "append_denied")
    assert mover.call("DELETE", "/v1/account").status_code == 204
    again = begun(server, web, log)
    assert again.append(*log.pairs).is_success
    finished(again, log)


def test_the_opening_may_be_repeated_while_there_is_one_entry(
    server: Running, web: httpx.Client, log: MovedLog
) -> None:
    body = log.opening(server.invite())
    first, second = web.post("/v1/accounts", json=body), web.post("/v1/accounts", json=body)
    assert (first.status_code, second.status_code) == (201, 201)
    problem(Member(web, log.client, first.json()["apiKey"]).append(*log.pairs), 401, "unauthenticated")
    member = Member(web, log.client, second.json()["apiKey"])
    assert member.append(*log.pairs[:3]).is_success
    problem(web.post("/v1/accounts", json=body), 403, "invite_refused")
    assert member.append(*log.pairs).is_success
    finished(member, log)


def test_a_batch_under_the_wrong_append_key_is_denied(mover: Member, log: MovedLog) -> None:
    problem(mover.call("POST", "/v1/log", batch_of(log.pairs), squirrel_append=None), 403, "append_denied")


def test_a_log_of_one_entry_is_complete_at_once(server: Running, web: httpx.Client) -> None:
    client = Client()
    request = client.first()
    client.took(request)
    log = MovedLog(client, request, [], {}, b"")
    member = begun(server, web, log)
    assert member.call("GET", "/v1/account").json()["head"]["seq"] == 1
    assert member.append(client.put()).is_success


def test_a_vault_that_was_never_rotated_is_moved(server: Running, web: httpx.Client) -> None:
    client = Client()
    first = client.first()
    client.took(first)
    pairs = [client.put()]
    rewrap = client.rewrap()
    client.took(rewrap)
    log = MovedLog(client, first, [*pairs, (rewrap.entry, None)], {}, b"")
    member = begun(server, web, log)
    assert member.append(*log.pairs).is_success
    assert member.call("GET", "/v1/account").json()["previousKeys"] is None


def left_out(log: MovedLog, index: int) -> list[Pair]:
    return [(entry, None if number == index else body) for number, (entry, body) in enumerate(log.pairs)]


def another_last(log: MovedLog) -> list[Pair]:
    entry, body = log.pairs[-1]
    return [*log.pairs[:-1], (entry[:-32] + os.urandom(32), body)]


def key_set_behind(log: MovedLog) -> list[Pair]:
    return [*log.pairs, (log.client.copy().rewrap().entry, None)]


WRONG_BATCHES: dict[str, Callable[[MovedLog], list[Pair]]] = {
    "an object of a living memory left out": lambda log: left_out(log, 0),
    "an earlier revision's object left out": lambda log: left_out(log, 1),
    "the last object left out": lambda log: left_out(log, 11),
    "another head": another_last,
    "a key set behind the head": key_set_behind,
    "an object with a key set": lambda log: [*log.pairs[:3], (log.pairs[3][0], make_object()), *log.pairs[4:]],
    "an entry left out": lambda log: [*log.pairs[:5], *log.pairs[6:]],
    "an entry twice": lambda log: [*log.pairs[:5], log.pairs[4], *log.pairs[5:]],
    "another object": lambda log: [(log.pairs[0][0], make_object()), *log.pairs[1:]],
}


@pytest.mark.parametrize("what", WRONG_BATCHES)
def test_a_batch_that_does_not_lead_to_the_head_is_refused_whole(mover: Member, log: MovedLog, what: str) -> None:
    problem(mover.append(*WRONG_BATCHES[what](log)), 422, "malformed")
    problem(mover.call("GET", "/v1/account"), 409, "uploading")
    assert mover.append(*log.pairs).is_success  # nothing of it was kept
    finished(mover, log)


def test_a_batch_from_another_place_in_the_log_is_told_the_head(mover: Member, log: MovedLog) -> None:
    found = problem(mover.append(*log.pairs[3:]), 412, "head_moved")
    assert found["head"]["seq"] == 1
    fork = log.client.copy()
    fork.seq, fork.mac = 1, log.first.entry[106:]
    assert mover.append(*log.pairs[:3]).is_success
    assert problem(mover.append(fork.put()), 412, "head_moved")["head"]["seq"] == 4


def test_a_key_set_that_the_log_does_not_end_with_is_refused_at_the_end(
    server: Running, web: httpx.Client, log: MovedLog
) -> None:
    newest = make_wrap(log.client.account_id, log.client.kid, log.client.generation)
    changed = MovedLog(log.client.copy(), log.first, log.pairs, log.kept, log.gone)
    changed.client.wraps = (newest,)
    member = begun(server, web, changed)
    assert member.append(*log.pairs[:-1]).is_success
    problem(member.append(log.pairs[-1]), 422, "malformed")
    problem(member.call("GET", "/v1/account"), 409, "uploading")


def test_a_key_set_of_another_generation_is_refused_at_the_end(server: Running, web: httpx.Client) -> None:
    client = Client()
    first = client.first()
    client.took(first)
    wraps = [make_wrap(client.account_id, client.kid, 3)]
    entry = make_entry(3, 2, 2, client.mac, digest=sha256(b"".join(wraps)))
    client.advance(entry)
    client.wraps = tuple(wraps)
    member = begun(server, web, MovedLog(client, first, [(entry, None)], {}, b""))
    problem(member.append((entry, None)), 422, "malformed")


@pytest.mark.parametrize(
    "change",
    [
        {"upload": {"seq": 0, "mac": "00" * 32}},
        {"upload": {"seq": 1, "mac": "00" * 32}},
        {"upload": {"seq": 2**53, "mac": "00" * 32}},
        {"upload": {"seq": True, "mac": "00" * 32}},
        {"upload": {"seq": 5, "mac": "00" * 31}},
        {"upload": {"seq": 5}},
        {"upload": 5},
        {"wraps": []},
        {"previousKeys": "AAAA"},
        {"appendVerifier": None},
    ],
)
def test_an_opening_that_cannot_be_meant_is_malformed(
    server: Running, web: httpx.Client, log: MovedLog, change: dict[str, object]
) -> None:
    problem(web.post("/v1/accounts", json=log.opening(server.invite(), **change)), 422, "malformed")


def test_a_generation_left_out_is_refused(server: Running, web: httpx.Client) -> None:
    client = Client()
    first = client.first()
    client.took(first)
    client.generation += 1
    rewrap = client.rewrap()
    client.took(rewrap)
    member = begun(server, web, MovedLog(client, first, [(rewrap.entry, None)], {}, b""))
    problem(member.append((rewrap.entry, None)), 422, "malformed")


def test_an_account_that_was_not_moved_takes_no_key_set_by_the_log(server: Running, web: httpx.Client) -> None:
    member = joined(server, web)
    request = member.client.copy().rewrap()
    problem(member.append((request.entry, None)), 422, "malformed")
    entry, _ = member.client.copy().put()
    problem(member.append((entry, None)), 422, "malformed")


def test_a_moved_account_takes_no_key_set_by_the_log_afterwards(mover: Member, log: MovedLog) -> None:
    assert mover.append(*log.pairs).is_success
    request = log.client.copy().rewrap()
    problem(mover.append((request.entry, None)), 422, "malformed")
    entry, _ = log.client.copy().put()
    problem(mover.append((entry, None)), 422, "malformed")
