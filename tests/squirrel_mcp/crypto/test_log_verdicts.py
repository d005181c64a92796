"""The verdicts of log.json, every flipped bit, and what happens to a client that is running when the keys change."""

from __future__ import annotations

import pytest

from squirrel_mcp.crypto import log
from squirrel_mcp.crypto.key_set import KeyRing, RetiredKey
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.log import EMPTY, PUT, REWRAP, ROTATE, Head
from squirrel_mcp.crypto.verifier import LogVerifier
from squirrel_mcp.errors import (
    ForeignKey,
    ForkDetected,
    KeyRecordDowngrade,
    LogDamaged,
    OmissionDetected,
    RollbackDetected,
    Verdict,
)
from tests.squirrel_mcp.crypto.log_simulator import Account, Page, cut, forge, read
from tests.squirrel_mcp.crypto.vector_readers import follow, log_verifier
from tests.vectors.making.files import Case, cases

pytestmark = pytest.mark.usefixtures("free_kdf")


@pytest.mark.parametrize("case", cases("log.json"), ids=lambda case: case["name"])
def test_a_log_gets_exactly_the_verdict_of_the_vector(case: Case) -> None:
    verifier, code, seq = log_verifier(case), "ok", None
    try:
        follow(verifier, case)
    except Verdict as verdict:
        code, seq = verdict.code, getattr(verdict, "seq", None)
    assert (code, seq, verifier.confirmed) == (case["expect"], case.get("seq"), case["confirmed"])


def rotated() -> Account:
    """Two memories, a rotation, a third memory: rewrap, put, put, rotate, put."""
    account = Account("rotated once")
    account.save()
    account.save()
    account.rotate()
    account.save()
    return account


def test_every_flipped_bit_of_every_entry_is_refused() -> None:
    account = rotated()
    items = account.items()
    for index, (raw, content) in enumerate(items):
        for bit in range(8 * len(raw)):
            byte, changed = bit // 8, bytearray(raw)
            changed[byte] ^= 0x80 >> bit % 8
            damaged = [*items[:index], (bytes(changed), content), *items[index + 1 :]]
            verifier = account.verifier()
            with pytest.raises(Verdict) as caught:
                read(verifier, cut(damaged, account.head))
            if byte == 0 or (byte == 1 and changed[1] not in (1, 2, 3, 4)):
                expect = "update_required"
            else:
                expect = "omission_detected" if 2 <= byte < 10 else "log_damaged"
            assert caught.value.code == expect, f"entry {index + 1}, bit {bit}"


def test_a_log_cut_off_anywhere_in_an_entry_is_refused() -> None:
    account = rotated()
    items = account.items()
    for size in range(log.ENTRY_BYTES):
        with pytest.raises(LogDamaged) as caught:
            read(account.verifier(), cut([*items[:-1], (items[-1][0][:size], items[-1][1])], account.head))
        assert caught.value.seq == 5


def test_a_pinned_client_notices_every_prefix() -> None:
    account = rotated()
    for upto in range(1, len(account.entries)):
        with pytest.raises(RollbackDetected):
            read(account.verifier(account.head), account.pages(upto=upto))


def test_nothing_that_was_read_counts_until_it_is_committed() -> None:
    account = rotated()
    verifier = account.verifier()
    read(verifier, account.pages())
    assert (verifier.head, verifier.reading) == (EMPTY, account.head)
    assert account.revisions and not any(map(verifier.trace, account.revisions))
    verifier.discard()
    assert (verifier.head, verifier.reading, verifier.pinned) == (EMPTY, EMPTY, EMPTY)
    read(verifier, account.pages())
    verifier.commit()
    assert verifier.head == verifier.reading == verifier.pinned == account.head


def test_a_discarded_attempt_leaves_no_trace_in_the_next_one() -> None:
    account = Account("discarded")
    memory_id = account.save()
    verifier = account.verifier()
    read(verifier, account.pages())
    verifier.commit()
    account.forget(memory_id)
    with pytest.raises(OmissionDetected):
        read(verifier, cut(account.items(after=2), Head(9, bytes(32))))
    verifier.discard()
    trace = verifier.trace(memory_id)
    assert trace is not None and not trace.forgotten
    read(verifier, account.pages(after=2))
    verifier.commit()
    trace = verifier.trace(memory_id)
    assert trace is not None and trace.forgotten


def test_a_trace_tells_the_hash_and_the_key_of_every_revision() -> None:
    account = Account("traced")
    memory_id = account.save()
    account.rotate()
    account.correct(memory_id)
    verifier = account.verifier()
    read(verifier, account.pages())
    verifier.commit()
    trace = verifier.trace(memory_id)
    assert trace is not None
    assert trace.hashes == tuple(log.parse(raw).sha256 for raw in account.entries if raw[1] == PUT)
    assert [account.keys[-1].ring.at(number) for number in trace.rotations] == account.deks
    assert verifier.trace(bytes(16)) is None


# A running client.


def following(account: Account, seq: int) -> LogVerifier:
    """A client that has verified the log up to `seq` with the keys of then."""
    verifier = account.verifier(seq=seq)
    read(verifier, account.pages(upto=seq))
    verifier.commit()
    return verifier


def test_a_rotation_needs_the_new_key_set() -> None:
    account = rotated()
    verifier = following(account, 3)
    with pytest.raises(LogDamaged) as caught:
        read(verifier, account.pages(after=3))
    assert caught.value.seq == 4
    verifier.discard()
    verifier.replace_keys(account.keys[-1].key_set, account.keys[-1].ring)
    read(verifier, account.pages(after=3))
    verifier.commit()
    assert verifier.head == account.head


def test_a_rewrap_without_the_new_key_set_is_a_downgrade() -> None:
    account = Account("rewrapped")
    account.save()
    account.rewrap()
    verifier = following(account, 2)
    with pytest.raises(KeyRecordDowngrade):
        read(verifier, account.pages(after=2))


def test_a_key_set_whose_keys_do_not_follow_is_foreign() -> None:
    account, other = rotated(), Account("other")
    verifier = following(account, 5)
    for ring in (
        other.keys[-1].ring,
        account.keys[0].ring,  # the current key is gone
        KeyRing((), account.dek),  # the retired key is gone
        KeyRing((RetiredKey(other.dek, 3, account.head_at(3).mac),), account.dek),
        KeyRing((*account.keys[-1].ring.retired, RetiredKey(other.dek, 5, account.head.mac)), account.dek),
    ):
        with pytest.raises(ForeignKey):
            verifier.replace_keys(account.keys[-1].key_set, ring)


def test_a_later_key_set_may_not_move_a_rotation_that_was_verified() -> None:
    account = rotated()
    verifier = following(account, 5)
    account.rotate()
    (first, second) = account.keys[-1].ring.retired
    moved = KeyRing((RetiredKey(first.dek, 2, account.head_at(2).mac), second), account.dek)
    with pytest.raises(LogDamaged) as caught:  # what a client that starts afresh is told, too
        verifier.replace_keys(account.keys[-1].key_set, moved)
    assert caught.value.seq == first.seq + 1


def test_a_rotation_before_what_was_verified_is_refused() -> None:
    # Another device's branch: the account rotated at entry 2, this client saw entry 3 under the old key.
    account, branch = Account("branched"), Account("branched")
    account.save()
    branch.save()
    branch.rotate()
    account.save()
    verifier = following(account, 3)
    verifier.replace_keys(branch.keys[-1].key_set, branch.keys[-1].ring)
    with pytest.raises(ForkDetected):
        read(verifier, branch.pages())
    verifier.discard()
    verifier.replace_keys(branch.keys[-1].key_set, branch.keys[-1].ring)  # a discarded attempt takes its keys along
    with pytest.raises(LogDamaged):
        read(verifier, cut([], account.head))


def test_what_a_retired_key_vouches_for_is_not_confirmed_once_its_retirement_is_known() -> None:
    # A thief of the first key serves the key set from before the rotation and a forged log; at the second page he
    # lets the client learn of the rotation, and breaks the log before its rotate entry.
    account = rotated()
    old = account.keys[0]
    forged = forge(old.ring.current, account.id, account.head_at(1), PUT, memory_id=b"f" * 16, content=b"forged")
    verifier = LogVerifier(account.id, old.key_set, old.ring)
    verifier.page([*account.items(upto=1), (forged, b"forged")], account.head, more=True)
    assert verifier.confirmed == 1  # all that is known is the first key
    verifier.replace_keys(account.keys[-1].key_set, account.keys[-1].ring)
    assert verifier.confirmed == 0
    with pytest.raises(LogDamaged):
        verifier.page([(b"", None)], account.head, more=False)
    assert verifier.confirmed == 0


def test_what_came_before_an_honest_rotation_stays_confirmed() -> None:
    account = rotated()
    old = account.keys[0]
    verifier = LogVerifier(account.id, old.key_set, old.ring)
    verifier.page(account.items(upto=2), account.head, more=True)
    verifier.replace_keys(account.keys[-1].key_set, account.keys[-1].ring)
    verifier.page(account.items(after=2, upto=4), account.head, more=True)
    assert verifier.confirmed == 2
    with pytest.raises(LogDamaged):
        verifier.page([(b"", None)], account.head, more=False)
    assert verifier.confirmed == 2


@pytest.mark.parametrize("seq", [3, 4])
def test_an_account_head_that_was_passed_already_must_be_on_the_log(seq: int) -> None:
    # The key set was fetched again in the midst of a sync, and its head is not one of the entries read before.
    account = rotated()
    verifier = account.verifier()
    page, rest = account.pages([4])
    verifier.page(page.items, page.head, more=True)
    verifier.expect(Head(seq, b"another branch".ljust(32)))
    verifier.page(rest.items, rest.head, more=False)
    with pytest.raises(OmissionDetected):
        verifier.finish()
    verifier.discard()

    verifier.page(page.items, page.head, more=True)
    verifier.expect(account.head_at(seq))
    verifier.page(rest.items, rest.head, more=False)
    verifier.finish()


def test_an_account_head_beyond_the_page_is_waited_for() -> None:
    account = rotated()
    verifier = account.verifier()
    verifier.expect(account.head)
    page, rest = account.pages([3])
    verifier.page(page.items, account.head_at(3), more=False)
    assert not verifier.reached_expected
    verifier.page(rest.items, rest.head, more=False)
    assert verifier.reached_expected
    verifier.finish()


def test_the_end_of_the_log_is_judged_in_the_order_of_the_table() -> None:
    # The key set is the older one, and a live memory has no object: what is missing comes before the downgrade.
    account = Account("ordered")
    account.save()
    account.rewrap()
    items = account.items()
    first = account.keys[0]
    verifier = LogVerifier(account.id, first.key_set, first.ring)
    with pytest.raises(OmissionDetected):
        read(verifier, cut([items[0], (items[1][0], None), items[2]], account.head))
    verifier.discard()
    with pytest.raises(KeyRecordDowngrade):
        read(verifier, cut(items, account.head))


def test_a_head_of_an_empty_log_is_no_fork_of_nothing() -> None:
    account = Account("empty")
    with pytest.raises(OmissionDetected):
        read(account.verifier(), [Page([], Head(0, b"\1" * 32), False)])
    with pytest.raises(KeyRecordDowngrade):
        read(account.verifier(), [Page([], EMPTY, False)])


def test_a_forged_generation_does_not_stand_in_for_a_rotation() -> None:
    # Rewraps under the leaked key up to the genuine generation, with the genuine key set's hash: everything at the
    # head fits but the rotation that never came.
    account = rotated()
    genuine = account.keys[-1].key_set
    items = account.items(upto=1)
    raw = forge(account.deks[0], account.id, account.head_at(1), REWRAP, revision=2, content=genuine.raw)
    verifier = account.verifier()
    with pytest.raises(LogDamaged) as caught:
        read(verifier, cut([*items, (raw, None)], log.parse(raw).head))
    assert caught.value.seq == 2
    assert verifier.confirmed == 0


def test_a_log_does_not_begin_with_a_rotation_even_if_an_item_says_so() -> None:
    account = Account("rotated before it began")
    keys = account.keys[-1]
    ring = KeyRing((RetiredKey(Dek(bytes(32)), *EMPTY),), account.dek)
    first = forge(Dek(bytes(32)), account.id, EMPTY, ROTATE, revision=1, content=keys.key_set.raw)
    with pytest.raises(LogDamaged) as caught:
        read(LogVerifier(account.id, keys.key_set, ring), cut([(first, None)], log.parse(first).head))
    assert caught.value.seq == 1


def test_the_key_in_force_at_the_end_is_the_key_sets_own() -> None:
    account, other = Account("own"), Account("own")
    other.rotate()
    strange = LogVerifier(account.id, other.keys[-1].key_set, KeyRing((), account.dek))
    with pytest.raises(LogDamaged):
        read(strange, account.pages())
    assert Dek(bytes(32)) != account.dek
