//! Commands that print names of files, and where these lie.
//!
//! Only what is certain from the words alone: a pipe of one that lists and some that choose among lines.

use super::Walker;
use super::input::{Input, Listing};
use crate::expand::{Field, Folders};
use crate::facts::{Effect, FilePlace};

/// Tests and actions without a value that only look.
pub(super) const FLAGS: [&str; 34] = [
    "(",
    ")",
    "!",
    ",",
    "-a",
    "-and",
    "-o",
    "-or",
    "-not",
    "-true",
    "-false",
    "-empty",
    "-executable",
    "-readable",
    "-writable",
    "-nouser",
    "-nogroup",
    "-print",
    "-print0",
    "-ls",
    "-prune",
    "-quit",
    "-depth",
    "-d",
    "-daystart",
    "-follow",
    "-mount",
    "-xdev",
    "-noleaf",
    "-warn",
    "-nowarn",
    "-ignore_readdir_race",
    "-noignore_readdir_race",
    "-X",
];
/// Tests and actions with a value that only look.
pub(super) const VALUED: [&str; 38] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-lname",
    "-ilname",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-size",
    "-perm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-links",
    "-inum",
    "-fstype",
    "-maxdepth",
    "-mindepth",
    "-mtime",
    "-atime",
    "-ctime",
    "-mmin",
    "-amin",
    "-cmin",
    "-used",
    "-printf",
    "-Bmin",
    "-Btime",
    "-context",
    "-flags",
    "-depth",
    "-mnewer",
];

/// Tests of `find` by which a name tells nothing of what is read, unless they are turned round.
const TELLING_NOTHING: [&str; 16] = [
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-lname",
    "-ilname",
    "-samefile",
    "-inum",
    "-follow",
    "-L",
    "-H",
    "-fstype",
    "-links",
    "-xtype",
];

impl Walker<'_> {
    /// Names that the commands since `from` print, when they do nothing else.
    pub(super) fn listed_since(&self, from: usize) -> Option<Listing> {
        let [command] = self.found.get(from..)? else { return None };
        let words: Option<Vec<&str>> = command.words.iter().map(Option::as_deref).collect();
        let words = words?;
        let (program, words) = words.split_first()?;
        if self.state.functions.contains_key(*program) {
            return None;
        }
        match &self.input {
            Input::Listing(listing)
                if command.effects.is_empty() && selects_lines(program, words) =>
            {
                Some(Listing { exact: false, ..listing.clone() })
            }
            _ if *program == "mktemp" && !self.state.variables.contains_key("TMPDIR") => {
                let place = FilePlace::Path(new_file(words)?.into());
                Some(Listing { places: [place].into(), start: String::new(), exact: false })
            }
            _ if !command.effects.iter().all(is_certain) => None,
            _ if *program == "find" => self.found_by(words),
            _ => {
                let places = listed_places(program, words, &self.state.folders)?;
                Some(Listing { places: places.into(), start: String::new(), exact: false })
            }
        }
    }

    fn found_by(&self, words: &[&str]) -> Option<Listing> {
        let prints = ["-printf", "-ls", "-exec", "-execdir", "-ok", "-okdir"];
        if words.iter().any(|word| prints.contains(word)) {
            return None;
        }
        let fields: Vec<Field> =
            words.iter().map(|word| Field::Known((*word).to_owned())).collect();
        let is_place = |word: &Field| !word.known_start().starts_with(['-', '(', ')', '!', ',']);
        let end = fields.iter().position(|word| !is_place(word)).unwrap_or(fields.len());
        let starts = fields.get(..end)?;
        let (_, certain) = found_places(&self.state.folders, starts, &fields)?;
        // Tests behind the first action that prints choose nothing.
        let prints = words.iter().position(|word| word.starts_with("-print"));
        let choosing = fields.get(..prints.unwrap_or(fields.len()))?;
        let (places, _) = found_places(&self.state.folders, starts, choosing)?;
        let start = match starts {
            [] => "./".to_owned(),
            [one] => one.known_start().to_owned(),
            _ => String::new(),
        };
        let tests = fields.get(end..)?;
        let exact = certain && words.contains(&"-print0") && are_plain_tests(tests);
        Some(Listing { places: places.into(), start, exact })
    }
}

/// Returns the places of the files that `find` finds, and whether its names say all there is to know: everything
/// below, and the names it was told to look for.
pub(super) fn found_places(
    folders: &Folders,
    starts: &[Field],
    words: &[Field],
) -> Option<(Vec<FilePlace>, bool)> {
    let mut places = Vec::new();
    let here = [Field::Known(".".to_owned())];
    let texts: Vec<&str> = words.iter().map(|word| word.known_text().unwrap_or_default()).collect();
    let names = required_names(&texts);
    for start in if starts.is_empty() { &here[..] } else { starts } {
        let start = start.known_text()?;
        if names.is_empty() {
            places.extend(folders.places_below(start));
        }
        for name in &names {
            places.extend(below_named(folders, start, name));
            if may_be_named(start, name) {
                places.extend(folders.resolve_places(&Field::Known(start.to_owned())));
            }
        }
    }
    let follows_links =
        words.windows(2).any(|pair| matches!(pair, [Field::Known(test), Field::Known(kind)] if test == "-type" && kind.contains('l')));
    let is_turned = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| texts.get(at));
        before.is_some_and(|text| matches!(*text, "!" | "-not"))
    };
    let mut told = texts.iter().enumerate();
    let tells = words.iter().all(|word| word.known_text().is_some())
        && told.all(|(at, text)| {
            !TELLING_NOTHING.contains(text)
                || (is_turned(at) && !matches!(*text, "-L" | "-H" | "-follow"))
        });
    (!places.is_empty()).then_some((places, tells && !follows_links))
}

/// Reports whether found files are chosen by a part of their names: a name of wildcards alone may be any.
pub(super) fn are_named(places: &[FilePlace]) -> bool {
    places.iter().all(|place| {
        let FilePlace::Pattern { pattern, .. } = place else { return false };
        let name = pattern.rsplit('/').next().unwrap_or_default();
        name.contains(char::is_alphanumeric) && !name.contains('[')
    })
}

/// The names one of which everything that is found has; none when it may have others as well.
fn required_names<'w>(words: &[&'w str]) -> Vec<&'w str> {
    // In a group that is turned round, a name is what is not found.
    let turns_group = words.windows(2).any(|pair| matches!(pair, ["!" | "-not", "("]));
    if turns_group || words.iter().any(|word| matches!(*word, "-o" | "-or" | ",")) {
        return Vec::new();
    }
    let mut before = "";
    let mut names = Vec::new();
    for pair in words.windows(2) {
        if let ["-name" | "-iname", name] = pair {
            let turned = matches!(before, "!" | "-not") || before == "(";
            names.extend((!turned && !name.is_empty()).then_some(*name));
        }
        before = pair.first().copied().unwrap_or_default();
    }
    names.truncate(1);
    names
}

/// Reports whether a place where `find` starts may have a name that it looks for, by what the pattern begins and ends
/// with. `.` and `..` are no names of files that anything could be done with.
fn may_be_named(start: &str, pattern: &str) -> bool {
    let name = start.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_lowercase();
    if matches!(&*name, "" | "." | "..") {
        return false;
    }
    let pattern = pattern.to_lowercase();
    if !pattern.contains(['*', '?', '[', '\\']) {
        return name == pattern;
    }
    // A set or an escaped letter may be any.
    let is_wild = |letter: char| matches!(letter, '*' | '?' | '[' | ']' | '\\');
    let begins = pattern.split(is_wild).next().unwrap_or_default();
    let ends = pattern.rsplit(is_wild).next().unwrap_or_default();
    name.starts_with(begins) && name.ends_with(ends)
}

fn below_named(folders: &Folders, start: &str, name: &str) -> Vec<FilePlace> {
    // No name has a slash; in a set one stands for nothing but itself, or for the end of a range: after the dot.
    let name = name.replace('/', ".");
    let named = |place| match place {
        FilePlace::Pattern { base, pattern } => {
            FilePlace::Pattern { base, pattern: format!("{pattern}/{name}") }
        }
        other => other,
    };
    folders.places_below(start).into_iter().map(named).collect()
}

/// Returns a stand-in for the name that `mktemp` chooses: its letters are random, and no file of that name existed.
fn new_file(words: &[&str]) -> Option<String> {
    const UNNAMED: &str = "tmp.XXXXXXXXXX";
    const FOLDER: &str = "/tmp";
    let is_option = |word: &&str| {
        matches!(*word, "-d" | "-q" | "-t" | "-dt" | "-qd" | "--directory" | "--quiet")
    };
    let templates: Vec<&str> = words.iter().filter(|word| !is_option(word)).copied().collect();
    let below = words.iter().any(|word| matches!(*word, "-t" | "-dt"));
    let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || b"._-/".contains(&letter);
    match templates.as_slice() {
        [] => Some(format!("{FOLDER}/{UNNAMED}")),
        [template] if !template.bytes().all(is_plain) || template.contains("..") => None,
        [template] if template.starts_with('-') => None,
        [template] if below && !template.contains('/') => Some(format!("{FOLDER}/{template}")),
        [template] if !below && template.starts_with("/tmp/") => Some((*template).to_owned()),
        _ => None,
    }
}

fn is_certain(effect: &Effect) -> bool {
    let (Effect::Read(place) | Effect::Look(place)) = effect else { return false };
    !matches!(place, FilePlace::Unknown(_))
}

/// True if a program prints some of the lines it reads, each whole.
fn selects_lines(program: &str, words: &[&str]) -> bool {
    let flags = |allowed: &str| {
        words.iter().all(|word| {
            word.strip_prefix('-').is_some_and(|flags| {
                !flags.is_empty() && flags.chars().all(|flag| allowed.contains(flag))
            })
        })
    };
    match program {
        "head" | "tail" => words.iter().all(|word| {
            let digits = word.strip_prefix('-').unwrap_or(word);
            let digits = digits.strip_prefix('n').unwrap_or(digits);
            digits.chars().all(|digit| digit.is_ascii_digit())
        }),
        "sort" => flags("ufrnV"),
        "uniq" | "tac" => words.is_empty(),
        "grep" | "egrep" | "fgrep" => {
            let (options, patterns): (Vec<&str>, Vec<&str>) =
                words.iter().partition(|word| word.starts_with('-'));
            let whole = |word: &&str| word.bytes().skip(1).all(|flag| b"viEFPwx".contains(&flag));
            patterns.len() == 1 && options.iter().all(whole)
        }
        _ => false,
    }
}

/// Returns the places of the names that a program lists.
fn listed_places(program: &str, words: &[&str], folders: &Folders) -> Option<Vec<FilePlace>> {
    let paths = match (program, words) {
        ("git", ["ls-files", rest @ ..]) => paths_after(rest, &GIT, 0)?,
        // Its operands may be revisions.
        ("git", ["diff", rest @ ..]) if has_word(rest, &["--name-only"]) => {
            paths_after(rest, &DIFF, 0).map(|_| Vec::new())?
        }
        ("rg", rest) if rest.contains(&"--files") => paths_after(rest, &RIPGREP, 0)?,
        ("rg", rest) if has_word(rest, &["-l", "--files-with-matches"]) => {
            paths_after(rest, &RIPGREP, 1)?
        }
        ("grep", rest) if has_word(rest, &["-rl", "-lr", "-rln", "-rli", "-ril"]) => {
            paths_after(rest, &GREP, 1)?
        }
        ("fd" | "fdfind", rest) => paths_after(rest, &FD, 1)?,
        ("ls", rest)
            if rest.iter().all(|word| matches!(*word, "-1" | "-A" | "-t" | "-r" | "-tr")) =>
        {
            Vec::new()
        }
        _ => return None,
    };
    let paths = if paths.is_empty() { vec!["."] } else { paths };
    let is_plain = |path: &&str| !path.starts_with(':') && !path.contains(['*', '?', '[']);
    let mut places = Vec::new();
    for path in paths {
        let below = folders.places_below(if is_plain(&path) { path } else { "." });
        if below.is_empty() || path.starts_with(':') {
            return None;
        }
        places.extend(below);
    }
    Some(places)
}

fn has_word(words: &[&str], wanted: &[&str]) -> bool {
    words.iter().any(|word| wanted.contains(word))
}

/// Options of a program that lists.
struct ListingOptions {
    flags: &'static [&'static str],
    valued: &'static [&'static str],
}

const GIT: ListingOptions = ListingOptions {
    flags: &["--others", "--exclude-standard", "--cached", "--modified", "-o", "-c", "-m", "--"],
    valued: &[],
};
const DIFF: ListingOptions =
    ListingOptions { flags: &["--name-only", "--cached", "--staged"], valued: &["--diff-filter"] };
const RIPGREP: ListingOptions = ListingOptions {
    flags: &["--files", "--hidden", "-l", "--files-with-matches", "-i", "-w", "-F", "-S", "--"],
    valued: &["-g", "--glob", "-t", "--type", "-T", "--max-depth", "--sort"],
};
const GREP: ListingOptions = ListingOptions {
    flags: &["-rl", "-lr", "-rln", "-rli", "-ril", "-i", "-E", "-F", "-w", "--"],
    valued: &["--include", "--exclude", "--exclude-dir"],
};
const FD: ListingOptions = ListingOptions {
    flags: &["-H", "-I", "--hidden", "--no-ignore"],
    valued: &["-e", "--extension", "-t", "--type", "-d", "--max-depth", "-E", "--exclude"],
};

impl ListingOptions {
    /// True if a word is an option that changes neither what is listed nor how it is printed.
    fn accepts_word(&self, word: &str) -> bool {
        let joined = word.split_once('=').is_some_and(|(name, _)| self.valued.contains(&name));
        joined || self.flags.contains(&word)
    }
}

/// The operands after `skipped` ones; `None` with an option that is not listed.
fn paths_after<'w>(
    words: &[&'w str],
    options: &ListingOptions,
    skipped: usize,
) -> Option<Vec<&'w str>> {
    let mut operands = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if options.valued.contains(word) {
            words.next()?;
        } else if !word.starts_with('-') {
            operands.push(*word);
        } else if !options.accepts_word(word) {
            return None;
        }
    }
    Some(operands.into_iter().skip(skipped).collect())
}

/// Reports whether words of an expression are nothing but tests, and no value of one looks like a test of names.
pub(super) fn are_plain_tests(tests: &[Field]) -> bool {
    let mut words = tests.iter().map(Field::known_text);
    while let Some(word) = words.next() {
        let Some(test) = word else { return false };
        if FLAGS.contains(&test) {
            continue;
        }
        let has_value = VALUED.contains(&test) || test.starts_with("-newer");
        if !has_value || matches!(words.next().flatten(), None | Some("-name" | "-iname")) {
            return false;
        }
    }
    true
}
