//! `fs.read`.

use std::sync::Arc;

use syscap_format::{
    Canonical, EffectClass, Item, Manifest, MapBuilder, ObligationKind, Param, ParamType, Refused,
    Rights,
};
use syscap_kernel::{Demands, Request, Resolve};

use super::path::{self, Ending, Place};
use super::{manifest, refusal};
use crate::beneath::{Chunk, Opener};
use crate::calls::{ReadBy, ReadCall};

/// Most bytes that one call reads: what a model can take in, several times over.
pub const READ_BYTES_MAX: u64 = 1 << 20;
/// The default size of a read, in bytes.
const READ_BYTES_DEFAULT: u64 = 256 << 10;
/// Most bytes of a result that are not the file's own: keys, numbers and heads.
const FRAME_BYTES: usize = 96;
/// Largest file that is opened at all; a part of it may be asked for.
const FILE_BYTES_MAX: u64 = 1 << 50;

/// `fs.read`: a regular file, or a part of it.
#[derive(Debug)]
pub struct ReadFile {
    place: Place,
    offset_bytes: u64,
    limit_bytes: usize,
}

impl ReadCall for ReadFile {
    type On = Arc<dyn Opener>;

    fn manifest() -> Option<Manifest> {
        let mut manifest = manifest("read", EffectClass::Read)?
            .described("Read a file", "Reads a file, or a part of it.")
            .param(Param::required("path", ParamType::Path, "The file.").within(1, 4_096))
            .param(
                Param::optional("offset", ParamType::Int, "First byte to read.")
                    .within(0, u64::MAX >> 1),
            )
            .param(
                Param::optional("max_bytes", ParamType::Int, "How many bytes at most.")
                    .within(1, READ_BYTES_MAX),
            )
            .honours(ObligationKind::ResultCap);
        // Room for the bytes and for what stands around them.
        manifest.result_bytes_max = READ_BYTES_MAX.saturating_add(64 << 10);
        Some(manifest)
    }

    fn resolver(
        request: &Request<'_>,
        base: &Self::On,
    ) -> Result<Option<Box<dyn Resolve>>, Refused> {
        path::resolver(request, Ending::File, Rights::READ, base)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        let place = Place::parse(request, Ending::File, Rights::READ)?;
        let number = |name| request.args.get(name).and_then(Item::as_uint);
        let limit = number("max_bytes").unwrap_or(READ_BYTES_DEFAULT).min(READ_BYTES_MAX);
        let demands = Demands { resources: vec![place.demand()], ..Demands::default() };
        Ok((
            Self {
                place,
                offset_bytes: number("offset").unwrap_or(0),
                limit_bytes: usize::try_from(limit).unwrap_or(usize::MAX),
            },
            demands,
        ))
    }

    fn run(&self, on: &Self::On, permit: &mut ReadBy<'_, Self>) -> Result<Canonical, Refused> {
        // A policy may ask for less: then less is read, and `more` says so.
        let room = permit.result_bytes_max().saturating_sub(FRAME_BYTES);
        let file = on.open_file(&self.place.file()?, FILE_BYTES_MAX).map_err(refusal)?;
        let label = file.label().map_err(refusal)?;
        let chunk = file.read(self.offset_bytes, self.limit_bytes.min(room)).map_err(refusal)?;
        permit.brings(label);
        Ok(result(chunk, self.offset_bytes))
    }
}

/// `{text | bytes, size_bytes, offset, more, next_offset}`: text where the bytes are UTF-8, cut
/// before a character that the limit splits, but for one that is all there is: then it is bytes,
/// so that whoever reads on gets on. `next_offset` where there is more.
fn result(mut chunk: Chunk, offset_bytes: u64) -> Canonical {
    if chunk.more
        && let Err(error) = std::str::from_utf8(&chunk.bytes)
        && error.error_len().is_none()
        && error.valid_up_to() > 0
    {
        chunk.bytes.truncate(error.valid_up_to());
    }
    // In the map's own order, in which nothing is moved.
    let map = MapBuilder::new().boolean("more", chunk.more);
    let map = match std::str::from_utf8(&chunk.bytes) {
        Ok(text) => map.text("text", text),
        Err(_) => map.bytes("bytes", &chunk.bytes),
    };
    let map = map.uint("offset", offset_bytes).uint("size_bytes", chunk.size_bytes);
    if !chunk.more {
        return map.finish();
    }
    let read = u64::try_from(chunk.bytes.len()).unwrap_or(u64::MAX);
    map.uint("next_offset", offset_bytes.saturating_add(read)).finish()
}
