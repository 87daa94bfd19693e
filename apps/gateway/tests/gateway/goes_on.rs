//! Where a token has ended: what is said, and what goes on.

use serde_json::{Value, json};
use syscap::format::{Freeze, Grants, Reason, TokenId, ToolId};
use syscap::prelude::*;
use syscap::view::TokenInfo;

use crate::gateway::bench::{Bench, GatewayProcess, refusal};

fn agent() -> syscap::format::AgentId {
    syscap::format::AgentId::new("agent").unwrap()
}

fn echo(gateway: &mut GatewayProcess) -> Value {
    gateway.call("echo", json!({}))
}

fn ran(result: &Value) -> bool {
    result["isError"] != true
}

/// The tokens of the agent, the newest first.
fn tokens(bench: &Bench) -> Vec<TokenInfo> {
    let log = Options::new().inspect(bench.home()).unwrap();
    log.view().tokens.into_iter().filter(|token| token.agent == agent()).collect()
}

/// Issues a token once more, beside the gateway.
fn reissue(bench: &Bench, token: TokenId) -> TokenId {
    let log = Options::new().inspect(bench.home()).unwrap();
    let grant = log.grant_like(token).unwrap();
    let beside = Runtime::connect(bench.home()).unwrap();
    beside.issue(grant).unwrap()
}

/// Takes a tool from a token, beside the gateway, as `syscap token narrow` does.
fn narrow(bench: &Bench, token: TokenId, without: &ToolId) -> TokenId {
    let beside = Runtime::connect(bench.home()).unwrap();
    let whole = |token: TokenId| beside.tokens(&token.to_string()).unwrap().pop().unwrap();
    let nothing = whole(token).replaced_by(Grants::new()).unwrap().budget(Budget::none());
    let between = beside.issue(nothing).unwrap();
    beside.revoke(token).unwrap();
    let old = whole(token);
    let less = old.less(std::slice::from_ref(without), &[]).unwrap();
    let next = beside.issue(old.replaced_by(less).unwrap().renews(between)).unwrap();
    beside.revoke(between).unwrap();
    next
}

fn why(result: &Value) -> (&str, &str) {
    let refusal = refusal(result);
    (refusal["reason"].as_str().unwrap(), refusal["next"].as_str().unwrap_or_default())
}

#[test]
fn a_spent_token_is_issued_again_as_often_as_was_said() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&["limit=calls:3", "renew=2"]).session();
    for n in 0..9 {
        assert!(ran(&echo(&mut gateway)), "{n}");
    }
    let result = echo(&mut gateway);
    let (reason, next) = why(&result);
    let newest = tokens(&bench)[0].id;
    assert_eq!(reason, "over_budget");
    let command = format!("syscap token reissue {} {newest}", bench.home().display());
    assert!(next.contains("calls has run out") && !next.contains("syscap "), "{next}");
    gateway.said_with(&command);
    assert!(gateway.end().success());
    let all = tokens(&bench);
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|token| token.limits.get(Dimension::Calls) == 3));
    // What its session had read is not forgotten by the next.
    assert!(all.iter().all(|token| token.label.is_untrusted()));
    assert_eq!(bench.outcomes().len(), 9);
    bench.settled();
}

/// A token that expired is replaced at each start; with `--renew` as often as that says, over restarts.
#[test]
fn expired_token_is_replaced_as_often_as_renew_says() {
    let starts = |bench: &Bench, words: &[&str]| {
        let words: Vec<&str> = ["expires=1000"].iter().chain(words).copied().collect();
        let mut gateway = bench.gateway(&words);
        let begun = gateway.request(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "raw", "version": "1"}}),
        );
        let is_begun = begun.get("error").is_none();
        assert_eq!(gateway.end().success(), is_begun);
        std::thread::sleep(std::time::Duration::from_millis(1_100));
        is_begun
    };
    for (renew, begins) in [(None, 3), (Some("renew=0"), 1), (Some("renew=1"), 2)] {
        let bench = Bench::new();
        let words: Vec<&str> = renew.into_iter().collect();
        let begun = (0..3).filter(|_| starts(&bench, &words)).count();
        assert_eq!((begun, tokens(&bench).len()), (begins, begins), "{renew:?}");
        bench.settled();
    }
}

#[test]
fn stopped_token_is_not_replaced() {
    for freeze in [true, false] {
        let bench = Bench::new();
        let mut gateway = bench.gateway(&["limit=calls:2", "renew=9"]).session();
        assert!(ran(&echo(&mut gateway)));
        let beside = Runtime::connect(bench.home()).unwrap();
        let token = tokens(&bench)[0].id;
        let reason = if freeze {
            beside.freeze(&Freeze::all()).unwrap();
            "frozen"
        } else {
            beside.revoke(token).unwrap();
            "revoked"
        };
        for _ in 0..3 {
            let result = echo(&mut gateway);
            let (said, next) = why(&result);
            assert_eq!(said, reason);
            assert!(next.contains("an operator") && !next.contains("syscap "), "{next}");
        }
        // Told where tools are listed, too.
        let listed = gateway.request("tools/list", json!({}));
        let told = listed["result"]["_meta"]["dev.syscap/token"].as_str();
        assert_eq!(told.is_some_and(|told| told.contains("was revoked")), !freeze);
        assert_eq!(tokens(&bench).len(), 1);
        drop(beside);
        assert!(gateway.end().success());
        assert_eq!(bench.outcomes().len(), 1);
        bench.settled();
    }
}

#[test]
fn an_operators_new_token_is_taken_up_at_once() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&["limit=calls:1"]).session();
    assert!(ran(&echo(&mut gateway)));
    assert_eq!(why(&echo(&mut gateway)).0, "over_budget");
    let spent = tokens(&bench)[0].id;
    // One that would forget what the session has read is none for it.
    let beside = Runtime::connect(bench.home()).unwrap();
    let tools = tokens(&bench)[0].tools.clone();
    let tools: Vec<&str> = tools.iter().map(|tool| tool.as_str()).collect();
    beside.issue(Grant::to("agent").tools(&tools)).unwrap();
    assert_eq!(why(&echo(&mut gateway)).0, "over_budget");
    drop(beside);
    reissue(&bench, spent);
    assert!(ran(&echo(&mut gateway)));
    assert!(gateway.end().success());
    assert_eq!(bench.outcomes().len(), 2);
    bench.settled();
}

/// Calls that a client pipelines wait for each other, to the token's limit: none is refused.
#[test]
fn calls_wait_for_their_token() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&["limit=concurrent:2"]).session();
    let ids: Vec<Value> = (0..300).map(|n| gateway.begin("echo", json!({"n": n}))).collect();
    for id in &ids {
        assert!(ran(&gateway.result(id)));
    }
    assert!(gateway.end().success());
    assert_eq!((bench.outcomes().len(), bench.refusals().len()), (300, 0));
    bench.settled();
}

/// A token that lets nothing through is none to begin with, nor one that a call never fits in.
#[test]
fn gateway_does_not_start_on_an_ended_token() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&["limit=calls:1"]).session();
    assert!(ran(&echo(&mut gateway)));
    assert!(gateway.end().success());
    let spent = tokens(&bench)[0].id;
    let (named, too_long) = (format!("token={spent}"), "timeout=7200000");
    let fails = |words: &[&str], wanted: &str| {
        let mut gateway = bench.gateway(words);
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"}});
        let begun = gateway.request("initialize", params);
        assert!(begun["error"]["message"].is_string(), "{begun}");
        gateway.said_with(wanted);
        assert!(!gateway.wait().success());
    };
    fails(&[too_long, "agent=other", "limit=wall_us:3600000000"], "--timeout");
    // By one that is spent it begins, and says so at once: it goes on when there is another.
    for words in [&[][..], &[named.as_str()]] {
        let mut gateway = bench.gateway(words).session();
        let listed = gateway.request("tools/list", json!({}));
        let told = listed["result"]["_meta"]["dev.syscap/token"].as_str().unwrap();
        assert!(told.contains("calls has run out") && !told.contains("syscap "), "{told}");
        gateway.said_with("token reissue");
        assert_eq!(why(&echo(&mut gateway)).0, "over_budget");
        assert!(gateway.end().success());
    }
    // With leave to issue it again it goes on.
    let mut gateway = bench.gateway(&["renew=1"]).session();
    assert!(ran(&echo(&mut gateway)));
    assert!(gateway.end().success());
    assert_eq!(tokens(&bench).len(), 2);
    // What was revoked is none to begin with, named or not.
    let newest = tokens(&bench)[0].id;
    let beside = Runtime::command(bench.home()).unwrap();
    beside.revoke(newest).unwrap();
    beside.close().unwrap();
    fails(&[], "token reissue");
    fails(&[&format!("token={newest}")], "token reissue");
    bench.settled();
}

/// A refusal says what the tool counts as, which constraint said so, and who can let it through.
#[test]
fn a_refusal_says_what_goes_on() {
    let bench = Bench::new();
    let server = format!("server=odd:{}", bench.server("odd").display());
    let mut gateway = bench.start(&[&server]).session();
    let result = echo(&mut gateway);
    let told = refusal(&result).clone();
    assert_eq!((&told["reason"], &told["class"]), (&json!("asked"), &json!("external_write")));
    assert!(told["constraint"].is_string(), "{told}");
    let ask = told["got"].as_str().unwrap();
    let command = format!("syscap approvals approve {} {ask}", bench.home().display());
    gateway.said_with(&command);
    let command = format!("syscap approvals approve HOME {ask};");
    assert!(told["next"].as_str().unwrap().contains(&command), "{told}");
    assert!(crate::gateway::bench::text(&result).contains(&command));
    assert!(gateway.end().success());
    assert_eq!(bench.refusals().iter().filter(|one| one.reason == Reason::Asked).count(), 0);
    bench.settled();
}

/// What is so grave that somebody elevated must approve it, where nobody is named: nothing waits,
/// and no command that approves is named.
#[test]
fn unapprovable_call_names_the_remedy() {
    let bench = Bench::new();
    let server = format!("server=odd:{}", bench.server("odd").display());
    let mut gateway = bench.start(&[&server, "class=irreversible=echo"]).session();
    let told = refusal(&echo(&mut gateway)).clone();
    assert_eq!((&told["reason"], &told["class"]), (&json!("asked"), &json!("irreversible")));
    let next = told["next"].as_str().unwrap();
    assert!(next.contains("params.elevated") && !next.contains("syscap "), "{next}");
    assert!(!next.contains("approvals approve"), "{next}");
    assert!(gateway.end().success());
}

/// Where as many calls wait as may, a further one says so, and not that nobody may approve it.
#[test]
fn full_approval_queue_names_the_waiting_requests() {
    let bench = Bench::new();
    let server = format!("server=odd:{}", bench.server("odd").display());
    let mut gateway = bench.start(&[&server]).session();
    let mut next = |n: u32| {
        let result = gateway.call("echo", json!({ "n": n }));
        refusal(&result)["next"].as_str().unwrap().to_owned()
    };
    for n in 0..32 {
        assert!(next(n).contains("approvals approve"));
    }
    let next = next(32);
    assert!(next.contains("nobody was asked") && !next.contains("elevated"), "{next}");
    gateway.said_with("syscap approvals list");
    assert!(gateway.end().success());
}

/// A gateway goes on by what its token was narrowed to, on the same connection: named by `--token` or
/// not, as often as that is done, and `--renew` counts none of it.
#[test]
fn gateway_goes_on_by_a_narrowed_token() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&["limit=calls:9", "renew=1"]).session();
    assert!(ran(&echo(&mut gateway)));
    let first = tokens(&bench)[0].id;
    let mut named = bench.gateway(&[&format!("token={first}"), "renew=1"]).session();
    assert!(ran(&echo(&mut named)));
    let tool = |name: &str| {
        let all = &tokens(&bench)[0].tools;
        all.iter().find(|tool| tool.as_str().ends_with(name)).unwrap().clone()
    };
    let (gone, also) = (tool(".slow"), tool(".refuses"));
    let next = narrow(&bench, first, &gone);
    for gateway in [&mut gateway, &mut named] {
        assert!(ran(&echo(gateway)));
        assert_eq!(why(&gateway.call("slow", json!({"count": 1}))).0, "not_granted");
    }
    let last = narrow(&bench, next, &also);
    for gateway in [&mut gateway, &mut named] {
        assert!(ran(&echo(gateway)));
        assert_eq!(why(&gateway.call("refuses", json!({}))).0, "not_granted");
    }
    let all = tokens(&bench);
    let limit = |id: TokenId| {
        let token = all.iter().find(|token| token.id == id).unwrap();
        (token.limits.get(Dimension::Calls), token.expires)
    };
    let ends = [first, next, last].map(limit);
    assert!(ends[0].0 == 9 && ends[1].0 == 7 && ends[2].0 <= 5, "{ends:?}");
    assert!(ends[1].1 == ends[0].1 && ends[2].1 == ends[0].1, "{ends:?}");
    // What is spent is issued once more: the one renewal was left.
    let calls = (0..30).take_while(|_| ran(&echo(&mut gateway))).count();
    assert!(calls < 30, "calls without end");
    gateway.said_with("renewal 1 of 1");
    assert!(gateway.end().success());
    assert!(named.end().success());
    bench.settled();
}
