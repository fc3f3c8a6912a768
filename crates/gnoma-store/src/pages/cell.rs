//! Cells of a page, and their records.

use rusqlite::{ToSql, types::ToSqlOutput};

/// All our databases have pages of this size.
pub(super) const PAGE_BYTES: usize = 4096;

/// Columns of the widest row.
const MAX_COLUMNS: usize = 64;

/// A page of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    IndexInner,
    TableInner,
    IndexLeaf,
    TableLeaf,
}

impl Kind {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            2 => Some(Self::IndexInner),
            5 => Some(Self::TableInner),
            10 => Some(Self::IndexLeaf),
            13 => Some(Self::TableLeaf),
            _ => None,
        }
    }

    pub(super) fn is_inner(self) -> bool {
        matches!(self, Self::IndexInner | Self::TableInner)
    }

    pub(super) fn header_bytes(self) -> usize {
        if self.is_inner() { 12 } else { 8 }
    }
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FoundValue {
    Null,
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
    /// A number with a fraction.
    Real(f64),
}

impl ToSql for FoundValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::from(rusqlite::types::Null),
            Self::Int(value) => ToSqlOutput::from(*value),
            Self::Real(value) => ToSqlOutput::from(*value),
            Self::Text(text) => ToSqlOutput::from(text.as_str()),
            Self::Blob(bytes) => ToSqlOutput::from(bytes.as_slice()),
        })
    }
}

/// A row of a table, or an entry of an index.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FoundRow {
    /// The number of the row; none in indexes and tables that are kept as one.
    pub(crate) rowid: Option<i64>,
    pub(crate) values: Vec<FoundValue>,
}

impl FoundRow {
    /// Reports whether a text of the row has the mark of a letter that was lost.
    pub(crate) fn has_mark(&self) -> bool {
        let has_one = |value: &FoundValue| matches!(value, FoundValue::Text(text) if text.contains(char::REPLACEMENT_CHARACTER));
        self.values.iter().any(has_one)
    }
}

/// One cell of a page.
pub(super) struct Cell {
    pub(super) child: Option<u32>,
    /// `None` where it holds none, or one that cannot be read.
    pub(super) row: Option<FoundRow>,
    /// The bytes that the cell takes of its page.
    pub(super) bytes: usize,
}

impl Cell {
    /// Reads the cell at `at`. `page_of` gives the pages that hold the rest of long rows, of which none is
    /// longer than `longest`.
    pub(super) fn read(
        page: &[u8],
        kind: Kind,
        at: usize,
        longest: usize,
        page_of: &dyn Fn(u32) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        let mut next = at;
        let child = if kind.is_inner() {
            next += 4;
            Some(read_be32(page, at)?)
        } else {
            None
        };
        if kind == Kind::TableInner {
            read_varint(page, &mut next)?;
            return Some(Self { child, row: None, bytes: next - at });
        }
        let length = usize::try_from(read_varint(page, &mut next)?).ok()?;
        let rowid =
            if kind == Kind::TableLeaf { Some(read_varint(page, &mut next)?) } else { None };
        let here = local_bytes(kind, length);
        let mut payload = page.get(next..next.checked_add(here)?)?.to_vec();
        next += here;
        if here < length {
            (length <= longest).then_some(())?;
            let first = read_be32(page, next)?;
            next += 4;
            let row = follow_overflow(&mut payload, length, first, page_of)
                .and_then(|()| parse_record(&payload))
                .map(|values| FoundRow { rowid, values });
            return Some(Self { child, row, bytes: next - at });
        }
        let row = parse_record(&payload).map(|values| FoundRow { rowid, values });
        Some(Self { child, row, bytes: next - at })
    }
}

/// Bytes at the start of a cell that say how long its parts are.
const FORM_BYTES: usize = 24;

/// The row at `at`, which one wrong byte in what says how long its parts are makes unreadable. `rank` says
/// how likely a row that ends at a place is; the lowest counts, unless several that differ share it.
pub(super) fn repair_row<R: Ord>(
    page: &[u8],
    at: usize,
    rank: &dyn Fn(&FoundRow, usize) -> Option<R>,
) -> Option<FoundRow> {
    let mut page = page.to_vec();
    let mut best: Option<(R, FoundRow, bool)> = None;
    for place in at..at.saturating_add(FORM_BYTES).min(page.len()) {
        let was = *page.get(place)?;
        for byte in 0..=u8::MAX {
            *page.get_mut(place)? = byte;
            let cell = Cell::read(&page, Kind::TableLeaf, at, PAGE_BYTES, &|_| None);
            let Some((row, bytes)) = cell.and_then(|cell| Some((cell.row?, cell.bytes))) else {
                continue;
            };
            let Some(rank) = rank(&row, at + bytes) else { continue };
            match &mut best {
                Some((least, _, _)) if *least < rank => {}
                Some((least, other, is_only)) if *least == rank => *is_only &= *other == row,
                _ => best = Some((rank, row, true)),
            }
        }
        *page.get_mut(place)? = was;
    }
    best.filter(|(_, _, is_only)| *is_only).map(|(_, row, _)| row)
}

/// Returns how many bytes of a record of `length` bytes stand in its cell.
fn local_bytes(kind: Kind, length: usize) -> usize {
    const LEAST: usize = (PAGE_BYTES - 12) * 32 / 255 - 23;
    let most = match kind {
        Kind::TableLeaf | Kind::TableInner => PAGE_BYTES - 35,
        Kind::IndexLeaf | Kind::IndexInner => (PAGE_BYTES - 12) * 64 / 255 - 23,
    };
    if length <= most {
        return length;
    }
    let here = LEAST + (length - LEAST) % (PAGE_BYTES - 4);
    if here <= most { here } else { LEAST }
}

fn follow_overflow(
    payload: &mut Vec<u8>,
    length: usize,
    first: u32,
    page_of: &dyn Fn(u32) -> Option<Vec<u8>>,
) -> Option<()> {
    let mut next = first;
    while payload.len() < length {
        let page = page_of(next)?;
        next = read_be32(&page, 0)?;
        let rest = page.get(4..)?;
        payload.extend_from_slice(rest.get(..rest.len().min(length - payload.len()))?);
    }
    Some(())
}

/// The values of a record; `None` unless it is one, to the last byte.
fn parse_record(bytes: &[u8]) -> Option<Vec<FoundValue>> {
    let mut at = 0;
    let header = usize::try_from(read_varint(bytes, &mut at)?).ok()?;
    let mut kinds = Vec::new();
    while at < header {
        kinds.push(read_varint(bytes, &mut at)?);
        (kinds.len() <= MAX_COLUMNS).then_some(())?;
    }
    (at == header).then_some(())?;
    let mut values = Vec::with_capacity(kinds.len());
    for kind in kinds {
        let (value, length) = parse_value(kind, bytes.get(at..)?)?;
        values.push(value);
        at += length;
    }
    (at == bytes.len()).then_some(values)
}

fn parse_value(kind: i64, bytes: &[u8]) -> Option<(FoundValue, usize)> {
    let length = match kind {
        0 | 8 | 9 => 0,
        1..=4 => usize::try_from(kind).ok()?,
        5 => 6,
        6 | 7 => 8,
        12.. => usize::try_from((kind - 12) / 2).ok()?,
        _ => return None,
    };
    let bytes = bytes.get(..length)?;
    let value = match kind {
        0 => FoundValue::Null,
        8 | 9 => FoundValue::Int(kind - 8),
        7 => FoundValue::Real(f64::from_be_bytes(bytes.try_into().ok()?)),
        1..=6 => {
            let sign = if bytes.first()? & 0x80 == 0 { 0 } else { -1 };
            FoundValue::Int(bytes.iter().fold(sign, |all, byte| (all << 8) | i64::from(*byte)))
        }
        _ if kind % 2 == 0 => FoundValue::Blob(bytes.to_vec()),
        // A letter that damage has made none is marked.
        _ => FoundValue::Text(String::from_utf8_lossy(bytes).into_owned()),
    };
    Some((value, length))
}

/// Numbers of a page's rows rise. Those that do not fit the longest rising row of numbers get the ones
/// that their neighbours leave, where there are just as many; else the rows go. Says whether all fitted;
/// if not, with the first and the last row where they went, each with the number next to its neighbour's.
pub(super) fn put_in_order(rows: &mut Vec<FoundRow>) -> (bool, Vec<FoundRow>) {
    let numbers: Vec<i64> = rows.iter().filter_map(|row| row.rowid).collect();
    if numbers.len() != rows.len() {
        return (false, Vec::new());
    }
    if numbers.is_sorted_by(|one, next| one < next) {
        return (true, Vec::new());
    }
    let fits = longest_rise(&numbers);
    let edges = repair_edges(rows, &fits);
    let mut given: Vec<Option<i64>> =
        numbers.iter().zip(&fits).map(|(number, fits)| fits.then_some(*number)).collect();
    let fitting: Vec<usize> = (0..fits.len()).filter(|at| fits.get(*at) == Some(&true)).collect();
    for (before, after) in fitting.iter().zip(fitting.iter().skip(1)) {
        let (Some(low), Some(high)) = (numbers.get(*before), numbers.get(*after)) else { continue };
        let between = high.checked_sub(*low).and_then(|gap| usize::try_from(gap).ok());
        if between != Some(after - before) {
            continue;
        }
        let places = given.iter_mut().take(*after).skip(before + 1);
        for (place, number) in places.zip(low + 1..) {
            *place = Some(number);
        }
    }
    let mut given = given.into_iter();
    rows.retain_mut(|row| {
        row.rowid = given.next().flatten();
        row.rowid.is_some()
    });
    (false, edges)
}

/// The first and the last row where only their neighbour's number fits.
fn repair_edges(rows: &[FoundRow], fits: &[bool]) -> Vec<FoundRow> {
    let edge = |row: Option<&FoundRow>, beside: Option<&FoundRow>, step| {
        let rowid = beside?.rowid?.checked_add(step).filter(|rowid| *rowid > 0);
        Some(FoundRow { rowid: Some(rowid?), ..row?.clone() })
    };
    let first = matches!(fits, [false, true, ..]).then(|| edge(rows.first(), rows.get(1), -1));
    let last =
        matches!(fits, [.., true, false]).then(|| edge(rows.last(), rows.iter().nth_back(1), 1));
    [first, last].into_iter().flatten().flatten().collect()
}

/// Returns which of the numbers are part of a longest row of them that rises.
fn longest_rise(numbers: &[i64]) -> Vec<bool> {
    // For each length, the place of the least number that such a row ends with.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(numbers.len());
    for (at, number) in numbers.iter().enumerate() {
        let length =
            ends.partition_point(|end| numbers.get(*end).is_some_and(|last| last < number));
        before.push(length.checked_sub(1).and_then(|shorter| ends.get(shorter).copied()));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut rises = vec![false; numbers.len()];
    let mut next = ends.last().copied();
    while let Some(at) = next {
        if let Some(rises) = rises.get_mut(at) {
            *rises = true;
        }
        next = before.get(at).copied().flatten();
    }
    rises
}

fn read_varint(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let mut value = 0_u64;
    for which in 0..9 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if which == 8 {
            value = (value << 8) | u64::from(byte);
            break;
        }
        value = (value << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(i64::from_ne_bytes(value.to_ne_bytes()))
}

pub(super) fn read_be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(super) fn read_be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(numbers: &[i64]) -> (Vec<i64>, bool) {
        let row = |rowid: &i64| FoundRow { rowid: Some(*rowid), values: Vec::new() };
        let mut rows: Vec<_> = numbers.iter().map(row).collect();
        let (fitted, _) = put_in_order(&mut rows);
        (rows.iter().filter_map(|row| row.rowid).collect(), fitted)
    }

    #[test]
    fn salvage_infers_a_damaged_rowid_from_its_neighbours() {
        assert_eq!(ordered(&[4, 5, 9]), (vec![4, 5, 9], true));
        for wrong in [0, 4, 6, 900, -3] {
            assert_eq!(ordered(&[4, 5, wrong, 7, 8]).0, [4, 5, 6, 7, 8], "{wrong}");
        }
        assert_eq!(ordered(&[4, 90, 80, 7, 8]), (vec![4, 5, 6, 7, 8], false));
        assert_eq!(ordered(&[4, 90, 8, 9]), (vec![4, 8, 9], false), "5, 6 or 7");
        assert_eq!(ordered(&[90, 4, 5]), (vec![4, 5], false));
    }

    #[test]
    fn salvage_infers_the_rowid_of_the_first_and_last_row() {
        let edges = |numbers: &[i64]| {
            let row = |rowid: &i64| FoundRow { rowid: Some(*rowid), values: Vec::new() };
            let mut rows: Vec<_> = numbers.iter().map(row).collect();
            let (_, edges) = put_in_order(&mut rows);
            edges.iter().filter_map(|row| row.rowid).collect::<Vec<_>>()
        };
        assert_eq!(edges(&[90, 4, 5]), [3]);
        assert_eq!(edges(&[4, 5, 6, 1]), [7]);
        assert_eq!(edges(&[4, 5, 6]), [0; 0]);
        assert_eq!(edges(&[90, 1, 2]), [0; 0], "there is none before 1");
    }
}
