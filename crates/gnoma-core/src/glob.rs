//! Matches names and paths against patterns, in time that grows with pattern times name. [`glob_matches`] is for globs of
//! `*` and `?`; for other dialects, [`tokens_match`] takes the parts of a pattern that the caller has read.

/// Characters of a name that a pattern may fit.
pub const MOST_NAME_CHARS: usize = 1024;

/// A part of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// Exactly this one character.
    Char(char),
    /// Any character but `/`.
    One,
    /// Any characters, or none.
    Any,
    /// Any characters but `/`, or none.
    AnyInPart,
    /// Any folders or none: the way past both of the pair, or in.
    Folders,
    /// The token that follows each [`Token::Folders`].
    InFolders,
}

/// Returns whether a text matches a glob, in which `*` stands for any characters or none and `?` for any one.
///
/// It goes back to the last `*` alone, so that its steps are bounded by the product of the two lengths.
#[must_use]
pub fn glob_matches(glob: &str, text: &str) -> bool {
    let (mut glob, mut text) = (glob.chars(), text.chars());
    // The glob behind the last star, and the text from where that is tried.
    let mut last_star = None;
    loop {
        let rest = text.clone();
        match (glob.next(), text.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                last_star = Some((glob.clone(), rest.clone()));
                text = rest;
            }
            (Some(_), None) => return false,
            (Some(sign), Some(letter)) if sign == '?' || sign == letter => {}
            (_, Some(_)) => match &mut last_star {
                Some((behind, from)) => {
                    from.next();
                    (glob, text) = (behind.clone(), from.clone());
                }
                None => return false,
            },
        }
    }
}

/// True if a name fits a pattern. The function follows all ways through the pattern at once; a name that is too
/// long fits nothing.
#[must_use]
pub fn tokens_match(tokens: &[Token], name: &str) -> bool {
    if name.chars().count() > MOST_NAME_CHARS {
        return false;
    }
    let mut at = vec![false; tokens.len() + 1];
    enter_position(tokens, &mut at, 0);
    for char in name.chars() {
        let mut next = vec![false; tokens.len() + 1];
        let here = tokens.iter().enumerate().filter(|(place, _)| at.get(*place) == Some(&true));
        for (place, token) in here {
            let (stays, goes) = step_token(*token, char);
            if stays {
                enter_position(tokens, &mut next, place);
            }
            if goes {
                enter_position(tokens, &mut next, place + 1);
            }
        }
        if !next.contains(&true) {
            return false;
        }
        at = next;
    }
    at.last() == Some(&true)
}

/// Reports whether a character keeps the match at the token, and whether it moves the match to the next token.
fn step_token(token: Token, char: char) -> (bool, bool) {
    match token {
        Token::Char(own) => (false, own == char),
        Token::One => (false, char != '/'),
        Token::Any => (true, false),
        Token::AnyInPart => (char != '/', false),
        Token::Folders => (false, false),
        Token::InFolders => (true, char == '/'),
    }
}

/// Comes to a place, and to all that are reached from it without a character.
fn enter_position(tokens: &[Token], at: &mut [bool], place: usize) {
    let mut place = place;
    while let Some(seen) = at.get_mut(place) {
        *seen = true;
        place = match tokens.get(place) {
            Some(Token::Any | Token::AnyInPart) => place + 1,
            Some(Token::Folders) => {
                if let Some(inside) = at.get_mut(place + 1) {
                    *inside = true;
                }
                place + 2
            }
            Some(Token::Char(_) | Token::One | Token::InFolders) | None => return,
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a glob means, by trying everything.
    fn matches_slowly(glob: &[char], text: &[char]) -> bool {
        match (glob.split_first(), text.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), _) if matches_slowly(rest, text) => true,
            (Some(('*', _)), Some((_, after))) => matches_slowly(glob, after),
            (Some(('?', rest)), Some((_, after))) => matches_slowly(rest, after),
            (Some((one, rest)), Some((other, after))) if one == other => {
                matches_slowly(rest, after)
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn glob_matching_agrees_with_a_brute_force_matcher(glob in "[aä*?]{0,7}", text in "[aä*?]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(glob_matches(&glob, &text), matches_slowly(&chars(&glob), &chars(&text)));
        }
    }

    #[test]
    fn glob_star_and_question_mark_match_as_wildcards() {
        for (glob, text, expected) in [
            ("fs.*", "fs.read", true),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("*.read", "fs.read", true),
            ("f*.r*d", "fs.read", true),
            ("fs", "fs.read", false),
            ("*x*", "fs.read", false),
            ("?s.*", "fs.read", true),
            ("[f]s", "fs", false),
            (".env.*.sample", ".env.sample", false),
            ("a*b*c", "abbc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("a?c", "aäc", true),
        ] {
            assert_eq!(glob_matches(glob, text), expected, "{glob} {text}");
        }
    }

    #[test]
    fn a_glob_of_many_stars_is_matched_in_few_steps() {
        // Trying everything would take millions of steps for the first, and would not end for the second.
        assert!(!glob_matches(&("a*".repeat(8) + "b"), &"a".repeat(24)));
        assert!(!glob_matches(&("a*".repeat(1_000) + "b"), &"a".repeat(20_000)));
        assert!(glob_matches(&"a*".repeat(1_000), &"a".repeat(20_000)));
    }
}
