//! Matches names and paths against patterns, in time that grows with pattern times name. Which characters of a
//! pattern mean what is for those to say who read it.

/// Characters of a name that a pattern may fit.
pub const MOST_NAME_CHARS: usize = 1024;

/// A part of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// This character.
    Char(char),
    /// Any character but `/`.
    One,
    /// Any characters, or none.
    Any,
    /// Any characters but `/`, or none.
    AnyInPart,
    /// Any folders or none: the way past both of the pair, or in.
    Folders,
    /// What follows each [`Token::Folders`].
    InFolders,
}

/// Whether a name fits a pattern. Walks all ways through the pattern at once; a name that is too long fits nothing.
#[must_use]
pub fn fits(tokens: &[Token], name: &str) -> bool {
    if name.chars().count() > MOST_NAME_CHARS {
        return false;
    }
    let mut at = vec![false; tokens.len() + 1];
    enter(tokens, &mut at, 0);
    for char in name.chars() {
        let mut next = vec![false; tokens.len() + 1];
        let here = tokens.iter().enumerate().filter(|(place, _)| at.get(*place) == Some(&true));
        for (place, token) in here {
            let (stays, goes) = step(*token, char);
            if stays {
                enter(tokens, &mut next, place);
            }
            if goes {
                enter(tokens, &mut next, place + 1);
            }
        }
        if !next.contains(&true) {
            return false;
        }
        at = next;
    }
    at.last() == Some(&true)
}

/// Whether a character leaves the walker where it is, and whether it takes it on.
fn step(token: Token, char: char) -> (bool, bool) {
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
fn enter(tokens: &[Token], at: &mut [bool], place: usize) {
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
