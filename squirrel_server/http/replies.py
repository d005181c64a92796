"""Replies that succeed, as JSON."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from squirrel_server.http.encoding import to_base64
from squirrel_server.http.options import MAX_BODY_BYTES
from squirrel_server.store import Head, LogPage


def reply(value: dict[str, Any], status: int = 200) -> Response:
    """The value, compact."""
    return Response(json.dumps(value, separators=(",", ":")), status, media_type="application/json")


def head_of(head: Head) -> dict[str, Any]:
    """A head as JSON has it."""
    return {"seq": head.seq, "mac": head.mac.hex()}


def page_reply(page: LogPage) -> Response:
    """A page of the log, cut so that the reply itself stays below the cap; at least one entry is in it.

    Written by hand: base64 needs no escaping, and json would hold all of it twice.
    """
    items: list[bytes] = []
    size = 200  # what stands around the entries
    for entry, body in page.entries:
        sealed = "null" if body is None else f'"{to_base64(body)}"'
        item = f'{{"entry":"{to_base64(entry)}","object":{sealed}}}'.encode("ascii")
        size += len(item) + 1
        if items and size >= MAX_BODY_BYTES:
            break
        items.append(item)
    more = page.more or len(items) < len(page.entries)
    rest = json.dumps({"head": head_of(page.head), "more": more}, separators=(",", ":")).encode("ascii")
    return Response(b'{"entries":[' + b",".join(items) + b"]," + rest[1:], media_type="application/json")
