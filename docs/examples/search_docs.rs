//! Finds the section of this repository's own documentation that answers a question, with
//! `vecdb.upsert` and `vecdb.query`. `cargo run --example search_docs`.
//!
//! The embeddings are computed features, no model's: words and pieces of words are hashed into a
//! vector of 2,048 numbers, each weighed by how few sections have it (TF-IDF). They find what says
//! the same in like words; who wants more puts a model's vectors in their place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use syscap::{format::Scope, prelude::*};

/// Numbers of a vector.
const DIMENSIONS: usize = 2_048;
/// Pieces of a word, in letters.
const PIECES: [usize; 2] = [4, 5];

/// Pages that are lists of everything, and would answer all questions.
const LISTS: [&str; 3] = ["reasons.md", "attacks.md", "seeds.md"];

/// A section of a page: `memory.md # Memory`.
struct Section {
    id: String,
    text: String,
}

/// What is counted of a text: its words, and the pieces of them, so that `vector` is near
/// `vectors`.
fn features(text: &str) -> BTreeMap<u64, f64> {
    let mut counts = BTreeMap::new();
    let mut count = |piece: &[char]| *counts.entry(hash(piece)).or_insert(0.0) += 1.0;
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2);
    for word in words {
        let word: Vec<char> = format!("^{}$", word.to_lowercase()).chars().collect();
        count(&word);
        PIECES.iter().flat_map(|size| word.windows(*size)).for_each(&mut count);
    }
    counts
}

/// FNV-1a, the same on every machine.
fn hash(piece: &[char]) -> u64 {
    piece.iter().fold(0xcbf2_9ce4_8422_2325, |hash, letter| {
        (hash ^ u64::from(u32::from(*letter))).wrapping_mul(0x0100_0000_01b3)
    })
}

/// How many sections there are, and how many have a feature.
struct Weights {
    sections: f64,
    with: BTreeMap<u64, f64>,
}

impl Weights {
    fn of(all: &[Section]) -> Self {
        let mut with = BTreeMap::new();
        for section in all {
            let seen: BTreeSet<u64> = features(&section.text).into_keys().collect();
            seen.into_iter().for_each(|feature| *with.entry(feature).or_insert(0.0) += 1.0);
        }
        let sections = all.iter().map(|_| 1.0).sum();
        Self { sections, with }
    }

    /// The features of a text in one vector. Two that fall into one place have signs of their own.
    fn embed(&self, text: &str) -> Vec<f64> {
        let mut vector = vec![0.0; DIMENSIONS];
        for (feature, count) in features(text) {
            let with = self.with.get(&feature).copied().unwrap_or(0.0);
            let weight = (1.0 + count.ln()) * ((self.sections + 1.0) / (with + 1.0)).ln();
            let sign = if feature >> 63 == 0 { 1.0 } else { -1.0 };
            let place = usize::try_from(feature % 2_048).unwrap_or_default();
            if let Some(number) = vector.get_mut(place) {
                *number += sign * weight;
            }
        }
        vector
    }
}

/// The sections of all pages of a folder.
fn sections(folder: &Path) -> std::io::Result<Vec<Section>> {
    let mut all: Vec<Section> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if !name.ends_with(".md") || LISTS.contains(&name.as_str()) {
            continue;
        }
        let mut is_code = false;
        for line in fs::read_to_string(&path)?.lines() {
            is_code ^= line.starts_with("```");
            match line.strip_prefix("# ").or_else(|| line.strip_prefix("## ")) {
                Some(head) if !is_code => {
                    let id = format!("{name} # {head}");
                    all.push(Section { id, text: format!("{head}\n{head}\n") });
                }
                _ => all.iter_mut().next_back().into_iter().for_each(|section| {
                    section.text.push_str(line);
                    section.text.push('\n');
                }),
            }
        }
    }
    Ok(all)
}

/// Questions, and the page that answers each.
const QUESTIONS: [(&str, &str); 8] = [
    ("Which addresses may a message be drafted to?", "email.md"),
    ("How do I get a stolen key back from a thief?", "keys.md"),
    ("How long may the text be that an agent keeps under a key in its memory?", "memory.md"),
    ("Which vectors are the nearest, and is the search exact?", "vectors.md"),
    ("Where do the time zones of recurring events in a calendar come from?", "calendar.md"),
    ("Is a call that a crash broke off run again?", "once.md"),
    ("How do I end a token, and revoke all that was derived from it?", "revocation.md"),
    ("What happens when the disk is full?", "stores.md"),
];

pub(crate) fn main() -> Result<(), Error> {
    let folder = tempfile::tempdir().map_err(|_| Error::NotStarted)?;
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let all = sections(&docs).map_err(|_| Error::NotStarted)?;
    let weights = Weights::of(&all);

    let rt = Runtime::create(folder.path().join("home"))?;
    let grant = Grant::to("librarian").tools(["vecdb.upsert", "vecdb.query"]);
    let grant = grant.scope("collection", Scope::names(["own/docs"])?);
    let librarian = rt.session("librarian", rt.issue(grant)?)?;

    let item = |section: &Section| {
        let page = section.id.split(' ').next();
        json!({
            "id": section.id, "embedding": weights.embed(&section.text), "metadata": {"page": page}
        })
    };
    for some in all.chunks(16) {
        let items: Vec<Value> = some.iter().map(item).collect();
        let args = json!({ "items": items }).to_string();
        librarian.request("vecdb.upsert").json(&args, Escapes::Data).wait()?.value()?;
    }
    println!("{} sections", all.len());
    for (question, page) in QUESTIONS {
        let args = json!({ "embedding": weights.embed(question), "k": 3 }).to_string();
        let found = librarian.request("vecdb.query").json(&args, Escapes::Data).wait()?;
        let hits = found.value()?.get("hits");
        let ids: Vec<&str> = hits
            .into_iter()
            .flat_map(|hits| hits.elements())
            .filter_map(|hit| hit.get("id").and_then(|id| id.as_text()))
            .collect();
        println!("{question}\n  {}", ids.join("\n  "));
        assert!(ids.first().is_some_and(|id| id.starts_with(page)), "{page} answers: {question}");
    }
    rt.close()
}
