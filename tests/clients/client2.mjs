// The second generation: `node client2.mjs legacy|auto|REVISION URL` (or `COMMAND ARGS...`)
// prints one JSON report.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { drive, reach, within } from "./drive.mjs";

const [mode, ...where] = process.argv.slice(2);
const client = new Client(
  { name: "client2", version: "1.0.0" },
  { versionNegotiation: { mode: mode === "legacy" || mode === "auto" ? mode : { pin: mode } } },
);
const changed = new Promise((resolve) => {
  client.setNotificationHandler("notifications/tools/list_changed", () => resolve(true));
});
const transport = reach(where, StreamableHTTPClientTransport, StdioClientTransport);
await within("connect", client.connect(transport));
const modern = client.getProtocolEra() === "modern";
const subscription = modern ? await within("listen", client.listen({ toolsListChanged: true })) : undefined;

const report = await drive(client, {
  call: (name, fields, options) => client.callTool({ name, arguments: fields }, options),
  changed,
});
report.server = client.getServerVersion();
report.revision = client.getNegotiatedProtocolVersion();
report.honoured = subscription?.honoredFilter ?? null;
await subscription?.close();
await within("the session's end", transport.terminateSession?.());
await client.close();
process.stdout.write(JSON.stringify(report));
