//! A run's tokens are the run's alone, and an agent inside gets no more by asking again.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::cli::support::{run, run_with};
use crate::run::world::{AGENT, PYTHON, World};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run/server.py");

/// An agent that does what it reads: `connect` to a new gateway, `look`; it says the text, or the
/// reason's code. Asked for an approval by its window, it says `WINDOW`, and ticks the box.
const AGENT_CODE: &str = "
def message(method, **params):
    return {'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}
def connect():
    global gateway, number
    if 'gateway' in globals(): gateway.stdin.close(); gateway.wait(30)
    number = 0
    gateway = subprocess.Popen([SYSCAP, 'mcp', 'x', '--agent', 'x'], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    said = ask(message('initialize', protocolVersion='2025-06-18',
        capabilities={'elicitation': {'form': {}}}, clientInfo={'name': 'c', 'version': '1'}))
    say({'jsonrpc': '2.0', 'method': 'notifications/initialized'})
    return 'connected' if said and 'result' in said else 'refused'
def say(m):
    gateway.stdin.write(json.dumps(m) + chr(10)); gateway.stdin.flush()
def ask(m):
    global number
    number += 1
    m['id'] = number
    try: say(m)
    except OSError: return None
    while True:
        line = gateway.stdout.readline()
        if not line: return None
        said = json.loads(line)
        if said.get('method') == 'elicitation/create':
            print('WINDOW', flush=True)
            say({'jsonrpc': '2.0', 'id': said['id'],
                'result': {'action': 'accept', 'content': {'approve': True}}})
        elif said.get('id') == number: return said
def look():
    said = ask(message('tools/call', name='look', arguments={'what': 'write', 'of': MARK}))
    if said is None: return 'gone'
    result = said.get('result', {})
    if not result.get('isError'): return 'ok'
    return result['content'][0]['text'].split('(')[1].split(')')[0]
def echo():
    made = subprocess.run([SYSCAP, 'call', 'x', '--agent', 'x', '--token', '0' * 64, '-'], text=True,
        input=json.dumps({'tool_id': 'echo', 'args': {'value': 1}}), capture_output=True)
    said = json.loads(made.stdout)
    return said['error']['reason'] if 'error' in said else said['status']
for line in sys.stdin:
    try: print(globals()[line.strip()](), flush=True)
    except Exception as error: print(repr(error), flush=True)
";

struct Agent {
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

impl Agent {
    fn start(world: &World, mcp: &str) -> Self {
        let mark = world.home.beside("MARK");
        let mcp = format!("--name s {mcp} -- {PYTHON} {SERVER}");
        let code = world.code(&format!("MARK = {mark:?}\n{AGENT_CODE}"));
        let mut command = world.command(&["--mcp", &mcp]);
        command.args([PYTHON, "-c", &code]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, to, from: BufReader::new(from).lines() }
    }

    fn tell(&mut self, word: &str) -> String {
        writeln!(self.to, "{word}").unwrap();
        self.from.next().unwrap().unwrap()
    }

    fn end(self) -> String {
        drop((self.to, self.from));
        let output = self.child.wait_with_output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    }
}

fn tokens(world: &World) -> Vec<Value> {
    run(["token", "list", &world.home.path(), "--json"]).fine().json()
}

/// The tokens that grant the server's tool.
fn of_server(world: &World) -> Vec<String> {
    let is_its = |id: &str| {
        let shown = run(["token", "show", &world.home.path(), id, "--json"]).fine();
        shown.out.contains("s.look")
    };
    let ids = tokens(world).into_iter().map(|token| token["token_id"].as_str().unwrap().to_owned());
    ids.filter(|id| is_its(id)).collect()
}

#[test]
fn agent_that_connects_again_gets_no_new_calls() {
    let Some(world) = World::new() else { return };
    let mut agent = Agent::start(&world, "--class read=look --budget calls=2 --renew 9");
    assert_eq!(agent.tell("connect"), "connected");
    assert_eq!([agent.tell("look"), agent.tell("look")], ["ok", "ok"]);
    assert_ne!(agent.tell("look"), "ok");
    assert_eq!(agent.tell("connect"), "connected");
    assert_ne!(agent.tell("look"), "ok");
    assert_eq!(of_server(&world).len(), 1);
    // One that renews it and grants no more is the run's, too, and one that grants more is not.
    let own = of_server(&world).remove(0);
    let home = world.home.path();
    run(["token", "reissue", &home, &own, "--budget", "calls=1"]);
    assert_eq!(agent.tell("look"), "ok");
    assert_ne!(agent.tell("look"), "ok");
    let second = of_server(&world).into_iter().find(|id| *id != own).unwrap();
    run(["token", "reissue", &home, &second, "--tool", "echo", "--budget", "calls=9"]);
    assert_eq!(of_server(&world).len(), 3);
    assert_ne!(agent.tell("look"), "ok");
    assert_eq!(agent.tell("connect"), "connected");
    assert_ne!(agent.tell("look"), "ok");
    agent.end();
    assert_eq!(world.home.verify(), 0);
}

/// What a run goes by can be narrowed while it runs, and given back: its gateway and its calls go on.
#[test]
fn narrowed_token_of_a_run_goes_on_inside() {
    let Some(world) = World::new() else { return };
    let mut agent = Agent::start(&world, "--class read=look");
    let all = |agent: &mut Agent| [agent.tell("look"), agent.tell("echo")];
    assert_eq!(agent.tell("connect"), "connected");
    assert_eq!(all(&mut agent), ["ok", "ok"]);
    let home = world.home.path();
    let narrow = |tool: &str| {
        let words = ["token", "narrow", &home, "--agent", AGENT, "--without", tool, "--json"];
        run(words).fine().one()["token_id"].as_str().unwrap().to_owned()
    };
    let server = narrow("s.look");
    assert_eq!(all(&mut agent), ["206", "ok"]);
    let own = narrow("echo");
    assert_eq!(all(&mut agent), ["206", "not_granted"]);
    for (token, tool) in [(&server, "s.look"), (&own, "echo")] {
        run(["token", "reissue", &home, token, "--tool", tool, "--left"]).fine();
    }
    assert_eq!(all(&mut agent), ["ok", "ok"]);
    // Who ends the last of the line ends the run.
    let live = tokens(&world).into_iter().filter(|token| token["standing"] == "live");
    for token in live {
        run(["revoke", &home, token["token_id"].as_str().unwrap()]).fine();
    }
    assert!(agent.end().contains("was revoked"));
    assert_eq!(world.home.verify(), 0);
}

#[test]
fn expired_token_of_a_run_is_replaced_by_none() {
    let Some(world) = World::new() else { return };
    let mut agent = Agent::start(&world, "--class read=look --expires 2s");
    while agent.tell("connect") == "connected" && agent.tell("look") == "ok" {
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert_ne!(agent.tell("connect"), "connected");
    assert_eq!(of_server(&world).len(), 1);
    agent.end();
}

#[test]
fn gateway_outside_goes_by_no_token_of_a_run() {
    let Some(world) = World::new() else { return };
    let mut agent = Agent::start(&world, "--class read=look");
    assert_eq!([agent.tell("connect"), agent.tell("look")], ["connected", "ok"]);
    agent.end();
    let before = of_server(&world);
    assert_eq!(before.len(), 1);
    let home = world.home.path();
    let outside = |input: &str| {
        let words = ["mcp", &home, "--agent", AGENT, "--name", "s", "--", PYTHON, SERVER];
        run_with(words, input.as_bytes())
    };
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"}}});
    let said = outside(&format!("{hello}\n"));
    assert_eq!(said.code, 0, "{}", said.err);
    let after = of_server(&world);
    assert_eq!(after.len(), 2);
    // A later run goes by the first one's, which has the same tools.
    let mut agent = Agent::start(&world, "");
    assert_eq!(agent.tell("connect"), "connected");
    agent.end();
    assert_eq!(of_server(&world), after);
    // A revoked token is not replaced by an older one.
    run(["revoke", &home, &before[0]]).fine();
    let ended = Agent::start(&world, "").end();
    assert!(ended.contains("was revoked"), "{ended}");
    assert_eq!(of_server(&world), after);
}

#[test]
fn answer_of_the_clients_window_counts_for_nothing_inside() {
    let Some(world) = World::new() else { return };
    let shown = run(["policy", "show", "preset:standard"]).fine();
    let mut policy: Value = serde_json::from_str(&shown.out).unwrap();
    policy["params"]["client_means"] = json!(["elicitation"]);
    let file = world.home.beside("policy.json");
    fs::write(&file, policy.to_string()).unwrap();
    let home = world.home.path();
    run(["policy", "set", &home, file.to_str().unwrap()]);
    let mut agent = Agent::start(&world, "--class external_write=look --approval-wait 10m");
    assert_eq!(agent.tell("connect"), "connected");
    // Asked, and not waited for: whoever set this sits at the client.
    assert_eq!(agent.tell("look"), "403");
    assert!(!world.home.beside("MARK").exists());
    assert_eq!((world.of_kind("ask"), world.of_kind("approval")), (1, 0));
    // The operator's answer outside does count.
    let ask = world.home.log().into_iter().find(|record| record["kind"] == "ask").unwrap();
    let approved = run(["approvals", "approve", &home, &ask["seq"].to_string()]);
    assert_eq!(approved.code, 0, "{}", approved.err);
    assert_eq!(agent.tell("look"), "ok");
    let told = agent.end();
    assert!(told.contains("client_means"), "{told}");
}

/// True if the hook outside lets the client write a file.
fn may_write(world: &World, path: &str) -> bool {
    let event = json!({"hook_event_name": "PreToolUse", "session_id": path, "tool_name": "Write",
        "tool_use_id": path, "tool_input": {"file_path": path, "content": "x"}, "cwd": "/"});
    let home = world.home.path();
    let words = ["hook", &home, "--agent", AGENT, "--client", "claude-code", "--ask", "deny"];
    let ran = run_with(words, event.to_string().as_bytes());
    ran.code == 0 && !ran.out.contains("deny")
}

#[test]
fn folder_of_a_run_is_not_opened_outside() {
    let Some(world) = World::new() else { return };
    let (home, work) = (world.home.path(), world.home.text_beside("work"));
    let outside = world.home.text_beside("outside");
    fs::create_dir(&outside).unwrap();
    let base = ["hook", &home, "--agent", AGENT, "--client", "claude-code"];
    let setup = run(base.iter().chain(&["--setup", "--print", "--root", &outside]));
    assert_eq!(setup.code, 0, "{}", setup.err);
    // It is said last.
    let of_setup = setup.err.split("token ").nth(1).unwrap().split_whitespace().next().unwrap();
    let before = tokens(&world).len();
    let ran = |workspace: &str| {
        let words = ["run", &home, "--agent", AGENT, "--client", "claude-code", "--workspace"];
        let ran = run(words.iter().chain(&[workspace, "--", "/bin/true"]));
        assert_eq!(ran.code, 0, "{}", ran.err);
        tokens(&world).len()
    };
    assert_eq!(ran(&work), before + 1);
    assert!(may_write(&world, &format!("{outside}/a")));
    assert!(!may_write(&world, &format!("{work}/a")));
    // A run takes an earlier one's only where it opens the same, by whatever name.
    assert_eq!(ran(&format!("{outside}/../work")), before + 1);
    assert_eq!(ran(&outside), before + 2);
    // The client outside stops with the set-up's token, whatever tokens runs have.
    run(["revoke", &home, of_setup]).fine();
    assert!(!may_write(&world, &format!("{outside}/b")));
    assert!(!may_write(&world, &format!("{work}/b")));
    assert_eq!(world.home.verify(), 0);
}
