// What every TypeScript client is put through. Each step records what the client saw; pytest judges it.
// A client is handed over connected, with the few calls that differ between the two SDKs wrapped by its script.

const PATIENCE_MS = 15_000;

/** Wait for a promise, but not for ever: name what was waited for. */
export async function within(what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${PATIENCE_MS} ms for ${what}`)), PATIENCE_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What a script was told to connect to: the URL of a server that runs, or the command that starts one on stdio. */
export function reach([first, ...rest], Http, Stdio) {
  return /^https?:/.test(first)
    ? new Http(new URL(first))
    : new Stdio({ command: first, args: rest, stderr: "inherit" });
}

/** Run one step that must fail, and keep what it failed with. */
async function failure(promise) {
  try {
    return { unexpected: await promise };
  } catch (error) {
    return { name: error.name, code: error.code, message: error.message, data: error.data };
  }
}

/**
 * Put a connected client through every step.
 *
 * @param client the connected client of either SDK
 * @param call (name, args, options) => the tool's result
 * @param changed resolves when the list of tools was announced as changed
 */
export async function drive(client, { call, changed }) {
  const report = {};
  const step = async (name, promise) => {
    report[name] = await within(name, promise);
  };

  await step("tools", client.listTools());
  await step("echo", call("echo", { text: "héllo" }));
  await step("typed", call("typed", {}));
  await step("image", call("return_value", { kind: "image" }));
  await step("wrong", call("add", { a: "one", b: 2 }));
  await step("refused", call("guarded", {}));
  await step("unknown", failure(call("no_such_tool", {})));

  await step("resources", client.listResources());
  await step("templates", client.listResourceTemplates());
  await step("settings", client.readResource({ uri: "config://settings" }));
  await step("note", client.readResource({ uri: "notes://today" }));
  await step("prompts", client.listPrompts());
  await step("prompt", client.getPrompt({ name: "greet", arguments: { name: "Ada", style: "formal" } }));
  await step(
    "completion",
    client.complete({ ref: { type: "ref/prompt", name: "greet" }, argument: { name: "style", value: "c" } }),
  );

  report.progress = [];
  await step("progressed", call("unhurried_progress", { steps: 3 }, { onprogress: (note) => report.progress.push(note) }));

  const abort = new AbortController();
  const slow = failure(call("hold", {}, { signal: abort.signal }));
  await step("begun", call("held", { count: 1 }));
  await step("beside", call("echo", { text: "meanwhile" }));
  abort.abort("changed my mind");
  await step("cancelled", slow);
  await step("released", call("held", { count: 0 }));
  await step("after", call("echo", { text: "still here" }));

  await step("toggled", call("toggle", { name: "later", on: true }));
  await step("changed", changed);
  await step("relisted", client.listTools());
  await step("untoggled", call("toggle", { name: "later", on: false }));
  return report;
}
