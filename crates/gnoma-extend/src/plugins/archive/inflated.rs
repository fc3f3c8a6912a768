//! Inflates deflate and gzip data, and no more than is allowed.

use gnoma_net::gzip_head;
use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_with_limit};

use super::super::content_error::PluginArchiveError;

/// Most bytes of what comes out of an archive, including what surrounds the files.
pub(super) const MAX_UNPACKED_BYTES: usize = 68 << 20;

/// Unpacks a raw deflate stream.
pub(super) fn inflate_bytes(
    bytes: &[u8],
    most: usize,
    crc: u32,
) -> Result<Vec<u8>, PluginArchiveError> {
    let plain = decompress_to_vec_with_limit(bytes, most).map_err(|error| {
        if error.status == TINFLStatus::HasMoreOutput {
            PluginArchiveError::UnpacksToMore { limit_mib: MAX_UNPACKED_BYTES >> 20 }
        } else {
            PluginArchiveError::Damaged
        }
    })?;
    let is_whole = crc32fast::hash(&plain) == crc;
    if is_whole { Ok(plain) } else { Err(PluginArchiveError::Damaged) }
}

/// Unpacks a gzip file of one part (RFC 1952).
pub(super) fn gunzip_bytes(bytes: &[u8]) -> Result<Vec<u8>, PluginArchiveError> {
    let read = || -> Option<(&[u8], u32)> {
        let at = gzip_head(bytes).ok()??;
        let (body, end) = bytes.get(at..)?.split_last_chunk::<8>()?;
        Some((body, u32::from_le_bytes(*end.first_chunk()?)))
    };
    let (body, crc) = read().ok_or(PluginArchiveError::Damaged)?;
    inflate_bytes(body, MAX_UNPACKED_BYTES, crc)
}
