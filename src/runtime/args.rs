//! Arguments of a call, written in Rust.

use syscap_format::{Canonical, Item, MapBuilder};

/// The arguments of a call: a canonical map with text keys. [`crate::args!`] writes one.
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct Args {
    map: MapBuilder,
}

impl Args {
    /// No arguments.
    pub const fn new() -> Self {
        Self { map: MapBuilder::new() }
    }

    /// Sets one.
    pub fn with(self, name: &str, value: impl IntoArg) -> Self {
        Self { map: value.put(self.map, name) }
    }

    /// The canonical map.
    pub fn finish(self) -> Canonical {
        self.map.finish()
    }
}

/// A value that can be an argument, or the result of a host's tool.
pub trait IntoArg {
    /// Sets `name` to this value.
    fn put(self, map: MapBuilder, name: &str) -> MapBuilder;

    /// The value alone.
    fn into_canonical(self) -> Canonical
    where
        Self: Sized,
    {
        let map = self.put(MapBuilder::new(), "value").finish();
        map.item().get("value").map_or_else(Canonical::null, Canonical::from)
    }
}

/// Declares what stands for what.
macro_rules! into_arg {
    ($($type:ty => $put:expr,)*) => {$(
        impl IntoArg for $type {
            fn put(self, map: MapBuilder, name: &str) -> MapBuilder {
                let put: fn(MapBuilder, &str, $type) -> MapBuilder = $put;
                put(map, name, self)
            }
        }
    )*};
}

into_arg! {
    &str => |map, name, value| map.text(name, value),
    String => |map, name, value| map.text(name, &value),
    &String => |map, name, value| map.text(name, value),
    bool => |map, name, value| map.boolean(name, value),
    u64 => |map, name, value| map.uint(name, value),
    u32 => |map, name, value| map.uint(name, u64::from(value)),
    i64 => |map, name, value| map.int(name, value),
    i32 => |map, name, value| map.int(name, i64::from(value)),
    &[u8] => |map, name, value| map.bytes(name, value),
    Vec<u8> => |map, name, value| map.bytes(name, &value),
    () => |map, name, ()| map.item(name, Item::NULL),
}

/// Declares what is canonical already: as deep as it may be, so that no map goes around it.
macro_rules! canonical_arg {
    ($($type:ty => $into:expr,)*) => {$(
        impl IntoArg for $type {
            fn put(self, map: MapBuilder, name: &str) -> MapBuilder {
                map.item(name, self.into_canonical().item())
            }

            fn into_canonical(self) -> Canonical {
                let into: fn($type) -> Canonical = $into;
                into(self)
            }
        }
    )*};
}

canonical_arg! {
    Canonical => |value| value,
    &Canonical => Canonical::clone,
    Args => Args::finish,
}

/// Writes the arguments of a call.
///
/// ```
/// let args = syscap::args! { "path": "a.txt", "text": "hello" };
/// assert_eq!(args.finish().item().count(), 2);
/// ```
#[macro_export]
macro_rules! args {
    ($($name:literal : $value:expr),* $(,)?) => {
        $crate::Args::new()$(.with($name, $value))*
    };
}
