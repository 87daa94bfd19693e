//! The files of an export: `docs/spec/log.md`.

/// The file that has the records' exact bytes, one after another (RFC 8742).
pub const RECORDS_FILE: &str = "records.cborseq";
/// The folder that has the control documents, each under its name in hexadecimal.
pub const OBJECTS_FOLDER: &str = "objects";
