//! The codec: what is accepted is written again to the same bytes, in either way of reading it.

use syscap::format::{
    Canonical, DecodeError, Decoder, Encoder, Item, ItemKind, MapBuilder, Profile,
};

pub fn codec(data: &[u8]) {
    let (control, whole) = (Item::check(data, Profile::CONTROL), Item::check(data, Profile::DATA));
    assert!(control.is_err() || control == whole, "the profile CONTROL lies within DATA");
    for (checked, profile) in [(control, Profile::CONTROL), (whole, Profile::DATA)] {
        match checked {
            Ok(item) => {
                assert_eq!(walked(item).as_bytes(), data);
                let mut encoder = Encoder::new();
                let mut decoder = Decoder::new(data, profile);
                pulled(&mut decoder, &mut encoder).unwrap();
                decoder.finish().unwrap();
                assert_eq!(encoder.into_bytes(), data);
            }
            Err(error) => assert!(error.at <= data.len()),
        }
    }
    // What reads piece by piece finds no less than what checks the whole.
    let mut decoder = Decoder::new(data, Profile::DATA);
    let read = pulled(&mut decoder, &mut Encoder::new()).and_then(|()| decoder.finish());
    assert_eq!(read.is_ok(), whole.is_ok());
}

/// Written as [`Item`] shows it; maps with text keys by the builder, which sorts them.
fn walked(item: Item<'_>) -> Canonical {
    let mut encoder = Encoder::new();
    match item.kind() {
        ItemKind::Null => assert!(item.is_null()),
        ItemKind::Bool => encoder.boolean(item.as_bool().unwrap()),
        ItemKind::Uint => encoder.uint(item.as_uint().unwrap()),
        ItemKind::Negative => encoder.int(i64::try_from(item.as_int().unwrap()).unwrap()),
        ItemKind::Float => encoder.float(item.as_float().unwrap()),
        ItemKind::Bytes => encoder.bytes(item.as_byte_string().unwrap()),
        ItemKind::Text => return Canonical::text(item.as_text().unwrap()),
        ItemKind::Array => {
            let items: Vec<Canonical> = item.elements().map(walked).collect();
            assert_eq!(items.len(), item.count());
            return Canonical::list(items.into_iter());
        }
        ItemKind::Map => {
            let entries: Vec<_> = item.entries().map(|(key, value)| (key, walked(value))).collect();
            // Entries show text keys only.
            if entries.len() < item.count() {
                assert_eq!(entries.len(), 0);
                return item.into();
            }
            for (key, value) in &entries {
                assert_eq!(item.get(key), Some(value.item()));
            }
            let map = entries.iter().rev();
            let map = map.fold(MapBuilder::new(), |map, (key, value)| map.item(key, value.item()));
            return map.finish();
        }
    }
    if item.is_null() {
        Canonical::null()
    } else {
        Canonical::check(encoder.into_bytes(), Profile::DATA).unwrap()
    }
}

/// Written as [`Decoder`] reads it.
fn pulled(decoder: &mut Decoder<'_>, encoder: &mut Encoder) -> Result<(), DecodeError> {
    match decoder.peek()? {
        ItemKind::Null => {
            decoder.null()?;
            encoder.null();
        }
        ItemKind::Bool => encoder.boolean(decoder.boolean()?),
        ItemKind::Uint => encoder.uint(decoder.uint()?),
        ItemKind::Negative => encoder.int(i64::try_from(decoder.int()?).unwrap()),
        ItemKind::Float => encoder.float(decoder.float()?),
        ItemKind::Bytes => encoder.bytes(decoder.bytes()?),
        ItemKind::Text => encoder.text(decoder.text()?),
        ItemKind::Array => {
            let count = decoder.clone().array()?;
            encoder.array(usize::try_from(count).unwrap());
            decoder.each(|decoder| pulled(decoder, encoder))?;
        }
        ItemKind::Map => {
            let item = decoder.clone().item()?;
            let mut inside = decoder.clone();
            inside.shape(u64::try_from(item.count()).unwrap())?;
            if item.count() > 0 && inside.peek()? == ItemKind::Uint {
                // Read by a shape, whose schema knows the keys: what stands there was checked.
                decoder.item()?;
                encoder.map(item.count());
                for _ in 0..item.count() {
                    encoder.uint(inside.uint()?);
                    pulled(&mut inside, encoder)?;
                }
                return Ok(());
            }
            encoder.map(item.count());
            decoder.text_map(|key, decoder| {
                encoder.text(key);
                pulled(decoder, encoder)
            })?;
        }
    }
    Ok(())
}
