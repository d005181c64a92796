"""keys.json: a DEK and the subkey of each purpose."""

from __future__ import annotations

from typing import Any

from squirrel_mcp.crypto.keys import Dek
from tests.vectors.making.files import case
from tests.vectors.making.seeded import Seeded


def build() -> dict[str, Any]:
    secrets = {"zeros": bytes(32), "counting": bytes(range(32)), "random": Seeded("keys")(32)}
    return {
        "about": "HKDF-SHA256(DEK, salt empty, info `squirrel/v1/` + purpose): section 1 of the protocol.",
        "cases": [case(name, "ok", "Subkeys of this DEK.", **_subkeys(secret)) for name, secret in secrets.items()],
    }


def _subkeys(secret: bytes) -> dict[str, bytes]:
    dek = Dek(secret)
    return {
        "dek": secret,
        "kid": dek.kid,
        "record": dek.record,
        "log": dek.log,
        "append": dek.append,
        "localState": dek.local_state,
        "vectorCache": dek.vector_cache,
        "fileName": dek.file_name,
    }
