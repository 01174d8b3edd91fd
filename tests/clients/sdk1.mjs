// The first generation of the official TypeScript client: `node sdk1.mjs COMMAND ARGS...` prints one JSON report.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { drive, within } from "./drive.mjs";

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "sdk1", version: "1.0.0" });
const changed = new Promise((resolve) => {
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve(true));
});
let revision = null;
const transport = new StdioClientTransport({ command, args, stderr: "inherit" });
transport.setProtocolVersion = (agreed) => {
  revision = agreed;
};
await within("connect", client.connect(transport));

const report = await drive(client, {
  call: (name, fields, options) => client.callTool({ name, arguments: fields }, undefined, options),
  changed,
});
report.server = client.getServerVersion();
report.revision = revision;
await client.close();
process.stdout.write(JSON.stringify(report));
