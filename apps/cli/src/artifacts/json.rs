//! Results for programs.

use syscap::artifact::{Artifact, Excerpt, Kept, Short};

use crate::output::{Object, array, quote};

/// A result in short, for programs.
pub(crate) fn short(short: &Short) -> Object {
    let object = Object::new()
        .uint("record", short.record.get())
        .json("intent", &short.intent.map_or("null".to_owned(), |intent| intent.to_string()))
        .json("tool_id", &short.tool.as_ref().map_or("null".to_owned(), |t| quote(t.as_str())))
        .text("status", short.status.name());
    let object = match (short.reason, short.retry) {
        (Some(reason), Some(retry)) => {
            object.text("reason", reason.name()).text("retry", retry.name())
        }
        _ => object,
    };
    object
        .text("tx_outcome", short.tx.name())
        .uint("size_bytes", short.size_bytes)
        .shown("result_hash", short.digest)
        .json("excerpts", &array(short.excerpts.iter().map(excerpt)))
}

fn excerpt(excerpt: &Excerpt) -> String {
    Object::new()
        .json("path", &array(excerpt.path.iter().map(|name| quote(name))))
        .text("text", &excerpt.text)
        .uint("size_bytes", excerpt.size_bytes)
        .flag("cut", excerpt.is_cut())
        .finish()
}

/// A result on record, for programs.
pub(super) fn json(artifact: &Artifact) -> Object {
    let null = || "null".to_owned();
    let object = Object::new()
        .uint("record", artifact.record.get())
        .uint("intent", artifact.intent.get())
        .uint("time", artifact.time.get())
        .shown("utc", artifact.time)
        .json("agent_id", &artifact.agent.as_ref().map_or_else(null, |a| quote(a.as_str())))
        .json("session", &artifact.session.map_or_else(null, |session| session.to_string()))
        .json("tool_id", &artifact.tool.as_ref().map_or_else(null, |t| quote(t.as_str())))
        .text("status", artifact.status.name());
    let object = match artifact.reason {
        Some(reason) => object.text("reason", reason.name()),
        None => object,
    };
    let object = object
        .text("tx_outcome", artifact.tx.name())
        .shown("label", artifact.label)
        .json("result_hash", &artifact.digest.map_or_else(null, |d| quote(&d.to_string())));
    match &artifact.kept {
        Kept::There(short) => object
            .text("kept", "there")
            .uint("size_bytes", short.size_bytes)
            .json("excerpts", &array(short.excerpts.iter().map(excerpt))),
        Kept::Erased => object.text("kept", "erased"),
        Kept::Altered => object.text("kept", "altered"),
    }
}
