// Drives an MCP server with the client of the official TypeScript SDK. Started
// by the tests of ../clients_test.go; ends with its standard input.
//
// Arguments: "http" URL TOKEN, or "stdio" COMMAND, which is started with this
// process's environment. Each line of standard input is one call
// {"name": …, "arguments": {…}}; each is answered with one line: the result as
// the SDK gives it, or {"failed": message}. The first line says what tools the
// server has.
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, target, token] = process.argv.slice(2);

const transport =
  kind === "http"
    ? new StreamableHTTPClientTransport(new URL(target), {
        requestInit: { headers: { Authorization: `Bearer ${token}` } },
      })
    : new StdioClientTransport({ command: target, env: process.env, stderr: "inherit" });

const client = new Client({ name: "envapi-e2e", version: "1.0.0" });
await client.connect(transport);

const say = (value) => process.stdout.write(JSON.stringify(value) + "\n");

// The SDK checks results against the output schemas that it has listed.
const { tools } = await client.listTools();
say({ tools: tools.map((tool) => tool.name) });

for await (const line of createInterface({ input: process.stdin })) {
  try {
    say(await client.callTool(JSON.parse(line)));
  } catch (error) {
    say({ failed: String(error) });
  }
}
await client.close();
