"""The MCP server: five tools and the documents as resources, each call handled by the service in a thread."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio.to_thread import run_sync
from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from sqmd.errors import InvalidInput, NotInIndex, SqmdError
from sqmd.escaping import visible
from sqmd.mcp_server import documents
from sqmd.mcp_server.arguments import Arguments
from sqmd.mcp_server.bounds import to_json
from sqmd.mcp_server.schemas import with_default
from sqmd.mcp_server.teaching import INSTRUCTIONS
from sqmd.mcp_server.tools import TOOLS, Json, Tool, error_text
from sqmd.service import Service
from sqmd.stderr import kind_and_place

NAME = "sqmd"
DEADLINE = 50.0  # seconds per call; clients give up after a minute
RESOURCE_CHARACTERS = 400_000  # of a document that is read whole
_PAGE = 100  # resources
_THREADS = 4  # searches at a time, and as many other calls
_MARKDOWN = "text/markdown"
_Context = ServerRequestContext[Any, Any]
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


def build_server(service: Service, version: str, *, deadline: float = DEADLINE) -> Server[Any]:
    """A server for any number of clients."""
    handlers = _Handlers(service, deadline)
    server: Server[Any] = Server(
        NAME,
        title="Markdown search",
        version=version,
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )
    # Tracing is on by default; its spans carry the texts of exceptions to whatever exporter is installed.
    server.middleware.clear()
    return server


class _Handlers:
    def __init__(self, service: Service, deadline: float) -> None:
        self._service, self._deadline = service, deadline
        # Searches may wait for a model, and are not to keep the others waiting.
        self._threads, self._searching = anyio.CapacityLimiter(_THREADS), anyio.CapacityLimiter(_THREADS)
        top_k = service.config.search.default_top_k
        self._tools = types.ListToolsResult(tools=[_declare(name, tool, top_k) for name, tool in TOOLS.items()])

    async def list_tools(self, _: _Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return self._tools

    async def call_tool(self, _: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            return _refusal(f"There is no tool of this name; there are {', '.join(TOOLS)}.")
        try:
            threads = self._searching if params.name == "search_documents" else self._threads
            reply = await self._answer(partial(self._work, tool, params.arguments or {}), threads)
        except SqmdError as error:
            return _refusal(error_text(error, self._service))
        text = types.TextContent(type="text", text=to_json(reply))
        return types.CallToolResult(content=[text], structured_content=reply)

    async def list_resources(
        self, _: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        given = {"limit": _PAGE, "cursor": params.cursor if params else None}
        try:
            page = await self._answer(partial(self._work, TOOLS["list_documents"], given), self._threads)
        except InvalidInput as error:
            raise MCPError(types.INVALID_PARAMS, error_text(error, self._service)) from None
        except SqmdError:  # there is no index yet, so there are none
            page = {"documents": []}
        shown = [_resource(each["file_path"]) for each in page["documents"] if each["status"] != "error"]
        return types.ListResourcesResult(resources=shown, next_cursor=page.get("next_cursor"))

    async def list_templates(
        self, _: _Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template="md://{+path}", name="document", title="Document", mime_type=_MARKDOWN,
            description="A file of the index by its absolute path, percent-encoded, as it is on disk now.",
        )  # fmt: skip
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, _: _Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        told = {"uri": visible(uri[:1_000])}
        try:
            text = await self._answer(partial(self._read, uri), self._threads)
        except (NotInIndex, InvalidInput) as error:
            raise MCPError(types.INVALID_PARAMS, error_text(error, self._service), told) from None
        except SqmdError as error:
            raise MCPError(types.INTERNAL_ERROR, error_text(error, self._service), told) from None
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=text)])

    async def _answer(self, work: Callable[[], _T], threads: anyio.CapacityLimiter) -> _T:
        """What `work` gives, done in one of the threads; any failure as a SqmdError."""
        try:
            with anyio.move_on_after(self._deadline):
                return await run_sync(work, limiter=threads, abandon_on_cancel=True)
            raise SqmdError("The index did not answer in time; try again in a moment.")
        except SqmdError:
            raise
        # A border: the SDK would put the exception's text, which may quote a document, on the wire and on stderr.
        except Exception as error:  # noqa: BLE001
            _log.error("a bug: %s", kind_and_place(error))
            raise SqmdError(f"sqmd failed inside ({type(error).__name__}).") from None

    def _work(self, tool: Tool, given: dict[str, Any]) -> Json:
        arguments = Arguments(given, tool.input["properties"])
        reply = tool.run(self._service, arguments)
        remark = arguments.remark()
        if remark and "note" in tool.output["properties"]:
            reply["note"] = f"{reply['note']} {remark}" if "note" in reply else remark
        return reply

    def _read(self, uri: str) -> str:
        row, _ = self._service.document_at(documents.path_of(uri))
        text = visible(self._service.raw(row.file_id))
        if len(text) > RESOURCE_CHARACTERS:
            raise InvalidInput("uri", "The document is too long to be read whole: get_document gives parts of it.")
        return text


def _resource(path: str) -> types.Resource:
    uri = documents.uri_of(path)
    return types.Resource(uri=uri, name=visible(os.path.basename(path)), title=visible(path), mime_type=_MARKDOWN)


def _declare(name: str, tool: Tool, top_k: int) -> types.Tool:
    return types.Tool(
        name=name,
        title=tool.title,
        description=tool.description,
        input_schema=with_default(tool.input, "top_k", top_k),
        output_schema=tool.output,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.read_only, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )


def _refusal(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
