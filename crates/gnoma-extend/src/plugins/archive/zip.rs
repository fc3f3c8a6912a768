//! Zip archives, by their list at the end; stored and deflated files.

use super::{
    inflated::{MAX_UNPACKED_BYTES, inflate_bytes},
    unpacked::{MAX_ENTRIES, UnpackFolder},
};

/// The start of the record at the end of the list: `PK\5\6`, followed by 18 bytes.
const END: &[u8] = b"PK\x05\x06";
const END_BYTES: usize = 22;
/// The largest distance of that record from the end of the file: a comment follows it.
const MAX_COMMENT_BYTES: usize = 65_535;
const LISTED: &[u8] = b"PK\x01\x02";
const LISTED_BYTES: usize = 46;
const LOCAL: &[u8] = b"PK\x03\x04";
const LOCAL_BYTES: usize = 30;
/// Bits of a Unix mode that say what kind of file it is, and the one of links.
const KIND: u32 = 0o170_000;
const LINK: u32 = 0o120_000;
/// The system that writes Unix modes.
const UNIX: u8 = 3;

pub(super) fn unpack_zip(bytes: &[u8], into: &mut UnpackFolder<'_>) -> Result<(), String> {
    let searched = bytes.len().saturating_sub(END_BYTES + MAX_COMMENT_BYTES);
    let tail = bytes.get(searched..).unwrap_or_default();
    let end = tail.windows(END.len()).rposition(|part| part == END).ok_or_else(damaged_error)?;
    let end = tail.get(end..).unwrap_or_default();
    let count = usize::from(u16_at(end, 10)?);
    if count > MAX_ENTRIES {
        return Err("the archive has too many entries".to_owned());
    }
    let mut at = usize_at(end, 16)?;
    let mut left = MAX_UNPACKED_BYTES;
    for _ in 0..count {
        let listed =
            bytes.get(at..).filter(|it| it.starts_with(LISTED)).ok_or_else(damaged_error)?;
        let (name, extra, comment) =
            (usize_of(listed, 28)?, usize_of(listed, 30)?, usize_of(listed, 32)?);
        let text = listed.get(LISTED_BYTES..LISTED_BYTES + name).ok_or_else(damaged_error)?;
        let text = std::str::from_utf8(text).map_err(|_| "a name in the archive is not UTF-8")?;
        unpack_entry(bytes, listed, text, &mut left, into)?;
        at += LISTED_BYTES + name + extra + comment;
    }
    Ok(())
}

fn unpack_entry(
    bytes: &[u8],
    listed: &[u8],
    name: &str,
    left: &mut usize,
    into: &mut UnpackFolder<'_>,
) -> Result<(), String> {
    if u16_at(listed, 8)? & 1 != 0 {
        return Err(format!("`{name}` is encrypted"));
    }
    if name.ends_with('/') {
        return super::super::tree::check_path(name.trim_end_matches('/')).map(drop);
    }
    let (packed, length) = (usize_at(listed, 20)?, usize_at(listed, 24)?);
    let body = packed_bytes(bytes, usize_at(listed, 42)?, packed)?;
    *left = left.checked_sub(length).ok_or("the archive unpacks to too much")?;
    let crc = u32_at(listed, 16)?;
    let plain = match u16_at(listed, 10)? {
        0 if crc32fast::hash(body) == crc => body.to_vec(),
        0 => return Err(damaged_error()),
        // What its list says is the most that comes out.
        8 => inflate_bytes(body, length, crc)?,
        _ => return Err(format!("`{name}` is packed in a way that gnoma does not read")),
    };
    if plain.len() != length {
        return Err(damaged_error());
    }
    let is_unix = listed.get(5) == Some(&UNIX);
    let mode = if is_unix { u32_at(listed, 38)? >> 16 } else { 0 };
    if mode & KIND == LINK {
        into.add_link(name, &plain)
    } else {
        into.write_file(name, &plain, mode & 0o111 != 0)
    }
}

/// The packed bytes of a file.
fn packed_bytes(bytes: &[u8], at: usize, length: usize) -> Result<&[u8], String> {
    let local = bytes.get(at..).filter(|it| it.starts_with(LOCAL)).ok_or_else(damaged_error)?;
    let begin = LOCAL_BYTES + usize_of(local, 26)? + usize_of(local, 28)?;
    local.get(begin..).and_then(|it| it.get(..length)).ok_or_else(damaged_error)
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, String> {
    let part = bytes.get(at..).and_then(<[u8]>::first_chunk);
    part.map(|part| u16::from_le_bytes(*part)).ok_or_else(damaged_error)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, String> {
    let part = bytes.get(at..).and_then(<[u8]>::first_chunk);
    part.map(|part| u32::from_le_bytes(*part)).ok_or_else(damaged_error)
}

/// Reads a length of two bytes.
fn usize_of(bytes: &[u8], at: usize) -> Result<usize, String> {
    u16_at(bytes, at).map(usize::from)
}

/// A length or place. Larger ones than these are those of archives that are too large anyway.
fn usize_at(bytes: &[u8], at: usize) -> Result<usize, String> {
    usize::try_from(u32_at(bytes, at)?).map_err(|_| damaged_error())
}

fn damaged_error() -> String {
    "the archive is damaged".to_owned()
}
