//! `tar`, as far as it lists an archive or makes one. What it unpacks may be anything, and some of
//! its options run programs.

use crate::{
    run::{Run, literal},
    said::Piece,
};

pub(super) fn run(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) -> bool {
    if name != "tar" {
        return false;
    }
    run.program(name);
    let does = args.split_first().and_then(|(letters, rest)| Some((read(letters)?, rest)));
    let Some((packer, rest)) = does else {
        run.unknown("tar: what it is given");
        return true;
    };
    let ((makes, packer), Some((archive, rest))) = (packer, rest.split_first()) else {
        run.unknown("tar: which archive");
        return true;
    };
    // It runs them by their names.
    if let Some(packer) = packer {
        run.program(packer);
    }
    // An archive of a name with a colon is on another host; and options may stand anywhere.
    let plain = |word: &Piece| match word {
        Piece::Literal(text) => !text.starts_with(['-', '@']) && !text.contains(':'),
        Piece::Pattern { dash, .. } => !dash,
        Piece::One | Piece::Many | Piece::Stream => false,
    };
    // A file that a pattern finds may have a name with a colon; behind a slash that is no host.
    let far = matches!(archive, Piece::Pattern { folder, .. } if !folder.contains('/'));
    if far || !plain(archive) || !run.is_one(archive) || !rest.iter().all(plain) {
        run.unknown("tar: what it is given");
    }
    match makes {
        true => {
            run.write(archive);
            rest.iter().for_each(|file| run.read_all(file));
        }
        // The others are names in the archive.
        false => {
            run.read(archive);
            unpackers(run);
        }
    }
    true
}

/// It looks at what it reads, and runs what that was packed with.
fn unpackers(run: &mut Run<'_, '_>) {
    const NAMES: &[&str] = &[
        "bzip2", "compress", "grzip", "gzip", "lrzip", "lz4", "lzip", "lzma", "lzop", "xz", "zstd",
    ];
    for name in NAMES {
        run.said().needs.insert((*name).to_owned());
        if run.walk.place.may_be_agents(name) {
            run.unknown(format!("tar: {name} may be a program of the agent's"));
        }
    }
}

/// Its letters, with or without a dash: whether it makes an archive, and what packs it. `f` is the
/// last, since a name follows.
fn read(word: &Piece) -> Option<(bool, Option<&'static str>)> {
    let text = literal(word)?;
    let letters = text.strip_prefix('-').unwrap_or(text).strip_suffix('f')?;
    let (mut makes, mut packer) = (None, None);
    for letter in letters.chars() {
        match letter {
            'c' | 't' if makes.is_none() => makes = Some(letter == 'c'),
            'v' => {}
            'z' if packer.is_none() => packer = Some("gzip"),
            'j' if packer.is_none() => packer = Some("bzip2"),
            'J' if packer.is_none() => packer = Some("xz"),
            _ => return None,
        }
    }
    makes.map(|makes| (makes, packer))
}
