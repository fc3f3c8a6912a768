//! Zip archives, by their list at the end; stored and deflated files.

use super::{
    super::{
        content_error::{ArchiveEntryFlaw, PluginArchiveError, PluginTreeError},
        tree::check_path,
    },
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

pub(super) fn unpack_zip(
    bytes: &[u8],
    into: &mut UnpackFolder<'_>,
) -> Result<(), PluginArchiveError> {
    let searched = bytes.len().saturating_sub(END_BYTES + MAX_COMMENT_BYTES);
    let tail = bytes.get(searched..).unwrap_or_default();
    let end = tail.windows(END.len()).rposition(|part| part == END);
    let end = end.ok_or(PluginArchiveError::Damaged)?;
    let end = tail.get(end..).unwrap_or_default();
    let count = usize::from(u16_at(end, 10)?);
    if count > MAX_ENTRIES {
        return Err(PluginArchiveError::TooManyEntries);
    }
    let mut at = usize_at(end, 16)?;
    let mut left = MAX_UNPACKED_BYTES;
    for _ in 0..count {
        let listed = bytes.get(at..).filter(|it| it.starts_with(LISTED));
        let listed = listed.ok_or(PluginArchiveError::Damaged)?;
        let (name, extra, comment) =
            (usize_of(listed, 28)?, usize_of(listed, 30)?, usize_of(listed, 32)?);
        let text = listed.get(LISTED_BYTES..LISTED_BYTES + name);
        let text = std::str::from_utf8(text.ok_or(PluginArchiveError::Damaged)?);
        let text = text.map_err(|_| PluginArchiveError::NameNotUtf8)?;
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
) -> Result<(), PluginArchiveError> {
    let refused = |flaw| PluginArchiveError::Entry { name: name.to_owned(), flaw };
    if u16_at(listed, 8)? & 1 != 0 {
        return Err(refused(ArchiveEntryFlaw::Encrypted));
    }
    if name.ends_with('/') {
        check_path(name.trim_end_matches('/')).map_err(PluginTreeError::Path)?;
        return Ok(());
    }
    let (packed, length) = (usize_at(listed, 20)?, usize_at(listed, 24)?);
    let body = packed_bytes(bytes, usize_at(listed, 42)?, packed)?;
    *left = left.checked_sub(length).ok_or(PluginArchiveError::ListedTooLarge)?;
    let crc = u32_at(listed, 16)?;
    let plain = match u16_at(listed, 10)? {
        0 if crc32fast::hash(body) == crc => body.to_vec(),
        0 => return Err(PluginArchiveError::Damaged),
        // What its list says is the most that comes out.
        8 => inflate_bytes(body, length, crc)?,
        _ => return Err(refused(ArchiveEntryFlaw::PackingMethod)),
    };
    if plain.len() != length {
        return Err(PluginArchiveError::Damaged);
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
fn packed_bytes(bytes: &[u8], at: usize, length: usize) -> Result<&[u8], PluginArchiveError> {
    let local = bytes.get(at..).filter(|it| it.starts_with(LOCAL));
    let local = local.ok_or(PluginArchiveError::Damaged)?;
    let begin = LOCAL_BYTES + usize_of(local, 26)? + usize_of(local, 28)?;
    local.get(begin..).and_then(|it| it.get(..length)).ok_or(PluginArchiveError::Damaged)
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, PluginArchiveError> {
    let part = bytes.get(at..).and_then(<[u8]>::first_chunk);
    part.map(|part| u16::from_le_bytes(*part)).ok_or(PluginArchiveError::Damaged)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, PluginArchiveError> {
    let part = bytes.get(at..).and_then(<[u8]>::first_chunk);
    part.map(|part| u32::from_le_bytes(*part)).ok_or(PluginArchiveError::Damaged)
}

/// Reads a length of two bytes.
fn usize_of(bytes: &[u8], at: usize) -> Result<usize, PluginArchiveError> {
    u16_at(bytes, at).map(usize::from)
}

/// Reads a length or place of four bytes, the most that an archive within the limits needs.
fn usize_at(bytes: &[u8], at: usize) -> Result<usize, PluginArchiveError> {
    usize::try_from(u32_at(bytes, at)?).map_err(|_| PluginArchiveError::Damaged)
}
