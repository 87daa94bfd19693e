//! Lists of names in refusals.

use syscap_format::DETAIL_BYTES_MAX;
use syscap_format::summary::{nearest, summary};

#[test]
fn names_are_whole_and_the_nearest_stand_first() {
    let many: Vec<String> = (0..40).map(|n| format!("family{n}.do")).collect();
    let text = nearest("famly33.do", many.iter().map(String::as_str));
    assert!(text.starts_with("family33.do, "), "{text}");
    assert!(text.len() <= DETAIL_BYTES_MAX && text.ends_with(" more"), "{text}");
    assert_eq!(summary(["a", "b"]), "a, b");
    assert_eq!(summary([""; 0]), "");
    assert_eq!(summary(["x".repeat(300)]), "one of 1");
}
