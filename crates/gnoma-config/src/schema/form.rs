//! Formats of single values: model names, hours, ranges. Whether an arm exists is not asked here.

use gnoma_core::ThinkingMode;
use gnoma_router::rules::Hours;

use crate::condition::{Share, arm_named};

/// A form of texts.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    what: &'static str,
    /// A text that has it.
    pub example: &'static str,
    /// True if `${VAR}` means a variable in texts of this form.
    pub(super) expands: bool,
    /// `true` if a whole number can stand for its text.
    pub takes_numbers: bool,
    fits: fn(&str) -> bool,
}

impl Form {
    /// Reports whether `text` has this form.
    pub(super) fn is_valid(&self, text: &str) -> bool {
        (self.fits)(text)
    }

    /// In words, with an example.
    pub(super) fn describe_expected(&self) -> String {
        format!("{} such as \"{}\"", self.what, self.example)
    }
}

/// The pattern of all arms of all providers.
const EVERY_ARM: &str = "*";

pub(super) const ARM: Form = Form {
    what: "a provider and a model",
    example: "mistral/devstral-small",
    expands: true,
    takes_numbers: false,
    fits: |text| arm_named(text).is_some() && !text.contains('*'),
};
pub(super) const ARMS: Form = Form {
    what: "a provider and a model, `*` for any,",
    example: "openai/*",
    expands: true,
    takes_numbers: false,
    fits: |text| text == EVERY_ARM || arm_named(text).is_some(),
};
pub(super) const AGENT: Form = Form {
    what: "a name of up to 32 letters, digits, `-` or `_`",
    example: "opencode",
    expands: false,
    takes_numbers: false,
    fits: |text| {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (1..=32).contains(&text.len()) && text.bytes().all(is_known)
    },
};
pub(super) const THINKING: Form = Form {
    what: "off, adaptive, or a number of tokens",
    example: "adaptive",
    expands: true,
    takes_numbers: true,
    fits: |text| text.parse::<ThinkingMode>().is_ok(),
};
pub(super) const MODEL: Form = Form {
    what: "a model",
    example: "devstral-small",
    expands: true,
    takes_numbers: false,
    fits: is_filled,
};
pub(super) const POOL: Form = Form {
    what: "a name",
    example: "gateway",
    expands: true,
    takes_numbers: false,
    fits: is_filled,
};
pub(super) const COMMAND: Form = Form {
    what: "a command",
    example: "cargo test",
    expands: false,
    takes_numbers: false,
    fits: is_filled,
};
pub(super) const CURRENCY: Form = Form {
    what: "a currency of three letters",
    example: "EUR",
    expands: false,
    takes_numbers: false,
    fits: |text| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic()),
};
pub(super) const TOPIC: Form = Form {
    what: "an https address of a topic",
    example: "https://ntfy.sh/my-topic",
    expands: true,
    takes_numbers: false,
    fits: is_topic,
};
pub(super) const GLOB: Form = Form {
    what: "a glob of files",
    example: "src/**",
    expands: false,
    takes_numbers: false,
    fits: is_filled,
};
pub(super) const HOURS: Form = Form {
    what: "hours of a day",
    example: "09:00-17:00",
    expands: true,
    takes_numbers: false,
    fits: |text| Hours::parse_range(text).is_some(),
};
pub(super) const SHARE: Form = Form {
    what: "a range within 0 to 100",
    example: "40-100",
    expands: true,
    takes_numbers: false,
    fits: |text| Share::parse_range(text).is_some(),
};

/// A server on this machine needs no TLS.
fn is_topic(text: &str) -> bool {
    let (is_secure, rest) = match text.split_once("://") {
        Some(("https", rest)) => (true, rest),
        Some(("http", rest)) => (false, rest),
        _ => return false,
    };
    let Some((host, topic)) = rest.split_once('/') else { return false };
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let is_own = matches!(name, "localhost" | "127.0.0.1" | "[::1]");
    let is_plain = !text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '@');
    is_plain && !name.is_empty() && !topic.is_empty() && (is_secure || is_own)
}

fn is_filled(text: &str) -> bool {
    !text.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ntfy_topic_must_use_https_unless_local() {
        for address in ["https://ntfy.sh/a", "https://n.example:8443/a-b", "http://localhost:80/a"]
        {
            assert!(TOPIC.is_valid(address), "{address}");
        }
        for address in [
            "http://ntfy.sh/a",
            "https://ntfy.sh",
            "https://ntfy.sh/",
            "https:///a",
            "https://u:p@ntfy.sh/a",
            "ntfy.sh/a",
            "http://localhost.example/a",
        ] {
            assert!(!TOPIC.is_valid(address), "{address}");
        }
    }
}
