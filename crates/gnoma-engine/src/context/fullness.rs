//! Levels of the context window's fullness, at which compaction begins.

use gnoma_core::session::Fullness;

/// With fewer tokens left a window is about to be full.
const CRITICAL_TOKENS: u64 = 13_000;
/// With fewer tokens left, a notice appears.
const WARNING_TOKENS: u64 = 20_000;
/// Small windows are about to be full when less than this part is left.
const CRITICAL_SHARE: u64 = 3;
/// In small windows, a notice appears when less than this part is left.
const WARNING_SHARE: u64 = 2;

/// Returns how full a window with `used` tokens in it is.
pub(crate) fn classify_fullness(window_tokens: u64, used: u64) -> Fullness {
    let left = window_tokens.saturating_sub(used);
    if left < CRITICAL_TOKENS.min(window_tokens / CRITICAL_SHARE) {
        Fullness::Critical
    } else if left < WARNING_TOKENS.min(window_tokens / WARNING_SHARE) {
        Fullness::Warning
    } else {
        Fullness::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_window_warning_is_by_free_tokens_or_share_of_small_windows() {
        let [ok, warning, critical] = [Fullness::Ok, Fullness::Warning, Fullness::Critical];
        for (window, used, expected) in [
            (200_000, 180_000, ok),
            (200_000, 180_001, warning),
            (200_000, 187_000, warning),
            (200_000, 187_001, critical),
            (200_000, 300_000, critical),
            (9_000, 4_500, ok),
            (9_000, 4_501, warning),
            (9_000, 6_000, warning),
            (9_000, 6_001, critical),
        ] {
            assert_eq!(classify_fullness(window, used), expected, "{used} of {window}");
        }
    }
}
