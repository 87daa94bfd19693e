//! What is written back keeps every byte that is not meant to change.

use proptest::prelude::*;
use serde_json::Value;
use syscap::format::{Grants, Rights, Root, RootedPath, Rule, Scope, ToolGrant as Scopes};
use syscap::prelude::*;
use syscap::resume::{Resume, ResumeError};
use syscap::view::Whose;

use crate::resume::{EXAMPLE, World, name, read, world};

const BOTH: Rights = Rights::READ.union(Rights::WRITE);

fn scope(rules: &[(&str, &[&str], Rights)]) -> Scope {
    let rule = |(root, below, rights): &(&str, &[&str], Rights)| {
        let root = match *root {
            "workspace" => Root::Workspace(name("researcher")),
            root => Root::named(root).unwrap(),
        };
        Rule { path: RootedPath::new(root, *below).unwrap(), rights: *rights }
    };
    Scope::paths(rules.iter().map(rule)).unwrap()
}

fn grants(tools: &[&str], scope: Option<&Scope>) -> Grants {
    let of = |grants: Grants, tool: &&str| {
        let scopes =
            scope.iter().fold(Scopes::new(), |it, scope| it.with("path", (*scope).clone()));
        grants.with(ToolId::new(tool).unwrap(), scopes)
    };
    tools.iter().fold(Grants::new(), of)
}

impl World {
    fn written(&self, text: &str, grants: &Grants) -> String {
        let tools = self.rt.manifests(Whose::All).unwrap();
        let written = read(text).with(&name("researcher"), grants, &tools).unwrap();
        written.resume.text().to_owned()
    }
}

/// Nothing changes where the token grants what stands there, in whatever form.
#[test]
fn written_resume_leaves_equal_parts_alone() {
    let world = world();
    let odd = "{\"permissions\" :{ \"file_access\":{\"allow_write\":[ ],\"allow_read\":\
               [\"shared/a\" ,\"sh\\u0061red\"]}\t,\"tools\": [\"fs_read\",\"fly\",\"fs.read\"]},\
               \"x\":1e99}";
    for text in [
        EXAMPLE,
        r#"{"permissions": {"tools": ["file_read", "shell", "memory_read"]}}"#,
        r#"{"permissions": {"tools": [], "send_outboxes": [], "file_access": {}}}"#,
        odd,
    ] {
        let grants = world.compiled(text).grants;
        assert_eq!(world.written(text, &grants), text);
    }
}

#[test]
fn entries_come_and_go_in_the_form_of_the_list() {
    let world = world();
    let text = EXAMPLE.replace("\"file_write\", ", "\"fly\",\n      ");
    let all = scope(&[("workspace", &[], BOTH), ("shared", &[], Rights::READ)]);
    let written = world.written(&text, &grants(&["fs.read", "fs.search", "fs.stat"], Some(&all)));
    // `fly` is no tool here: it may be one elsewhere.
    let wanted = "\"tools\": [\"file_read\", \"fly\", \"fs.stat\", \"fs.search\"],";
    let wanted = text.replace("\"tools\": [\"file_read\", \"fly\",\n      \"file_list\"],", wanted);
    assert_eq!(written, wanted);

    let less = scope(&[("workspace", &["out"], BOTH), ("workspace", &[], Rights::READ)]);
    let written = world.written(EXAMPLE, &grants(&["fs.write", "fs.list", "fs.read"], Some(&less)));
    let wanted = EXAMPLE
        .replace(
            "[\"shared\", \"agents/researcher/workspace\"]",
            "[\"agents/researcher/workspace\"]",
        )
        .replace(
            "\"allow_write\": [\"agents/researcher/workspace\"]",
            "\"allow_write\": [\"agents/researcher/workspace/out\"]",
        );
    assert_eq!(written, wanted);
    // No tool is left, and so there is nothing to say of paths.
    let tools = "[\"file_read\", \"file_write\", \"file_list\"]";
    assert_eq!(world.written(EXAMPLE, &Grants::new()), EXAMPLE.replace(tools, "[]"));
}

/// Sections that are not there are put behind what is, set apart alike.
#[test]
fn missing_sections_are_added() {
    let world = world();
    let shared = scope(&[("shared", &[], Rights::READ)]);
    let send = Scope::names(["b", "a"]).unwrap();
    let grants = grants(&["fs.read"], Some(&shared));
    let echo = Scopes::new().with("outbox", send);
    let grants = grants.with(ToolId::new("echo").unwrap(), echo);
    let added = "{\"tools\": [\"echo\", \"file_read\"], \"file_access\": {\"allow_read\": \
                 [\"shared\"], \"allow_write\": []}, \"send_outboxes\": [\"a\", \"b\"]}";
    for (before, after) in [
        ("{}".to_owned(), format!("{{\"permissions\": {added}}}")),
        (
            "{\n\t\"title\": \"\"\n}".to_owned(),
            format!("{{\n\t\"title\": \"\",\n\t\"permissions\": {added}\n}}"),
        ),
        (
            "{\"permissions\": { }, \"x\": null}".to_owned(),
            format!("{{\"permissions\": {} }}, \"x\": null}}", added.strip_suffix('}').unwrap()),
        ),
    ] {
        assert_eq!(world.written(&before, &grants), after);
    }
    let fresh = Resume::new(&name("researcher")).unwrap();
    let written: Value = serde_json::from_str(&world.written(fresh.text(), &grants)).unwrap();
    assert_eq!(written["name"], "researcher");
    assert_eq!(written["permissions"]["tools"], serde_json::json!(["echo", "file_read"]));
}

/// A resume has one list for all tools: what would give one of them more is not written.
#[test]
fn unsayable_grant_is_not_written() {
    let world = world();
    let tools = world.rt.manifests(Whose::All).unwrap();
    let shared = scope(&[("shared", &[], BOTH)]);
    let own = scope(&[("workspace", &[], BOTH)]);
    let apart = grants(&["fs.write"], Some(&shared));
    let apart = apart.with(ToolId::new("fs.edit").unwrap(), Scopes::new().with("path", own));
    let kept_out = scope(&[("shared", &[], BOTH), ("shared", &["keys"], Rights::READ)]);
    let hidden = scope(&[("shared", &[], BOTH), ("shared", &["keys"], Rights::NONE)]);
    for wide in
        [apart, grants(&["fs.write"], Some(&kept_out)), grants(&["fs.write"], Some(&hidden))]
    {
        let refused = read("{}").with(&name("researcher"), &wide, &tools).unwrap_err();
        assert!(matches!(refused, ResumeError::Wider { .. }), "{refused}");
    }
    // What it can't say is told.
    let program = Scope::names(["git"]).unwrap();
    let own = scope(&[("workspace", &[], BOTH)]);
    let shell = Scopes::new().with("path", own).with("program", program);
    let grants = Grants::new().with(ToolId::new("shell").unwrap(), shell);
    let written = read("{}").with(&name("researcher"), &grants, &tools).unwrap();
    assert_eq!(written.less, [ToolId::new("shell").unwrap()]);
    let other = read(r#"{"name": "other"}"#).with(&name("researcher"), &grants, &tools);
    assert!(matches!(other, Err(ResumeError::Name { .. })));
}

/// JSON as somebody may have set it: values, and the space between.
fn json(depth: u32) -> BoxedStrategy<String> {
    let text = "\"([a-z]|\\\\n|\\\\u00e9|\\\\\"|/){0,6}\"";
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,4})?",
        text,
    ];
    leaf.prop_recursive(depth, 24, 4, |inner| {
        let items = prop::collection::vec((inner.clone(), "[ \n]{0,2}"), 0..4);
        let list = items.prop_map(|items| {
            let items: Vec<String> =
                items.iter().map(|(it, space)| format!("{space}{it}")).collect();
            format!("[{}]", items.join(" ,"))
        });
        let map = prop::collection::btree_map("[a-z]{1,5}", inner, 0..4);
        prop_oneof![list, map.prop_map(|map| object(&map.into_iter().collect::<Vec<_>>(), "\n "))]
    })
    .boxed()
}

fn object(entries: &[(String, String)], space: &str) -> String {
    let entries: Vec<String> =
        entries.iter().map(|(key, value)| format!("{space}\"{key}\" :{space}{value}")).collect();
    format!("{{{}{space}}}", entries.join(","))
}

fn unknown() -> impl Strategy<Value = Vec<(String, String)>> {
    let map = prop::collection::btree_map("x_[a-z]{1,4}", json(3), 0..4);
    map.prop_map(|map| map.into_iter().collect())
}

/// Some tools and paths, as they stand in a list.
fn some(of: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(of, 0..=of.len())
}

const NAMES: [&str; 6] = ["file_read", "fs.write", "echo", "later", "memory_write", "fs_list"];
const PATHS: [&str; 4] = ["shared", "workspace", "shared/a", "agents/other/workspace/b"];

fn list(items: &[&str], space: &str) -> String {
    let items: Vec<String> = items.iter().map(|item| format!("{space}\"{item}\"")).collect();
    format!("[{}{space}]", items.join(","))
}

/// The text around the three values that may change.
fn resume(
    around: &[Vec<(String, String)>; 3],
    [tools, read, write]: [&[&str]; 3],
    space: &str,
) -> String {
    let with = |key: &str, value: String, others: &[(String, String)]| {
        let mut entries = others.to_vec();
        entries.insert(others.len() / 2, (key.to_owned(), value));
        entries
    };
    let files = with("allow_read", list(read, space), &around[2]);
    let files = with("allow_write", list(write, space), &files);
    let permissions = with("file_access", object(&files, space), &around[1]);
    let permissions = with("tools", list(tools, space), &permissions);
    let whole = with("permissions", object(&permissions, space), &around[0]);
    object(&whole, space)
}

/// Every value that nothing here reads, as it stands in the text, in order.
fn kept(text: &str, around: &[Vec<(String, String)>; 3], space: &str) -> Vec<(String, usize)> {
    around
        .iter()
        .flatten()
        .map(|(key, value)| {
            let whole = format!("\"{key}\" :{space}{value}");
            (key.clone(), text.matches(&whole).count())
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 192,
        failure_persistence: None,
        ..Default::default()
    })]

    /// Whatever stands around what changes has the bytes that it had; and what is written reads
    /// back as what was to be written.
    #[test]
    fn all_else_keeps_its_bytes(
        around in [unknown(), unknown(), unknown()],
        (tools, read_paths, write_paths) in (some(&NAMES), some(&PATHS), some(&PATHS)),
        (new_tools, new_read, new_write) in (some(&NAMES), some(&PATHS), some(&PATHS)),
        space in "[ \n\t]{0,3}",
    ) {
        thread_local!(static WORLD: World = world());
        WORLD.with(|world| {
            let text = resume(&around, [&tools, &read_paths, &write_paths], &space);
            let wanted = resume(&Default::default(), [&new_tools, &new_read, &new_write], "");
            let grants = world.compiled(&wanted).grants;
            let written = world.written(&text, &grants);
            prop_assert_eq!(&world.compiled(&written).grants, &grants);
            prop_assert_eq!(kept(&text, &around, &space), kept(&written, &around, &space));
            prop_assert_eq!(read(&text).unread(), read(&written).unread());
            // But for the lists, it is the same text.
            prop_assert_eq!(without_lists(&text), without_lists(&written));
            // Written again, nothing changes.
            prop_assert_eq!(world.written(&written, &grants), written);
            Ok(())
        })?;
    }

    /// Whatever the bytes are, it is read or refused; and what is read is compiled or refused, and
    /// is written to or is not.
    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        drop(Resume::read(&bytes));
        let mut text = EXAMPLE.as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        if bytes.len() % 3 == 0 {
            text.truncate(cut.index(text.len()));
        }
        thread_local!(static WORLD: World = world());
        WORLD.with(|world| {
            let tools = world.rt.manifests(Whose::All).unwrap();
            let agent = name("researcher");
            let Ok(resume) = Resume::read(&text) else { return };
            let Ok(compiled) = resume.compile(&agent, &tools, &[]) else { return };
            let written = resume.with(&agent, &compiled.grants, &tools).unwrap();
            assert_eq!(written.resume.text().as_bytes(), text);
        });
    }

    /// The scanner takes what a JSON library takes, but for keys that stand twice.
    #[test]
    fn any_json_is_read(text in json(4)) {
        let text = format!("{{\"a\":{text}}}");
        prop_assert!(Resume::read(text.as_bytes()).is_ok(), "{}", text);
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            prop_assert!(Resume::read(&text.as_bytes()[..end]).is_err());
        }
    }
}

/// The text with what stands in the three lists taken out.
fn without_lists(text: &str) -> String {
    let mut text = text.to_owned();
    for key in ["\"tools\" :", "\"allow_read\" :", "\"allow_write\" :"] {
        let at = text.find(key).unwrap() + key.len();
        let open = at + text[at..].find('[').unwrap() + 1;
        let close = open + text[open..].find(']').unwrap();
        text.replace_range(open..close, "");
    }
    text
}
