//! The files of the page, as they are in the source: there is no build step, and nothing is read from
//! the disk.

/// A file of the page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) path: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) bytes: &'static [u8],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! files {
    ($($path:literal $kind:expr, $file:literal;)*) => {
        static FILES: &[File] = &[
            $(File { path: $path, kind: $kind, bytes: include_bytes!(concat!("ui/", $file)) },)*
        ];
    };
}

files! {
    "/" "text/html; charset=utf-8", "index.html";
    "/icon.svg" "image/svg+xml", "icon.svg";
    "/console.css" "text/css; charset=utf-8", "console.css";
    "/main.js" SCRIPT, "main.js";
    "/dom.js" SCRIPT, "dom.js";
    "/api.js" SCRIPT, "api.js";
    "/done.js" SCRIPT, "done.js";
    "/approvals.js" SCRIPT, "approvals.js";
    "/timeline.js" SCRIPT, "timeline.js";
    "/agents.js" SCRIPT, "agents.js";
    "/connectors.js" SCRIPT, "connectors.js";
    "/home.js" SCRIPT, "home.js";
    "/tools.js" SCRIPT, "tools.js";
    "/words.js" SCRIPT, "words.js";
}

/// The file with that path.
pub(crate) fn find(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/ui");
        let names = std::fs::read_dir(folder).unwrap().map(|one| one.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name != "index.html");
        names.sort();
        let mut served: Vec<&str> =
            FILES.iter().filter_map(|file| file.path.strip_prefix('/')).collect();
        served.retain(|name| !name.is_empty());
        served.sort_unstable();
        assert_eq!(names, served);
    }

    /// Text is text: nothing in the page reads markup, evaluates text, or keeps anything.
    #[test]
    fn page_uses_no_markup_no_evaluation_and_no_storage() {
        let forbidden = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "localStorage",
            "sessionStorage",
            "indexedDB",
            "cookie",
            "style=",
            "http://",
            "https://",
            "EventSource",
            "serviceWorker",
            "postMessage",
        ];
        for file in FILES {
            let text = std::str::from_utf8(file.bytes).unwrap();
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for word in forbidden {
                assert!(!text.contains(word), "{}: {word}", file.path);
            }
        }
    }
}
