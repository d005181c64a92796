"""A second reader of the formats, written from docs/protocol.md with `cryptography` and the standard library alone."""

from __future__ import annotations

import hmac
import json
import struct
import unicodedata
from hashlib import pbkdf2_hmac, sha256
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

FILES = {path.name: json.loads(path.read_text("ascii")) for path in Path(__file__).parent.glob("*.json")}
LOG = FILES["log.json"]
unhex = bytes.fromhex


def hkdf(key: bytes, salt: bytes, info: bytes, size: int) -> bytes:
    extracted, okm, block = hmac.digest(salt or bytes(32), key, "sha256"), b"", b""
    while len(okm) < size:
        block = hmac.digest(extracted, block + info + bytes((len(okm) // 32 + 1,)), "sha256")
        okm += block
    return okm[:size]


def gcm(key: bytes, nonce: bytes, sealed: bytes, aad: bytes) -> bytes | None:
    try:
        return AESGCM(key).decrypt(nonce, sealed, aad)
    except InvalidTag:
        return None


def open_wrap(raw: bytes, secret: str | bytes) -> bytes | None:
    text, salt = unicodedata.normalize("NFC", secret).encode() if isinstance(secret, str) else secret, raw[56:72]
    cost, memory, lanes = struct.unpack(">3I", raw[8:20])
    form = (len(raw), raw[:6], raw[6], raw[7], isinstance(secret, str))
    if form == (164, b"SQKW\1\2", 3, 0, False) and cost == memory == lanes == 0:
        r = sha256(text).digest()
    elif form == (164, b"SQKW\1\1", 1, 0, True) and 600_000 <= cost <= 10**7 and memory == lanes == 0:
        r = pbkdf2_hmac("sha256", text, salt, cost)
    elif form != (164, b"SQKW\1\1", 2, 0, True) or not text or text.startswith(b"${"):
        return None
    elif 2 <= cost <= 16 and 19_456 <= memory <= 2**20 and 1 <= lanes <= 16 and cost * memory <= 2**22:
        r = Argon2id(salt=salt, length=32, iterations=cost, lanes=lanes, memory_cost=memory).derive(text)
    else:
        return None
    okm = hkdf(r, sha256(raw[:72]).digest(), b"squirrel/v1/kek", 64)
    dek = gcm(okm[:32], raw[104:116], raw[116:], raw[:116]) if okm[32:] == raw[72:104] else None
    return dek if dek and hkdf(dek, b"", b"squirrel/v1/key-id", 16) == raw[40:56] else None


def open_record(dek: bytes, account: bytes, memory: bytes, revision: int, kind: int, raw: bytes) -> bytes | None:
    kid = hkdf(dek, b"", b"squirrel/v1/key-id", 16)
    if not 76 + 256 + 16 <= len(raw) <= 65_536 or raw[:20] != bytes((1, kind, 0, 0)) + kid:
        return None
    ctx = b"squirrel/v1/ctx\0" + account + memory + revision.to_bytes(8, "big") + bytes((kind,))
    info = b"squirrel/v1/record\0" + sha256(ctx + raw[:44]).digest()
    okm = hkdf(hkdf(dek, b"", b"squirrel/v1/record", 32), raw[20:44], info, 64)
    plain = gcm(okm[:32], bytes(12), raw[76:], ctx + raw[:76]) if okm[32:] == raw[44:76] else None
    if plain is None:
        return None
    end = 4 + int.from_bytes(plain[:4], "big")
    exponent = end.bit_length() - 1
    step = 1 << (exponent - exponent.bit_length())
    exact = len(plain) == max(256, -(-end // step) * step) and not any(plain[end:])
    return plain[4:end] if exact else None


def check_log(case: dict[str, Any]) -> bool:
    """Whether the log is believed; which verdict it gets otherwise is not this reader's business."""
    keys = LOG["keySets"][case["keys"]]
    account, wraps, dek = unhex(keys["accountId"]), [unhex(raw) for raw in keys["wraps"]], unhex(keys["dek"])
    generation, sealed = max(int.from_bytes(raw[20:24], "big") for raw in wraps), unhex(keys["previousKeys"] or "")
    payload = open_record(dek, account, bytes(16), generation, 2, sealed) if sealed else b""
    retired = list(struct.iter_unpack(">32sQ32s", payload or b""))
    deks, macs, sets, rotations = [item[0] for item in retired] + [dek], [bytes(32)], [], 0
    memories: dict[bytes, list[bytes | bool | None]] = {}
    for name, stored in [item for page in case["pages"] for item in page["items"]]:
        raw, content = unhex(LOG["entries"][name]), None if stored is None else unhex(LOG["objects"][stored])
        if len(raw) != 138 or raw[0] != 1:
            return False
        op, seq, _, memory, revision, digest, link, mac = struct.unpack(">xBQQ16sQ32s32s32s", raw)
        right = hmac.digest(hkdf(deks[rotations], b"", b"squirrel/v1/log", 32), account + raw[:106], "sha256")
        good = (seq, link, mac) == (len(macs), macs[-1], right)
        macs.append(mac)
        if op in (3, 4):
            sets.append(digest)
            good &= not any(memory) and content is None and revision == len(sets) and (op == 3 or seq > 1)
            good &= op == 3 or (rotations < len(retired) and retired[rotations][1:] == (seq - 1, link))
            rotations += op == 4
        else:
            past = memories.setdefault(memory, [])
            good &= seq > 1 and any(memory) and True not in past and op in (1, 2)
            good &= (content is None or sha256(content).digest() == digest) if op == 1 else len(past) > 0
            good &= op == 1 or (not any(digest) and content is None)
            past.append(True if op == 2 else content)
            good &= revision == len(past)
        if not good:
            return False
    pages, pinned = case["pages"], case["pinned"] or {"seq": 0, "mac": "00" * 32}
    on_log = all(
        head["seq"] < len(macs) and macs[head["seq"]] == unhex(head["mac"])
        for head in (case["accountHead"], pages[-1]["head"], pinned)
    )
    not_older = all(head["seq"] >= pinned["seq"] for head in [case["accountHead"], *(page["head"] for page in pages)])
    whole = [page["more"] for page in pages] == [True] * (len(pages) - 1) + [False] and all(
        page["items"] or not page["more"] for page in pages
    )
    there = pages[-1]["head"]["seq"] == len(macs) - 1 and all(past[-1] is not None for past in memories.values())
    fits = (sets[-1:], len(sets)) == ([sha256(b"".join(wraps) + sealed).digest()], generation)
    return on_log and not_older and whole and there and fits and rotations == len(retired) and payload is not None
