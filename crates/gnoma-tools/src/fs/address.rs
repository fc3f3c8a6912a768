//! The path that a call means by what it gives.
//!
//! People and models write `~/x`, `$HOME/x` and `file:///x`, and they type a name with the blanks, quotes and letters
//! of their keyboard where the file has others. This is settled once, before the call is judged: what is judged, shown
//! and run is the path that comes out here. What cannot be settled stays as it is, and [`path_refusal`] says why.

use std::{borrow::Cow, path::Path};

use gnoma_core::names;

use super::name::Disk;

/// Longest path that is looked at, in bytes; longer ones no kernel takes.
const MAX_PATH_BYTES: usize = 4096;

/// The path meant by `given` in the folder `cwd`, where that is not `given` itself. Looks at folders on the way.
#[must_use]
pub fn intended_path(given: &str, cwd: &Path, home: Option<&Path>) -> Option<String> {
    if given.trim().is_empty() || given.len() > MAX_PATH_BYTES {
        return None;
    }
    let spellings = possible_spellings(given);
    let expanded = spellings.iter().map(|spelling| expand_path(spelling, cwd, home));
    let mut found = expanded.filter_map(|path| names::find_typed_path(&path, cwd, &Disk));
    let path = match found.find(|found| found.is_whole) {
        Some(found) => found.path,
        None => {
            let written = written_name(given);
            let slashed = with_slashes(written).filter(|path| begins_in_a_folder(path, cwd));
            let name = slashed.as_deref().unwrap_or(written);
            let path = expand_path(name, cwd, home);
            // A new file comes into the folder that is there.
            names::find_typed_path(&path, cwd, &Disk).map_or(path.into_owned(), |found| found.path)
        }
    };
    (path != given).then_some(path)
}

/// Returns the reason why `given` cannot be a path, where nothing of that name is in `cwd`: a shell would put
/// something else for its beginning.
pub(super) fn path_refusal(given: &str, cwd: &Path) -> Option<String> {
    if is_address(given) {
        return Some(format!("`{given}` is an address of another machine or none of a file"));
    }
    let given = given.trim_start();
    if let Some(why) = windows_refusal(given, cwd).or_else(|| inner_home_refusal(given, cwd)) {
        return Some(why);
    }
    let first = given.split('/').next().unwrap_or(given);
    let is_home = matches!(first, "~" | "$HOME" | "${HOME}");
    let why = if is_home {
        format!("`{first}` is the home folder, and none is known here; give the whole path")
    } else if first.starts_with('~') {
        format!(
            "`{first}` is somebody else's home or nothing; give the whole path, or `./{first}` for that name here"
        )
    } else if first.starts_with('$') && is_variable_name(first) {
        format!(
            "variables such as `{first}` are not replaced in paths; give the path itself, or `./{first}` for that name here"
        )
    } else {
        return None;
    };
    (is_home || cwd.join(first).symlink_metadata().is_err()).then_some(why)
}

/// Returns the texts that `given` may stand for, the likeliest first: itself, without white space around it,
/// without quotes, and without the backslashes of a shell.
fn possible_spellings(given: &str) -> Vec<Cow<'_, str>> {
    let mut spellings = vec![Cow::Borrowed(given)];
    let trimmed = given.trim();
    let written = written_name(given);
    spellings.extend((trimmed != given).then_some(Cow::Borrowed(trimmed)));
    spellings.extend((written != trimmed).then_some(Cow::Borrowed(written)));
    if trimmed.contains('\\') {
        spellings.push(Cow::Owned(without_backslashes(trimmed)));
    }
    spellings.extend(with_slashes(written).map(Cow::Owned));
    spellings
}

/// `given` without white space and quotes around it.
fn written_name(given: &str) -> &str {
    let trimmed = given.trim();
    let unquoted = ['"', '\'', '`'].iter().find_map(|quote| {
        let inside = trimmed.strip_prefix(*quote)?.strip_suffix(*quote)?;
        Some(inside).filter(|inside| !inside.is_empty() && !inside.contains(*quote))
    });
    unquoted.unwrap_or(trimmed)
}

/// A relative path as it is written on Windows, with slashes.
fn with_slashes(path: &str) -> Option<String> {
    (path.contains('\\') && !path.starts_with('\\')).then(|| path.replace('\\', "/"))
}

/// Reports whether the first name of a relative path is that of a folder.
fn begins_in_a_folder(path: &str, cwd: &Path) -> bool {
    let first = path.trim_start_matches("./").split('/').next().unwrap_or(path);
    !first.is_empty() && !first.starts_with('.') && cwd.join(first).is_dir()
}

/// Returns the reason why `given` is a path of Windows and none of this machine.
fn windows_refusal(given: &str, cwd: &Path) -> Option<String> {
    let first = given.split(['/', '\\']).next().unwrap_or(given);
    let name = first.strip_prefix('%').and_then(|rest| rest.strip_suffix('%'));
    let is_variable = name.is_some_and(|name| {
        !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '(' | ')'))
    });
    let is_drive = matches!(first.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic());
    let is_share = given.starts_with("\\\\");
    let is_there = || {
        let is_folder = !first.is_empty() && cwd.join(first).is_dir();
        is_folder || cwd.join(given).symlink_metadata().is_ok()
    };
    let is_windows = is_share || ((is_variable || is_drive) && first.len() < given.len());
    (is_windows && !is_there()).then(|| {
        format!("`{given}` is a path of Windows, which is none on this machine; give the path as it is here")
    })
}

/// Returns the reason why a `~` within a path stands for nothing.
fn inner_home_refusal(given: &str, cwd: &Path) -> Option<String> {
    let (before, behind) = given.split_once("/~/")?;
    let is_here = before == "." || cwd.join(before).join("~").symlink_metadata().is_ok();
    (!is_here).then(|| {
        format!(
            "`~` stands for the home folder only at the beginning of a path; give `~/{behind}`, or leave \
             the `~` out"
        )
    })
}

fn without_backslashes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.push(if letter == '\\' { letters.next().unwrap_or('\\') } else { letter });
    }
    plain
}

/// `given` with the home folder and the working folder in place of what stands for them, and the path of a `file:`
/// address.
fn expand_path<'g>(given: &'g str, cwd: &Path, home: Option<&Path>) -> Cow<'g, str> {
    let path = path_of_address(given).map_or(Cow::Borrowed(given), Cow::Owned);
    let (first, rest) = path.split_once('/').unwrap_or((&path, ""));
    let folder = match first {
        "~" | "$HOME" | "${HOME}" => home,
        "$PWD" | "${PWD}" => Some(cwd),
        _ => None,
    };
    let Some(folder) = folder.and_then(Path::to_str) else { return path };
    let rest = rest.trim_start_matches('/');
    if rest.is_empty() {
        return Cow::Owned(folder.to_owned());
    }
    Cow::Owned(format!("{}/{rest}", folder.trim_end_matches('/')))
}

/// Reports whether `first` is what a shell takes for a variable that its environment has: in capitals, or in
/// braces.
fn is_variable_name(first: &str) -> bool {
    let name = first.strip_prefix('$').unwrap_or(first);
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    let is_part =
        |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    !name.is_empty()
        && name.chars().all(is_part)
        && !name.starts_with(|first: char| first.is_ascii_digit())
}

fn is_address(given: &str) -> bool {
    let (scheme, rest) = given.split_once(':').unwrap_or((given, ""));
    scheme.eq_ignore_ascii_case("file") && rest.starts_with('/')
}

/// The path of a `file:` address of this machine.
fn path_of_address(given: &str) -> Option<String> {
    if !is_address(given) {
        return None;
    }
    let (_, rest) = given.split_once(':')?;
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(behind) if behind.starts_with('/') => behind,
        Some(behind) => {
            let (host, path) = behind.split_once('/')?;
            if !matches!(host, "localhost" | "127.0.0.1") {
                return None;
            }
            behind.get(behind.len() - path.len() - 1..)?
        }
    };
    let path = path.split(['?', '#']).next().unwrap_or(path);
    decode_percent(path).filter(|path| !path.contains('\0'))
}

fn decode_percent(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let decoded = after.get(..2).filter(|_| byte == b'%').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16).ok()
        });
        bytes.push(decoded.unwrap_or(byte));
        rest = if decoded.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{super::testing::Bench, *};

    fn meant(given: &str) -> Option<String> {
        intended_path(given, Path::new("/nowhere/at/all"), Some(Path::new("/home/me")))
    }

    #[test]
    fn tilde_home_and_pwd_are_expanded_in_paths() {
        for (given, path) in [
            ("~/x", "/home/me/x"),
            ("~", "/home/me"),
            ("~//x/y", "/home/me/x/y"),
            ("$HOME/.config/x", "/home/me/.config/x"),
            ("${HOME}/x", "/home/me/x"),
            ("$PWD/x", "/nowhere/at/all/x"),
        ] {
            assert_eq!(meant(given).as_deref(), Some(path), "{given}");
        }
        for given in
            ["x/~/y", "./~/x", "a~", "~user/x", "$HOMES/x", "$id.tsx", "src/$HOME", "/abs", ""]
        {
            assert_eq!(meant(given), None, "{given}");
        }
    }

    #[test]
    fn file_urls_are_converted_to_local_paths() {
        for (given, path) in [
            ("file:///etc/hosts", "/etc/hosts"),
            ("FILE:///a%20b/%C3%A9.txt", "/a b/é.txt"),
            ("file://localhost/x", "/x"),
            ("file:/x#L10", "/x"),
        ] {
            assert_eq!(meant(given).as_deref(), Some(path), "{given}");
        }
        let cwd = Path::new("/nowhere");
        for given in ["file://server/share/x", "file:///a%00b", "file:///%ff"] {
            assert_eq!(meant(given), None, "{given}");
            assert!(path_refusal(given, cwd).is_some(), "{given}");
        }
    }

    #[test]
    fn path_with_shell_variables_or_tilde_is_refused_unless_it_exists() {
        let bench = Bench::new();
        let folder = bench.path("");
        for given in ["~root/x", "~", "~/x", "$HOME/x", "$PROJECT_ROOT/x", "${TMPDIR}/x", "~x"] {
            assert!(path_refusal(given, &folder).is_some(), "{given}");
        }
        bench.put("there/~/b", "");
        for given in ["a/~/b", "/x/~/y", "src/~/.bashrc"] {
            assert!(
                path_refusal(given, &folder).unwrap().contains("only at the beginning"),
                "{given}"
            );
        }
        for given in ["./~root/x", "there/~/b", "./~/x", "$id.tsx", "$schema/x", "~lock.odt"] {
            bench.put("~lock.odt", "");
            assert_eq!(path_refusal(given, &folder), None, "{given}");
        }
    }

    #[test]
    fn quotes_blanks_and_escapes_around_an_existing_path_are_removed() {
        let bench = Bench::new();
        bench.put("My File.txt", "");
        bench.put("a\\b", "");
        let folder = bench.path("");
        for given in
            ["My\\ File.txt", "'My File.txt'", "\"My File.txt\"", "My File.txt\n", " My File.txt"]
        {
            assert_eq!(
                intended_path(given, &folder, None).as_deref(),
                Some("My File.txt"),
                "{given:?}"
            );
        }
        for given in ["a\\b", "new\\ file", "\"a\" and \"b\"", "it's"] {
            assert_eq!(intended_path(given, &folder, None), None, "{given:?}");
        }
        for given in ["'new'", "\"new\"", "`new`", " 'new' "] {
            assert_eq!(intended_path(given, &folder, None).as_deref(), Some("new"), "{given:?}");
        }
    }

    #[test]
    fn backslash_path_separators_are_converted_if_the_folder_exists() {
        let bench = Bench::new();
        bench.put("src/main.rs", "");
        bench.put("src/a/b.rs", "");
        let folder = bench.path("");
        for (given, path) in [
            ("src\\main.rs", "src/main.rs"),
            (".\\src\\a\\b.rs", "./src/a/b.rs"),
            ("src\\new.rs", "src/new.rs"),
            ("src\\a\\new.rs", "src/a/new.rs"),
            ("\"src\\new.rs\"", "src/new.rs"),
        ] {
            assert_eq!(intended_path(given, &folder, None).as_deref(), Some(path), "{given}");
        }
        for given in ["other\\new.rs", "\\d+", "..\\no-such-name"] {
            assert_eq!(intended_path(given, &folder, None), None, "{given}");
        }
    }

    #[test]
    fn paths_of_windows_are_refused() {
        let bench = Bench::new();
        bench.put("c:/odd", "");
        let folder = bench.path("");
        for given in [
            "C:\\Users\\x\\y.txt",
            "d:/x",
            "%USERPROFILE%/x",
            "%ProgramFiles(x86)%\\x",
            "\\\\server\\share\\x",
        ] {
            assert!(path_refusal(given, &folder).unwrap().contains("path of Windows"), "{given}");
        }
        for given in ["c:/new", "100%/x", "%d", "a:b", "x/C:/y", "%"] {
            assert_eq!(path_refusal(given, &folder), None, "{given}");
        }
    }
}
