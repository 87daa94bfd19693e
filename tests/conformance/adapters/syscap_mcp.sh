#!/bin/sh
# `syscap mcp` as a subject of the conformance suite's MCP half. SYSCAP is the program, if it is not in PATH.
set -eu
syscap=${SYSCAP:-syscap} home=$CONFORMANCE_FOLDER/home
if [ ! -e "$home" ]; then
    # Every call is asked about, in the client's own window.
    cat >"$CONFORMANCE_FOLDER/policy.json" <<'POLICY'
{"v": 1, "params": {"client_means": ["elicitation"]}, "constraints": [
  {"id": "tools", "effect": "allow", "subject": null, "when": {"op": "all", "args": []}, "on_fail": "block",
   "reason": "A tool."},
  {"id": "ask", "effect": "deny", "subject": {"capability": "external_write"}, "when": {"op": "all", "args": []},
   "on_fail": "ask", "reason": "It acts outside."}
]}
POLICY
    "$syscap" init "$home" >&2
    "$syscap" policy set "$home" "$CONFORMANCE_FOLDER/policy.json" >&2
fi
# shellcheck disable=SC2086
exec "$syscap" mcp "$home" --agent me --name up -- $CONFORMANCE_UPSTREAM
