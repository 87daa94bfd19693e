//! The words of `syscap mcp` as another process starts it, in another folder: paths are made absolute.

use std::path::{Path, PathBuf};

use syscap::plain::shell_word;

/// The place of a word in a server's command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is looked up in PATH, where it has no slash.
    Program,
    Argument,
}

/// The words of the command line without those that only print, and with the home's whole path.
pub(super) fn with_home(
    mut words: impl Iterator<Item = String>,
    given: &str,
    whole: &str,
) -> Vec<String> {
    let (mut kept, mut replaced) = (Vec::new(), false);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--" => {
                kept.push(word);
                kept.extend(words);
                break;
            }
            "--print-config" => {}
            "--client" => drop(words.next()),
            client if client.starts_with("--client=") => {}
            _ if !replaced && word == given => {
                replaced = true;
                kept.push(whole.to_owned());
            }
            _ => kept.push(word),
        }
    }
    kept
}

/// Words whose paths are absolute, and those that stay what they are though they are the name of a
/// folder here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Absolute {
    pub(crate) words: Vec<String>,
    pub(crate) names: Vec<String>,
}

/// Makes the paths among the options and among the servers' own words absolute: whoever starts it
/// decides in which folder.
pub(crate) fn absolute(words: impl IntoIterator<Item = String>) -> Absolute {
    let mut all = Absolute::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "--" {
            all.words.push(word);
            let own = command(words, &mut all.names);
            all.words.extend(own);
            break;
        }
        let (option, value) = match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let Some(change) = change_of(option) else {
            all.words.push(word);
            continue;
        };
        let joined = value.is_some();
        let Some(value) = value.or_else(|| words.next()) else {
            all.words.push(word);
            break;
        };
        let value = change(&value, &mut all.names);
        match joined {
            true => all.words.push(format!("{option}={value}")),
            false => all.words.extend([option.to_owned(), value]),
        }
    }
    all
}

type Change = fn(&str, &mut Vec<String>) -> String;

/// How the value of an option is made absolute; `None` for one that has no path in it.
fn change_of(option: &str) -> Option<Change> {
    match option {
        "--ro" | "--rw" | "--exec" | "--cwd" => Some(|value, _| {
            let (server, path) = of_server(value);
            let server = server.map(|server| format!("{server}:")).unwrap_or_default();
            format!("{server}{}", whole(path))
        }),
        "--root" | "--key" => Some(|value, _| whole(value)),
        "--env" => Some(|value, names| match value.split_once('=') {
            Some((name, value)) => format!("{name}={}", one(value, Place::Argument, names)),
            None => value.to_owned(),
        }),
        "--server" => Some(|value, names| {
            let split =
                value.split_once('=').map(|(name, line)| (name, syscap_gateway::split(line)));
            // A text that is no command is refused by its reader.
            let Some((name, Ok(words))) = split else { return value.to_owned() };
            let words: Vec<String> = command(words.into_iter(), names);
            let words: Vec<_> = words.iter().map(|word| shell_word(word)).collect();
            format!("{name}={}", words.join(" "))
        }),
        _ => None,
    }
}

/// A server's command.
fn command(words: impl Iterator<Item = String>, names: &mut Vec<String>) -> Vec<String> {
    let mut place = Place::Program;
    let each = words.map(|word| {
        let word = one(&word, place, names);
        place = Place::Argument;
        word
    });
    each.collect()
}

fn one(word: &str, place: Place, names: &mut Vec<String>) -> String {
    if is_path(word, place) {
        return whole(word);
    }
    // Its value may be one, as in `--repository=./x`.
    if let Some((option, value)) = word.split_once('=')
        && option.starts_with('-')
        && is_path(value, Place::Argument)
    {
        return format!("{option}={}", whole(value));
    }
    if place == Place::Argument && Path::new(word).is_dir() && !Path::new(word).is_absolute() {
        names.push(word.to_owned());
    }
    word.to_owned()
}

/// True if a word is a path by its form, or names an existing file. The bare name of a folder may
/// be a word of another meaning, as in `npm run test`.
fn is_path(word: &str, place: Place) -> bool {
    let path = Path::new(word);
    [".", ".."].contains(&word)
        || ["./", "../"].iter().any(|begins| word.starts_with(begins))
        || (word.contains('/') && path.exists())
        || (place == Place::Argument && path.is_file())
}

fn whole(word: &str) -> String {
    match std::path::absolute(word) {
        Ok(path) => path.to_string_lossy().into_owned(),
        Err(_) => word.to_owned(),
    }
}

/// A server's name, if one stands before the value, and the value: `[SERVER:]VALUE`.
pub(super) fn of_server(text: &str) -> (Option<&str>, &str) {
    match text.split_once(':') {
        Some((server, value)) if syscap_gateway::is_server_name(server) => (Some(server), value),
        _ => (None, text),
    }
}

/// The same for a path.
pub(super) fn path_of_server(text: &str) -> (Option<String>, PathBuf) {
    let (server, path) = of_server(text);
    (server.map(str::to_owned), PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(path: &str) -> String {
        std::path::absolute(path).unwrap().display().to_string()
    }

    #[test]
    fn the_configuration_is_the_same_command_with_whole_paths() {
        let words = |text: &str| {
            let words = with_home(text.split(' ').map(String::from), "home", "/x/home");
            absolute(words).words.join(" ")
        };
        let given = "mcp home --agent home --print-config -- home --print-config";
        assert_eq!(words(given), "mcp /x/home --agent home -- home --print-config");
        let given =
            "mcp home --client vscode --agent a --client=x -- run --client ./docs .. -y a/b";
        let own = format!("run --client {} {} -y a/b", here("./docs"), here(".."));
        assert_eq!(words(given), format!("mcp /x/home --agent a -- {own}"));
        // A file that is there is meant, but for the program: that is looked up in PATH.
        let given = "mcp home -- Cargo.toml Cargo.toml src";
        assert_eq!(words(given), format!("mcp /x/home -- Cargo.toml {} src", here("Cargo.toml")));
    }

    #[test]
    fn paths_of_options_and_of_named_servers_are_whole() {
        let given = [
            "--ro",
            "fs:src",
            "--rw=./a:b",
            "--cwd",
            ".",
            "--env",
            "fs:P=./x",
            "--env=Q",
            "--server=fs=python3 Cargo.toml 'a b' src --dir=./y",
            "--class",
            "read=src",
            "--server",
        ];
        let all = absolute(given.map(str::to_owned));
        let expected = [
            "--ro".to_owned(),
            format!("fs:{}", here("src")),
            format!("--rw={}", here("./a:b")),
            "--cwd".to_owned(),
            here("."),
            "--env".to_owned(),
            format!("fs:P={}", here("./x")),
            "--env=Q".to_owned(),
            format!("--server=fs=python3 {} 'a b' src '--dir={}'", here("Cargo.toml"), here("./y")),
            "--class".to_owned(),
            "read=src".to_owned(),
            "--server".to_owned(),
        ];
        assert_eq!(all.words, expected);
        assert_eq!(all.names, ["src"]);
    }
}
