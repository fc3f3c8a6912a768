//! Quotes a server's text in an error message.

/// Most of a foreign body that is quoted when it is not understood, in characters.
const MAX_QUOTE_CHARS: usize = 300;
/// Most of a page's title that is shown, in characters.
const MAX_TITLE_CHARS: usize = 80;

/// `text` without blanks around it and cut; an HTML page is only named, and of an error in XML only its message is
/// quoted.
pub(crate) fn quote_text(text: &str) -> String {
    let text = text.trim();
    if is_page(text) {
        return format!("the server answered with {}", describe_page(text));
    }
    let text = xml_message(text).unwrap_or(text);
    match text.char_indices().nth(MAX_QUOTE_CHARS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// Returns the message of an error in XML, as services for storage answer: `<Error><Message>…</Message></Error>`.
fn xml_message(text: &str) -> Option<&str> {
    const TAG: &str = "<message>";
    let start = find_tag(text, TAG).filter(|_| text.starts_with("<?xml"))?;
    let message = text.get(start + TAG.len()..)?.split('<').next()?.trim();
    (!message.is_empty()).then_some(message)
}

/// Reports whether a text begins as an HTML page does. Some services answer in XML that says something, which does
/// not count.
pub(super) fn is_page(text: &str) -> bool {
    text.starts_with('<') && (!text.starts_with("<?xml") || find_tag(text, "<html").is_some())
}

/// An HTML page by its title, which tells a login page from the error of a proxy.
fn describe_page(text: &str) -> String {
    let title = find_tag(text, "<title").and_then(|start| {
        let (_, inside) = text.get(start..)?.split_once('>')?;
        let words = inside.split('<').next()?.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown: String =
            words.chars().filter(|c| !c.is_control()).take(MAX_TITLE_CHARS).collect();
        (!shown.is_empty()).then_some(shown)
    });
    match title {
        Some(title) => format!("an HTML page (\u{201c}{title}\u{201d})"),
        None => "an HTML page".to_owned(),
    }
}

/// Returns the position at which `tag`, in lower case, begins, whatever the case in the text.
fn find_tag(text: &str, tag: &str) -> Option<usize> {
    text.as_bytes()
        .windows(tag.len())
        .position(|window| window.eq_ignore_ascii_case(tag.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_error_page_is_quoted_by_its_title() {
        let of = |title: &str| quote_text(&format!("<!DOCTYPE html><HTML><head>{title}</head>"));
        let named = "the server answered with an HTML page (\u{201c}Log in to WiFi\u{201d})";
        assert_eq!(of("<TITLE lang=en> Log in\n to \u{1b}WiFi</title>"), named);
        for none in ["", "<title></title>", "<title", "<title>"] {
            assert_eq!(of(none), "the server answered with an HTML page", "{none}");
        }
        assert!(of(&format!("<title>{}", "x".repeat(9_000))).len() < 200);
        let xml = "<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>";
        assert_eq!(quote_text(xml), xml);
        let xml = "<?xml version='1.0'?><Error><Code>X</Code><Message> Denied by policy 7 </Message></Error>";
        assert_eq!(quote_text(xml), "Denied by policy 7");
    }
}
