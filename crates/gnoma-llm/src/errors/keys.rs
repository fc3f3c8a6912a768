//! Diagnoses a rejected API key (HTTP 401) without showing it.

use gnoma_core::{ErrorKind, ProviderError};

use crate::Profile;

/// The prefixes of vendors' keys, the longer prefix first, each with the name of the provider and of the vendor.
const BEGINNINGS: &[(&str, &str, &str)] = &[
    ("sk-ant-", "anthropic", "Anthropic"),
    ("sk-or-", "openrouter", "OpenRouter"),
    ("sk-proj-", "openai", "OpenAI"),
    ("sk-svcacct-", "openai", "OpenAI"),
    ("AIza", "google", "Google"),
    ("gsk_", "groq", "Groq"),
    ("xai-", "xai", "xAI"),
    ("pplx-", "perplexity", "Perplexity"),
    ("hf_", "huggingface", "Hugging Face"),
    ("ghp_", "github", "GitHub"),
    ("github_pat_", "github", "GitHub"),
    ("AKIA", "aws", "AWS"),
];

/// Parts of what stands in instructions in place of a key, in lower case.
const PLACEHOLDERS: &[&str] =
    &["your", "api_key", "api-key", "apikey", "xxxx", "...", "…", "<", "$", "export ", "changeme"];

/// The error of a key that cannot be sent, without asking anybody: a whole assignment, a line break, or a letter that
/// no key has.
pub(crate) fn key_error(profile: &Profile) -> Option<ProviderError> {
    let key = profile.key.as_ref()?.expose();
    let unusable = |message: String, hint: String| {
        Some(ProviderError::new(ErrorKind::Auth, &profile.name, message).with_hint(hint))
    };
    let place = profile.key_place();
    if key.trim_start_matches('{').starts_with("env:") {
        let message = "the key is the name of a variable, not its value".to_owned();
        return unusable(message, format!("Write `${{NAME}}` in {place}."));
    }
    if is_assignment(key) {
        let message = "the key is a whole assignment, such as NAME=value".to_owned();
        return unusable(message, format!("Leave only what follows the `=` in {place}."));
    }
    let odd = key.chars().find(|c| !c.is_ascii_graphic())?;
    let what = match odd {
        ' ' => "a space, which no key has".to_owned(),
        '\n' | '\r' => "a line break".to_owned(),
        odd if odd.is_control() || odd.is_whitespace() || is_unseen(odd) => {
            format!("an invisible character (U+{:04X})", u32::from(odd))
        }
        odd => format!("`{odd}`, which no key has"),
    };
    unusable(format!("the key contains {what}"), format!("Copy the key again into {place}."))
}

/// Reports whether a key is a line of a shell or of an environment file, such as `export OPENAI_API_KEY=…`.
fn is_assignment(key: &str) -> bool {
    let Some((before, value)) = key.split_once('=') else { return false };
    let name = before.strip_prefix("export ").unwrap_or(before).trim();
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    // Keys in base64 end with `=`.
    let has_value = !value.trim_matches('=').is_empty();
    has_value && name.contains('_') && name.chars().all(is_name) || before.starts_with("export ")
}

fn is_unseen(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A sentence, after a blank, about a key that is plainly another one's, or none.
pub(super) fn describe_wrong_key(profile: &Profile) -> String {
    let Some(key) = &profile.key else { return String::new() };
    let key = key.expose();
    let begun = BEGINNINGS.iter().find(|(begin, ..)| key.starts_with(begin));
    if let Some((begin, provider, vendor)) = begun
        && *provider != profile.name
    {
        return format!(" It looks like a key of {vendor} (`{begin}…`).");
    }
    let lower = key.to_ascii_lowercase();
    let is_placeholder = PLACEHOLDERS.iter().any(|part| lower.contains(part));
    if is_placeholder {
        " It looks like a placeholder, not a key.".to_owned()
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::Secret;

    use super::*;
    use crate::Protocol;

    fn with(key: &str) -> Profile {
        let mut profile = Profile::new("openai", Protocol::OpenAi, "http://x");
        profile.key = Some(Secret::new(key.to_owned()));
        profile
    }

    #[test]
    fn malformed_api_key_error_says_what_is_wrong() {
        for (key, why) in [
            ("sk-a\nbc", "a line break"),
            ("env:MY_KEY", "the name of a variable"),
            ("{env:MY_KEY}", "the name of a variable"),
            ("sk-\u{200b}1", "U+200B"),
            ("sk-\u{a0}1", "U+00A0"),
            ("sk-a\u{2026}", "`\u{2026}`, which no key has"),
            ("sk test 12345678", "a space, which no key has"),
            ("OPENAI_API_KEY=sk-1", "a whole assignment"),
            ("export X=sk-1", "a whole assignment"),
        ] {
            let error = key_error(&with(key)).unwrap();
            assert_eq!(error.kind, ErrorKind::Auth);
            assert!(
                error.message.contains(why) && !format!("{error:?}").contains(key),
                "{error:?}"
            );
        }
        for key in ["sk-proj-a_b.c", "c2VjcmV0a2V5==", "A1B2="] {
            assert_eq!(key_error(&with(key)), None, "{key}");
        }
        assert_eq!(key_error(&Profile::new("p", Protocol::OpenAi, "http://x")), None);
    }

    #[test]
    fn api_key_of_another_vendor_is_recognized_by_its_prefix() {
        for (key, told) in [
            ("sk-ant-api03-abc", "Anthropic"),
            ("AIzaSyA", "Google"),
            ("your-api-key-here", "placeholder"),
            ("$OPENAI_API_KEY", "placeholder"),
            ("sk-...", "placeholder"),
        ] {
            let said = describe_wrong_key(&with(key));
            assert!(said.contains(told) && !said.contains(key), "{key}: {said}");
        }
        for key in ["sk-proj-abc", "sk-abc", "0123"] {
            assert_eq!(describe_wrong_key(&with(key)), "", "{key}");
        }
    }
}
