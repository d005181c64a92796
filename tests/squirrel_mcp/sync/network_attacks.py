"""What stands between a client and its server, or in its place, can send; and what the client must say to it."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from squirrel_mcp.errors import BadReply, SquirrelError, StoreUnavailable
from tests.hostile_server import Wire

from . import wires


@dataclass(frozen=True)
class NetworkAttack:
    """`wire` is done to the connection once the request was read; `what` says in a sentence what that is."""

    name: str
    what: str
    wire: Wire
    expected: type[SquirrelError]


DEEP = 10**5
BODIES = {
    "html": b"<html><body>Log in to the hotel's network</body></html>",
    "empty": b"",
    "space": b" ",
    "bom": b"\xef\xbb\xbf" + wires.page(),
    "utf_16": wires.page().decode().encode("utf-16"),
    "utf_32": wires.page().decode().encode("utf-32"),
    "latin_1": wires.page(note="é").replace(b"\\u00e9", b"\xe9"),
    "deep_lists": wires.page()[:-1] + b',"x":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep_objects": wires.page()[:-1] + b',"x":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
    "deep_behind_brackets_in_text": wires.page()[:-1] + b',"x":["' + b"]" * 99 + b'",' + b"[" * 99 + b"]" * 99 + b"]}",
    "digits_5000": wires.page()[:-1] + b',"x":' + b"9" * 5000 + b"}",
    "integer_2_53": wires.page()[:-1] + b',"x":9007199254740992}',
    "nan": wires.page()[:-1] + b',"x":NaN}',
    "infinity": wires.page()[:-1] + b',"x":-Infinity}',
    "duplicate_key": wires.page()[:-1] + b',"more":false}',
    "duplicate_key_escaped": wires.page()[:-1] + b',"mor\\u0065":true}',
    "float": wires.page()[:-1] + b',"x":1.0}',
    "exponent": wires.page()[:-1] + b',"x":1e3}',
    "lone_surrogate": wires.page()[:-1] + b',"x":"\\ud800"}',
    "lone_surrogate_in_a_list": wires.page()[:-1] + b',"x":["\\udfff"]}',
    "lone_surrogate_in_a_key": wires.page()[:-1] + b',"\\udc00":1}',
    "trailing_text": wires.page() + b"x",
    "two_documents": wires.page() + wires.page(),
    "single_quotes": wires.page().replace(b'"', b"'"),
    "comment": b"/* */" + wires.page(),
    "list": b"[" + wires.page() + b"]",
    "text": b'"text"',
    "null": b"null",
    "number": b"1",
    "truncated": wires.page()[:-1],
    "control_character": wires.page()[:-1] + b',"x":"\n"}',
}  # fmt: skip

_WHAT = {
    "html": "a page of HTML",
    "empty": "nothing",
    "bom": "a byte order mark before the JSON",
    "utf_16": "JSON in UTF-16",
    "utf_32": "JSON in UTF-32",
    "latin_1": "JSON in Latin-1",
    "deep_lists": "100,000 lists in each other",
    "deep_objects": "100,000 objects in each other",
    "digits_5000": "a number of 5,000 digits",
    "integer_2_53": "an integer of 2^53",
    "nan": "NaN",
    "duplicate_key": "a key twice",
    "duplicate_key_escaped": "a key twice, once escaped",
    "float": "a float",
    "space": "a space",
    "deep_behind_brackets_in_text": "lists in each other, closing brackets in a text before them",
    "exponent": "a number with an exponent",
    "lone_surrogate": "half a surrogate pair",
    "lone_surrogate_in_a_list": "half a surrogate pair in a list",
    "lone_surrogate_in_a_key": "half a surrogate pair in a key",
    "trailing_text": "text behind the JSON",
    "single_quotes": "single quotes",
    "comment": "a comment before the JSON",
    "list": "a list around it",
    "text": "a text alone",
    "number": "a number alone",
    "truncated": "the JSON cut short",
    "control_character": "a line feed inside a text",
}


def _drip(first: bytes) -> Wire:
    """Each connection has an end of its own: who drips stops once nobody reads any more."""
    return lambda connection, asked: wires.drip(first, threading.Event())(connection, asked)


_OTHERS = (
    NetworkAttack("redirect_http", "a redirect to http", wires.redirect("http://127.0.0.1:9/v1/log"), BadReply),
    NetworkAttack("redirect_host", "a redirect to another host", wires.redirect("https://example.org/"), BadReply),
    NetworkAttack("gzip_bomb", "256 MiB in a small gzip", wires.bomb(b"gzip"), BadReply),
    NetworkAttack("br_bomb", "the same, called br", wires.bomb(b"br"), BadReply),
    NetworkAttack("endless_body", "a body that never ends", wires.endless(), BadReply),
    NetworkAttack("endless_chunks", "chunks that never end", wires.endless(chunked=True), BadReply),
    NetworkAttack(
        "endless_headers", "headers that never end",
        wires.raw(b"HTTP/1.1 200 OK\r\n", *[b"X-Padding: " + b"x" * 8000 + b"\r\n"] * 1000), StoreUnavailable,
    ),
    NetworkAttack(
        "length_too_long", "a length longer than the body",
        wires.raw(wires.OK + b"Content-Length: 10000\r\n\r\n" + wires.page()), StoreUnavailable,
    ),
    NetworkAttack(
        "length_too_short", "a length shorter than the body",
        wires.raw(wires.OK + b"Content-Length: 9\r\n\r\n" + wires.page()), BadReply,
    ),
    NetworkAttack("slow_drip_headers", "headers, a byte now and then", _drip(b"HTTP/1.1 200 OK\r\nX: "),
                  StoreUnavailable),
    NetworkAttack("slow_drip_body", "a body, a byte now and then",
                  _drip(wires.OK + b"Content-Length: 1000000\r\n\r\n"), StoreUnavailable),
    NetworkAttack("not_http", "another protocol", wires.raw(b"SSH-2.0-OpenSSH_9.9\r\n"), StoreUnavailable),
    NetworkAttack("hang_up", "nothing at all", wires.raw(), StoreUnavailable),
)  # fmt: skip

NETWORK_ATTACKS = (
    *_OTHERS,
    *(
        NetworkAttack(f"json_{name}", f"status 200 with {_WHAT.get(name, name.replace('_', ' '))}", wires.body(content),
                      BadReply)
        for name, content in BODIES.items()
    ),
)  # fmt: skip
