//! Bytes out and in: little-endian base-128 numbers and counted strings. Reading trusts nothing.

use super::hash::{HASH_BYTES, Hash};

/// Appends a number, seven bits a byte.
pub(super) fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a length and the bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The bytes that are left to read. Every method gives `None` where the bytes end too early.
pub(super) struct ByteReader<'a>(pub(super) &'a [u8]);

impl<'a> ByteReader<'a> {
    /// The next `count` bytes.
    pub(super) fn take_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    /// Reads the next byte.
    pub(super) fn read_byte(&mut self) -> Option<u8> {
        self.take_bytes(1)?.first().copied()
    }

    /// Reads the next number.
    pub(super) fn read_number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.read_byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A number that fits 32 bits.
    pub(super) fn read_u32(&mut self) -> Option<u32> {
        self.read_number()?.try_into().ok()
    }

    /// Reads the next counted string.
    pub(super) fn read_bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.read_number()?).ok()?;
        self.take_bytes(count)
    }

    /// Reads the next digest.
    pub(super) fn read_hash(&mut self) -> Option<Hash> {
        Some(Hash(self.take_bytes(HASH_BYTES)?.try_into().ok()?))
    }

    /// Reports whether everything was read.
    pub(super) fn is_done(&self) -> bool {
        self.0.is_empty()
    }
}
