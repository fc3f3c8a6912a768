//! What the tests of damage share: sound databases, what stands where in them, and chance that is
//! always the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use crate::support::{append, begin, fold, open, options, turn};

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

/// The bytes of a sound database with `sessions` sessions of `turns` turns each.
pub(crate) fn sound(sessions: usize, turns: usize) -> Vec<u8> {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    for number in 0..sessions {
        let session = begin(&store, i64::try_from(number).unwrap());
        for record in (0..turns).flat_map(turn) {
            append(&store, &session, record);
        }
    }
    let path = store.path().to_owned();
    drop(store);
    fold(&path);
    fs::read(path).unwrap()
}

/// Makes `bytes` the database in `folder`.
pub(crate) fn place(folder: &Path, bytes: &[u8]) -> PathBuf {
    let path = options(folder).path();
    fs::write(&path, bytes).unwrap();
    path
}

/// A row of numbers that is always the same.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(end).unwrap()).unwrap()
    }
}

/// The entries whose rows each page of a sound database holds, by the page's place from 0.
pub(crate) fn entries_by_page(bytes: &[u8]) -> BTreeMap<usize, BTreeSet<i64>> {
    const TABLE_LEAF: u8 = 13;
    let mut held = BTreeMap::new();
    for (number, page) in bytes.chunks(PAGE).enumerate().skip(1) {
        let count = usize::from(u16::from_be_bytes([page[3], page[4]]));
        let cells = (0..count).filter(|_| page[0] == TABLE_LEAF).map(|which| {
            let at = 8 + 2 * which;
            usize::from(u16::from_be_bytes([page[at], page[at + 1]]))
        });
        let ids: BTreeSet<i64> = cells.filter_map(|at| entry_at(page, at)).collect();
        if !ids.is_empty() {
            held.insert(number, ids);
        }
    }
    held
}

/// The id of the entry whose row stands at `at`, if one does: six columns, of which the fifth is an
/// object of JSON.
fn entry_at(page: &[u8], mut at: usize) -> Option<i64> {
    varint(page, &mut at);
    let id = varint(page, &mut at);
    let start = at;
    let end = start + usize::try_from(varint(page, &mut at)).unwrap();
    let mut kinds = Vec::new();
    while at < end {
        kinds.push(varint(page, &mut at));
    }
    let length = |kind: &i64| match kind {
        0 | 8 | 9 => 0,
        1..=4 => usize::try_from(*kind).unwrap(),
        5 => 6,
        6 | 7 => 8,
        kind => usize::try_from((kind - 12) / 2).unwrap(),
    };
    let body = end + kinds.iter().take(4).map(length).sum::<usize>();
    (matches!(kinds.len(), 5 | 6) && page.get(body) == Some(&b'{')).then_some(id)
}

fn varint(page: &[u8], at: &mut usize) -> i64 {
    let mut value = 0;
    loop {
        let byte = page[*at];
        *at += 1;
        value = value << 7 | i64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return value;
        }
    }
}
