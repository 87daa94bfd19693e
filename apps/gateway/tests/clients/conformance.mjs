// Runs the protocol's conformance suite against an MCP server on standard input and output.
//
//   node conformance.mjs SUITE REVISION -- COMMAND ARGS...
//
// SUITE is the suite's index.js, REVISION the protocol revision whose requirements are checked.
// For each check one line goes to standard output, in order: `SCENARIO CHECK STATUS`; at the end
// `scored pass` or `scored fail`: whether all that the revision requires passed.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [suite, revision] = process.argv.slice(2);
const command = process.argv.slice(process.argv.indexOf("--") + 1);
const results = mkdtempSync(join(tmpdir(), "conformance-"));
const bridge = spawn(
  process.execPath,
  [join(import.meta.dirname, "bridge.mjs"), "--", ...command],
  { stdio: ["pipe", "pipe", "inherit"] },
);

// The suite runs as a program of its own, so it must not be waited for while the bridge starts.
const url = await new Promise((resolve, reject) => {
  bridge.on("exit", () => reject(new Error("the bridge ended")));
  createInterface({ input: bridge.stdout }).on("line", (line) => {
    if (line.startsWith("listening ")) resolve(line.slice("listening ".length));
  });
});

const args = [suite, "server", "--url", url, "--requirements", revision, "-o", results];
const ran = spawnSync(process.execPath, args, { encoding: "utf8", timeout: 240_000 });

const lines = [];
for (const name of readdirSync(results)) {
  // server-SCENARIO-TIME
  const scenario = name.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, "");
  const checks = JSON.parse(readFileSync(join(results, name, "checks.json"), "utf8"));
  for (const check of checks) {
    lines.push(`${scenario} ${check.id} ${check.status}`);
    if (check.status === "FAILURE" && process.env.CONFORMANCE_WHY) {
      console.error(`${lines.at(-1)}: ${check.errorMessage}`);
    }
  }
}
console.log(lines.sort().join("\n"));
console.log(ran.status === 0 ? "scored pass" : "scored fail");
if (lines.length === 0) console.error(ran.stdout, ran.stderr);
rmSync(results, { recursive: true });
bridge.removeAllListeners("exit");
bridge.stdin.end();
