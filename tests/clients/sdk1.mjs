// The first generation of the official TypeScript client: `node sdk1.mjs URL` or `node sdk1.mjs COMMAND ARGS...` prints one JSON report.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { drive, reach, within } from "./drive.mjs";

const client = new Client({ name: "sdk1", version: "1.0.0" });
const changed = new Promise((resolve) => {
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve(true));
});
let revision = null;
const transport = reach(process.argv.slice(2), StreamableHTTPClientTransport, StdioClientTransport);
const agree = transport.setProtocolVersion?.bind(transport); // stdio has none
transport.setProtocolVersion = (agreed) => {
  revision = agreed;
  agree?.(agreed);
};
await within("connect", client.connect(transport));

const report = await drive(client, {
  call: (name, fields, options) => client.callTool({ name, arguments: fields }, undefined, options),
  changed,
});
report.server = client.getServerVersion();
report.revision = revision;
await within("the session's end", transport.terminateSession?.());
await client.close();
process.stdout.write(JSON.stringify(report));
