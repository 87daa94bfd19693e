//! Several organisations are several homes: nothing of one is of use in another.
//! `docs/organisations.md`.

use std::path::PathBuf;

use serde_json::{Value, json};
use syscap::format::{
    AgentId, CreditChange, Durability, Role, TOKEN_CONTEXT, Token, TokenBody, preimage,
};
use syscap::policy::{Policy, Preset};
use syscap::prelude::*;
use syscap::view::Whose;
use syscap::{FileKeys, Signer as _};

struct Org {
    dir: tempfile::TempDir,
    rt: Runtime,
}

impl Org {
    fn with(policy: Option<Policy>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new().durability(Durability::Memory);
        let options = policy.into_iter().fold(options, Options::policy);
        let rt = options.create(dir.path().join("home")).unwrap();
        Self { dir, rt }
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn issue(&self) -> TokenId {
        let tools = ["fs.read", "fs.write", "echo"];
        self.rt.issue(Grant::to("researcher").tools(tools).workspace()).unwrap()
    }

    fn session(&self) -> Session {
        self.rt.session("researcher", self.issue()).unwrap()
    }

    fn body(&self, token: TokenId) -> TokenBody {
        let log = Options::new().inspect(self.home()).unwrap();
        log.kernel().token(&token).unwrap().body.clone()
    }

    /// The reason for which it takes no such token.
    fn refuses(&self, body: &TokenBody, keys: &FileKeys) -> Option<Reason> {
        let body = body.to_bytes();
        let signature = keys.sign(Role::Issuer, &preimage(TOKEN_CONTEXT, &body)).unwrap();
        match self.rt.register(&Token::wire(&body, &signature)) {
            Err(Error::Refused(refused)) => Some(refused.reason()),
            other => panic!("{other:?}"),
        }
    }

    fn keys(&self) -> FileKeys {
        FileKeys::open(&self.home().join("keys")).unwrap()
    }
}

fn write(session: &Session, text: &str) -> Option<Reason> {
    session.call("fs.write", args! { "path": "a.txt", "text": text }).unwrap().reason()
}

#[test]
fn a_token_of_one_home_opens_nothing_in_another() {
    let (acme, globex) = (Org::with(None), Org::with(None));
    let token = acme.issue();
    acme.rt.session("researcher", token).unwrap();
    match globex.rt.session("researcher", token) {
        Err(Error::Refused(refused)) => assert_eq!(refused.reason(), Reason::NotBound),
        other => panic!("{:?}", other.map(|_| ())),
    }
    // Its wire is no better, by whomever it is signed: a token names its home.
    let body = acme.body(token);
    assert!(globex.refuses(&body, &acme.keys()).is_some());
    assert_eq!(globex.rt.view().unwrap().tokens_in_all, 0);
    let own = globex.body(globex.issue());
    let named = TokenBody { nonce: [7; 16], audience: body.audience, ..own };
    assert_eq!(globex.refuses(&named, &globex.keys()), Some(Reason::WrongAudience));
    assert_eq!(globex.rt.view().unwrap().tokens_in_all, 1);
}

#[test]
fn agents_of_one_name_are_two() {
    let (acme, globex) = (Org::with(None), Org::with(None));
    let (ours, theirs) = (acme.session(), globex.session());
    assert_eq!(write(&ours, "ours"), None);
    let read = |session: &Session| session.call("fs.read", args! { "path": "a.txt" }).unwrap();
    assert_eq!(read(&ours).text().unwrap(), "ours");
    assert_eq!(read(&theirs).reason(), Some(Reason::NotFound));
    // What an operator does to one is nothing to the other.
    let agent = AgentId::new("researcher").unwrap();
    acme.rt.control(&CreditChange { agent: agent.clone(), added: 0 }).unwrap();
    assert_eq!(write(&ours, "more"), Some(Reason::Exhausted));
    assert_eq!(write(&theirs, "theirs"), None);
    globex.rt.freeze(&syscap::format::Freeze::agent(&agent)).unwrap();
    assert_eq!(write(&theirs, "more"), Some(Reason::Frozen));
    assert_eq!(write(&ours, "more"), Some(Reason::Exhausted));
}

/// A preset with the lists that the page has.
fn restricted(preset: Preset) -> Policy {
    let page = include_str!("../docs/organisations.md");
    let lists = page.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    let lists: Value = serde_json::from_str(lists).unwrap();
    let mut document: Value = serde_json::from_str(preset.document()).unwrap();
    let params = document.as_object_mut().unwrap().entry("params").or_insert(json!({}));
    params.as_object_mut().unwrap().extend(lists.as_object().unwrap().clone());
    Policy::from_json(document.to_string().as_bytes()).unwrap()
}

/// "All tools are public to all orgs", "Orgs can restrict which tools are allowed".
#[test]
fn an_allowlist_of_tools_binds_one_home() {
    let (acme, globex) = (Org::with(Some(restricted(Preset::Standard))), Org::with(None));
    let tools = |org: &Org| org.rt.manifests(Whose::All).unwrap();
    assert_eq!(tools(&acme), tools(&globex));
    let (ours, theirs) = (acme.session(), globex.session());
    let refused = ours.call("fs.write", args! { "path": "a.txt", "text": "x" }).unwrap();
    assert_eq!(refused.reason(), Some(Reason::Denied));
    assert_eq!(ours.call("echo", args! { "value": 1 }).unwrap().reason(), None);
    assert_eq!(write(&theirs, "x"), None);
    // By another name it is the same tool.
    let refused = ours.call("file_write", args! { "path": "a.txt", "text": "x" }).unwrap();
    assert_eq!(refused.reason(), Some(Reason::Denied));
    // It lets nobody do what the token does not: access is each agent's.
    let token = acme.rt.issue(Grant::to("b").tools(["echo"])).unwrap();
    let other = acme.rt.session("b", token).unwrap();
    let refused = other.call("fs.list", args! { "path": "." }).unwrap();
    assert_eq!(refused.reason(), Some(Reason::NotGranted));
    for preset in Preset::ALL {
        restricted(preset);
    }
}
