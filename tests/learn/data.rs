//! AgentDojo's recorded runs, and their split by task.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

/// One recorded run.
pub(crate) struct Run {
    pub(crate) suite: String,
    pub(crate) task: String,
    pub(crate) attacked: bool,
    pub(crate) calls: Vec<Call>,
}

/// One recorded call.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) args: Value,
    /// The key of its result's text.
    pub(crate) result: String,
    pub(crate) failed: bool,
    /// What the benchmark knows of it. For scoring only.
    pub(crate) exact_attack: bool,
}

/// A task of a suite.
pub(crate) type Task = (String, String);

/// All of it.
pub(crate) struct Data {
    pub(crate) runs: Vec<Run>,
    pub(crate) texts: BTreeMap<String, String>,
}

/// The folder; `None` where there is none.
fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let folder = env::var_os("SYSCAP_DATA").map_or(beside, PathBuf::from).join("agentdojo");
    folder.is_dir().then_some(folder)
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let parsed = |line| serde_json::from_str(line).unwrap();
    text.lines().map(parsed).collect()
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn load() -> Option<Data> {
    let folder = folder()?;
    let call = |value: &Value| Call {
        tool: text(value, "t"),
        args: value["a"].clone(),
        result: text(value, "rh"),
        failed: value["e"].as_bool().unwrap_or_default(),
        exact_attack: value["l"] == "attack_exact",
    };
    let run = |value: Value| Run {
        suite: text(&value, "suite"),
        task: text(&value, "user_task"),
        attacked: value["kind"] == "attack",
        calls: value["calls"].as_array().unwrap().iter().map(call).collect(),
    };
    let runs = lines(&folder.join("traces.jsonl")).into_iter().map(run).collect();
    let results = lines(&folder.join("results.jsonl"));
    let texts = results.iter().map(|value| (text(value, "rh"), text(value, "text"))).collect();
    Some(Data { runs, texts })
}

impl Data {
    pub(crate) fn benign(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| !run.attacked)
    }

    /// The tasks of each suite in an order that nobody chose.
    pub(crate) fn shuffled(&self, salt: &str) -> BTreeMap<String, Vec<Task>> {
        let mut suites: BTreeMap<String, BTreeSet<(u64, Task)>> = BTreeMap::new();
        for run in self.benign() {
            let task = (run.suite.clone(), run.task.clone());
            let place = mixed(&format!("{}/{}{salt}", run.suite, run.task));
            suites.entry(run.suite.clone()).or_default().insert((place, task));
        }
        let tasks = |set: BTreeSet<(u64, Task)>| set.into_iter().map(|(_, task)| task).collect();
        suites.into_iter().map(|(suite, set)| (suite, tasks(set))).collect()
    }

    /// 70 % of the tasks of each suite to learn from, and the others: the rule was fixed before
    /// anything was learned. Another salt makes another split.
    pub(crate) fn split(&self, salt: &str) -> (BTreeSet<Task>, BTreeSet<Task>) {
        let (mut learned, mut held_out) = (BTreeSet::new(), BTreeSet::new());
        for tasks in self.shuffled(salt).into_values() {
            let seven_tenths = tasks.len() * 7 / 10;
            for (n, task) in tasks.into_iter().enumerate() {
                let part = if n < seven_tenths { &mut learned } else { &mut held_out };
                part.insert(task);
            }
        }
        (learned, held_out)
    }
}

impl Run {
    pub(crate) fn task(&self) -> Task {
        (self.suite.clone(), self.task.clone())
    }
}

/// FNV-1a, its bits mixed: names that differ in their last letter only lie anywhere.
fn mixed(name: &str) -> u64 {
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, fnv);
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    hash ^ (hash >> 33)
}
