"""The bytes of a vector file: a header that names and commits to its key, then segments sealed in their order.

    header   "SQVC" | version 1 | zeros[3] | kid[16] | salt[24] | commit[32]
    segment  u32 length of what follows | nonce[12] | AES-256-GCM ciphertext and tag
    segment 0    u16 length | model id | SHA-256 of its weights[32] | u32 dimension | dtype 1 | u32 text format
    others       rows: memory id[16] | u64 revision | vector

Big-endian throughout. dtype 1 is IEEE 754 binary16: against float32 it leaves the order of the best hits as it is
and takes half the room. The section of docs/protocol.md about this file is the contract. No I/O here.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from squirrel_mcp import vector_files
from squirrel_mcp.crypto import entropy
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.primitives import KEY_BYTES, NONCE_BYTES, TAG_BYTES, decrypt, derive, encrypt, equal, mac

MAX_FILE_BYTES = 1 << 30  # 1.3 million memories at 384 dimensions
MAX_SEGMENT_BYTES = 1 << 22  # of what follows the length: bounds what a reader allocates before a tag was checked
MIN_SEGMENT_BYTES = NONCE_BYTES + TAG_BYTES
_HEADER = struct.Struct(">4sB3s16s24s32s")
HEADER_BYTES = _HEADER.size
LENGTH = struct.Struct(">I")
_FLOAT16 = 1
_SALT_BYTES = 24
_ID_AND_REVISION = 24  # bytes of a row before its vector


class Rows(NamedTuple):
    """Vectors with what they belong to: ids (n, 16), revisions (n,), vectors (n, dimension)."""

    ids: NDArray[np.uint8]
    revisions: NDArray[np.uint64]
    vectors: NDArray[np.float16]

    @classmethod
    def none(cls, dimension: int) -> Rows:
        return cls(np.empty((0, 16), np.uint8), np.empty(0, np.uint64), np.empty((0, dimension), np.float16))

    @classmethod
    def joined(cls, first: Rows, second: Rows) -> Rows:
        return cls(
            np.concatenate((first.ids, second.ids)),
            np.concatenate((first.revisions, second.revisions)),
            np.concatenate((first.vectors, second.vectors)),
        )

    @property
    def size(self) -> int:
        """How many rows (`len` is that of the tuple)."""
        return len(self.revisions)


@dataclass(frozen=True, slots=True)
class Layout:
    """What the rows of one file are about. ValueError for what segment 0 has no room for."""

    model_id: str
    model_sha256: bytes
    dimension: int
    text_format: int

    def __post_init__(self) -> None:
        largest = (MAX_SEGMENT_BYTES - MIN_SEGMENT_BYTES - _ID_AND_REVISION) // 2
        if not 1 <= self.dimension <= largest or len(self.model_sha256) != 32 or len(self.model_id.encode()) > 0xFFFF:
            raise ValueError("no such model can be")

    @property
    def metadata(self) -> bytes:
        """The plaintext of segment 0."""
        name = self.model_id.encode()
        rest = struct.pack(">32sIBI", self.model_sha256, self.dimension, _FLOAT16, self.text_format)
        return struct.pack(">H", len(name)) + name + rest

    def file_name(self, dek: Dek, account_id: bytes) -> str:
        """`memory-vectors-<16 characters>.bin`, which tells nothing without the key."""
        about = account_id + self.model_id.encode() + struct.pack(">I", self.text_format)
        digest = mac(dek.file_name, about)[:10]  # 80 bits: no padding characters
        return f"{vector_files.PREFIX}{base64.b32encode(digest).decode().lower()}.bin"

    @property
    def row_bytes(self) -> int:
        return _ID_AND_REVISION + 2 * self.dimension

    @property
    def row(self) -> np.dtype[np.void]:
        return np.dtype([("id", "u1", 16), ("revision", ">u8"), ("vector", ">f2", self.dimension)])

    def fits(self, index: int, size: int) -> bool:
        """Whether the plaintext of segment `index` can have that many bytes."""
        return size >= 0 and (size % self.row_bytes == 0 if index else size == len(self.metadata))

    def check(self, rows: Rows) -> None:
        """ValueError unless the rows have this layout's shapes and types."""
        wanted = (((rows.size, 16), np.uint8), ((rows.size,), np.uint64), ((rows.size, self.dimension), np.float16))
        if tuple((each.shape, each.dtype.type) for each in rows) != wanted:
            raise ValueError("rows of other shapes or types")

    def pack(self, rows: Rows) -> Iterator[bytes]:
        """The plaintexts of as few segments as the rows fit in."""
        most = (MAX_SEGMENT_BYTES - MIN_SEGMENT_BYTES) // self.row_bytes
        for start in range(0, rows.size, most):
            part = slice(start, start + most)
            packed = np.empty(len(rows.revisions[part]), self.row)
            packed["id"], packed["revision"], packed["vector"] = (each[part] for each in rows)
            yield packed.tobytes()

    def unpack(self, plaintext: bytes | bytearray) -> Rows:
        """The rows of a whole number of them; ValueError for anything else."""
        packed = np.frombuffer(plaintext, self.row)
        return Rows(
            np.ascontiguousarray(packed["id"]),
            packed["revision"].astype(np.uint64),
            packed["vector"].astype(np.float16),
        )


@dataclass(frozen=True, slots=True)
class Seal:
    """The header of one file and the key that follows from it."""

    header: bytes
    kid: bytes
    _key: bytes = field(repr=False)

    @classmethod
    def make(cls, dek: Dek, account_id: bytes, random: entropy.Random = entropy.system) -> Seal:
        """For a new file, under a salt of its own."""
        salt = random(_SALT_BYTES)
        key, commit = _keys(dek, account_id, salt)
        return cls(_HEADER.pack(vector_files.MAGIC, 1, bytes(3), dek.kid, salt, commit), dek.kid, key)

    @classmethod
    def open(cls, header: bytes, account_id: bytes, deks: Iterable[Dek]) -> Seal | None:
        """None unless this is the header of a file of that account under one of the keys."""
        if len(header) != HEADER_BYTES:
            return None
        magic, version, zeros, kid, salt, commit = _HEADER.unpack(header)
        dek = next((dek for dek in deks if dek.kid == kid), None)
        if (magic, version, zeros) != (vector_files.MAGIC, 1, bytes(3)) or dek is None:
            return None
        key, expected = _keys(dek, account_id, salt)
        return cls(header, kid, key) if equal(commit, expected) else None

    def segment(self, index: int, plaintext: bytes, random: entropy.Random = entropy.system) -> bytes:
        """Segment `index`, with the length that goes before it."""
        nonce = random(NONCE_BYTES)
        sealed = encrypt(self._key, nonce, plaintext, self._aad(index))
        return LENGTH.pack(len(nonce) + len(sealed)) + nonce + sealed

    def plaintext(self, index: int, body: bytes) -> bytes | None:
        """What is in the segment, given without its length; None if it is not the one written there."""
        return decrypt(self._key, body[:NONCE_BYTES], body[NONCE_BYTES:], self._aad(index))

    def _aad(self, index: int) -> bytes:
        return self.header + LENGTH.pack(index)


def _keys(dek: Dek, account_id: bytes, salt: bytes) -> tuple[bytes, bytes]:
    info = b"squirrel/v1/vector-cache\0" + account_id
    okm = derive(dek.vector_cache, salt=salt, info=info, length=2 * KEY_BYTES)
    return okm[:KEY_BYTES], okm[KEY_BYTES:]
