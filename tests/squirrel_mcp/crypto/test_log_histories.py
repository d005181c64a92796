"""The log verifier against accounts and attackers that hypothesis makes up."""

from __future__ import annotations

import contextlib
import dataclasses

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from squirrel_mcp.crypto import log
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.verifier import LogVerifier
from squirrel_mcp.errors import LogDamaged, Verdict
from tests.squirrel_mcp.crypto.log_oracle import NOTHING, Judgement, Question, judge
from tests.squirrel_mcp.crypto.log_simulator import Account, Keys, Page, read
from tests.squirrel_mcp.crypto.log_tampering import STEPS, accounts, page_sizes, take, tampered

pytestmark = pytest.mark.usefixtures("free_kdf")

# Ten times as many with `--full`, as the profile has it.
THOROUGH = settings(
    max_examples=2 * settings().max_examples,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def pins(account: Account) -> st.SearchStrategy[Head | None]:
    """No pin half of the time, else any head that the account had."""
    return st.one_of(st.none(), st.integers(1, len(account.entries)).map(account.head_at))


def judged(account: Account, keys: Keys, pinned: Head | None, account_head: Head, pages: list[Page]) -> Judgement:
    """What `LogVerifier` says, in the oracle's words."""
    verifier = LogVerifier(account.id, keys.key_set, keys.ring, pinned)
    try:
        read(verifier, pages, account_head)
    except Verdict as verdict:
        seq = verdict.seq if isinstance(verdict, LogDamaged) else None
        return Judgement(verdict.code, seq, verifier.confirmed)
    return Judgement("ok", None, verifier.confirmed)


def question(account: Account, keys: Keys, pinned: Head | None, account_head: Head, pages: list[Page]) -> Question:
    return Question(
        account.id,
        keys.key_set.sha256,
        keys.key_set.generation,
        [each.dek.secret() for each in keys.ring.retired] + [keys.ring.current.secret()],
        [(each.seq, each.mac) for each in keys.ring.retired],
        pinned or NOTHING,
        account_head,
        pages,
    )


@given(data=st.data(), account=accounts(), sizes=page_sizes())
def test_an_honest_log_is_accepted_however_it_is_cut_and_wherever_it_was_pinned(
    data: st.DataObject, account: Account, sizes: list[int]
) -> None:
    pinned = account.head_at(data.draw(st.integers(0, len(account.entries))))
    verifier = account.verifier(pinned)
    read(verifier, account.pages(sizes))
    updates = verifier.drain()
    assert verifier.confirmed == len(updates)
    verifier.commit()

    assert verifier.head == verifier.pinned == account.head
    assert verifier.generation == len(account.keys)
    traces = {memory_id: verifier.trace(memory_id) for memory_id in account.revisions}
    assert {memory_id: trace and trace.revision for memory_id, trace in traces.items()} == account.revisions
    assert {memory_id for memory_id, trace in traces.items() if trace and trace.forgotten} == account.forgotten
    assert [each.entry for each in updates] == [
        log.parse(raw) for raw in account.entries if log.parse(raw).op not in log.KEY_OPS
    ]


@given(data=st.data(), account=accounts())
def test_several_syncs_come_to_the_same_as_one(data: st.DataObject, account: Account) -> None:
    stops = sorted(data.draw(st.sets(st.integers(1, len(account.entries)), max_size=4)) | {len(account.entries)})
    verifier = account.verifier(seq=stops[0])
    known, updates = 0, []
    for stop in stops:
        keys = account.keys_at(stop)
        verifier.replace_keys(keys.key_set, keys.ring)
        read(verifier, account.pages(data.draw(page_sizes()), after=known, upto=stop))
        updates += verifier.drain()
        verifier.commit()
        known = stop

    once = account.verifier()
    read(once, account.pages())
    # An object that a later entry replaced is sent to who syncs in between and not to who comes after.
    assert [(each.entry, each.dek) for each in updates] == [(each.entry, each.dek) for each in once.drain()]
    once.commit()
    assert (verifier.head, verifier.generation) == (once.head, once.generation)
    assert all(verifier.trace(memory_id) == once.trace(memory_id) for memory_id in account.revisions)


@THOROUGH
@given(data=st.data(), account=accounts())
def test_any_tampering_gets_the_verdict_that_the_table_names(data: st.DataObject, account: Account) -> None:
    pages = data.draw(tampered(account, account.deks))
    keys = data.draw(st.sampled_from([account.keys[-1], account.keys[-1], *account.keys]))
    pinned = data.draw(pins(account))
    account_head = data.draw(st.sampled_from([pages[-1].head, pages[-1].head, account.head]))

    given_all = (account, keys, pinned, account_head, pages)
    expected = judge(question(*given_all))
    event(expected.code)
    assert judged(*given_all) == expected


@THOROUGH
@given(data=st.data(), account=accounts())
def test_who_holds_only_retired_keys_gets_no_entry_of_his_own_confirmed(data: st.DataObject, account: Account) -> None:
    pages = data.draw(tampered(account, account.deks[:-1]))
    pinned = data.draw(pins(account))
    verifier = account.verifier(pinned)
    accepted = True
    try:
        read(verifier, pages)
    except Verdict:
        accepted = False
    confirmed = [each.entry for each in verifier.drain()[: verifier.confirmed]]
    honest = [log.parse(raw) for raw in account.entries]
    event(f"accepted: {accepted}, confirmed: {bool(confirmed)}")

    memories = [entry for entry in honest if entry.op not in log.KEY_OPS]
    assert confirmed == memories[: len(confirmed)]
    if accepted:
        assert verifier.confirmed == len(memories[: verifier.confirmed])
        verified = [log.parse(raw) for page in pages for raw, _ in page.items]
        # Only the time in a rotate entry at the very head is the word of the retired key alone: no later entry
        # vouches for it. It is information, and a forged one shows as a fork once the log goes on.
        undated = [entry._replace(time=0, mac=b"", prev_mac=b"") for entry in verified]
        assert undated == [entry._replace(time=0, mac=b"", prev_mac=b"") for entry in honest[: len(verified)]]
        assert verified[:-1] == honest[: len(verified) - 1]


@THOROUGH
@given(data=st.data(), account=accounts())
def test_entries_read_before_a_rotation_was_learnt_of_lose_their_confirmation_with_it(
    data: st.DataObject, account: Account
) -> None:
    # As the replica does it: an op 3 or 4 beyond the keys in hand makes it fetch the key set, in the midst of a log.
    pages = data.draw(tampered(account, account.deks[:-1]))
    keys = data.draw(st.sampled_from(account.keys))
    verifier = LogVerifier(account.id, keys.key_set, keys.ring)
    with contextlib.suppress(Verdict):
        for page in pages:
            known = [raw for raw, _ in page.items if len(raw) == log.ENTRY_BYTES and raw[1] in log.KEY_OPS]
            if any(log.parse(raw).revision > keys.key_set.generation for raw in known):
                keys = account.keys[-1]
                verifier.replace_keys(keys.key_set, keys.ring)
            verifier.page(page.items, page.head, more=page.more)
    confirmed = [each.entry for each in verifier.drain()[: verifier.confirmed]]
    event(f"confirmed: {len(confirmed) > 0}, with the newest key: {keys.ring.current == account.dek}")

    if keys.ring.current == account.dek:
        memories = [log.parse(raw) for raw in account.entries if raw[1] not in log.KEY_OPS]
        assert confirmed == memories[: len(confirmed)]


class Device(RuleBasedStateMachine):
    """A running client, a store that sometimes lies, and another device that writes and changes keys."""

    @initialize(recovery=st.booleans())
    def register(self, recovery: bool) -> None:
        self.account = Account("shared", recovery=recovery)
        self.verifier = self.account.verifier()
        self.verified = 0

    @rule(step=st.sampled_from(STEPS), pick=st.integers(0, 99))
    def the_other_device_writes(self, step: str, pick: int) -> None:
        take(self.account, step, pick)

    @rule(sizes=page_sizes())
    def sync(self, sizes: list[int]) -> None:
        keys = self.account.keys[-1]
        self.verifier.replace_keys(keys.key_set, keys.ring)
        read(self.verifier, self.account.pages(sizes, after=self.verified))
        self.verifier.commit()
        self.verified = len(self.account.entries)

    @rule()
    def restart_with_the_pin(self) -> None:
        self.verifier = self.account.verifier(self.account.head_at(self.verified), max(1, self.verified))
        if self.verified:
            read(self.verifier, self.account.pages(upto=self.verified))
            self.verifier.commit()

    @precondition(lambda self: self.verified > 1)
    @rule(data=st.data())
    def the_store_shows_an_older_state(self, data: st.DataObject) -> None:
        older = data.draw(st.integers(1, self.verified - 1))
        with pytest.raises(Verdict) as caught:
            read(self.verifier, self.account.pages(upto=older, after=older))
        assert caught.value.code == "rollback_detected"
        self.verifier.discard()

    @precondition(lambda self: self.verified and self.verified < len(self.account.entries))
    @rule(data=st.data())
    def the_store_omits_an_entry(self, data: st.DataObject) -> None:
        items = self.account.items(after=self.verified)
        dropped = data.draw(st.integers(0, len(items) - 1))
        page = Page(items[:dropped] + items[dropped + 1 :], self.account.head, False)
        keys = self.account.keys[-1]
        self.verifier.replace_keys(keys.key_set, keys.ring)
        with pytest.raises(Verdict) as caught:
            read(self.verifier, [page])
        assert caught.value.code == "omission_detected"
        self.verifier.discard()

    @precondition(lambda self: self.verified)
    @rule()
    def the_store_shows_another_branch(self) -> None:
        branch = dataclasses.replace(self.account.keys_at(self.verified).ring)
        raw = log.make(
            branch.current,
            self.account.id,
            Head(self.verified, b"another entry's mac".ljust(32)),
            log.PUT,
            time_ms=0,
            revision=1,
            memory_id=b"a forged memory!",
            content=b"forged",
        )
        with pytest.raises(Verdict) as caught:
            read(self.verifier, [Page([(raw, b"forged")], log.parse(raw).head, False)])
        assert caught.value.code == "fork_detected"
        self.verifier.discard()

    @invariant()
    def only_the_honest_log_was_verified(self) -> None:
        assert self.verifier.head == self.account.head_at(self.verified)
        assert self.verifier.confirmed == 0  # nothing is pending between two syncs


Device.TestCase.settings = settings(max_examples=settings().max_examples // 2, stateful_step_count=25)
TestDevice = Device.TestCase


def test_the_simulated_account_is_the_same_each_time() -> None:
    def build() -> Account:
        account = Account("twin")
        account.correct(account.save())
        account.rotate()
        return account

    assert build().items() == build().items()
    assert build().dek == build().dek != Dek(bytes(32))
