//! Keys by which programs tell the entries of a list apart: `<Row key="f4Xk2Lq9">`, `{ key: "k3J9xQ2m", label: "One" }`,
//! `{"_key":"a1b2c3d4e5f6","_type":"block"}`, `data-key="b7Qz9LkP"`. They look as keys of services do.

use memchr::memmem;

use super::place::NamedValue;

/// Longest such key: a nanoid has 21 letters, a number of a row may have some more.
const MAX_KEY_BYTES: usize = 26;
/// The number of bytes that are looked at on each side of the key, in the element or object that it stands in.
const REACH: usize = 200;
/// Attributes of elements that hold such keys, with or without the element around them.
const DATA_NAMES: [&[u8]; 4] = [b"data-key", b"data-row-key", b"data-item-key", b"data-node-key"];
/// Names beside a key of something that is shown.
const SIBLINGS: [&[u8]; 12] = [
    b"children",
    b"_type",
    b"label",
    b"title",
    b"text",
    b"dataindex",
    b"icon",
    b"render",
    b"component",
    b"checked",
    b"tooltip",
    b"disabled",
];

/// True if the value is the key of an entry, by its name and by the text around it.
pub(super) fn is_list_key(text: &[u8], place: &NamedValue) -> bool {
    let Some(name) = text.get(place.name.clone()) else { return false };
    let is_short = place.value.len() <= MAX_KEY_BYTES;
    if !is_short || !matches!(place.rule, "key" | "high-entropy") {
        return false;
    }
    let name = name.to_ascii_lowercase();
    if DATA_NAMES.contains(&name.as_slice()) {
        return true;
    }
    if name.strip_prefix(b"_").unwrap_or(&name) != b"key" {
        return false;
    }
    let before = text.get(..place.name.start).unwrap_or_default();
    let end = text.len().min(place.value.end + REACH);
    let behind = text.get(place.value.end..end).unwrap_or_default();
    let near = before.get(before.len().saturating_sub(REACH)..).unwrap_or_default();
    is_attribute(before) || has_sibling(near, behind)
}

/// True if a tag is open at the end of `before`: `<Row `, `<li class="x" `.
pub(super) fn is_attribute(before: &[u8]) -> bool {
    let before = before.get(before.len().saturating_sub(REACH)..).unwrap_or_default();
    let Some(open) = memchr::memrchr2(b'<', b'>', before) else { return false };
    let is_open = before.get(open) == Some(&b'<');
    // `<add key="…" value="…"/>` is a setting.
    let tag = before.get(open + 1..).unwrap_or_default();
    is_open && tag.first().is_some_and(u8::is_ascii_alphabetic) && !tag.starts_with(b"add ")
}

/// True if the name of something that is shown stands in the same braces.
fn has_sibling(before: &[u8], behind: &[u8]) -> bool {
    let before = memchr::memrchr(b'{', before).map_or(before, |at| before.get(at..).unwrap_or(b""));
    let behind = memchr::memchr(b'}', behind).map_or(behind, |at| behind.get(..at).unwrap_or(b""));
    [before, behind].into_iter().any(|side| {
        let side = side.to_ascii_lowercase();
        SIBLINGS.iter().any(|name| {
            memmem::find_iter(&side, name).any(|at| {
                let next = side.get(at + name.len()..).unwrap_or_default();
                let next = next.iter().find(|byte| !matches!(byte, b'"' | b'\'' | b' ' | b'?'));
                next == Some(&b':')
            })
        })
    })
}
