//! What packed bytes hold: deflate and gzip, no more of it than is allowed.

use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_with_limit};

/// Most bytes of what comes out of an archive, with what stands around the files.
pub(super) const MAX_UNPACKED_BYTES: usize = 68 << 20;

/// What a raw deflate stream holds.
pub(super) fn inflate(bytes: &[u8], most: usize, crc: u32) -> Result<Vec<u8>, String> {
    let plain = decompress_to_vec_with_limit(bytes, most).map_err(|error| {
        if error.status == TINFLStatus::HasMoreOutput {
            format!("it unpacks to more than {} MiB", MAX_UNPACKED_BYTES >> 20)
        } else {
            "the archive is damaged".to_owned()
        }
    })?;
    if crc32fast::hash(&plain) == crc {
        Ok(plain)
    } else {
        Err("the archive is damaged".to_owned())
    }
}

/// Flags of a gzip file: what stands before its content.
const HAS_CRC: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;

/// What a gzip file of one part holds (RFC 1952).
pub(super) fn gunzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let read = || -> Option<(&[u8], u32)> {
        let flags = *bytes.get(3).filter(|_| bytes.get(2) == Some(&8))?;
        let mut at = 10;
        if flags & HAS_EXTRA != 0 {
            at += 2 + usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        }
        for text in [HAS_NAME, HAS_COMMENT] {
            if flags & text != 0 {
                at += 1 + bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
            }
        }
        at += if flags & HAS_CRC != 0 { 2 } else { 0 };
        let (body, end) = bytes.get(at..)?.split_last_chunk::<8>()?;
        Some((body, u32::from_le_bytes(*end.first_chunk()?)))
    };
    let (body, crc) = read().ok_or("the archive is damaged")?;
    inflate(body, MAX_UNPACKED_BYTES, crc)
}
