//! Ids of sessions: the second they began, in UTC, and six digits of chance.

use gnoma_core::store::SessionId;

use crate::time;

/// The id of a session that begins at `at_ms` (milliseconds since 1970), in the format that [`SessionId`]
/// describes. The lowest 24 bits of `chance` distinguish it from others of the same second; take them from a source
/// of random numbers.
#[must_use]
pub fn session_id(at_ms: i64, chance: i64) -> SessionId {
    let second = time::timestamp_from_ms(at_ms).strftime("%Y%m%d-%H%M%S");
    SessionId::new(format!("{second}-{:06x}", chance & 0x00ff_ffff))
}

/// Reports whether a text has the form of an id: the digits of a date and of a time, and six of `0-9a-f`. Programs
/// that drive sessions name theirs by UUIDs.
pub(crate) fn is_session_id(text: &str) -> bool {
    const OWN: &[u8] = b"dddddddd-dddddd-xxxxxx";
    const UUID: &[u8] = b"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    has_shape(text, OWN) || has_shape(text, UUID)
}

fn has_shape(text: &str, shape: &[u8]) -> bool {
    text.len() == shape.len()
        && text.bytes().zip(shape).all(|(byte, shape)| match shape {
            b'd' => byte.is_ascii_digit(),
            b'x' => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            _ => byte == *shape,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_id_contains_the_utc_second() {
        assert_eq!(session_id(0, 0xabc).as_str(), "19700101-000000-000abc");
        assert_eq!(session_id(-1, 0).as_str(), "19691231-235959-000000");
        assert_eq!(session_id(1_709_210_096_789, -1).as_str(), "20240229-123456-ffffff");
        for extreme in [i64::MIN, i64::MAX] {
            assert!(!session_id(extreme, 0).as_str().is_empty());
        }
    }

    #[test]
    fn session_id_check_rejects_other_texts() {
        assert!(is_session_id(session_id(1_709_210_096_789, 7).as_str()));
        assert!(is_session_id("12345678-1234-4234-9234-123456789abc"));
        assert!(!is_session_id("12345678-1234-4234-9234-123456789ABC"));
        for text in [
            "",
            "20240229-123456",
            "20240229-123456-00000",
            "20240229-123456-0000000",
            "20240229-123456-00000G",
            "20240229-123456-ABCDEF",
            "20240229_123456-000000",
            "2024-0229123456-000000",
            "../etc-passwd-00000000",
            "２0240229-123456-0000",
        ] {
            assert!(!is_session_id(text), "{text}");
        }
    }
}
