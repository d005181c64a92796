"""Prometheus metrics: requests by method, route and status, with no id in any label.

With several processes behind one address prometheus_client adds them up through files in the folder that
PROMETHEUS_MULTIPROC_DIR names; `serving` sets it for its workers.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest, multiprocess
from prometheus_client import values as prometheus_values

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset(("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"))
_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """The metrics of one process, or its part of all processes'."""

    def __init__(self) -> None:
        self._shared = prometheus_values.ValueClass.__name__ == "MmapedValue"
        self._registry = CollectorRegistry()
        where = None if self._shared else self._registry
        self._requests = Counter(
            "squirrel_requests", "Requests answered", ("method", "route", "status"), registry=where
        )
        self._seconds = Histogram(
            "squirrel_request_seconds", "Time until the last byte", ("route",), buckets=_SECONDS, registry=where
        )
        self._received = Counter("squirrel_received_bytes", "Bytes of request bodies", registry=where)
        self._sent = Counter("squirrel_sent_bytes", "Bytes of reply bodies", registry=where)
        if self._shared:
            multiprocess.MultiProcessCollector(self._registry)  # type: ignore[no-untyped-call]
        else:
            ProcessCollector(registry=self._registry)

    def count(self, method: str, route: str, status: int, seconds: float, received: int, sent: int) -> None:
        """Add one request. route: its template, such as /v1/objects/{sha256}."""
        self._requests.labels(method if method in _METHODS else "other", route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        self._received.inc(received)
        self._sent.inc(sent)

    def text(self) -> bytes:
        """All of it in Prometheus's text format."""
        return generate_latest(self._registry)
