//! Patterns over names of arms and over paths. No character classes and no alternatives: a rule takes lists.

use gnoma_core::glob::{Token, glob_matches, tokens_match};

/// Characters of a pattern that count; a longer one fits nothing.
pub const MOST_GLOB_CHARS: usize = 256;

/// Reports whether a glob fits an arm's name. `*` stands for any characters, `?` for one; case does not matter.
#[must_use]
pub fn fits_arm(glob: &str, arm: &str) -> bool {
    glob.chars().count() <= MOST_GLOB_CHARS
        && glob_matches(&glob.to_lowercase(), &arm.to_lowercase())
}

/// Reports whether a glob fits a path with `/` between its parts. `*` stays within a part, `**` goes through
/// several, and `**/` stands for any folders or none. A glob without `/` is about the last part. Case does not
/// matter: there are file systems where it does not, and a rule too many is better than one too few.
#[must_use]
pub fn fits_path(glob: &str, path: &str) -> bool {
    let (glob, path) = (glob.to_lowercase(), path.to_lowercase());
    let path = path.trim_start_matches("./");
    let glob = glob.trim_start_matches("./");
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    let subject = if glob.contains('/') { path } else { last };
    tokenize_path(glob).is_some_and(|tokens| tokens_match(&tokens, subject))
}

/// A pattern's parts; none where it is too long to count.
fn tokenize_path(glob: &str) -> Option<Vec<Token>> {
    let star = |stars| match stars {
        0 => None,
        1 => Some(Token::AnyInPart),
        _ => Some(Token::Any),
    };
    if glob.chars().count() > MOST_GLOB_CHARS {
        return None;
    }
    let mut tokens = Vec::new();
    let mut stars = 0;
    for char in glob.chars() {
        if char == '*' {
            stars += 1;
            continue;
        }
        let run = star(stars);
        stars = 0;
        let folders = run == Some(Token::Any) && char == '/' && begins_part(&tokens);
        match (folders, char) {
            (true, _) => tokens.extend([Token::Folders, Token::InFolders]),
            (false, '?') => tokens.extend(run.into_iter().chain([Token::One])),
            (false, _) => tokens.extend(run.into_iter().chain([Token::Char(char)])),
        }
    }
    tokens.extend(star(stars));
    Some(tokens)
}

fn begins_part(tokens: &[Token]) -> bool {
    matches!(tokens.last(), None | Some(Token::Char('/') | Token::InFolders))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn routing_rule_glob_matches_provider_and_model() {
        for (glob, arm, fit) in [
            ("anthropic/*", "anthropic/opus", true),
            ("anthropic/*", "vertex/anthropic/opus", false),
            ("*/qwen*", "ollama/qwen3:8b", true),
            ("*/qwen*", "openrouter/ali/qwen3", true),
            ("*", "a/b", true),
            ("Anthropic/Opus", "anthropic/opus", true),
            ("*opus", "anthropic/opus-5", false),
            ("openai/gpt-?", "openai/gpt-5", true),
            ("", "a/b", false),
        ] {
            assert_eq!(fits_arm(glob, arm), fit, "{glob} {arm}");
        }
    }

    #[test]
    fn routing_rule_glob_matches_paths_by_segment_and_depth() {
        for (glob, path, fit) in [
            ("src/*.rs", "src/lib.rs", true),
            ("src/*.rs", "src/a/lib.rs", false),
            ("src/**/*.rs", "src/lib.rs", true),
            ("src/**/*.rs", "src/a/b/lib.rs", true),
            ("**/*.rs", "lib.rs", true),
            ("**/test/*", "a/test/x", true),
            ("**/test/*", "a/mytest/x", false),
            ("migrations/**", "migrations/1/up.sql", true),
            ("*.sql", "db/1.sql", true),
            ("*.sql", "./db/1.sql", true),
            ("src/**", "tests/src/x", false),
        ] {
            assert_eq!(fits_path(glob, path), fit, "{glob} {path}");
        }
    }

    /// The plain meaning of `*`, to check against.
    fn fits_slowly(glob: &[char], name: &[char]) -> bool {
        match glob.split_first() {
            None => name.is_empty(),
            Some(('*', rest)) => (0..=name.len()).any(|skip| fits_slowly(rest, &name[skip..])),
            Some(('?', rest)) => {
                name.split_first().is_some_and(|(_, name)| fits_slowly(rest, name))
            }
            Some((own, rest)) => name
                .split_first()
                .is_some_and(|(char, name)| char == own && fits_slowly(rest, name)),
        }
    }

    proptest! {
        #[test]
        fn routing_rule_glob_agrees_with_a_brute_force_matcher(glob in "[ab*?]{0,7}", name in "[ab]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = fits_slowly(&chars(&glob), &chars(&name));
            prop_assert_eq!(fits_arm(&glob, &name), expected);
            prop_assert_eq!(fits_path(&glob, &name), expected);
        }

        #[test]
        fn routing_rule_glob_matching_always_terminates(glob in "[a*/?]{0,300}", name in "[a/]{0,1200}") {
            let _either = (fits_arm(&glob, &name), fits_path(&glob, &name));
        }
    }
}
