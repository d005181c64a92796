"""The JSON that goes in and out. pydantic checks it, and describes it in the OpenAPI document.

Unknown fields are refused, and so is every conversion: "5" is no integer and true is none either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sqmd.api.problems import invalid
from sqmd.search.results import MAX_TOP_K, Mode
from sqmd.search.searcher import MAX_QUERY

MAX_PATH = 4_096  # characters
MAX_PATHS = 1_000
MAX_PAGE = 1_000
_MOST = 2**31 - 1

Count = Annotated[int, Field(ge=0)]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"}, description="RFC 3339, UTC")]
Query = Annotated[str, Field(min_length=1, max_length=MAX_QUERY)]
FilePath = Annotated[str, Field(min_length=1, max_length=MAX_PATH)]
JobState = Literal["queued", "running", "done", "failed"]


class Shape(BaseModel):
    """Base of all shapes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class SearchRequest(Shape):
    """One of `query` and `q` is needed, which mean the same."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["query"]}, {"required": ["q"]}]})

    query: Query = Field("", description="what is looked for")
    q: Query = Field("", description="the same as query")
    # Of a None that is a default and no value anybody may send: the schema says int, and null is refused.
    top_k: int = Field(None, ge=1, le=MAX_TOP_K, description="results; if left out, as configured")  # type: ignore[assignment]
    mode: Mode = Field("hybrid", description="by words and meaning, by meaning alone (vector), by words alone (fts)")
    filter_path: str = Field("", max_length=MAX_PATH, description="only files whose path holds this text, literally")
    include_context: bool = Field(False, description="also `text`, which is text_raw below its breadcrumb")
    rerank: bool = Field(None, description="let a cross-encoder order the best; if left out, as configured")  # type: ignore[assignment]

    @property
    def wanted(self) -> str:
        """The query by whichever name it came; a `Problem` if by none or both."""
        if ("query" in self.model_fields_set) == ("q" in self.model_fields_set):
            raise invalid("One of query and q is needed, and not both.")
        return self.query or self.q


class DocumentsRequest(Shape):
    limit: int = Field(100, ge=1, le=MAX_PAGE)
    offset: int = Field(0, ge=0, le=_MOST)


class TriggerRequest(Shape):
    paths: list[FilePath] = Field(
        [], max_length=MAX_PATHS, description="absolute, inside watch_dirs; if left out or empty, all of watch_dirs"
    )
    force: bool = Field(False, description="read and embed again what did not change")


class Nothing(Shape):
    """Of routes that take no parameters."""


class SearchResult(Shape):
    chunk_id: str
    file_id: str
    file_path: str
    heading_path: str
    heading_text: str
    heading_level: Count
    section_index: Count
    chunk_index: Count
    text_raw: str
    token_count: Count
    score: float
    line_start: int = Field(ge=1)
    line_end: int = Field(ge=1)
    text: str = Field("", description="with include_context only")


class SearchReply(Shape):
    results: list[SearchResult]
    query: str
    total: Count
    duration_ms: float = Field(ge=0)
    note: str = Field("", description="only where a leg could not be asked: why")


class DocumentShape(Shape):
    file_id: str
    file_path: str
    file_hash: str
    chunk_count: Count
    indexed_at: Time
    status: Literal["indexed", "error", "skipped"]


class DocumentsReply(Shape):
    documents: list[DocumentShape]
    total: Count
    limit: Count
    offset: Count


class ChunkShape(Shape):
    chunk_id: str
    heading_path: str
    heading_text: str
    heading_level: Count
    section_index: Count
    chunk_index: Count
    text_raw: str
    token_count: Count
    line_start: int = Field(ge=1)
    line_end: int = Field(ge=1)


class DocumentReply(DocumentShape):
    error: str = Field(description="why it could not be read, if status is error")
    chunks: list[ChunkShape]


class TriggerReply(Shape):
    job_id: str
    status: Literal["queued"]


class IndexStatus(Shape):
    fileCount: Count
    chunkCount: Count
    vectorCount: Count
    watcherRunning: bool
    dbPath: str


class JobProgress(Shape):
    phase: Literal["text", "vectors"] = Field(description="files are read, then vectors of chunks are computed")
    done: Count
    total: Count


class JobShape(Shape):
    job_id: str
    status: JobState
    indexed: Count
    skipped: Count
    errors: Count = Field(description="files that could not be read")
    started_at: Time | None
    completed_at: Time | None
    progress: JobProgress
    message: str = Field(description="why it failed, if status is failed")


class JobsReply(Shape):
    jobs: list[JobShape] = Field(description="of this server, the latest first")


class Health(Shape):
    status: Literal["ok", "degraded"]
    db: str = Field(description="ok, not_indexed, or the code of an error")
    embedder: str = Field(description="ok, or the code of an error: as the last search by meaning found it")
    watcher: Literal["running", "stopped", "disabled"]
    uptime_seconds: float = Field(ge=0)


class RequestCount(Shape):
    method: str
    route: str
    status: int
    count: Count


class Latency(Shape):
    """Milliseconds, over the last 1,000."""

    count: Count = Field(description="of all, not of the last alone")
    p50: float
    p90: float
    p95: float
    p99: float
    max: float


class RouteLatency(Latency):
    method: str
    route: str


class MetricsReply(Shape):
    uptime_seconds: float = Field(ge=0)
    requests: list[RequestCount]
    latency_ms: list[RouteLatency]
    search_ms: Latency = Field(description="inside the engine, without HTTP")
    searches: dict[str, int] = Field(description="answered, by mode")
    results: Count
    index_jobs: Count


class Error(Shape):
    error: str = Field(description="a stable code")
    message: str = Field(description="a sentence for people")


REQUESTS: tuple[type[Shape], ...] = (SearchRequest, TriggerRequest)
REPLIES: tuple[type[Shape], ...] = (
    SearchReply, DocumentsReply, DocumentReply, TriggerReply, IndexStatus, JobShape, JobsReply, Health, MetricsReply,
    Error,
)  # fmt: skip

AnyShape = TypeVar("AnyShape", bound=Shape)
_SUBJECT = re.compile(r"(?:Input|String|List) ")  # whose place is named instead
_WHOLE = re.compile(r"-?[0-9]{1,15}", re.ASCII)
_TRUTH = {"true": True, "false": False}


def read(shape: type[AnyShape], value: Any) -> AnyShape:
    """A value as that shape; the `Problem` names the first field that does not fit and repeats nothing of it."""
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "extra_forbidden":
        known = ", ".join(shape.model_fields) or "nothing"
        raise invalid(f"There is an unknown field; known here: {known}.")
    place = ".".join(map(str, first["loc"]))
    said = _SUBJECT.sub("", first["msg"]).rstrip(".")
    raise invalid(f"{place} {said}." if place else "The body is a JSON object.")


def read_query(shape: type[AnyShape], pairs: list[tuple[str, str]]) -> AnyShape:
    """The same of a query string, where numbers and truth values are written as in JSON."""
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise invalid("A parameter is there twice.")
    return read(shape, {name: _meant(shape, name, text) for name, text in pairs})


def _meant(shape: type[Shape], name: str, text: str) -> object:
    kind = shape.model_fields[name].annotation if name in shape.model_fields else str
    kinds: Mapping[Any, Any] = {int: int(text) if _WHOLE.fullmatch(text) else text, bool: _TRUTH.get(text, text)}
    return kinds.get(kind, text)
