//! Foreign text as it is shown.

/// Most of a foreign body that is quoted when it is not understood, in characters.
const MAX_QUOTE_CHARS: usize = 300;

/// `text` without blanks around it and cut; an HTML page is only named.
pub(crate) fn quote(text: &str) -> String {
    let text = text.trim();
    if text.starts_with('<') {
        return "the server answered with an HTML page".to_owned();
    }
    match text.char_indices().nth(MAX_QUOTE_CHARS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}
