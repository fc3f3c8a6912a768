//! Reads rows directly from the pages of a database file when SQLite cannot: if the schema, a tree's root or a
//! header is damaged, the leaves still have their rows.
//!
//! Format: SQLite's description of its file format and of the write-ahead log. Committed pages of the log replace
//! those of the file. Nothing is written. The caller interprets the rows.

mod cell;
mod log;

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::Path,
};

use self::cell::{Cell, Kind, PAGE_BYTES, read_be16, read_be32};
pub(crate) use self::cell::{FoundRow, FoundValue};
use crate::files::suffixed_path;

/// The file's header, before what page 1 holds.
const FILE_HEADER_BYTES: usize = 100;

/// Entries of a trunk page of the list of free pages.
const MAX_TRUNK_PAGES: usize = PAGE_BYTES / 4 - 2;

/// A file or a log of more pages is not walked further.
const MAX_PAGES: u32 = 1 << 22;

/// The content of one page of a tree.
#[derive(Default)]
pub(crate) struct TreePage {
    /// The rows of the page; none on inner pages of tables.
    pub(crate) rows: Vec<FoundRow>,
    /// The first and the last row of the page where their numbers are out of order, with those that they may have.
    pub(crate) edges: Vec<FoundRow>,
    /// The pages below it.
    pub(crate) children: Vec<u32>,
    /// All of it could be read, and nothing of it is unaccounted for.
    pub(crate) whole: bool,
}

/// The pages of a database, as its last commit left them.
pub(crate) struct Pages {
    file: File,
    log: Option<File>,
    /// The place in the log where the latest state of a page stands.
    logged: HashMap<u32, u64>,
    count: u32,
}

impl Pages {
    /// Opens the database at `path` with its log, if it has one.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let log = File::open(suffixed_path(path, "-wal")).ok();
        let (logged, after_commit) = log.as_ref().map(log::committed_pages).unwrap_or_default();
        let bytes = file.metadata()?.len();
        let in_file = bytes.div_ceil(u64::try_from(PAGE_BYTES).unwrap_or(u64::MAX));
        let in_file = u32::try_from(in_file).unwrap_or(u32::MAX);
        Ok(Self { file, log, logged, count: in_file.max(after_commit).min(MAX_PAGES) })
    }

    /// Returns the number of pages, which are counted from 1.
    pub(crate) fn page_count(&self) -> u32 {
        self.count
    }

    /// The bytes of a page; what the file lacks of it is zeros.
    fn page_bytes(&self, number: u32) -> Option<Vec<u8>> {
        if number == 0 || number > self.count {
            return None;
        }
        let (file, at) = match (self.logged.get(&number), &self.log) {
            (Some(at), Some(log)) => (log, *at),
            _ => (&self.file, u64::from(number - 1) * u64::try_from(PAGE_BYTES).ok()?),
        };
        let mut bytes = vec![0; PAGE_BYTES];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, at + u64::try_from(filled).ok()?) {
                Ok(0) | Err(_) => break,
                Ok(read) => filled += read,
            }
        }
        (filled > 0).then_some(bytes)
    }

    /// Pages that are in the list of free pages: what they hold was given up. A page of that list is
    /// known by its form, so that a damaged header does not bring back what was deleted.
    pub(crate) fn free_pages(&self) -> HashSet<u32> {
        let mut free = HashSet::new();
        for number in 2..=self.count {
            if let Some(leaves) = self.page_bytes(number).and_then(|bytes| self.parse_trunk(&bytes))
            {
                free.insert(number);
                free.extend(leaves);
            }
        }
        free
    }

    fn parse_trunk(&self, bytes: &[u8]) -> Option<Vec<u32>> {
        let (next, length) = (read_be32(bytes, 0)?, usize::try_from(read_be32(bytes, 4)?).ok()?);
        let is_one = next <= self.count && (1..=MAX_TRUNK_PAGES).contains(&length);
        let leaves: Vec<u32> = (0..length.min(MAX_TRUNK_PAGES))
            .filter_map(|at| read_be32(bytes, 8 + 4 * at))
            .collect();
        let are_pages = leaves.iter().all(|leaf| (2..=self.count).contains(leaf));
        let differ = leaves.iter().collect::<HashSet<_>>().len() == leaves.len();
        (is_one && are_pages && differ).then_some(leaves)
    }

    /// Reads a page of a tree through its pointers. Rows out of order are left out, unless their
    /// neighbours leave one number only.
    pub(crate) fn read_node(&self, number: u32) -> Option<TreePage> {
        let bytes = self.page_bytes(number)?;
        let start = start_of(number, &bytes);
        let kind = Kind::from_byte(*bytes.get(start)?)?;
        let mut node = TreePage { whole: true, ..TreePage::default() };
        let mut used = 0;
        for at in cell_pointers(&bytes, start, kind) {
            match self.read_cell(&bytes, kind, at) {
                Some(cell) => {
                    used += cell.bytes.max(4);
                    node.children.extend(cell.child);
                    node.whole &= cell.row.is_some() || kind == Kind::TableInner;
                    node.rows.extend(cell.row);
                }
                None => node.whole = false,
            }
        }
        if kind.is_inner() {
            node.children.push(read_be32(&bytes, start + 8)?);
        }
        node.whole &= is_accounted_for(&bytes, start, used) == Some(true);
        node.whole &= node.children.iter().all(|child| (2..=self.count).contains(child));
        if kind == Kind::TableLeaf {
            let (is_in_order, edges) = cell::put_in_order(&mut node.rows);
            node.whole &= is_in_order;
            node.edges = edges;
        }
        Some(node)
    }

    /// Rows of a page that its pointers do not lead to, wherever bytes look like one that `is_ours`.
    pub(crate) fn search_rows(
        &self,
        number: u32,
        is_ours: &dyn Fn(&FoundRow) -> bool,
    ) -> Vec<FoundRow> {
        let mut found = Vec::new();
        let Some(bytes) = self.page_bytes(number) else { return found };
        let start = start_of(number, &bytes);
        let kinds = match self.likely_kind(&bytes, start) {
            Some(kind) => vec![kind],
            None => vec![Kind::TableLeaf, Kind::IndexLeaf],
        };
        for kind in kinds {
            // Of a page that names another kind the pointers have led nowhere.
            let is_named = bytes.get(start).copied().and_then(Kind::from_byte) == Some(kind);
            let known: HashSet<usize> = cell_pointers(&bytes, start, kind)
                .filter(|_| is_named)
                .filter(|at| {
                    self.read_cell(&bytes, kind, *at).is_some_and(|cell| cell.row.is_some())
                })
                .collect();
            let mut at = start + kind.header_bytes();
            while at < bytes.len() {
                let cell = self.read_cell(&bytes, kind, at);
                let row = cell.and_then(|cell| Some((cell.row?, cell.bytes)));
                match row.filter(|(row, _)| is_ours(row)) {
                    Some((row, length)) => {
                        found.extend(Some(row).filter(|_| !known.contains(&at)));
                        at += length.max(1);
                    }
                    None => at += 1,
                }
            }
        }
        found
    }

    /// Rows that a page's pointers lead to and that one byte before their values makes unreadable: each as
    /// it was, where `rank` leaves one answer; the lower, the likelier, and `None` for what is no row.
    pub(crate) fn repair_rows(
        &self,
        number: u32,
        rank: &dyn Fn(&FoundRow) -> Option<u8>,
    ) -> Vec<FoundRow> {
        let mut mended = Vec::new();
        let Some(bytes) = self.page_bytes(number) else { return mended };
        let start = start_of(number, &bytes);
        if self.likely_kind(&bytes, start) != Some(Kind::TableLeaf) {
            return mended;
        }
        let places: Vec<usize> = cell_pointers(&bytes, start, Kind::TableLeaf).collect();
        let numbers: Vec<Option<i64>> = places
            .iter()
            .map(|at| self.read_cell(&bytes, Kind::TableLeaf, *at)?.row?.rowid)
            .collect();
        for (which, at) in
            places.iter().enumerate().filter(|(which, _)| numbers.get(*which) == Some(&None))
        {
            let before = numbers.iter().take(which).rev().flatten().next().copied();
            let after = numbers.iter().skip(which + 1).flatten().next().copied();
            let is_between = |row: i64| {
                before.is_none_or(|before| before < row) && after.is_none_or(|after| row < after)
            };
            // Rows stand one behind the other.
            let next = places.iter().copied().filter(|other| other > at).min();
            let end = next.unwrap_or(PAGE_BYTES);
            let likely = |row: &FoundRow, row_end: usize| {
                let is_next = before.and_then(|before| before.checked_add(1)) == row.rowid;
                let rank = rank(row).filter(|_| row.rowid.is_some_and(is_between))?;
                Some((row_end != end, !is_next, rank))
            };
            mended.extend(cell::repair_row(&bytes, *at, &likely));
        }
        mended
    }

    /// The kind that a page names, where most of its cells are of that kind.
    fn likely_kind(&self, bytes: &[u8], start: usize) -> Option<Kind> {
        let kind = Kind::from_byte(*bytes.get(start)?)?;
        let is_page = |child: u32| (2..=self.count).contains(&child);
        let is_sound = |at| {
            self.read_cell(bytes, kind, at).is_some_and(|cell| match cell.child {
                Some(child) => is_page(child),
                None => cell.row.is_some(),
            })
        };
        let (sound, wrong): (Vec<_>, Vec<_>) =
            cell_pointers(bytes, start, kind).partition(|at| is_sound(*at));
        (sound.len() >= wrong.len()).then_some(kind)
    }

    /// Reports whether a page that is not whole may have held more rows of a table than the `found`.
    pub(crate) fn may_lack(&self, number: u32, found: usize) -> bool {
        let Some(bytes) = self.page_bytes(number) else { return true };
        let start = start_of(number, &bytes);
        match self.likely_kind(&bytes, start) {
            Some(Kind::IndexInner | Kind::IndexLeaf | Kind::TableInner) => false,
            Some(Kind::TableLeaf) | None => {
                let claimed = read_be16(&bytes, start + 3).map_or(usize::MAX, usize::from);
                found == 0 || found < claimed
            }
        }
    }

    /// Reports whether the file ends before the last page that its header speaks of.
    pub(crate) fn is_cut(&self) -> bool {
        let Some(header) = self.page_bytes(1) else { return true };
        // The header's count is true only where both counters of changes agree.
        let (Some(changes), Some(count)) = (read_be32(&header, 24), read_be32(&header, 28)) else {
            return true;
        };
        let is_known = read_be32(&header, 92) == Some(changes) && count <= MAX_PAGES;
        let whole = self.file.metadata().map_or(0, |facts| facts.len())
            / u64::try_from(PAGE_BYTES).unwrap_or(u64::MAX);
        let is_there =
            |number: u32| u64::from(number) <= whole || self.logged.contains_key(&number);
        let last = if is_known { count.max(self.count) } else { self.count };
        !(1..=last).all(is_there)
    }

    /// Returns what the map of pages says a page is for, in databases that have one. Pages of trees are known by
    /// their first byte as well, which is never that of the rest of a row.
    pub(crate) fn page_use(&self, number: u32) -> Option<PageUse> {
        /// Pages that one page of the map tells of, five bytes each.
        const MAPPED: u32 = 819;
        let behind = number.checked_sub(2)? % (MAPPED + 1);
        let bytes = self.page_bytes(number - behind).filter(|bytes| is_map(bytes))?;
        let Some(entry) = behind.checked_sub(1) else { return Some(PageUse::Map) };
        let at = usize::try_from(entry).ok()? * 5;
        match (bytes.get(at)?, read_be32(&bytes, at + 1)?) {
            (1, 0) | (5, _) => Some(PageUse::Tree),
            (2, 0) => Some(PageUse::Free),
            (3 | 4, _) => {
                let own = self.page_bytes(number)?;
                let is_tree = own.first().copied().and_then(Kind::from_byte).is_some();
                Some(if is_tree { PageUse::Tree } else { PageUse::Overflow })
            }
            _ => None,
        }
    }

    fn read_cell(&self, page: &[u8], kind: Kind, at: usize) -> Option<Cell> {
        let longest = usize::try_from(self.count).ok()?.checked_mul(PAGE_BYTES)?;
        Cell::read(page, kind, at, longest, &|number| self.page_bytes(number))
    }
}

/// The use of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageUse {
    /// Part of a table or an index.
    Tree,
    /// The rest of a long row.
    Overflow,
    /// A page that is not in use.
    Free,
    /// Part of the map itself.
    Map,
}

/// Returns where the cells of a page stand, as the page says itself.
fn cell_pointers(bytes: &[u8], start: usize, kind: Kind) -> impl Iterator<Item = usize> + '_ {
    let length = usize::from(read_be16(bytes, start + 3).unwrap_or_default()).min(PAGE_BYTES / 2);
    let first = start + kind.header_bytes();
    (0..length).filter_map(move |which| read_be16(bytes, first + 2 * which).map(usize::from))
}

/// Returns where the tree's part of a page begins: behind the file's header in page 1, unless another page has
/// taken its place.
fn start_of(number: u32, bytes: &[u8]) -> usize {
    let is_other = bytes.first().copied().and_then(Kind::from_byte).is_some();
    if number == 1 && !is_other { FILE_HEADER_BYTES } else { 0 }
}

/// Reports whether the bytes are a page of the map. A page that other bytes have taken the place of says nothing
/// about any page.
fn is_map(bytes: &[u8]) -> bool {
    /// More than damage in some places makes wrong, and fewer than any other page has.
    const MAX_WRONG: usize = 32;
    let wrong = bytes.chunks_exact(5).filter(|entry| entry.first().is_some_and(|kind| *kind > 5));
    wrong.count() <= MAX_WRONG
}

/// Reports whether cells, free blocks and fragments make up the whole content area of a page.
fn is_accounted_for(bytes: &[u8], start: usize, cells: usize) -> Option<bool> {
    let area = PAGE_BYTES.checked_sub(usize::from(read_be16(bytes, start + 5)?))?;
    let mut known = cells + usize::from(*bytes.get(start + 7)?);
    let mut block = usize::from(read_be16(bytes, start + 1)?);
    while block != 0 && known <= PAGE_BYTES {
        known += usize::from(read_be16(bytes, block + 2)?).max(1);
        let next = usize::from(read_be16(bytes, block)?);
        block = if next > block { next } else { 0 };
    }
    Some(known == area)
}
