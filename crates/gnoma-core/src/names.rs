//! Matches file names despite differences in Unicode form (NFC, NFD), odd blanks and quotes.
//!
//! macOS writes a narrow blank before `PM` and takes letters apart, office programs write typographic quotes, and
//! messengers put invisible marks in front of names. On a screen they look like what a keyboard types. A name that
//! is not there stands for the only one in its folder that looks the same.

use std::{
    fmt::Write as _,
    os::unix::ffi::OsStrExt as _,
    path::{Component, Path, PathBuf},
};

use unicode_normalization::{UnicodeNormalization, char::canonical_combining_class};

/// Access to the names of files on the disk.
pub trait FileNames {
    /// True if something is at `path`; a link itself counts as well.
    fn is_there(&self, path: &Path) -> bool;

    /// The names in `folder` that are text, within a limit of the implementation's.
    fn names_in(&self, folder: &Path) -> Vec<String>;
}

/// A path with the names on the disk in place of those that look the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPath {
    /// The text of the path.
    pub path: String,
    /// True if all of the path is there; if not, some of the names at its end are as they were given.
    pub is_whole: bool,
}

/// Follows `path` from the folder `cwd`. `None` if it is no text in the end.
#[must_use]
pub fn find_typed_path(path: &str, cwd: &Path, disk: &dyn FileNames) -> Option<FoundPath> {
    if disk.is_there(&cwd.join(path)) {
        return Some(FoundPath { path: path.to_owned(), is_whole: true });
    }
    let mut found = if Path::new(path).is_absolute() { PathBuf::from("/") } else { PathBuf::new() };
    let (mut is_whole, mut is_other) = (true, false);
    for part in Path::new(path).components() {
        let name = match part {
            Component::Normal(name) => name,
            Component::ParentDir | Component::CurDir => {
                found.push(part);
                continue;
            }
            Component::RootDir | Component::Prefix(_) => continue,
        };
        let folder = cwd.join(&found);
        let there = if is_whole { name_on_disk(name.to_str()?, &folder, disk) } else { None };
        is_whole = there.is_some();
        is_other |= there.as_deref().is_some_and(|there| there != name);
        match there {
            Some(there) => found.push(there),
            None => found.push(name),
        }
    }
    // What is not another path stays as it was written.
    let path = if is_other { found.into_os_string().into_string().ok()? } else { path.to_owned() };
    Some(FoundPath { path, is_whole })
}

/// `name`, or the only name in `folder` that looks like it.
fn name_on_disk(name: &str, folder: &Path, disk: &dyn FileNames) -> Option<String> {
    if disk.is_there(&folder.join(name)) {
        return Some(name.to_owned());
    }
    let wanted = typed_form(name);
    let names = disk.names_in(folder);
    let only = |is_alike: &dyn Fn(&str) -> bool| {
        let mut alike = names.iter().filter(|there| is_alike(&typed_form(there)));
        let first = alike.next()?;
        Some(alike.next().is_none().then(|| first.clone()))
    };
    // Blanks at an end are seen on no screen.
    only(&|there| there == wanted)
        .or_else(|| only(&|there| there.trim() == wanted.trim()))
        .flatten()
}

/// `name` as a keyboard types it: letters composed, blanks, quotes and dashes plain, nothing invisible.
#[must_use]
pub fn typed_form(name: &str) -> String {
    if name.is_ascii() {
        return name.to_owned();
    }
    let mut typed = String::with_capacity(name.len());
    let visible = name.chars().filter(|letter| !is_invisible(*letter));
    for letter in visible.nfkc() {
        match plain_form(letter) {
            Some(plain) => typed.push_str(plain),
            None if letter.is_whitespace() => typed.push(' '),
            None => typed.push(letter),
        }
    }
    typed
}

/// Returns the text that a keyboard types for a typographic character.
#[must_use]
pub fn plain_form(letter: char) -> Option<&'static str> {
    match letter {
        '\u{2018}'..='\u{201b}' => Some("'"),
        '\u{201c}'..='\u{201f}' => Some("\""),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some("-"),
        '\u{2026}' => Some("..."),
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(" "),
        _ => None,
    }
}

/// `name` with numbers for the characters that no keyboard types, so that two that look the same differ.
#[must_use]
pub fn spell_out(name: &str) -> String {
    let mut spelled = String::new();
    for letter in name.chars() {
        let is_odd = is_invisible(letter)
            || plain_form(letter).is_some()
            || (letter.is_whitespace() && letter != ' ')
            || canonical_combining_class(letter) != 0;
        if is_odd {
            spelled.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            spelled.push(letter);
        }
    }
    spelled
}

/// Reports whether a text has nothing to see: it is empty, or blanks and marks that show nothing.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|letter| letter.is_whitespace() || is_invisible(letter))
}

/// Marks that show nothing; most never reach a model.
fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// A path in which a line break, an escape or another letter that a screen would not show is written like `\n` or
/// `\u{1b}`, a byte that is no text like `\xff`, and a backslash twice: no two paths look the same.
#[must_use]
pub fn escape_path(path: &Path) -> String {
    let mut shown = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter == '\\' || is_unseen(letter) {
                shown.extend(letter.escape_default());
            } else {
                shown.push(letter);
            }
        }
        for byte in chunk.invalid() {
            let _infallible = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

/// True if a screen shows nothing for a letter, or something else than a letter.
pub(crate) fn is_unseen(letter: char) -> bool {
    letter.is_control() || (letter.is_whitespace() && letter != ' ') || is_invisible(letter)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, ffi::OsStr};

    use super::*;

    /// Paths that are there, with the folders on the way.
    struct Disk(BTreeSet<PathBuf>);

    impl Disk {
        fn with(files: &[&str]) -> Self {
            let all = files.iter().flat_map(|file| Path::new(file).ancestors().map(Path::to_owned));
            Self(all.collect())
        }
    }

    impl FileNames for Disk {
        fn is_there(&self, path: &Path) -> bool {
            self.0.contains(path)
        }

        fn names_in(&self, folder: &Path) -> Vec<String> {
            let inside = self.0.iter().filter(|path| path.parent() == Some(folder));
            inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
        }
    }

    fn found(path: &str, disk: &Disk) -> (String, bool) {
        let found = find_typed_path(path, Path::new("/w"), disk).unwrap();
        (found.path, found.is_whole)
    }

    #[test]
    fn typed_path_resolves_to_the_only_look_alike_unicode_file_name() {
        for (there, typed) in [
            ("Shot 3.04.05\u{202f}PM.txt", "Shot 3.04.05 PM.txt"),
            ("Sni\u{301}mek v\u{a0}13.05.txt", "Snímek v 13.05.txt"),
            ("café.txt", "cafe\u{301}.txt"),
            ("“Q3” – it’s.txt", "\"Q3\" - it's.txt"),
            ("\u{200e}WhatsApp.txt", "WhatsApp.txt"),
            ("a\u{2011}b\u{3000}（1）….txt", "a-b (1)....txt"),
            ("각.txt", "\u{1100}\u{1161}\u{11a8}.txt"),
            ("plain name.txt", "plain\u{a0}name.txt"),
        ] {
            let disk = Disk::with(&[&format!("/w/in {there}/{there}")]);
            let expected = format!("in {there}/{there}");
            assert_eq!(found(&format!("in {typed}/{typed}"), &disk), (expected.clone(), true));
            let absolute = format!("/w/in {typed}/./{typed}");
            assert_eq!(found(&absolute, &disk), (format!("/w/{expected}"), true));
        }
    }

    #[test]
    fn typed_path_finds_a_file_name_with_a_trailing_space() {
        let disk = Disk::with(&["/w/a.txt ", "/w/b", "/w/b ", "/w/c ", "/w/ c"]);
        assert_eq!(found("a.txt", &disk), ("a.txt ".to_owned(), true));
        assert_eq!(found("b", &disk), ("b".to_owned(), true));
        assert_eq!(found("c", &disk), ("c".to_owned(), false));
    }

    #[test]
    fn typed_path_with_two_look_alike_file_names_resolves_to_neither() {
        let disk = Disk::with(&["/w/a\u{a0}b", "/w/a\u{202f}b"]);
        assert_eq!(found("a b", &disk), ("a b".to_owned(), false));
        assert_eq!(found("a\u{a0}b", &disk), ("a\u{a0}b".to_owned(), true));
        assert_eq!(spell_out("a\u{a0}b é e\u{301}"), "a\\u00a0b é e\\u0301");
    }

    #[test]
    fn new_file_path_resolves_its_folder_to_the_look_alike_on_disk() {
        let disk = Disk::with(&["/w/my\u{a0}notes/old"]);
        assert_eq!(found("my notes/new", &disk), ("my\u{a0}notes/new".to_owned(), false));
        assert_eq!(found("other/old", &disk), ("other/old".to_owned(), false));
    }

    #[test]
    fn control_and_bidi_characters_in_a_path_are_escaped() {
        for (name, shown) in [
            (&b"src/main.rs"[..], "src/main.rs"),
            ("größe 日本.txt".as_bytes(), "größe 日本.txt"),
            (b"a\nb", "a\\nb"),
            (b"a\\nb", "a\\\\nb"),
            (b"a\x1b[2Kb\r", "a\\u{1b}[2Kb\\r"),
            ("a\u{202e}txt.sh\u{2028}".as_bytes(), "a\\u{202e}txt.sh\\u{2028}"),
            (b"a\xffb", "a\\xffb"),
        ] {
            assert_eq!(escape_path(Path::new(OsStr::from_bytes(name))), shown);
        }
    }
}
