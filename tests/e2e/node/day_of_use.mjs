// Uses every tool, resource and prompt through the TypeScript SDK and prints what came back as one JSON object.
// The SDK checks the tool list and, with Ajv, every structured reply against the declared output schema.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, ...args] = process.argv.slice(2);
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" });
const problems = [];
transport.onerror = (error) => problems.push(String(error));
const client = new Client({ name: "typescript", version: "1" });
client.onerror = (error) => problems.push(String(error));
await client.connect(transport);

const call = async (name, given = {}) => (await client.callTool({ name, arguments: given })).structuredContent;
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const context = await call("get_context");
const saved = await call("save_memory", { text: "The router is 10.0.7.1 👩‍💻", tags: ["home"], keywords: null });
const updated = await call("update_memory", { id: saved.id, text: "The router is 10.0.9.1 👩‍💻", expectedRevision: 1 });
const conflict = await call("update_memory", { id: saved.id, text: "stale", expectedRevision: 1 });
const found = await call("search_memory", { query: "router", limit: "5" });
const got = await call("get_memory", { id: saved.id, history: true });
const listed = await call("list_memories", { limit: 1 });
const refused = await client.callTool({ name: "save_memory", arguments: { text: "a", tags: [42] } });
const half = await client.callTool({ name: "save_memory", arguments: { text: "half \ud83d" } });
const resource = JSON.parse((await client.readResource({ uri: `memory://${saved.id}` })).contents[0].text);
const missing = await client.readResource({ uri: "memory://none" }).catch((error) => error.code);
const templates = (await client.listResourceTemplates()).resourceTemplates.map((each) => each.uriTemplate);
const prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
const prompt = (await client.getPrompt({ name: "recall", arguments: { topic: "the router" } })).messages[0].content.text;
const forgotten = await call("forget_memory", { id: saved.id });
const status = await call("memory_status");
await client.close();

const answers = { tools, context, saved, updated, conflict, found, got, listed, resource, forgotten, status };
console.log(JSON.stringify({ ...answers, refused, half, missing, templates, prompts, prompt, problems }));
