//! CBOR as a tree whose every part a test can change.

use syscap_format::Encoder;

/// One item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    Uint(u64),
    Bytes(Vec<u8>),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(Tree, Tree)>),
    /// `false`, `true` or `null`, as it is written.
    Simple(u8),
}

const NULL: Tree = Tree::Simple(0xf6);

impl Tree {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut rest = bytes;
        let tree = take(&mut rest);
        assert!(rest.is_empty(), "one item");
        tree
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut encoder = Encoder::with_capacity(512);
        let mut out = Vec::new();
        match self {
            Self::Uint(n) => encoder.uint(*n),
            Self::Bytes(bytes) => encoder.bytes(bytes),
            Self::Text(text) => encoder.text(text),
            Self::List(list) => {
                encoder.array(list.len());
                out = list.iter().flat_map(Self::bytes).collect();
            }
            Self::Map(map) => {
                encoder.map(map.len());
                out = map.iter().flat_map(|(k, v)| [k.bytes(), v.bytes()].concat()).collect();
            }
            Self::Simple(byte) => return vec![*byte],
        }
        [encoder.into_bytes(), out].concat()
    }

    /// The value under a key.
    pub(crate) fn at(&mut self, key: u64) -> Option<&mut Self> {
        let Self::Map(map) = self else { return None };
        map.iter_mut().find(|(found, _)| *found == Self::Uint(key)).map(|(_, value)| value)
    }

    /// Everything that it could be changed to by one small step, with where that lies.
    pub(crate) fn changes(&self) -> Vec<(String, Self)> {
        let mut all: Vec<Self> = Vec::new();
        let mut within = Vec::new();
        match self {
            Self::Uint(n) => {
                all.extend([n.wrapping_add(1), n.wrapping_sub(1), 0].map(Self::Uint));
                all.push(NULL);
            }
            Self::Bytes(bytes) => {
                let mut flipped = bytes.clone();
                if let Some(first) = flipped.first_mut() {
                    *first ^= 1;
                }
                all.extend([Self::Bytes(flipped), NULL]);
            }
            Self::Text(text) => all.extend([Self::Text(format!("{text}x")), NULL]),
            Self::List(list) => {
                let mut doubled = list.clone();
                doubled.extend(list.last().cloned());
                let mut turned = list.clone();
                turned.reverse();
                let shorter = list[..list.len().saturating_sub(1)].to_vec();
                all.extend([doubled, turned, shorter].map(Self::List));
                for (place, one) in list.iter().enumerate() {
                    within.extend(one.changes().into_iter().map(|(at, changed)| {
                        let mut list = list.clone();
                        list[place] = changed;
                        (format!(".*{at}"), Self::List(list))
                    }));
                }
            }
            Self::Map(map) => {
                all.push(NULL);
                for (place, (key, value)) in map.iter().enumerate() {
                    let name = match key {
                        Self::Uint(n) => n.to_string(),
                        _ => "*".to_owned(),
                    };
                    within.extend(value.changes().into_iter().map(|(at, changed)| {
                        let mut map = map.clone();
                        map[place].1 = changed;
                        (format!(".{name}{at}"), Self::Map(map))
                    }));
                }
            }
            Self::Simple(_) => {
                let list = vec![Self::Uint(1)];
                all.extend([NULL, Self::Uint(1), Self::Bytes(vec![9; 32]), Self::List(list)]);
                all.extend([0xf4, 0xf5].map(Self::Simple));
            }
        }
        all.retain(|changed| changed != self);
        all.into_iter().map(|changed| (String::new(), changed)).chain(within).collect()
    }
}

fn take(rest: &mut &[u8]) -> Tree {
    let first = rest[0];
    *rest = &rest[1..];
    if first >> 5 == 7 {
        return Tree::Simple(first);
    }
    let width = match first & 31 {
        n @ 0..=23 => return of_kind(first >> 5, u64::from(n), rest),
        n => 1_usize << (n - 24),
    };
    let (number, after) = rest.split_at(width);
    *rest = after;
    let number = number.iter().fold(0, |n, byte| (n << 8) | u64::from(*byte));
    of_kind(first >> 5, number, rest)
}

fn of_kind(kind: u8, number: u64, rest: &mut &[u8]) -> Tree {
    let count = usize::try_from(number).unwrap_or(usize::MAX);
    match kind {
        0 => Tree::Uint(number),
        2 | 3 => {
            let (bytes, after) = rest.split_at(count);
            *rest = after;
            match kind {
                2 => Tree::Bytes(bytes.to_vec()),
                _ => Tree::Text(String::from_utf8(bytes.to_vec()).unwrap()),
            }
        }
        4 => Tree::List((0..count).map(|_| take(rest)).collect()),
        5 => Tree::Map((0..count).map(|_| (take(rest), take(rest))).collect()),
        _ => panic!("kind {kind}"),
    }
}
