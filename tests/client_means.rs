//! An agent's own client as a means of approval: where the policy names it, once, for one call, and
//! where one approval is enough.

use ed25519_dalek::{Signer as _, SigningKey};
use host_support::{end, new_home};
use syscap::approvals::{SetTerms, answer_in_client};
use syscap::format::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, ControlBody, KeyChange, POSSESSION_CONTEXT,
    Possession, PublicKey, Role, RoleSet, Seq, Signature, possession, preimage,
};
use syscap::policy::Policy;
use syscap::prelude::*;
use syscap::{FileKeys, Home, Signer};

/// Asks about every write, and about long ones somebody of a level.
const POLICY: &str = r#"{"v": 1, "constraints": [
    {"id": "all", "effect": "allow", "subject": null, "when": {"op": "all", "args": []},
     "on_fail": "block", "reason": "Fine."},
    {"id": "long", "effect": "deny", "subject": {"tool_id": "fs.write"},
     "when": {"op": "eq", "args": ["args.text", "long"]}, "on_fail": "ask", "reason": "Who may.",
     "obligations": [{"type": "approval", "level": "elevated"}]},
    {"id": "writes", "effect": "deny", "subject": {"tool_id": "fs.write"},
     "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "Somebody looks at it."}
 ], "params": PARAMS}"#;

struct World {
    folder: tempfile::TempDir,
    rt: Runtime,
    agent: Session,
}

fn world(client_means: &str) -> World {
    let (folder, home) = new_home();
    let rt = Runtime::create(&home).unwrap();
    let approver = key(&home, Role::Approver);
    let params = format!(r#"{{"elevated": {{"keys": ["{approver}"]}}{client_means}}}"#);
    let policy = POLICY.replace("PARAMS", &params);
    rt.set_policy(Policy::from_json(policy.as_bytes()).unwrap()).unwrap();
    let token = rt.issue(Grant::to("a").tools(["fs.write"]).write("workspace")).unwrap();
    let agent = rt.session("a", token).unwrap();
    World { folder, rt, agent }
}

fn key(home: &std::path::Path, role: Role) -> PublicKey {
    FileKeys::open(&Home::at(home).keys()).unwrap().public_key(role).unwrap()
}

impl World {
    fn home(&self) -> std::path::PathBuf {
        self.folder.path().join("home")
    }

    fn write(&self, text: &str) -> ToolResult {
        self.agent.call("fs.write", args! { "path": "a.txt", "text": text }).unwrap()
    }

    fn ask(&self, text: &str) -> Seq {
        self.write(text).ask().expect("it waits")
    }

    fn means(&self, ask: Seq) -> Vec<ApprovalChannel> {
        let log = Options::new().inspect(self.home()).unwrap();
        log.waiting().unwrap().into_iter().find(|call| call.ask == ask).unwrap().means
    }

    fn give(&self, ask: Seq, means: ApprovalChannel) -> Result<Seq, Reason> {
        let given = answer_in_client(&self.home(), &self.rt, ask, ApprovalAnswer::Once, means);
        given.map_err(|error| match error {
            Error::Refused(why) => why.reason(),
            other => panic!("{other}"),
        })
    }

    /// Signs that for the home by a role's own key.
    fn sign<B: ControlBody>(&self, body: &B, role: Role) -> Result<Seq, Reason> {
        let log = Options::new().inspect(self.home()).unwrap();
        let keys = FileKeys::open(&Home::at(self.home()).keys()).unwrap();
        let key = keys.public_key(role).unwrap();
        let control = log.sign(body, &key, |message| keys.sign(role, message)).unwrap();
        self.rt.submit(B::KIND, control).map_err(|error| match error {
            Error::Refused(why) => why.reason(),
            other => panic!("{other}"),
        })
    }

    fn end(self) {
        let home = self.home();
        end(&self.rt, &home);
    }
}

const BOTH: &str = r#", "client_means": ["client_prompt", "elicitation"]"#;

#[test]
fn a_client_counts_where_the_policy_names_it() {
    let world = world(BOTH);
    for (text, means) in [("a", ApprovalChannel::Elicitation), ("b", ApprovalChannel::ClientPrompt)]
    {
        let ask = world.ask(text);
        assert!(world.means(ask).is_sorted_by_key(|means| means.code()));
        world.give(ask, means).unwrap();
        assert_eq!(world.write(text).status(), Status::Ok);
        // Once.
        assert!(world.write(text).ask().is_some_and(|next| next != ask));
    }
    world.end();
    // Nothing is said: none. One is named: that one.
    let none = self::world("");
    let ask = none.ask("a");
    for means in [ApprovalChannel::Elicitation, ApprovalChannel::ClientPrompt] {
        assert_eq!(none.give(ask, means), Err(Reason::BadControl));
    }
    assert!(none.means(ask).iter().all(|means| !means.is_a_clients()));
    none.end();
    let one = self::world(r#", "client_means": ["elicitation"]"#);
    let ask = one.ask("a");
    assert_eq!(one.give(ask, ApprovalChannel::ClientPrompt), Err(Reason::BadControl));
    assert!(one.give(ask, ApprovalChannel::Elicitation).is_ok());
    one.end();
}

#[test]
fn a_client_answers_nothing_of_a_level() {
    let world = world(BOTH);
    let ask = world.ask("long");
    for means in [ApprovalChannel::Elicitation, ApprovalChannel::ClientPrompt] {
        assert_eq!(world.give(ask, means), Err(Reason::BadControl));
    }
    assert_eq!(world.write("long").reason(), Some(Reason::Asked));
    world.end();
}

#[test]
fn a_client_answers_for_one_call_alone() {
    let world = world(BOTH);
    let ask = world.ask("a");
    let now = world.rt.look(|kernel| kernel.now()).unwrap();
    let terms = SetTerms { uses: 5, scopes: None, expires: Some(now.plus(60_000)) };
    let set = |means| {
        let log = Options::new().inspect(world.home()).unwrap();
        log.answer_set(ask, &terms, means, None).unwrap()
    };
    for means in [ApprovalChannel::Elicitation, ApprovalChannel::ClientPrompt] {
        assert_eq!(world.sign(&set(means), Role::Approver), Err(Reason::BadControl));
    }
    let by_command: ApprovalBody = set(ApprovalChannel::Command);
    assert!(world.sign(&by_command, Role::Approver).is_ok());
    world.end();
}

/// Where two must approve, no client's window is one of them.
#[test]
fn a_client_is_none_of_several() {
    let world = world(BOTH);
    let second = SigningKey::from_bytes(&[91; 32]);
    let public = PublicKey::new(second.verifying_key().to_bytes()).unwrap();
    let home = world.rt.look(|kernel| kernel.home()).unwrap();
    let message = possession(&home, Role::Approver, &public);
    let signature = second.sign(&preimage(POSSESSION_CONTEXT, &message)).to_bytes();
    let proof = Possession { key: public, signature: Signature::from_bytes(signature) };
    let mut keys = vec![key(&world.home(), Role::Approver), public];
    keys.sort();
    let set = RoleSet { threshold: 2, ..RoleSet::any_of(Role::Approver, keys) };
    let change = KeyChange { set, proofs: vec![proof], cut_off: None };
    world.sign(&change, Role::Operator).unwrap();
    let ask = world.ask("a");
    assert!(world.means(ask).iter().all(|means| !means.is_a_clients()));
    assert_eq!(world.give(ask, ApprovalChannel::Elicitation), Err(Reason::BadControl));
    world.end();
}

#[test]
fn only_a_clients_windows_are_named() {
    for wrong in [r#"["terminal"]"#, "[]", r#"["elicitation", "elicit"]"#, "true"] {
        let policy = POLICY.replace("PARAMS", &format!(r#"{{"client_means": {wrong}}}"#));
        assert!(Policy::from_json(policy.as_bytes()).is_err(), "{wrong}");
    }
}
