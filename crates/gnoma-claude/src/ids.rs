//! Session and message ids as the Claude wire writes them.

use gnoma_host::clock;

/// A random id in the form of a UUID, version 4.
pub(super) fn random_uuid() -> String {
    of_bits((u128::from(clock::random_bits()) << 64) | u128::from(clock::random_bits()))
}

fn of_bits(bits: u128) -> String {
    let bits = (bits & !(0xF << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

/// True if a text has the form of a UUID.
pub(super) fn is_uuid(text: &str) -> bool {
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match DASHES.contains(&at) {
            true => byte == b'-',
            false => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_form_of_a_uuid() {
        assert_eq!(of_bits(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(of_bits(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert!(is_uuid(&random_uuid()) && random_uuid() != random_uuid());
        assert!(!is_uuid("20261122") && !is_uuid(&"-".repeat(36)));
    }
}
