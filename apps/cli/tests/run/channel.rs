//! `syscap channel` inside a run: a program speaks the agents' channel, and reaches nothing else.

use std::fs;
use std::path::Path;

use crate::run::world::World;

fn example() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/client.py")
}

/// A program within calls by the run's own token, in as many sessions as it opens channels, of which there
/// are eight at a time; no operator's verb is taken, no other ticket, and no socket is reached.
#[test]
fn program_within_speaks_the_agents_channel() {
    let Some(world) = World::new() else { return };
    fs::copy(example(), world.work().join("client.py")).unwrap();
    let code = "
sys.path.insert(0, os.getcwd())
import client, time
session = client.over([SYSCAP, 'channel'])
print(session.agent, session.call('fs.write', {'path': 'a.txt', 'text': 'by the kernel'})['status'])
print('echo' in [tool['name'] for tool in session.tools()], session.left()[0] > 0)
other = client.over([SYSCAP, 'channel', '/elsewhere'])
print(other.number != session.number, other.token == session.token)
print(session.call('org.create_agent', {'name': 'x'})['error']['reason'])

def refused(act):
    try:
        act()
        return 'taken'
    except client.Refused as refused:
        return refused.reason
    except client.Lost:
        return 'lost'

# Verbs of an operator's, by the same bytes but for the kind.
real, client.REQUEST = client.REQUEST, 3
print(sorted({refused(lambda: session.channel.ask(verb, None)) for verb in range(1, 40)}))
client.REQUEST = real
print(refused(lambda: client.Session(session.channel, bytes(32))))
print(refused(lambda: session.channel.ask(client.OFFER, [])))
more = [client.over([SYSCAP, 'channel']) for _ in range(6)]
print(refused(lambda: client.over([SYSCAP, 'channel'])))
more.pop().channel.writer.close()
for _ in range(100):
    last = refused(lambda: more.append(client.over([SYSCAP, 'channel'])))
    if last == 'taken':
        break
    time.sleep(0.05)
print(last, more[-1].call('echo', {'value': 7})['result']['value'])
try:
    import socket
    socket.socket(socket.AF_UNIX).connect(HOME + '/socket')
    print('reached')
except OSError:
    print('no socket')";
    let said = world.within(&["--net", "none"], code);
    let lines: Vec<&str> = said.lines().collect();
    let wanted = [
        "coder ok",
        "True True",
        "True True",
        "not_granted",
        "[231]",
        "201",
        "201",
        "lost",
        "taken 7",
        "no socket",
    ];
    assert_eq!(lines, wanted, "{said}");
    let written = world.home.workspace("coder").join("a.txt");
    assert_eq!(fs::read_to_string(written).unwrap(), "by the kernel");
    assert_eq!(world.home.verify(), 0);
}

/// Another language, that can have neither a descriptor nor a socket of that kind.
#[test]
fn node_within_makes_a_governed_call() {
    let Some(world) = World::new() else { return };
    if !Path::new("/usr/bin/node").exists() {
        eprintln!("skipped: there is no node");
        return;
    }
    const SCRIPT: &str = r"
const { spawn } = require('node:child_process');
const head = (major, n) => n < 24 ? Buffer.from([major << 5 | n])
  : n < 256 ? Buffer.from([major << 5 | 24, n]) : Buffer.from([major << 5 | 25, n >> 8, n & 255]);
const bytes = (value) => Buffer.concat([head(2, value.length), value]);
const text = (value) => Buffer.concat([head(3, value.length), Buffer.from(value)]);
const map = (...items) => Buffer.concat([head(5, items.length / 2), ...items]);
const list = (...items) => Buffer.concat([head(4, items.length), ...items]);
const n = (value) => head(0, value);
const lane = spawn(process.argv[2], ['channel'], { stdio: ['pipe', 'pipe', 'inherit'] });
let have = Buffer.alloc(0), told = () => {};
lane.stdout.on('data', (more) => { have = Buffer.concat([have, more]); told(); });
const read = async (size) => {
  while (have.length < size) await new Promise((heard) => { told = heard; });
  const part = have.subarray(0, size);
  have = have.subarray(size);
  return part;
};
const frame = async () => read((await read(4)).readUInt32BE());
const say = (item) => {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(item.length);
  lane.stdin.write(Buffer.concat([size, item]));
};
(async () => {
  const first = await read(33);
  say(list(n(1), n(8), n(8), n(2)));
  await frame();
  say(map(n(1), n(1), n(2), list(n(1), bytes(first.subarray(1)))));
  const taken = await frame();
  // {1: 1, 5: {1: session, ..}}: a session's number is short in a home that is new.
  const session = taken[6] < 24 ? n(taken[6]) : taken.subarray(6, taken[6] === 24 ? 8 : 9);
  const envelope = map(text('args'), map(text('value'), text('node')), text('tool_id'), text('echo'));
  const call = map(n(1), bytes(envelope), n(2), n(1), n(3), n(2),
    n(4), map(n(1), n(0), n(2), list(), n(3), Buffer.from([0xf4])));
  say(map(n(1), n(2), n(2), list(n(2), map(n(1), session, n(2), call))));
  const answer = await frame();
  console.log(answer.includes('\x66status\x62ok'), answer.includes('\x65value\x64node'));
  lane.stdin.end();
})();
";
    let script = world.work().join("call.js");
    fs::write(&script, SCRIPT).unwrap();
    let syscap = env!("CARGO_BIN_EXE_syscap");
    let ran = world.run(&["--net", "none"], &["/usr/bin/node", script.to_str().unwrap(), syscap]);
    assert_eq!((ran.code, ran.out.trim()), (0, "true true"), "{}", ran.err);
    assert_eq!(world.of_kind("intent"), 1);
    assert_eq!(world.home.verify(), 0);
}

/// A program within offers a function by the package for Python, where the run was started so; nobody else
/// offers one, and it runs by the kernel's order.
#[test]
fn program_within_offers_a_function() {
    let Some(world) = World::new() else { return };
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/python/src/syscap");
    let here = world.work().join("syscap");
    fs::create_dir(&here).unwrap();
    for file in fs::read_dir(package).unwrap().map(|file| file.unwrap().path()) {
        if file.extension().is_some_and(|end| end == "py") {
            fs::copy(&file, here.join(file.file_name().unwrap())).unwrap();
        }
    }
    let code = "
sys.path.insert(0, os.getcwd())
sys.dont_write_bytecode = True
import syscap
session = syscap.join(program=SYSCAP)

@session.tool('py.add', effect='read')
def add(a: int, b: int = 2) -> int:
    return a + b

try:
    print(session.agent, add(1))
except syscap.Refused as refused:
    print(refused.reason)
session.close()";
    assert_eq!(world.within(&["--net", "none"], code).trim(), "not_bound");
    // The first time it is put on record; then a token can grant it.
    let offers = ["--net", "none", "--offer", "py.=read"];
    assert_eq!(world.within(&offers, code).trim(), "not_granted");
    world.home.token("coder", &["--tool", "py.add", "--tool", "echo"]);
    assert_eq!(world.within(&offers, code).trim(), "coder 3");
    assert_eq!(world.of_kind("intent"), 1);
    assert_eq!(world.home.verify(), 0);
}
