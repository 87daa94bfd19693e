//! A manifest as lines, and the lines in which two of them differ.

use syscap::format::{
    json,
    manifest::{Extra, Manifest, Param, Presence},
};

/// Most comparisons of lines. Two manifests of which more would be needed are shown whole.
const STEPS_MAX: usize = 4_000_000;

/// A line of one manifest or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// In both.
    Both(&'a str),
    /// Only in the one on record.
    Gone(&'a str),
    /// Only in the one that is offered.
    New(&'a str),
}

impl Line<'_> {
    /// The line with its mark.
    pub(super) fn marked(&self) -> String {
        match self {
            Self::Both(line) => format!("  {line}"),
            Self::Gone(line) => format!("- {line}"),
            Self::New(line) => format!("+ {line}"),
        }
    }
}

/// All that a manifest says, a line each; texts of several lines are several.
pub(super) fn lines(manifest: &Manifest) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |name: &str, value: &str| {
        lines.extend(
            value.split('\n').map(|line| format!("{name:<11} {line}").trim_end().to_owned()),
        );
    };
    say("title", &manifest.title);
    for alias in &manifest.aliases {
        say("alias", alias.as_str());
    }
    say("effect", manifest.effect.name());
    if let Some(tool) = &manifest.compensated_by {
        say("undone by", tool.as_str());
    }
    say("label", &manifest.label.to_string());
    say("about", &manifest.description);
    for param in &manifest.params {
        say("argument", &argument(param));
        say("", &param.description);
    }
    let others = match manifest.extra {
        Extra::Refused => "refused",
        Extra::Taken => "taken",
    };
    say("others", others);
    say("result", &format!("{} bytes at most", manifest.result_bytes_max));
    if let Some(ms) = manifest.wall_ms_max {
        say("run", &format!("{ms} ms at most"));
    }
    say("sets aside", &manifest.hold.to_string());
    manifest.dimensions.iter().for_each(|dimension| say("needs", dimension));
    if manifest.definition.is_some() {
        super::stated::lines(manifest).iter().for_each(|(name, text)| say(name, text));
    }
    manifest.honours.iter().for_each(|kind| say("honours", kind.name()));
    if let Some(definition) = &manifest.definition {
        say("definition", &definition.to_string());
    }
    say("manifest", &manifest.id().to_string());
    lines
}

/// `path: text, required, from 1 to 64, or "a" where it is left out`.
fn argument(param: &Param) -> String {
    let presence = match param.presence {
        Presence::Required => "required",
        Presence::Optional => "optional",
    };
    let mut text = format!("{}: {}, {presence}", param.name, param.kind.name());
    if let Some(min) = param.min {
        text.push_str(&format!(", from {min}"));
    }
    if let Some(max) = param.max {
        text.push_str(&format!(", to {max}"));
    }
    if let Some(default) = &param.default {
        text.push_str(&format!(", or {}", json::from_data(default.item())));
    }
    text
}

/// The lines of both, in order, with the fewest that are not in both.
pub(super) fn between<'a>(old: &'a [String], new: &'a [String]) -> Vec<Line<'a>> {
    if old.len().saturating_mul(new.len()) > STEPS_MAX {
        let gone = old.iter().map(|line| Line::Gone(line));
        return gone.chain(new.iter().map(|line| Line::New(line))).collect();
    }
    // common[n][m]: how many lines the ends of both, from n and m, have in common.
    let width = new.len().saturating_add(1);
    let mut common = vec![vec![0_u32; width]; old.len().saturating_add(1)];
    let at = |common: &[Vec<u32>], n: usize, m: usize| {
        common.get(n).and_then(|row| row.get(m)).copied().unwrap_or(0)
    };
    for (n, gone) in old.iter().enumerate().rev() {
        for (m, come) in new.iter().enumerate().rev() {
            let (below, right) = (n.saturating_add(1), m.saturating_add(1));
            let best = match gone == come {
                true => at(&common, below, right).saturating_add(1),
                false => at(&common, below, m).max(at(&common, n, right)),
            };
            if let Some(place) = common.get_mut(n).and_then(|row| row.get_mut(m)) {
                *place = best;
            }
        }
    }
    let (mut n, mut m, mut lines) = (0_usize, 0_usize, Vec::new());
    loop {
        let (below, right) = (n.saturating_add(1), m.saturating_add(1));
        match (old.get(n), new.get(m)) {
            (Some(gone), Some(come)) if gone == come => {
                lines.push(Line::Both(gone));
                (n, m) = (below, right);
            }
            (Some(gone), come)
                if come.is_none() || at(&common, below, m) >= at(&common, n, right) =>
            {
                lines.push(Line::Gone(gone));
                n = below;
            }
            (_, Some(come)) => {
                lines.push(Line::New(come));
                m = right;
            }
            (_, None) => return lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(old: &[&str], new: &[&str]) -> Vec<String> {
        let owned = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (old, new) = (owned(old), owned(new));
        between(&old, &new).iter().map(Line::marked).collect()
    }

    #[test]
    fn only_what_differs_is_marked() {
        assert_eq!(marked(&["a", "b", "c"], &["a", "x", "c"]), ["  a", "- b", "+ x", "  c"]);
        assert_eq!(marked(&["a", "b"], &["b"]), ["- a", "  b"]);
        assert_eq!(marked(&["b"], &["a", "b", "c"]), ["+ a", "  b", "+ c"]);
        assert_eq!(marked(&[], &["a"]), ["+ a"]);
        assert_eq!(marked(&["a"], &[]), ["- a"]);
        assert_eq!(marked(&[], &[]), [""; 0]);
    }

    /// What is too long to be compared is shown all the same.
    #[test]
    fn nothing_is_left_out() {
        let long: Vec<String> = (0..2_001).map(|n| n.to_string()).collect();
        let lines = between(&long, &long);
        assert_eq!(lines.len(), 2 * long.len());
    }
}
