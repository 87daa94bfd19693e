// Puts an MCP server that speaks on standard input and output behind HTTP, for the protocol's
// conformance suite, which speaks HTTP only. JSON-RPC messages pass as they are.
//
//   node bridge.mjs [--port N] -- COMMAND ARGS...
//
// Prints `listening URL` (of a free port, if N is not given) and serves until its standard input ends. A session of the older
// protocol revisions has a COMMAND of its own; the requests of the newest, which has no sessions,
// share one, and their ids and progress tokens are made unique there.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

const NEWEST = "2026-07-28";
const META = "io.modelcontextprotocol/";
const at = process.argv.indexOf("--");
const [command, ...args] = process.argv.slice(at + 1);
const [option, port = "0", ...more] = process.argv.slice(2, Math.max(at, 2));
if (at < 0 || !command || (option ?? "--port") !== "--port" || !/^\d+$/.test(port) || more.length) {
  console.error("usage: node bridge.mjs [--port N] -- COMMAND ARGS...");
  process.exit(2);
}

// One COMMAND: `heard` is called with each message that it says, `ended` when it is over.
class Child {
  constructor(heard, ended) {
    this.process = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.process.stdin.on("error", () => {});
    this.process.on("error", (error) => console.error(`bridge: ${error.message}`));
    this.process.on("exit", () => ended());
    createInterface({ input: this.process.stdout }).on("line", (line) => {
      try {
        heard(JSON.parse(line));
      } catch (error) {
        console.error(`bridge: not a message: ${line.slice(0, 200)}: ${error.message}`);
      }
    });
  }

  say(message) {
    this.write(JSON.stringify(message));
  }

  write(line) {
    this.process.stdin.write(`${line}\n`);
  }

  close() {
    this.process.stdin.end();
    setTimeout(() => this.process.kill(), 5000).unref();
  }
}

// The answer to one POST or GET: a stream of events once there is more than one message.
class Reply {
  constructor(response, headers = {}) {
    Object.assign(this, { response, headers, streams: false });
  }

  event(message) {
    if (!this.streams) {
      this.streams = true;
      this.response.writeHead(200, { ...this.headers, "Content-Type": "text/event-stream" });
    }
    if (message) this.response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
    else this.response.flushHeaders();
  }

  finish(message, status = 200) {
    if (this.streams) {
      this.event(message);
      this.response.end();
      return;
    }
    this.response.writeHead(status, { ...this.headers, "Content-Type": "application/json" });
    this.response.end(JSON.stringify(message));
  }
}

// A session of the older revisions.
class Session {
  constructor() {
    this.id = randomUUID();
    this.waiting = new Map();
    this.early = [];
    this.listener = null;
    this.child = new Child(
      (message) => this.heard(message),
      () => this.ended(),
    );
    sessions.set(this.id, this);
  }

  heard(message) {
    if (message.method === undefined) {
      const reply = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      reply?.finish(message);
      return;
    }
    // What the server says by itself goes with the newest request, else to the listener.
    const reply = [...this.waiting.values()].pop() ?? this.listener;
    if (reply) reply.event(message);
    else this.early.push(message);
  }

  // The body goes on as it came: numbers of ours are not as exact as those of others.
  post(message, response, body) {
    if (message.method !== undefined && message.id !== undefined) {
      this.waiting.set(message.id, new Reply(response, { "Mcp-Session-Id": this.id }));
    } else {
      response.writeHead(202).end();
    }
    this.child.write(body.replaceAll(/[\r\n]/g, " "));
  }

  listen(response) {
    this.listener = new Reply(response, { "Mcp-Session-Id": this.id });
    this.listener.event(null);
    for (const message of this.early.splice(0)) this.listener.event(message);
  }

  ended() {
    sessions.delete(this.id);
    for (const reply of this.waiting.values()) reply.response.destroy();
    this.listener?.response.end();
  }
}

// All requests of the newest revision.
class Shared {
  constructor() {
    this.next = 1;
    this.waiting = new Map();
    this.child = new Child(
      (message) => this.heard(message),
      () => this.ended(),
    );
  }

  heard(message) {
    if (message.method === undefined) {
      const asked = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      const subscription = message.result?._meta?.[`${META}subscriptionId`];
      if (asked && subscription !== undefined) {
        message.result._meta[`${META}subscriptionId`] = asked.id;
      }
      asked?.reply.finish({ ...message, id: asked.id }, statusOf(message.error));
      return;
    }
    const params = message.params ?? {};
    const subscription = params._meta?.[`${META}subscriptionId`];
    const token = params.progressToken;
    const asked =
      this.waiting.get(subscription ?? token) ??
      [...this.waiting.values()].filter((one) => !one.listens).pop();
    if (!asked) return;
    if (subscription !== undefined) params._meta[`${META}subscriptionId`] = asked.id;
    if (token !== undefined) params.progressToken = asked.token;
    asked.reply.event(message);
  }

  post(message, response) {
    if (message.id === undefined || message.method === undefined) {
      response.writeHead(202).end();
      if (message.method !== undefined) this.child.say(message);
      return;
    }
    const id = this.next++;
    const token = message.params?._meta?.progressToken;
    if (token !== undefined) message.params._meta.progressToken = id;
    const listens = message.method === "subscriptions/listen";
    this.waiting.set(id, { id: message.id, token, listens, reply: new Reply(response) });
    response.on("close", () => {
      // The client went away: that is how it cancels here.
      if (!this.waiting.delete(id)) return;
      const params = { requestId: id, reason: "the connection was closed" };
      this.child.say({ jsonrpc: "2.0", method: "notifications/cancelled", params });
    });
    this.child.say({ ...message, id });
  }

  ended() {
    shared = null;
    for (const asked of this.waiting.values()) asked.reply.response.destroy();
  }
}

function statusOf(error) {
  if (!error) return 200;
  if (error.code === -32601) return 404;
  return error.code === -32603 ? 500 : 400;
}

const sessions = new Map();
let shared = null;

function refuse(response, status, code, message, id = null) {
  new Reply(response).finish({ jsonrpc: "2.0", id, error: { code, message } }, status);
}

function newest(message, version, response) {
  const claimed = message.params?._meta?.[`${META}protocolVersion`];
  if (claimed !== undefined && claimed !== version) {
    refuse(response, 400, -32020, "header and _meta name different versions", message.id);
  } else if (message.method === "initialize") {
    refuse(response, 404, -32601, "initialize", message.id);
  } else {
    shared ??= new Shared();
    shared.post(message, response);
  }
}

function posted(body, request, response) {
  let message;
  try {
    message = JSON.parse(body);
  } catch {
    refuse(response, 400, -32700, "not JSON");
    return;
  }
  const version = request.headers["mcp-protocol-version"];
  if (version !== undefined && (version >= NEWEST || !/^\d/.test(version))) {
    newest(message, version, response);
    return;
  }
  const id = request.headers["mcp-session-id"];
  const session = id === undefined ? undefined : sessions.get(id);
  if (session) session.post(message, response, body);
  else if (id !== undefined) refuse(response, 404, -32600, "no such session", message.id);
  else if (message.method === "initialize") new Session().post(message, response, body);
  else refuse(response, 400, -32600, "initialize first", message.id);
}

// A page of another origin in a browser on this machine is no client.
function local(request) {
  const name = (host) => host?.replace(/^https?:\/\//, "").replace(/:\d+$/, "");
  const names = ["127.0.0.1", "localhost", "[::1]", undefined];
  const { host, origin } = request.headers;
  return names.includes(name(host)) && names.includes(name(origin));
}

const server = createServer((request, response) => {
  if (!local(request)) return refuse(response, 403, -32600, "not a local client");
  if (request.url !== "/mcp") return refuse(response, 404, -32600, "no such page");
  const session = sessions.get(request.headers["mcp-session-id"]);
  if (request.method === "POST") {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => posted(Buffer.concat(chunks).toString(), request, response));
  } else if (request.method === "GET" && session) {
    session.listen(response);
  } else if (request.method === "DELETE" && session) {
    sessions.delete(session.id);
    session.child.close();
    response.writeHead(200).end();
  } else {
    refuse(response, session ? 405 : 404, -32600, "no such session");
  }
});

server.listen(Number(port), "127.0.0.1", () => {
  console.log(`listening http://127.0.0.1:${server.address().port}/mcp`);
});
process.stdin.resume();
process.stdin.on("end", () => {
  for (const session of sessions.values()) session.child.close();
  shared?.child.close();
  server.close();
  server.closeAllConnections();
});
