//! Ids that a wire takes, in place of those it does not.
//!
//! They are functions of the id alone: a call and its result, encoded at different times, agree.

/// A number for an id. The same id gives the same number in every version of gnoma (64-bit FNV-1a), so
/// that a resumed conversation still finds its prompt cache.
pub(crate) fn fingerprint_id(id: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    id.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// An id that every wire takes but Mistral's.
pub(crate) fn stand_in(id: &str) -> String {
    format!("call_{:016x}", fingerprint_id(id))
}
