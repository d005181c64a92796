"""The JSON that goes in and out. pydantic checks it, and describes it in the OpenAPI document.

Unknown fields are refused, and so is every conversion: "5" is no integer and true is none either. Lengths of entries,
wraps and objects are the store's to judge.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from squirrel_server.http.encoding import from_base64, from_hex
from squirrel_server.http.problems import malformed

_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"

Base64 = Annotated[
    bytes,
    BeforeValidator(from_base64),
    WithJsonSchema({"type": "string", "contentEncoding": "base64", "pattern": _BASE64}),
]
Id = Annotated[
    bytes,
    BeforeValidator(lambda text: from_hex(text, 16)),
    WithJsonSchema({"type": "string", "pattern": "^[0-9a-f]{32}$"}),
]
Hash = Annotated[
    bytes,
    BeforeValidator(lambda text: from_hex(text, 32)),
    WithJsonSchema({"type": "string", "pattern": "^[0-9a-f]{64}$"}),
]
Counted = Annotated[int, Field(ge=0, lt=2**53)]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]


class Shape(BaseModel):
    """Base of all shapes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class HeadShape(Shape):
    seq: Counted
    mac: Hash


class NewAccount(Shape):
    accountId: Id
    wraps: list[Base64]
    previousKeys: Base64 | None
    entry: Base64
    appendVerifier: Hash
    invite: str
    upload: HeadShape | None = None


class KeySet(Shape):
    wraps: list[Base64]
    previousKeys: Base64 | None
    entry: Base64
    appendVerifier: Hash | None


class Item(Shape):
    entry: Base64
    object: Base64 | None


class Batch(Shape):
    entries: list[Item]


class NewKey(Shape):
    scope: Literal["read", "write", "admin"]
    expiresAt: Counted | None = None


class Health(Shape):
    status: Literal["ok"]
    version: str
    protocol: Literal[1]


class AccountKey(Shape):
    apiKey: str


class Limits(Shape):
    maxBodyBytes: int
    maxEntries: int
    maxObjectBytes: int


class Account(Shape):
    accountId: Id
    wraps: list[Base64]
    previousKeys: Base64 | None
    head: HeadShape
    limits: Limits


class HeadReply(Shape):
    head: HeadShape


class Page(Shape):
    entries: list[Item]
    head: HeadShape
    more: bool


class ObjectReply(Shape):
    object: Base64


class Key(Shape):
    id: str
    scope: Literal["read", "write", "admin"]
    created: Day
    lastUsed: Day | None
    expiresAt: Counted | None


class MadeKey(Key):
    apiKey: str


class Keys(Shape):
    keys: list[Key]


class ProblemReply(Shape):
    type: Literal["about:blank"]
    title: str
    status: int
    code: str
    detail: str
    head: HeadShape | None = None


REQUESTS: tuple[type[Shape], ...] = (NewAccount, KeySet, Batch, NewKey)
REPLIES: tuple[type[Shape], ...] = (
    Health, AccountKey, Account, HeadReply, Page, ObjectReply, Keys, MadeKey, ProblemReply,
)  # fmt: skip


def read(shape: type[Shape], value: Any) -> Any:
    """The parsed JSON as that shape; the `Problem` names the first field that does not fit, if it is one of ours."""
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = first["loc"]
    if first["type"] == "extra_forbidden":
        raise malformed(f"The body has an unknown field{_inside(place[:-1])}.")
    raise malformed(f"The body does not have the shape that is taken here{_inside(place)}.")


def _inside(place: tuple[int | str, ...]) -> str:
    return f": see {'.'.join(map(str, place))}" if place else ""
