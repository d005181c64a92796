"""vector_file.json: the companion's vector file, and files that it drops."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.primitives import derive, encrypt
from squirrel_mcp_embeddings.vector_format import Layout, Rows
from tests.vectors.making.files import Case, case
from tests.vectors.making.seeded import Seeded

_RANDOM = Seeded("vector_file.json")
EARLIER_DEK, DEK, STRANGER = Dek(_RANDOM(32)), Dek(_RANDOM(32)), Dek(_RANDOM(32))
ACCOUNT, SALT = _RANDOM(16), _RANDOM(24)
LAYOUT = Layout("gte-small", _RANDOM(32), dimension=4, text_format=1)
ROWS = Rows(
    np.frombuffer(_RANDOM(48), np.uint8).reshape(3, 16),
    np.array([1, 7, 2**64 - 1], np.uint64),
    np.array([[0.5, -0.25, 1.0, 0.0], [-0.0, 6e-8, 65_504.0, -1.0], [0.1, 0.2, 0.3, 0.4]], np.float16),
)
_METADATA = LAYOUT.metadata
_PACKED = b"".join(LAYOUT.pack(ROWS))
_ROW_BYTES = len(_PACKED) // ROWS.size


@dataclass(frozen=True)
class Recipe:
    """A file with any part wrong and everything that follows from it right."""

    plaintexts: tuple[bytes, ...] = (_METADATA, _PACKED)
    indices: tuple[int, ...] = (0, 1, 2)
    dek: Dek = DEK
    kid: bytes | None = None
    account: bytes = ACCOUNT
    magic: bytes = b"SQVC"
    version: int = 1
    reserved: bytes = bytes(3)
    commit: bytes | None = None

    def raw(self) -> bytes:
        info = b"squirrel/v1/vector-cache\0" + self.account
        okm = derive(self.dek.vector_cache, salt=SALT, info=info, length=64)
        start = self.magic + bytes((self.version,)) + self.reserved + (self.kid or self.dek.kid)
        header = start + SALT + (self.commit or okm[32:])
        parts = [header]
        for index, plaintext in zip(self.indices, self.plaintexts, strict=False):
            nonce = Seeded(f"vector_file.json nonce {index}")(12)
            sealed = nonce + encrypt(okm[:32], nonce, plaintext, header + struct.pack(">I", index))
            parts += [struct.pack(">I", len(sealed)), sealed]
        return b"".join(parts)


def build() -> dict[str, Any]:
    return {
        "about": "The companion's vector file: section 1.6 of the protocol.",
        "cases": [*_positive(), *_torn(), *_dropped()],
    }


def _positive() -> list[Case]:
    one, rest = _PACKED[:_ROW_BYTES], _PACKED[_ROW_BYTES:]
    return [
        _read("no_rows", Recipe((_METADATA,)).raw(), 0, "Metadata alone."),
        _read("one_segment", Recipe().raw(), 3, "Three rows in one segment."),
        _read("two_segments", Recipe((_METADATA, one, rest)).raw(), 3, "One row, and two that were appended."),
        _read("segment_without_rows", Recipe((_METADATA, b"", _PACKED)).raw(), 3, "Nothing writes one; it reads."),
        _read("retired_key", Recipe(dek=EARLIER_DEK).raw(), 3, "Written before the rotation."),
    ]


def _torn() -> list[Case]:
    two = Recipe((_METADATA, _PACKED[:_ROW_BYTES], _PACKED[_ROW_BYTES:])).raw()
    start = len(Recipe((_METADATA, _PACKED[:_ROW_BYTES])).raw())
    return [
        _read("torn_length", two[: start + 3], 1, "Three bytes of the last segment's length."),
        _read("torn_after_the_length", two[: start + 4], 1, "The last segment's length and nothing of it."),
        _read("torn_tag", two[:-1], 1, "The last segment without its last byte."),
        _read(
            "length_past_the_end", _with_length(two, start, 28 + 9 * 32), 1, "Room for nine rows: torn, to a reader."
        ),
    ]


def _dropped() -> list[Case]:
    whole = Recipe().raw()
    at = 80 + 4 + 28 + len(_METADATA)  # the second segment
    made = [
        ("unknown_key", Recipe(dek=STRANGER), "Under a key that the account never had."),
        ("unknown_key_right_kid", Recipe(dek=STRANGER, kid=DEK.kid), "The same, under the account's kid."),
        ("other_account", Recipe(account=bytes(16)), "Another account's."),
        ("other_model", Recipe((_about(model_id="other"), _PACKED)), "Another model's, under this one's name."),
        ("other_weights", Recipe((_about(model_sha256=bytes(32)), _PACKED)), "The same model with other weights."),
        ("other_dimension", Recipe((_about(dimension=8), _PACKED)), "Eight dimensions."),
        ("other_text_format", Recipe((_about(text_format=2), _PACKED)), "Another form of the text was embedded."),
        ("other_dtype", Recipe((_METADATA[:-5] + b"\2" + _METADATA[-4:], _PACKED)), "A dtype that does not exist."),
        ("metadata_too_long", Recipe((_METADATA + b"\0", _PACKED)), "A byte after the metadata."),
        ("other_magic", Recipe(magic=b"SQVD"), "Another format, sealed consistently."),
        ("version_2", Recipe(version=2), "A version that does not exist, sealed consistently."),
        ("reserved_set", Recipe(reserved=b"\0\0\1"), "A reserved bit, sealed consistently."),
        ("commit_differs", Recipe(commit=bytes(32)), "The tags are right, also over this commit."),
        ("part_of_a_row", Recipe((_METADATA, _PACKED[:-1])), "A last row without its last byte."),
        ("segments_swapped", Recipe((_METADATA, _PACKED, _PACKED), (0, 2, 1)), "Segment 2 before segment 1."),
        ("segment_twice", Recipe((_METADATA, _PACKED, _PACKED), (0, 1, 1)), "Segment 1 again."),
        ("segment_missing", Recipe((_METADATA, _PACKED), (0, 2)), "No segment 1."),
        ("no_metadata", Recipe((_PACKED,), (1,)), "No segment 0."),
    ]
    found = [_refused(name, recipe.raw(), comment) for name, recipe, comment in made]
    found += [
        _refused("empty", b"", "Nothing."),
        _refused("header_cut_off", whole[:79], "79 bytes."),
        _refused("header_only", whole[:80], "No segment."),
        _refused("metadata_torn", whole[: at - 1], "Segment 0 without its last byte."),
        _refused("length_27", _with_length(whole, at, 27), "Less than a nonce and a tag."),
        _refused("length_above_the_bound", _with_length(whole, at, 2**22 + 1), "More than a segment may have."),
        _refused("length_of_part_of_a_row", _with_length(whole, at, 28 + 9 * 32 + 1), "Past the end, and not torn."),
        _refused("metadata_length", _with_length(whole, 80, 28 + len(_METADATA) + 32), "Not that of this model's."),
        _refused(
            "length_one_less",
            _with_length(whole, at, len(whole) - at - 5),
            "Part of a row, and the tag is not at its place.",
        ),
        _refused("zeros_behind", whole + bytes(40), "What a disk may leave after a crash: a length of 0."),
        _refused(
            "every_bit",
            whole[:at],
            "Each single flipped bit of a file without rows.",
            mutation="flip_every_bit",
            expectByRange=[[0, at, "dropped"]],
        ),
    ]
    return found


def _about(**changed: Any) -> bytes:
    fields = {
        "model_id": LAYOUT.model_id,
        "model_sha256": LAYOUT.model_sha256,
        "dimension": LAYOUT.dimension,
        "text_format": LAYOUT.text_format,
    }
    return Layout(**(fields | changed)).metadata


def _with_length(raw: bytes, at: int, length: int) -> bytes:
    return raw[:at] + struct.pack(">I", length) + raw[at + 4 :]


def _read(name: str, file: bytes, count: int, comment: str) -> Case:
    starts = range(0, count * _ROW_BYTES, _ROW_BYTES)
    rows = [
        [_PACKED[at : at + 16].hex(), int.from_bytes(_PACKED[at + 16 : at + 24]), _PACKED[at + 24 : at + 32].hex()]
        for at in starts
    ]
    name_of_file = LAYOUT.file_name(EARLIER_DEK, ACCOUNT)
    return case(name, "ok", comment, **_asked(), file=file, fileName=name_of_file, rows=rows)


def _refused(name: str, file: bytes, comment: str, **more: Any) -> Case:
    return case(name, "dropped", comment, **_asked(), file=file, **more)


def _asked() -> dict[str, Any]:
    return {
        "accountId": ACCOUNT,
        "deks": [EARLIER_DEK.secret().hex(), DEK.secret().hex()],
        "modelId": LAYOUT.model_id,
        "modelSha256": LAYOUT.model_sha256,
        "dimension": LAYOUT.dimension,
        "textFormat": LAYOUT.text_format,
    }
