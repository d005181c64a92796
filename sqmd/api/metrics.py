"""What happened since the start, counted: requests, searches, and how long they took."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from sqmd.search.results import MODES

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset(("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"))
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


class _Times:
    """The last 1,000 durations in seconds; how many there were and their sum."""

    def __init__(self) -> None:
        self.count, self.sum = 0, 0.0
        self._last: deque[float] = deque(maxlen=1_000)

    def add(self, seconds: float) -> None:
        self.count += 1
        self.sum += seconds
        self._last.append(seconds)

    def quantiles(self) -> dict[str, float]:
        """Seconds, by the nearest rank: each is a duration that was measured. 0 where there is none."""
        ordered = sorted(self._last) or [0.0]
        # ceil(share * n) - 1, which for n = 1 and every share is 0
        ranks = {name: -int(-share * len(ordered) // 1) - 1 for name, share in _QUANTILES.items()}
        return {name: ordered[max(rank, 0)] for name, rank in ranks.items()} | {"max": ordered[-1]}

    def milliseconds(self) -> dict[str, float]:
        return {name: round(seconds * 1e3, 3) for name, seconds in self.quantiles().items()} | {"count": self.count}


class Metrics:
    """Of one server; thread-safe. Routes are templates, so that no id, path or query is in here."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since = time.monotonic()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._latencies: dict[tuple[str, str], _Times] = {}
        self._searches: Counter[str] = Counter(dict.fromkeys(MODES, 0))
        self._search_times = _Times()
        self._results = self._jobs = 0
        self._registry = CollectorRegistry()
        self._registry.register(_Prometheus(self))
        ProcessCollector(registry=self._registry)

    @property
    def uptime(self) -> float:
        """Seconds."""
        return time.monotonic() - self._since

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request that was answered; 0 is the status where nobody waited for the answer."""
        method = method if method in _METHODS else "other"
        with self._lock:
            self._requests[method, route, status] += 1
            self._latencies.setdefault((method, route), _Times()).add(seconds)

    def count_search(self, mode: str, results: int, seconds: float) -> None:
        with self._lock:
            self._searches[mode] += 1
            self._results += results
            self._search_times.add(seconds)

    def count_job(self) -> None:
        with self._lock:
            self._jobs += 1

    def json(self) -> dict[str, Any]:
        """As `MetricsReply` has it."""
        with self._lock:
            return {
                "uptime_seconds": round(self.uptime, 3),
                "requests": [
                    {"method": method, "route": route, "status": status, "count": count}
                    for (method, route, status), count in sorted(self._requests.items())
                ],
                "latency_ms": [
                    {"method": method, "route": route, **times.milliseconds()}
                    for (method, route), times in sorted(self._latencies.items())
                ],
                "search_ms": self._search_times.milliseconds(),
                "searches": dict(self._searches),
                "results": self._results,
                "index_jobs": self._jobs,
            }

    def text(self) -> bytes:
        """In Prometheus's text format."""
        return generate_latest(self._registry)

    def families(self) -> Iterator[Metric]:
        """The same as Prometheus has it."""
        requests = CounterMetricFamily("sqmd_requests", "Requests answered", labels=("method", "route", "status"))
        searches = CounterMetricFamily("sqmd_searches", "Searches answered", labels=("mode",))
        latencies = Metric("sqmd_request_seconds", "Time until the last byte", "summary")
        engine = Metric("sqmd_search_seconds", "Time inside the engine", "summary")
        with self._lock:
            for (method, route, status), count in sorted(self._requests.items()):
                requests.add_metric((method, route, str(status)), count)
            for mode, count in self._searches.items():
                searches.add_metric((mode,), count)
            for (method, route), times in sorted(self._latencies.items()):
                _summarise(latencies, {"method": method, "route": route}, times)
            _summarise(engine, {}, self._search_times)
            results, jobs = self._results, self._jobs
        yield from (requests, searches, latencies, engine)
        yield CounterMetricFamily("sqmd_results", "Results of all searches", results)
        yield CounterMetricFamily("sqmd_index_jobs", "Jobs that were asked for", jobs)
        yield GaugeMetricFamily("sqmd_uptime_seconds", "Since the server began", self.uptime)


class _Prometheus:
    """What prometheus_client calls a collector."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        return self._metrics.families()


def _summarise(metric: Metric, labels: dict[str, str], times: _Times) -> None:
    found = times.quantiles()
    for name, share in _QUANTILES.items():
        metric.add_sample(metric.name, {**labels, "quantile": str(share)}, found[name])
    metric.add_sample(f"{metric.name}_count", labels, times.count)
    metric.add_sample(f"{metric.name}_sum", labels, times.sum)


def prefers_text(accept: str) -> bool:
    """Whether an `Accept` header ranks plain text, which is Prometheus's, above JSON."""
    text = max(_quality(accept, "text", "plain"), _quality(accept, "application", "openmetrics-text"))
    return text > _quality(accept, "application", "json")


def _quality(accept: str, kind: str, subtype: str) -> float:
    """How much a type is wanted, by the most specific range that holds it."""
    ranges = {f"{kind}/{subtype}": 2, f"{kind}/*": 1, "*/*": 0}
    best = (-1, 0.0)
    for part in accept.split(","):
        name, *parameters = (each.strip().lower() for each in part.split(";"))
        weight = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        try:
            best = max(best, (ranges.get(name, -1), float(weight)))
        except ValueError:
            continue
    return best[1] if best[0] >= 0 else 0.0
