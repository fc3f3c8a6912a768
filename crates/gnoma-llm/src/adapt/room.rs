//! Parses the maximum output tokens from a server's refusal. Pure.

/// Words that stand before the size of a window.
const BEFORE_WINDOW: &[&str] = &[
    "maximum context length is ",
    "maximum context length of ",
    "context length is ",
    "context length of ",
    "context window of ",
    "context window is ",
    "context limit is ",
    "context limit of ",
    "`max_new_tokens` must be <= ",
];
/// Names of the limit on an answer.
const LIMITS: &[&str] = &[
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxoutputtokens",
    "max_new_tokens",
    "num_predict",
    "max tokens",
    "maximum tokens",
    "completion tokens",
    "output tokens",
    "in the completion",
    "in the output",
];
/// An answer that is given fewer tokens than this says little.
const LEAST_ANSWER: u64 = 256;
/// Tokens that a server's count and ours may differ by.
const MARGIN: u64 = 16;
/// Bytes of a token where nobody told how many there are; prompts have more.
const BYTES_PER_TOKEN: u64 = 3;

/// The room that prompt and answer share, and what filled it when it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// The size of the window, in tokens in all.
    pub(crate) window: u64,
    /// Tokens of the prompt that was refused.
    pub(crate) input: u64,
    /// Bytes of that prompt.
    pub(crate) bytes: u64,
    /// Most tokens of an answer that were asked for.
    pub(crate) most: u32,
}

impl Room {
    /// Most tokens of an answer to a prompt of so many bytes; `None` where nothing worth asking for is
    /// left.
    pub(crate) fn max_answer_tokens(&self, bytes: u64) -> Option<u32> {
        let grown = bytes.saturating_sub(self.bytes);
        // What is added may be denser than what was there.
        let added = grown.saturating_mul(self.input).saturating_mul(5) / self.bytes.max(1) / 4;
        let left = self.window.saturating_sub(self.input.saturating_add(added) + MARGIN);
        (left >= LEAST_ANSWER).then(|| self.most.min(u32::try_from(left).unwrap_or(u32::MAX)))
    }

    /// The room that `text` tells of, which refuses an answer of `most` tokens to a prompt of `bytes`.
    pub(crate) fn from_refusal(text: &str, most: u32, bytes: u64) -> Option<Self> {
        if !names_limit(text) {
            return None;
        }
        let numbers = extract_numbers(text);
        let window = parse_window(text)?;
        let own = u64::from(most);
        let is_sum = |n: u64| numbers.iter().any(|part| part.saturating_add(own) == n);
        let is_input = |n: &&u64| ![window, own].contains(n) && !is_sum(**n) && **n >= MARGIN;
        let input = numbers.iter().filter(is_input).max().copied();
        let input = input.unwrap_or(bytes / BYTES_PER_TOKEN);
        let room = Self { window, input, bytes, most };
        room.max_answer_tokens(bytes).filter(|left| *left < most).map(|_| room)
    }
}

/// The size of the window that `text` names: behind a word for it, or after the sum that exceeds it.
fn parse_window(text: &str) -> Option<u64> {
    let after = BEFORE_WINDOW.iter().find_map(|before| Some(text.split_once(before)?.1));
    let sum = || Some(text.split_once("context limit: ")?.1.split_once("> ")?.1);
    extract_numbers(after.or_else(sum)?).first().copied()
}

/// The most tokens of an answer that `text` allows, which refuses one of `most`.
pub(crate) fn parse_token_limit(text: &str, most: u32) -> Option<u32> {
    if !names_limit(text) || parse_window(text).is_some() {
        return None;
    }
    let fits = |n: &u64| *n >= MARGIN && *n < u64::from(most);
    let found = extract_numbers(text).into_iter().filter(fits).max()?;
    let found = if text.contains("exclusive") { found - 1 } else { found };
    u32::try_from(found).ok()
}

fn names_limit(text: &str) -> bool {
    LIMITS.iter().any(|limit| text.contains(limit))
}

/// The numbers of a text that are no part of a word or of a name.
fn extract_numbers(text: &str) -> Vec<u64> {
    let is_joint = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/');
    let mut found = Vec::new();
    let words = text.split(|c: char| !(is_joint(c) || matches!(c, ',' | '.')));
    for word in words {
        let word = word.trim_end_matches(['.', ',']);
        if let Ok(number) = word.replace(',', "").parse() {
            found.push(number);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_window_and_prompt_size_are_parsed_from_the_error() {
        for (text, most, told) in [
            (
                "this model's maximum context length is 8192 tokens. however, you requested 9000 tokens \
                 (808 in the messages, 8192 in the completion). please reduce the length",
                8192,
                Some((8192, 808)),
            ),
            (
                "'max_tokens' or 'max_completion_tokens' is too large: 8192. this model's maximum context \
                 length is 8192 tokens and your request has 3000 input tokens (8192 > 8192 - 3000).",
                8192,
                Some((8192, 3000)),
            ),
            (
                "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease \
                 input length or `max_tokens` and try again",
                21333,
                Some((200_000, 188_240)),
            ),
            (
                "`inputs` tokens + `max_new_tokens` must be <= 4097. given: 3000 `inputs` tokens and 4000 \
                 `max_new_tokens`",
                4000,
                Some((4097, 3000)),
            ),
            // The prompt alone is too long.
            (
                "this model's maximum context length is 8192 tokens. however, you requested 17000 tokens \
                 (9000 in the messages, 8000 in the completion)",
                8000,
                None,
            ),
            ("this model's maximum context length is 8192 tokens", 8192, None),
        ] {
            let room = Room::from_refusal(text, most, 9_000).map(|room| (room.window, room.input));
            assert_eq!(room, told, "{text}");
        }
    }

    #[test]
    fn max_tokens_limit_is_parsed_from_the_error() {
        for (text, most, told) in [
            (
                "max_tokens is too large: 32000. this model supports at most 16384 completion tokens, whereas you provided 32000.",
                32_000,
                Some(16_384),
            ),
            (
                "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku-20241022",
                64_000,
                Some(8_192),
            ),
            (
                "`max_tokens` must be less than or equal to `8,192`, the maximum value for `max_tokens`",
                32_000,
                Some(8_192),
            ),
            (
                "invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
                32_000,
                Some(8_192),
            ),
            (
                "it has a maxoutputtokens value of 100000 but the supported range is from 1 (inclusive) to 8193 (exclusive).",
                100_000,
                Some(8_192),
            ),
            ("max_tokens must be positive", 100, None),
        ] {
            assert_eq!(parse_token_limit(text, most), told, "{text}");
        }
    }

    #[test]
    fn growing_prompt_lowers_max_tokens_to_fit_the_context_window() {
        let room = Room { window: 8192, input: 3000, bytes: 9000, most: 8192 };
        assert_eq!(room.max_answer_tokens(9_000), Some(8192 - 3000 - 16));
        assert!(room.max_answer_tokens(12_000).unwrap() < 8192 - 4000);
        assert_eq!(room.max_answer_tokens(24_000), None);
        assert_eq!(Room { most: 100, ..room }.max_answer_tokens(9_000), Some(100));
    }
}
