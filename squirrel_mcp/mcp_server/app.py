"""The MCP server: eight tools, two resources, two prompts, each handled by one call of the service in a thread.

The low-level `Server` of the SDK: its decorator layer makes schemas that some clients refuse, and answers bad
arguments with the values it was given.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import anyio
from anyio.to_thread import run_sync
from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from squirrel_mcp._version import __version__
from squirrel_mcp.errors import InvalidInput, NotFound, SquirrelError, StoreUnavailable
from squirrel_mcp.escaping import escape, to_json
from squirrel_mcp.mcp_server import presentation, teaching
from squirrel_mcp.mcp_server.arguments import MAX_QUERY, MAX_SHORT, Arguments
from squirrel_mcp.mcp_server.bounds import Json
from squirrel_mcp.mcp_server.logs import where
from squirrel_mcp.mcp_server.notices import Notices
from squirrel_mcp.mcp_server.tools import TOOLS, Call, GetService, Tool

NAME = "squirrel"
DEADLINE = 47.0  # seconds per call; a little more than the service waits for its lock, whose message says more
CONTEXT_URI = "memory://context"
MEMORY_URI = "memory://"
_THREADS = 8  # calls at a time: the service does one after the other, and bad arguments are told meanwhile
_JSON = "application/json"
_NOT_SAID = (InvalidInput, NotFound)  # on stderr: the agent's mistakes, not the machine's
_Context = ServerRequestContext[Any, Any]
_log = logging.getLogger(__name__)


def build_server(
    service: GetService,
    notices: Notices,
    *,
    after_success: Callable[[], None] = lambda: None,
    deadline: float = DEADLINE,
) -> Server[Any]:
    """A server for one client. `after_success` is told, in a worker thread, whenever a tool had the vault's answer."""
    handlers = _Handlers(service, notices, after_success, deadline)
    server: Server[Any] = Server(
        NAME,
        title="Squirrel memory",
        version=__version__,
        instructions=teaching.INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )
    # Tracing is on by default; its spans carry the texts of exceptions to whatever exporter is installed.
    server.middleware.clear()
    return server


class _Handlers:
    def __init__(
        self, service: GetService, notices: Notices, after_success: Callable[[], None], deadline: float
    ) -> None:
        self._service, self._notices = service, notices
        self._after_success, self._deadline = after_success, deadline
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._tools = types.ListToolsResult(tools=[_declare(name, tool) for name, tool in TOOLS.items()])

    async def list_tools(self, _: _Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return self._tools

    async def call_tool(self, _: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            return _refusal(f"There is no tool of this name; there are {', '.join(TOOLS)}.")
        try:
            reply, text = await self._answer(tool, params.name, params.arguments or {})
        except SquirrelError as error:
            return _refusal(presentation.error_text(error))
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=reply)

    async def list_resources(self, _: _Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        context = types.Resource(
            uri=CONTEXT_URI, name="context", title="Context", mime_type=_JSON,
            description="What an agent should know when work begins, as get_context gives it.",
        )  # fmt: skip
        return types.ListResourcesResult(resources=[context])

    async def list_templates(
        self, _: _Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        memory = types.ResourceTemplate(
            uri_template=MEMORY_URI + "{id}", name="memory", title="Memory", mime_type=_JSON,
            description="One memory in full, as get_memory gives it.",
        )  # fmt: skip
        return types.ListResourceTemplatesResult(resource_templates=[memory])

    async def read_resource(self, _: _Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        told = {"uri": escape(uri[:MAX_SHORT])}
        if not uri.startswith(MEMORY_URI):
            raise MCPError(types.INVALID_PARAMS, "There is no such resource.", told)
        name, given = ("get_context", {}) if uri == CONTEXT_URI else ("get_memory", {"id": uri})
        try:
            _reply, text = await self._answer(TOOLS[name], name, given)
        except (NotFound, InvalidInput) as error:
            raise MCPError(types.INVALID_PARAMS, presentation.error_text(error), told) from None
        except SquirrelError as error:
            raise MCPError(types.INTERNAL_ERROR, presentation.error_text(error), told) from None
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=params.uri, mime_type=_JSON, text=text)]
        )

    async def list_prompts(self, _: _Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        prompts = [
            types.Prompt(
                name=name,
                title=prompt.title,
                description=prompt.description,
                arguments=[types.PromptArgument(name=prompt.argument, description=prompt.argument_description)],
            )
            for name, prompt in teaching.PROMPTS.items()
        ]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(self, _: _Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        prompt = teaching.PROMPTS.get(params.name)
        if prompt is None:
            raise MCPError(
                types.INVALID_PARAMS, f"There is no prompt of this name; there are {', '.join(teaching.PROMPTS)}."
            )
        given = Arguments(params.arguments or {}, (prompt.argument,))
        try:
            text = prompt.write((given.string(prompt.argument, MAX_QUERY) or "").strip())
        except InvalidInput as error:
            raise MCPError(types.INVALID_PARAMS, presentation.error_text(error)) from None
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=prompt.description, messages=[message])

    async def _answer(self, tool: Tool, name: str, given: dict[str, Any]) -> tuple[Json, str]:
        """The reply and its JSON; any failure as a SquirrelError."""
        began = perf_counter()
        code = "ok"
        try:
            with anyio.move_on_after(self._deadline):
                return await run_sync(
                    partial(self._work, tool, name, given), limiter=self._threads, abandon_on_cancel=True
                )
            raise StoreUnavailable(_TOO_LATE if tool.read_only else f"{_TOO_LATE} {_PERHAPS}")
        except SquirrelError as error:
            code = error.code
            if not isinstance(error, _NOT_SAID):
                self._notices.trouble(code, str(error))
            raise
        # A border: the SDK would put the exception's text, which may hold memory text, on the wire and on stderr.
        except Exception as error:  # noqa: BLE001
            code = "internal"
            _log.error("%s: %s", name, where(error))
            raise SquirrelError(f"The memory server failed inside ({type(error).__name__}).") from None
        finally:
            _log.info("%s: %s in %.1f ms", name, code, (perf_counter() - began) * 1000)

    def _work(self, tool: Tool, name: str, given: dict[str, Any]) -> tuple[Json, str]:
        arguments = Arguments(given, tool.input["properties"])
        reply = tool.run(Call(self._service, arguments, self._notices))
        if name != "memory_status":
            self._after_success()
        if remark := arguments.remark():
            reply["note"] = f"{reply['note']} {remark}" if "note" in reply else remark
        return reply, to_json(reply)


_TOO_LATE = "The memories did not answer in time; try again in a moment."
_PERHAPS = "What was asked for may still be done: look before you repeat it."


def _declare(name: str, tool: Tool) -> types.Tool:
    return types.Tool(
        name=name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input,
        output_schema=tool.output,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )


def _refusal(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
