//! `token`.

use serde_json::json;

use crate::cli::support::{ECHO, TestHome, is_hash, reason, run, run_with};

#[test]
fn flags_say_what_a_token_grants() {
    let home = TestHome::new();
    let flags = ["--tool", "fs.read", "--tool", "file_write", "--read", "workspace"];
    let more = ["--write", "workspace/out", "--read", "shared/docs", "--budget", "calls=7"];
    let rest = ["--budget", "disk_files=3,disk_write_bytes=9", "--expires", "15m"];
    let id = home.token("team/a", &[&flags[..], &more[..], &rest[..]].concat());
    let shown = run(["token", "show", &home.path(), &id, "--json"]).fine().one();
    assert_eq!(shown["token_id"], id);
    assert_eq!(shown["agent"], "team/a");
    assert_eq!(shown["standing"], "live");
    let life = shown["expires_ms"].as_u64().unwrap() - shown["not_before_ms"].as_u64().unwrap();
    assert_eq!(life, 15 * 60_000);
    let paths = |tool: &str| shown["grants"][tool]["path"]["paths"].clone();
    assert_eq!(paths("fs.read"), paths("fs.write"));
    assert!(shown["grants"]["file_write"].is_null());
    let rule = |owner: Option<&str>, root: &str, below: &str, rights: &[&str]| {
        let mut rule = json!({"root": root, "below": below, "rights": rights});
        rule["owner"] = json!(owner);
        rule
    };
    let rules = paths("fs.read").as_array().unwrap().clone();
    assert_eq!(rules.len(), 3);
    for expected in [
        rule(Some("team/a"), "workspace", "", &["read"]),
        rule(Some("team/a"), "workspace", "out", &["read", "write"]),
        rule(None, "shared", "docs", &["read"]),
    ] {
        assert!(rules.contains(&expected), "{expected} in {rules:?}");
    }
    let limit = |name: &str| shown["budget"][name]["limit"].as_u64().unwrap();
    let set = ["calls", "disk_files", "disk_write_bytes", "concurrent"];
    assert_eq!(set.map(limit), [7, 3, 9, 16]);
    let text = run(["token", "show", &home.path(), &id]).fine().out;
    assert!(text.contains(&id) && text.contains("disk_write_bytes"));
}

/// A dimension that is given again permits more, and each is of the type that it is named for.
#[test]
fn scopes_are_given_by_dimension() {
    let home = TestHome::new();
    let scopes = [
        "collection=acme/docs",
        "host=*.example.com",
        "collection=acme/faq",
        "port=443",
        "port=8000-8080",
        "address=10.1.0.0/16",
        "host=example.org",
    ];
    let mut flags = vec!["--tool", "vecdb.query", "--tool", "http_request"];
    flags.extend(scopes.iter().flat_map(|scope| ["--scope", scope]));
    let id = home.token("a", &flags);
    let text = run(["token", "show", &home.path(), &id]).fine().out;
    for line in [
        "collection: acme/docs, acme/faq",
        "host: *.example.com, example.org",
        "port: 443, 8000-8080",
        "address: 10.1.0.0/16",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let query = |name: &str| {
        let args = json!({"collection": name, "embedding": [1, 2]});
        json!({"tool_id": "vecdb.query", "args": args}).to_string()
    };
    let calls = [query("acme/docs"), query("acme/faq"), query("acme/other")].join("\n");
    let results = home.call("a", &id, calls.as_bytes());
    assert_eq!((&results[0]["status"], &results[1]["status"]), (&json!("ok"), &json!("ok")));
    assert_eq!(reason(&results[2]), "out_of_scope");
}

/// Of a tool that is set by path a token names the paths; of any other it can't.
#[test]
fn paths_of_urls_are_given_by_their_root_or_a_slash() {
    let home = TestHome::new();
    run_with(["http", "set", &home.path(), "api"], br#"{"by_path": true}"#).fine();
    let scopes = ["host=a.test", "url_path=/v1", "url_path=url/v2/docs"];
    let mut flags = vec!["--tool", "api"];
    flags.extend(scopes.iter().flat_map(|scope| ["--scope", scope]));
    let id = home.token("a", &flags);
    let text = run(["token", "show", &home.path(), &id]).fine().out;
    assert!(text.contains("url/v1") && text.contains("url/v2/docs"), "{text}");
    let issue = |tool: &str, scope: &str| {
        let words =
            ["token", "issue", &home.path(), "--agent", "a", "--tool", tool, "--scope", scope];
        run([&words[..], &["--scope", "host=a.test"]].concat())
    };
    issue("api", "url_path=v1").failed(2);
    issue("api", "url_path=/a/../b").failed(2);
    issue("http_request", "url_path=/v1").failed(3);
}

#[test]
fn use_shows_in_the_budget() {
    let home = TestHome::new();
    let id = home.token("a", &["--tool", "echo", "--budget", "calls=2"]);
    let results = home.call("a", &id, format!("{ECHO}\n{ECHO}\n{ECHO}\n").as_bytes());
    assert_eq!(results[0]["receipt"]["left"]["calls"], 1);
    assert_eq!(reason(&results[2]), "over_budget");
    let shown = run(["token", "show", &home.path(), &id, "--json"]).fine().one();
    let calls = json!({"limit": 2, "used": 2, "held": 0, "left": 0});
    assert_eq!(shown["budget"]["calls"], calls);
}

#[test]
fn tokens_are_listed_and_revoked() {
    let home = TestHome::new();
    assert_eq!(run(["token", "list", &home.path()]).out, "");
    let (one, two) = (home.worker("a"), home.token("b", &["--tool", "echo,current_time"]));
    let revoked = run(["token", "revoke", &home.path(), &one, "--json"]).fine().one();
    assert_eq!(revoked["token_id"], one);
    let list = run(["--json", "token", "list", &home.path()]).fine().json();
    let standing: Vec<_> = list.iter().map(|t| (&t["token_id"], &t["standing"])).collect();
    assert_eq!(standing, [(&json!(one), &json!("revoked")), (&json!(two), &json!("live"))]);
    assert_eq!(list[1]["tools"], json!(["echo", "current_time"]));
    assert_eq!(run(["token", "list", &home.path()]).fine().out.lines().count(), 2);
    assert_eq!(reason(&home.call("a", &one, ECHO.as_bytes())[0]), "revoked");
    // Once more is another record, and no harm.
    run(["token", "revoke", &home.path(), &one]).fine();
    assert_eq!(home.verify(), 0);
}

/// The log and `top` show the first digits of ids: 8 or more of them name a token.
#[test]
fn first_digits_name_a_token() {
    let home = TestHome::new();
    let (one, path) = (home.worker("a"), home.path());
    for digits in [8, 12, 64] {
        let shown = run(["token", "show", &path, &one[..digits], "--json"]).fine().one();
        assert_eq!(shown["token_id"], one);
    }
    let [seven, none] =
        [&one[..7], if one.starts_with("00000000") { "ffffffff" } else { "00000000" }];
    assert_eq!(run(["token", "show", &path, seven]).code, 2);
    run(["token", "show", &path, none]).failed(1);
    home.call("a", &one[..9], ECHO.as_bytes());
    assert_eq!(run(["revoke", &path, &one[..8], "--json"]).fine().one()["token_id"], one);
}

/// What may have been meant otherwise is issued, and said: a root that is not there yet, and a tool
/// of files that may touch none.
#[test]
fn issue_warns_of_a_token_that_may_lack_something() {
    let home = TestHome::new();
    let path = home.path();
    let issue = |words: &[&str]| {
        let issued = run([&["token", "issue", &path, "--agent", "x", "--tool"], words].concat());
        assert_eq!((issued.code, issued.out.trim().len()), (0, 64), "{}", issued.err);
        issued.err
    };
    assert!(issue(&["fs.read", "--read", "worksapce/a"]).contains("worksapce"));
    assert!(issue(&["echo,fs.write"]).contains("fs.write"));
    assert!(issue(&["vecdb.query"]).contains("collection"));
    for fine in [
        &["fs.read", "--read", "worksapce"][..],
        &["echo"],
        &["fs.read", "--read", "shared"],
        &["vecdb.query", "--scope", "collection=acme/docs"],
    ] {
        assert_eq!(issue(fine), "");
    }
    assert_eq!(home.verify(), 0);
}

/// Issued once more it was a root, with a budget of its own, which outlived what it came from.
#[test]
fn attenuated_token_is_not_reissued_as_a_root() {
    let home = TestHome::new();
    let path = home.path();
    let root = home.token("team", &["--tool", "echo", "--delegable", "1", "--budget", "calls=3"]);
    let words = ["token", "attenuate", &path, "--from", &root, "--agent", "team/a"];
    let part = run([&words[..], &["--tool", "echo"]].concat()).fine().out.trim().to_owned();
    let refused = run(["token", "reissue", &path, &part]).failed(2).err;
    assert!(refused.contains(&root), "{refused}");
    assert_eq!(run(["token", "list", &path, "--json"]).fine().json().len(), 2);
}

/// A part of a token is handed on, what is wider is refused, and the tree shows who used what.
#[test]
fn a_token_is_handed_on() {
    let home = TestHome::new();
    let root = home.token("team", &["--tool", "echo,current_time", "--delegable", "2"]);
    let attenuate = |from: &str, words: &[&str]| {
        let path = home.path();
        let words = [&["token", "attenuate", &path, "--from", from][..], words].concat();
        run(words)
    };
    let part = ["--agent", "team/a", "--tool", "echo", "--budget", "calls=2", "--delegable", "1"];
    let part = attenuate(&root, &part).fine().out.trim().to_owned();
    let last = attenuate(&part, &["--agent", "team/a/b", "--tool", "echo"]).fine();
    let last = last.out.trim().to_owned();
    assert_eq!(home.call("team/a/b", &last, ECHO.as_bytes())[0]["status"], "ok");
    for (wider, more) in [
        (&["--agent", "other", "--tool", "echo"][..], "--agent other"),
        (&["--agent", "team/a", "--tool", "echo,current_time"], "--tool current_time"),
        (&["--agent", "team/a", "--tool", "echo", "--budget", "calls=3"], "--budget calls=3"),
        (&["--agent", "team/a", "--tool", "echo", "--expires", "7d"], "--expires 604800s"),
        (&["--agent", "team/a", "--tool", "echo", "--read", "shared"], "shared"),
    ] {
        let refused = attenuate(&part, wider).failed(3).err;
        assert!(refused.contains(more), "{refused}");
    }
    // The last can't be handed on, and what nobody has neither.
    assert_eq!(attenuate(&last, &["--agent", "team/a/b", "--tool", "echo"]).code, 3);
    assert_eq!(attenuate(&"0".repeat(64), &["--agent", "a", "--tool", "echo"]).code, 2);
    let tree = run(["--json", "token", "tree", &home.path()]).fine().json();
    let shown: Vec<_> = tree.iter().map(|t| (&t["token_id"], &t["depth"], &t["used"])).collect();
    let used = json!({"calls": 1});
    let wanted = [(&root, 0), (&part, 1), (&last, 2)].map(|(id, depth)| (json!(id), json!(depth)));
    for ((id, depth), row) in wanted.iter().zip(&shown) {
        assert_eq!((row.0, row.1, &row.2["calls"]), (id, depth, &used["calls"]));
    }
    assert_eq!(shown.len(), 3);
    let below = run(["token", "tree", &home.path(), &part]).fine().out;
    assert_eq!(below.lines().count(), 2);
    assert!(below.starts_with(&part) && below.contains(&format!("\n  {last}")));
    // It ends with what it was derived from.
    run(["token", "revoke", &home.path(), &root]).fine();
    assert_eq!(reason(&home.call("team/a/b", &last, ECHO.as_bytes())[0]), "revoked");
    assert_eq!(home.verify(), 0);
}

#[test]
fn a_token_expires() {
    let home = TestHome::new();
    let id = home.token("a", &["--tool", "echo", "--expires", "1s"]);
    std::thread::sleep(std::time::Duration::from_millis(1_050));
    assert_eq!(reason(&home.call("a", &id, ECHO.as_bytes())[0]), "expired");
    let list = run(["--json", "token", "list", &home.path()]).fine().one();
    assert_eq!(list["standing"], "expired");
}

#[test]
fn kernel_refusal_exits_3_and_is_recorded() {
    let home = TestHome::new();
    let id = home.worker("a");
    let unknown = "0".repeat(64);
    run(["token", "revoke", &home.path(), &unknown]).failed(3);
    // Whom it is for is said to who has it, and where those are that there are.
    let whose = home.call_run("b", &id, ECHO.as_bytes()).failed(3).err;
    assert!(whose.contains("--agent a"), "{whose}");
    let nobodys = home.call_run("a", &unknown, ECHO.as_bytes()).failed(3).err;
    assert!(nobodys.contains("syscap token list"), "{nobodys}");
    let refusals: Vec<_> = home.log().into_iter().filter(|r| r["kind"] == "refusal").collect();
    let reasons: Vec<_> = refusals.iter().map(|r| r["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["unknown_token", "not_bound", "not_bound"]);
    assert!(refusals.iter().all(|r| r["refusal_kind"] == "control" && is_hash(&r["leaf"])));
    run(["token", "show", &home.path(), &unknown]).failed(1);
    assert_eq!(home.verify(), 0);
}

#[test]
fn words_that_are_not_of_their_form_are_2() {
    let home = TestHome::new();
    let before = home.log().len();
    let issue = |flags: &[&str]| {
        let path = home.path();
        let args: Vec<&str> = ["token", "issue", &path].into_iter().chain(flags.to_vec()).collect();
        let run = run(args);
        assert_eq!((run.code, &*run.out), (2, ""), "{flags:?}: {}", run.err);
    };
    issue(&["--agent", "a"]);
    issue(&["--tool", "echo"]);
    issue(&["--agent", "A", "--tool", "echo"]);
    issue(&["--agent", "../a", "--tool", "echo"]);
    for expires in ["0s", "1", "1w", "91d", "-1h", "1.5h", ""] {
        issue(&["--agent", "a", "--tool", "echo", "--expires", expires]);
    }
    for budget in
        ["calls", "calls=", "calls=-1", "wishes=3", "calls=1,", "calls=18446744073709551616"]
    {
        issue(&["--agent", "a", "--tool", "echo", "--budget", budget]);
    }
    for scope in [
        "collection",
        "=x",
        "path=shared",
        "collection=",
        "host=A.example",
        "host=1.2.3.4",
        "port=0-70000",
        "port=9-1",
        "address=10.0.0.1/8",
        "address=10.0.0.0/33",
        "Collection=x",
    ] {
        issue(&["--agent", "a", "--tool", "echo", "--scope", scope]);
    }
    assert_eq!(run(["token", "show", &home.path(), "12"]).code, 2);
    assert_eq!(home.log().len(), before);
    // These the kernel and the tools must be asked.
    issue(&["--agent", "a", "--tool", "nope"]);
    for root in ["..", "agents", "/etc", "shared/..", "shared/../x", ""] {
        issue(&["--agent", "a", "--tool", "fs.read", "--read", root]);
    }
    assert_eq!(run(["token", "list", &home.path()]).out, "");
    assert_eq!(home.verify(), 0);
}

#[test]
fn a_token_that_must_be_renewed_is() {
    let home = TestHome::new();
    let leased = home.token("a", &["--tool", "echo", "--renew-by", "30m"]);
    let show = |id: &str| run(["token", "show", &home.path(), id, "--json"]).fine().one();
    let before = show(&leased)["renew_by"].as_str().unwrap().to_owned();
    assert!(run(["token", "show", &home.path(), &leased]).fine().out.contains(&before));
    // A bound at its end, or after it, is none: somebody says so before anything is signed.
    for (bound, more) in [("1h", &[][..]), ("3h", &["--expires", "2h"])] {
        let issue = ["token", "issue", &home.path(), "--agent", "a", "--tool", "echo"];
        let late = issue.iter().copied().chain(["--renew-by", bound]).chain(more.iter().copied());
        let line = run(late).failed(2).err;
        assert!(line.contains("--expires"), "{line}");
    }
    let renew = ["token", "renew", &home.path(), &leased, "--renew-by", "50m", "--json"];
    let renewal = run(renew).fine().one();
    assert_eq!(renewal["renewed"], leased.as_str());
    let after = show(&leased);
    assert!(after["renew_by"].as_str().unwrap() > before.as_str());
    assert_eq!(after["standing"], "live");
    let by = show(renewal["token_id"].as_str().unwrap());
    assert_eq!((&by["renews"], &by["grants"]), (&json!(leased), &json!({})), "{by}");
    assert_eq!(home.call("a", &leased, ECHO.as_bytes())[0]["status"], "ok");
    // Nothing is renewed that need not be, and no part of a token has a bound of its own.
    let other = home.token("a", &["--tool", "echo"]);
    // What nobody renewed is as revoked, and seen to be something else.
    let lapsed = home.token("a", &["--tool", "echo", "--renew-by", "1s"]);
    std::thread::sleep(std::time::Duration::from_millis(1_050));
    assert_eq!(reason(&home.call("a", &lapsed, ECHO.as_bytes())[0]), "revoked");
    assert_eq!(show(&lapsed)["standing"], "lapsed");
    let none = run(["token", "renew", &home.path(), &other, "--renew-by", "1h"]).failed(2).err;
    assert!(none.contains("is no token that must be renewed"), "{none}");
    assert_eq!(home.verify(), 0);
}

/// The same once more, with nothing used, and what is said besides.
#[test]
fn a_token_is_issued_once_more() {
    let home = TestHome::new();
    let roots = ["--read", "workspace", "--write", "workspace", "--scope", "host=*.example.com"];
    let rest = [
        "--tool",
        "fs.read",
        "--tool",
        "fs.write",
        "--tool",
        "http_request",
        "--budget",
        "calls=2",
        "--expires",
        "15m",
    ];
    let old = home.token("team/a", &[&roots[..], &rest[..]].concat());
    let writes = |name: &str| {
        format!(r#"{{"tool_id": "fs.write", "args": {{"path": "{name}", "text": "y"}}}}"#)
    };
    let use_up = ["x", "y", "z"].map(writes);
    let answers = home.call("team/a", &old, use_up.join("\n").as_bytes());
    assert_eq!(reason(&answers[2]), "over_budget");
    let path = home.path();
    let new = run(["token", "reissue", &path, &old]).fine().out.trim().to_owned();
    let show = |id: &str| run(["token", "show", &path, id, "--json"]).fine().one();
    let (was, is) = (show(&old), show(&new));
    assert_eq!((&is["grants"], &is["agent"]), (&was["grants"], &was["agent"]));
    let life = |shown: &serde_json::Value| {
        shown["expires_ms"].as_u64().unwrap() - shown["not_before_ms"].as_u64().unwrap()
    };
    assert!(life(&is).abs_diff(life(&was)) < 1_000);
    assert_eq!(
        (&is["budget"]["calls"]["limit"], &is["budget"]["calls"]["left"]),
        (&json!(2), &json!(2))
    );
    let answer = home.call("team/a", &new, writes("more").as_bytes()).remove(0);
    assert_eq!(answer["status"], "ok", "{answer}");
    // With a tool, a limit and a life besides.
    let more = ["--tool", "echo", "--budget", "calls=5", "--expires", "1h"];
    let args = [&["token", "reissue", &path, &old], &more[..]].concat();
    let more = run(args).fine().out.trim().to_owned();
    let shown = show(&more);
    assert_eq!(shown["budget"]["calls"]["limit"], 5);
    assert_eq!(shown["grants"]["fs.read"], was["grants"]["fs.read"]);
    assert!(shown["grants"]["echo"].as_object().unwrap().is_empty(), "{shown}");
    // What there is not.
    run(["token", "reissue", &path, &"0".repeat(64)]).failed(2);
    run(["token", "reissue", &path, &old, "--tool", "no.such"]).failed(2);
    assert_eq!(home.verify(), 0);
}

/// A pattern means what there is when the token is issued, and is a mistake where that is nothing.
#[test]
fn tools_are_granted_by_pattern() {
    let home = TestHome::new();
    let path = home.path();
    let grants = |id: &str| {
        let shown = run(["token", "show", &path, id, "--json"]).fine().one();
        let grants = shown["grants"].as_object().unwrap().keys().cloned();
        grants.collect::<std::collections::BTreeSet<String>>()
    };
    let all = home.token("a", &["--tool", "*", "--read", "workspace", "--delegable", "1"]);
    let listed = run(["tools", "list", &path, "--json"]).fine().json();
    assert_eq!(grants(&all).len(), listed.len());
    let flags = ["--tool", "memory.*,echo", "--tool", "memory.read"];
    let some = home.token("a", &flags);
    let mut wanted = grants(&all);
    wanted.retain(|tool| tool.starts_with("memory.") || tool == "echo");
    assert_eq!(grants(&some), wanted);
    assert_eq!(wanted.len(), 5);
    for wrong in ["notes.*", "fs*", "*.read", "f s.*", "fs.*.x"] {
        run(["token", "issue", &path, "--agent", "a", "--tool", wrong]).failed(2);
    }
    // Of a part, what its whole grants.
    let args = ["token", "attenuate", &path, "--from", &all, "--agent", "a", "--tool", "vecdb.*"];
    let part = run(args);
    assert_eq!((part.code, grants(part.out.trim()).len()), (0, 3));
    let args = ["token", "attenuate", &path, "--from", &some, "--agent", "a", "--tool", "fs.*"];
    run(args).failed(2);
    let args = ["token", "reissue", &path, &some, "--tool", "vecdb.*"];
    assert_eq!(grants(run(args).fine().out.trim()).len(), 8);
}

/// A token that lives and lets nothing more through is not shown as one that does.
#[test]
fn a_spent_token_is_shown_as_spent() {
    let home = TestHome::new();
    let token = home.token("a", &["--tool", "echo", "--budget", "calls=1"]);
    let standing = || {
        let all = run(["token", "list", &home.path(), "--json"]).fine().json();
        all[0]["standing"].as_str().unwrap().to_owned()
    };
    assert_eq!(standing(), "live");
    let line = json!({"tool_id": "echo", "args": {"value": 1}}).to_string();
    assert_eq!(home.call("a", &token, line.as_bytes())[0]["status"], "ok");
    assert_eq!(standing(), "spent");
    let shown = run(["token", "show", &home.path(), &token, "--json"]).fine().one();
    assert_eq!(shown["standing"], "spent");
}
