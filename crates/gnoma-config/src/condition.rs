//! Shares as routing rules have them, and the names of arms, as people write them.

use gnoma_core::ModelRef;

/// The largest share, in percent.
const ALL_PERCENT: u8 = 100;

/// A range of percent, both ends in it; the first is no larger than the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// The first percent of the range.
    pub from: u8,
    /// Last, up to 100.
    pub to: u8,
}

/// A number of at most three digits, without a sign.
fn parse_digits(text: &str) -> Option<u16> {
    let is_short = text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_short)
}

impl Share {
    /// Reads a range such as `40-100`.
    #[must_use]
    pub(crate) fn parse_range(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let percent = |text: &str| u8::try_from(parse_digits(text.trim())?).ok();
        let share = Self { from: percent(from)?, to: percent(to)? };
        (share.from <= share.to && share.to <= ALL_PERCENT).then_some(share)
    }
}

/// The arm that `provider/model` names; the model may have further slashes.
#[must_use]
pub fn arm_named(text: &str) -> Option<ModelRef> {
    let (provider, model) = text.split_once('/')?;
    let is_name = |name: &str| {
        !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control())
    };
    (is_name(provider) && is_name(model))
        .then(|| ModelRef { provider: provider.to_owned(), model: model.to_owned() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn complexity_range_is_parsed_in_percent() {
        assert_eq!(Share::parse_range("40-100"), Some(Share { from: 40, to: 100 }));
        for wrong in ["40", "60-40", "0-101", "-1-5", "0-1000", "a-b", "0.4-1"] {
            assert_eq!(Share::parse_range(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn first_slash_separates_provider_and_model() {
        let arm = arm_named("openrouter/meta/llama").unwrap();
        assert_eq!((arm.provider.as_str(), arm.model.as_str()), ("openrouter", "meta/llama"));
        for wrong in ["", "mistral", "/large", "mistral/", "mistral/la rge"] {
            assert_eq!(arm_named(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn parsed_ranges_stay_within_bounds(text in "[0-9:+ -]{0,12}|\\PC{0,12}") {
            if let Some(share) = Share::parse_range(&text) {
                prop_assert!(share.from <= share.to && share.to <= ALL_PERCENT);
            }
        }
    }
}
