//! Which pages the write-ahead log has committed, and where they are in it.

use std::{collections::HashMap, fs::File, os::unix::fs::FileExt};

use super::cell::{PAGE_BYTES, read_be32};

const HEADER_BYTES: usize = 32;

const FRAME_HEADER_BYTES: usize = 24;

/// First bytes of a log; the last bit says in which order the bytes of its sums stand.
const MAGIC: u32 = 0x377f_0682;

/// Returns where the log has each page that it has committed, and how many pages the database has then. Reading
/// ends before the first frame whose sum is wrong, as SQLite's does.
pub(super) fn committed_pages(log: &File) -> (HashMap<u32, u64>, u32) {
    read_log(log).unwrap_or_default()
}

fn read_log(log: &File) -> Option<(HashMap<u32, u64>, u32)> {
    let mut header = [0; HEADER_BYTES];
    log.read_exact_at(&mut header, 0).ok()?;
    let magic = read_be32(&header, 0)?;
    let is_big = magic & 1 == 1;
    (magic & !1 == MAGIC).then_some(())?;
    let mut sum = update_checksum((0, 0), header.get(..24)?, is_big);
    ((read_be32(&header, 24)?, read_be32(&header, 28)?) == sum).then_some(())?;
    let salt = header.get(16..24)?;
    let (mut committed, mut open) = (HashMap::new(), Vec::new());
    let (mut count, mut at) = (0, u64::try_from(HEADER_BYTES).ok()?);
    let mut frame = vec![0; FRAME_HEADER_BYTES + PAGE_BYTES];
    while log.read_exact_at(&mut frame, at).is_ok() && frame.get(8..16)? == salt {
        sum = update_checksum(sum, frame.get(..8)?, is_big);
        sum = update_checksum(sum, frame.get(FRAME_HEADER_BYTES..)?, is_big);
        if (read_be32(&frame, 16)?, read_be32(&frame, 20)?) != sum {
            break;
        }
        open.push((read_be32(&frame, 0)?, at + u64::try_from(FRAME_HEADER_BYTES).ok()?));
        let pages = read_be32(&frame, 4)?;
        if pages != 0 {
            committed.extend(open.drain(..));
            count = pages;
        }
        at += u64::try_from(frame.len()).ok()?;
    }
    Some((committed, count))
}

fn update_checksum(sum: (u32, u32), bytes: &[u8], is_big: bool) -> (u32, u32) {
    let word = |four: &[u8]| {
        let four = <[u8; 4]>::try_from(four).unwrap_or_default();
        if is_big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
    };
    bytes.chunks_exact(8).fold(sum, |(one, two), eight| {
        let (first, second) = eight.split_at(4);
        let one = one.wrapping_add(word(first)).wrapping_add(two);
        let two = two.wrapping_add(word(second)).wrapping_add(one);
        (one, two)
    })
}
