//! Tar archives: POSIX ustar with the long names of GNU and pax.

use super::{
    super::{
        content_error::{ArchiveEntryFlaw, PluginArchiveError, PluginTreeError},
        tree::check_path,
    },
    unpacked::{MAX_ENTRIES, UnpackFolder},
};

const BLOCK: usize = 512;

/// The notes about the next entry of the archive.
#[derive(Default)]
struct Notes {
    path: Option<String>,
    link: Option<String>,
}

pub(super) fn unpack_tar(
    bytes: &[u8],
    into: &mut UnpackFolder<'_>,
) -> Result<(), PluginArchiveError> {
    let (mut rest, mut notes) = (bytes, Notes::default());
    for _ in 0..MAX_ENTRIES {
        let Some((header, after)) = rest.split_at_checked(BLOCK) else {
            return Err(PluginArchiveError::NotReadable);
        };
        if header.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        check_sum(header)?;
        let size = usize::try_from(parse_octal(header_field(header, 124, 12))?)
            .map_err(|_| PluginArchiveError::NotReadable)?;
        let body = after.get(..size).ok_or(PluginArchiveError::NotReadable)?;
        rest = after.get(size.next_multiple_of(BLOCK)..).unwrap_or_default();
        let kind = header.get(156).copied().unwrap_or_default();
        match kind {
            b'L' => notes.path = Some(to_utf8(until_zero(body))?),
            b'K' => notes.link = Some(to_utf8(until_zero(body))?),
            b'x' => parse_pax(body, &mut notes)?,
            // Notes about the whole archive.
            b'g' => (),
            _ => unpack_entry(kind, header, body, std::mem::take(&mut notes), into)?,
        }
    }
    Err(PluginArchiveError::TooManyEntries)
}

fn unpack_entry(
    kind: u8,
    header: &[u8],
    body: &[u8],
    notes: Notes,
    into: &mut UnpackFolder<'_>,
) -> Result<(), PluginArchiveError> {
    let name = match notes.path {
        Some(path) => path,
        None => entry_name(header)?,
    };
    let name = name.strip_prefix("./").unwrap_or(&name);
    let refused = |flaw| PluginArchiveError::Entry { name: name.to_owned(), flaw };
    match kind {
        0 | b'0' | b'7' => {
            let runs = parse_octal(header_field(header, 100, 8))? & 0o111 != 0;
            into.write_file(name, body, runs)
        }
        b'5' => {
            let path = check_path(if name.is_empty() { "." } else { name });
            path.map(drop).map_err(|error| PluginTreeError::Path(error).into())
        }
        b'2' => match notes.link {
            Some(target) => into.add_link(name, target.as_bytes()),
            None => into.add_link(name, until_zero(header_field(header, 157, 100))),
        },
        b'1' => Err(refused(ArchiveEntryFlaw::HardLink)),
        _ => Err(refused(ArchiveEntryFlaw::NotRegular)),
    }
}

/// The name as the header has it.
fn entry_name(header: &[u8]) -> Result<String, PluginArchiveError> {
    let name = to_utf8(until_zero(header_field(header, 0, 100)))?;
    let is_posix = header_field(header, 257, 6) == b"ustar\0";
    let prefix =
        if is_posix { to_utf8(until_zero(header_field(header, 345, 155)))? } else { String::new() };
    Ok(if prefix.is_empty() { name } else { format!("{prefix}/{name}") })
}

/// Lines of `LENGTH NAME=VALUE`.
fn parse_pax(mut body: &[u8], notes: &mut Notes) -> Result<(), PluginArchiveError> {
    while !body.is_empty() {
        let space = body.iter().position(|byte| *byte == b' ');
        let space = space.ok_or(PluginArchiveError::NotReadable)?;
        let length = std::str::from_utf8(body.get(..space).unwrap_or_default()).ok();
        let length = length.and_then(|text| text.parse::<usize>().ok());
        let length = length.ok_or(PluginArchiveError::NotReadable)?;
        let line = body.get(space + 1..length).ok_or(PluginArchiveError::NotReadable)?;
        let line = to_utf8(line.strip_suffix(b"\n").unwrap_or(line))?;
        match line.split_once('=') {
            Some(("path", path)) => notes.path = Some(path.to_owned()),
            Some(("linkpath", path)) => notes.link = Some(path.to_owned()),
            Some(("size", _)) => return Err(PluginArchiveError::FileTooLarge),
            _ => (),
        }
        body = body.get(length..).unwrap_or_default();
    }
    Ok(())
}

/// Checks that the header's sum is right: only then is it a header.
fn check_sum(header: &[u8]) -> Result<(), PluginArchiveError> {
    let sum = |(at, byte): (usize, &u8)| {
        if (148..156).contains(&at) { u64::from(b' ') } else { u64::from(*byte) }
    };
    let whole: u64 = header.iter().enumerate().map(sum).sum();
    let is_right = parse_octal(header_field(header, 148, 8))? == whole;
    is_right.then_some(()).ok_or(PluginArchiveError::NotReadable)
}

fn header_field(header: &[u8], at: usize, length: usize) -> &[u8] {
    header.get(at..at + length).unwrap_or_default()
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn parse_octal(field: &[u8]) -> Result<u64, PluginArchiveError> {
    let digits = until_zero(field).trim_ascii();
    let add = |sum: u64, digit: &u8| match digit {
        b'0'..=b'7' => sum.checked_mul(8).map(|sum| sum + u64::from(digit - b'0')),
        _ => None,
    };
    digits.iter().try_fold(0, add).ok_or(PluginArchiveError::NotReadable)
}

fn to_utf8(bytes: &[u8]) -> Result<String, PluginArchiveError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| PluginArchiveError::NameNotUtf8)
}
