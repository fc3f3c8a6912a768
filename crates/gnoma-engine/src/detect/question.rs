//! Whether a message is only a question, and which files it names.
//!
//! Small models edit files that they were asked about. Judged word by word, in English: in case of doubt it is not
//! a question, and everything stays allowed.

/// Words that ask, with a question mark or without.
const ASKING: [&str; 8] = ["how", "what", "what's", "which", "who", "whose", "why", "whom"];

/// Words that may open a statement as well: only a question mark decides.
const OPENINGS: [&str; 12] =
    ["are", "did", "do", "does", "had", "has", "have", "is", "was", "were", "when", "where"];

/// Wishes to be told.
const TELLING: [&str; 5] = ["describe", "explain", "summarise", "summarize", "tell"];

/// Deeds that change something, by their beginnings.
const CHANGING: [&str; 27] = [
    "add",
    "adjust",
    "amend",
    "chang",
    "clean",
    "convert",
    "correct",
    "creat",
    "delet",
    "drop",
    "edit",
    "fix",
    "generat",
    "implement",
    "improv",
    "insert",
    "make",
    "mend",
    "modif",
    "refactor",
    "remov",
    "renam",
    "repair",
    "replac",
    "rewrit",
    "solve",
    "updat",
];

/// Verbs that mean a change of a file, wherever they occur in this form.
const ORDERS: [&str; 13] = [
    "adjust", "change", "correct", "delete", "edit", "fix", "modify", "refactor", "remove",
    "rename", "repair", "replace", "update",
];

/// Questions that ask politely for a deed.
const POLITE: [&str; 6] = ["can", "could", "may", "please", "will", "would"];

/// Past forms of deeds: what was done is asked about, not wanted.
const REPORTED: [&str; 5] = ["did", "has", "have", "was", "were"];

/// Words behind which a deed is a thing.
const NAMING: [&str; 9] = ["a", "an", "its", "last", "my", "that", "the", "this", "your"];

/// They occur within so many words from the beginning.
const REPORTED_WITHIN: usize = 4;

/// Letters of a file name's ending.
const MAX_EXTENSION_CHARS: usize = 5;

/// Deeds for which a program has to be run, or that people want to be told of.
const RUNNING: [&str; 25] = [
    "build", "check", "commit", "compile", "copy", "count", "execute", "install", "list", "look",
    "move", "open", "push", "read", "remember", "review", "run", "search", "show", "start", "stop",
    "test", "try", "verify", "watch",
];

/// What only a program tells.
const TESTED: [&str; 10] = [
    "branch",
    "commit",
    "commits",
    "git",
    "installed",
    "pass",
    "passes",
    "passing",
    "running",
    "uptime",
];

/// Deeds for which a program has to be run, whatever is said beside.
const STARTING: [&str; 6] = ["commit", "compile", "execute", "install", "push", "run"];

/// How words of questions about what is in the working folder begin.
const PLACES: [&str; 9] =
    ["code", "director", "file", "folder", "modul", "packag", "project", "repos", "tests"];

/// Words of somebody who says what is wrong, or how it has to be.
const FAULTS: [&str; 22] = [
    "broken",
    "bug",
    "crashes",
    "error",
    "fails",
    "forgets",
    "forgot",
    "incorrect",
    "instead",
    "misspelled",
    "misspelt",
    "mistake",
    "misses",
    "missing",
    "must",
    "need",
    "needs",
    "raises",
    "should",
    "typo",
    "want",
    "wrong",
];

/// Verbs that order a change, beside those of [`CHANGING`], if used as an order.
const SETTING: [&str; 24] = [
    "append", "bump", "call", "decrease", "disable", "double", "enable", "extend", "give",
    "increase", "let", "lower", "prepend", "print", "put", "raise", "reduce", "return", "set",
    "sort", "swap", "switch", "turn", "use",
];

/// Words in front of an order.
const LEADING: [&str; 9] = ["also", "and", "can", "now", "please", "then", "to", "you", "should"];

/// Files that have no ending, or are called without it.
const KNOWN: [&str; 5] = ["changelog", "contributing", "licence", "license", "readme"];

/// What a message wants from a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// An answer that reading can give.
    Answer,
    /// That files are changed, and nothing beside.
    Change,
    /// Anything else, such as that a program is run.
    Other,
}

/// A sentence: its words in lower case, the files that it names, and whether it ends in a question mark.
#[derive(Default)]
struct Sentence {
    words: Vec<String>,
    files: Vec<String>,
    is_asked: bool,
}

/// Whether `text` asks for an answer and for nothing to be done.
#[must_use]
pub fn asks_only(text: &str) -> bool {
    let sentences = sentences(text);
    !sentences.is_empty() && sentences.iter().all(Sentence::asks)
}

/// Whether `text` wants something to be changed.
#[must_use]
pub fn wants_change(text: &str) -> bool {
    sentences(text).iter().any(Sentence::wants)
}

/// What `text` wants.
#[must_use]
pub fn wanted(text: &str) -> Intent {
    let sentences = sentences(text);
    let any = |is: fn(&Sentence) -> bool| sentences.iter().any(is);
    let is_run = |it: &Sentence| it.orders(|word| RUNNING.contains(&word));
    if any(|it| it.wants() || !it.is_question() && it.orders(changes)) {
        let tests = |it: &Sentence| is_run(it) && it.has(&["it", "run", "test", "tests"]);
        return if sentences.iter().any(tests) { Intent::Other } else { Intent::Change };
    }
    if any(Sentence::is_question) {
        return if any(|it| it.has(&TESTED)) { Intent::Other } else { Intent::Answer };
    }
    if sentences.iter().any(is_run) || any(|it| it.has(&["always", "never", "see"])) {
        return Intent::Other;
    }
    let is_wrong = any(|it| it.has(&FAULTS) || !it.files.is_empty());
    if is_wrong { Intent::Change } else { Intent::Other }
}

/// Whether `text` wants a program to be run, or to know what only a program tells.
#[must_use]
pub fn wants_run(text: &str) -> bool {
    let starts = |word: &str| STARTING.contains(&word);
    sentences(text).iter().any(|it| it.orders(starts) || it.is_question() && it.has(&TESTED))
}

/// Whether `text` is about what is in the working folder. Who quotes something, or says it behind a colon, is
/// taken to mean that.
#[must_use]
pub fn asks_about_files(text: &str) -> bool {
    let is_quoted = text.contains(['"', '`', '\n']) || text.contains(": ");
    let names = |word: &String| PLACES.iter().any(|begin| word.starts_with(begin));
    let is_about = |it: &Sentence| {
        it.words.iter().any(names) || it.has(&["here", "repo", "script", "scripts"])
    };
    !named_files(text).is_empty() || !is_quoted && sentences(text).iter().any(is_about)
}

/// The files that stand in a sentence that orders a change.
#[must_use]
pub fn order_files(text: &str) -> Vec<String> {
    let sentences = sentences(text).into_iter().filter(|it| it.wants() || it.orders(changes));
    sentences.flat_map(|sentence| sentence.files).collect()
}

/// Whether an order begins with `word` to change something.
fn changes(word: &str) -> bool {
    SETTING.contains(&word)
        || word == "write"
        || !word.ends_with("ed")
            && !word.ends_with("()")
            && CHANGING.iter().any(|deed| word.starts_with(deed))
}

/// The sentences. A point within a word ends none.
fn sentences(text: &str) -> Vec<Sentence> {
    let mut all = vec![Sentence::default()];
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '/'));
        if let Some(last) = all.last_mut() {
            last.files.extend(file_name(word).map(str::to_owned));
            if !bare.is_empty() {
                // "add()" is a name, and no order.
                let call = if word.find('(').is_some_and(|at| at > 0) { "()" } else { "" };
                last.words.push(bare.to_lowercase().replace('\u{2019}', "'") + call);
            }
            last.is_asked = word.ends_with('?');
        }
        if word.ends_with(['.', '!', '?', ';']) {
            all.push(Sentence::default());
        }
    }
    all.retain(|sentence| !sentence.words.is_empty());
    all
}

impl Sentence {
    fn has(&self, known: &[&str]) -> bool {
        self.words.iter().any(|word| known.contains(&word.as_str()))
    }

    /// Whether a word that `is_order` is in the position of an order.
    fn orders(&self, is_order: impl Fn(&str) -> bool) -> bool {
        let before = std::iter::once("and").chain(self.words.iter().map(String::as_str));
        let mut words = before.zip(&self.words);
        words.any(|(before, word)| LEADING.contains(&before) && is_order(word))
    }

    fn is_question(&self) -> bool {
        self.asks() || self.asks_politely()
    }

    /// "Could you tell me which port it uses?"
    fn asks_politely(&self) -> bool {
        let is_polite = self.words.first().is_some_and(|first| POLITE.contains(&first.as_str()));
        is_polite && (self.has(&TELLING) || self.has(&ASKING)) && !self.orders(changes)
    }

    fn asks(&self) -> bool {
        let Some(first) = self.words.first().map(String::as_str) else { return false };
        let has = |known: &[&str]| self.words.iter().any(|word| known.contains(&word.as_str()));
        if POLITE.contains(&first) || has(&["please"]) {
            return false;
        }
        let asks = ASKING.contains(&first)
            || TELLING.contains(&first)
            || self.is_asked && (OPENINGS.contains(&first) || has(&ASKING));
        // "Is it fixed?" asks how it is.
        let wants = |word: &str| {
            !word.ends_with("ed")
                && !word.ends_with("()")
                && CHANGING.iter().any(|deed| word.starts_with(deed))
        };
        // "After your change" names a thing.
        let before = std::iter::once("").chain(self.words.iter().map(String::as_str));
        let mut words = before.zip(&self.words);
        // "What does it convert?" asks for no deed; "What about renaming it?" and "How do I fix it?" do.
        let is_told = self.is_asked && !has(&["about", "don't", "i", "not", "we", "you"]);
        asks && (is_told
            || self.reports()
            || !words.any(|(before, word)| wants(word) && !NAMING.contains(&before)))
    }

    fn wants(&self) -> bool {
        let orders = |word: &str| ORDERS.contains(&word);
        let mut words = self.words.iter().map(String::as_str);
        !self.reports() && !self.asks() && words.any(orders)
    }

    /// It asks for what was done already.
    fn reports(&self) -> bool {
        self.words.iter().take(REPORTED_WITHIN).any(|word| REPORTED.contains(&word.as_str()))
    }
}

/// The files that `text` names: words with a file extension.
#[must_use]
pub fn named_files(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in text.split_whitespace().filter_map(file_name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Files that people name without an ending: "what the README says".
#[must_use]
pub fn alluded_files(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '/' | '_'));
    let is_known = |word: &&str| KNOWN.iter().any(|known| known.eq_ignore_ascii_case(word));
    let known = words.filter(is_known).map(str::to_uppercase);
    known.flat_map(|word| [format!("{word}.md"), word]).collect()
}

/// Words that may name a folder: beside "folder" or "directory", or with a slash at their end.
#[must_use]
pub fn named_folders(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.');
    let bare = |word| str::trim_matches(word, |c| !is_part(c)).trim_end_matches('.');
    let words: Vec<&str> = text.split_whitespace().map(bare).collect();
    let is_mark = |at: Option<usize>| {
        let word = at.and_then(|at| words.get(at));
        word.is_some_and(|word| ["folder", "directory"].contains(word))
    };
    let words = words.iter().enumerate().filter(|(at, word)| {
        word.ends_with('/') || is_mark(at.checked_sub(1)) || is_mark(Some(at + 1))
    });
    words.map(|(_, word)| word.trim_end_matches('/')).filter(|word| !word.is_empty()).collect()
}

fn file_name(word: &str) -> Option<&str> {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '/' | '.'));
    let word = word.trim_end_matches('.').trim_end_matches("'s").trim_end_matches("\u{2019}s");
    Some(word).filter(|word| is_file_name(word))
}

fn is_file_name(word: &str) -> bool {
    // "i.e" is none, and "a.c" is rare.
    word.len() > 3
        && word.rsplit_once('.').is_some_and(|(name, ending)| {
            name.chars().any(char::is_alphabetic)
                && ending.len() <= MAX_EXTENSION_CHARS
                && ending.starts_with(|c: char| c.is_ascii_alphabetic())
                && ending.chars().all(|c| c.is_ascii_alphanumeric())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_told_from_a_task() {
        for text in [
            "Which version does README.md name?",
            "How many times does fetch in client.py try by default?",
            "Tell me which functions lib/text.js exports.",
            "What did you change?",
            "In which file is the function parse_date defined?",
            "And what does toF(0) give now?",
            "Explain how the parser works.",
            "Is the bug in pop() fixed?",
            "What does toF in temp.js convert?",
            "Does clean.sh remove the file?",
            "And what does toF(0) give after your change?",
            "Does run.sh go on after a command has failed, or does it stop?",
        ] {
            assert!(asks_only(text), "{text}");
        }
        for text in [
            "",
            "Fix it.",
            "Can you repair it?",
            "Why does test.sh fail? Fix it.",
            "shout('hi') in text.py returns None, it should return 'HI!'.",
            "Set LIMIT to 60 in jobs.py.",
            "What about renaming it to b.py?",
            "How do I fix this?",
            "Would you look at slug.js?",
            "At exactly 90 it has to print full. Fix disk.sh.",
            "to_text in a.py is wrong, correct it",
            "On line 3 the name is misspelt.",
            "When x is 90 it prints fine.",
            "Does nothing for an empty list.",
        ] {
            assert!(!asks_only(text), "{text}");
        }
    }

    #[test]
    fn an_order_to_change_is_told_from_other_words() {
        for text in ["Fix it.", "Can you repair it?", "add() is wrong. Please correct that."] {
            assert!(wants_change(text), "{text}");
        }
        for text in ["What did you change?", "Run the tests.", "Add up the sizes.", "It was fixed."]
        {
            assert!(!wants_change(text), "{text}");
        }
    }

    #[test]
    fn what_is_wanted_is_told() {
        for (text, wants) in [
            ("Which version does README.md name?", Intent::Answer),
            ("Could you tell me what port server.toml sets?", Intent::Answer),
            ("Does run.sh go on after a command has failed, or does it stop?", Intent::Answer),
            ("How large may an upload be? See limits.toml.", Intent::Answer),
            ("shout() in text.py returns None. Why?", Intent::Answer),
            ("Why does shout() in text.py return None? Fix it.", Intent::Change),
            ("Do the tests pass?", Intent::Other),
            ("Which branch am I on?", Intent::Other),
            ("What does add(1) in calc.py return?", Intent::Answer),
            ("Fix it.", Intent::Change),
            ("Set LIMIT to 60 in jobs.py.", Intent::Change),
            ("toF(100) should be 212.", Intent::Change),
            ("`node test.js` fails. Find the bug in slug.js and fix it.", Intent::Change),
            ("Create hello.py that prints hi.", Intent::Change),
            ("Can you repair it?", Intent::Change),
            ("At exactly 90 it has to print full.", Intent::Change),
            ("Check a.py for mistakes and fix them.", Intent::Change),
            ("Run main.py.", Intent::Other),
            ("Fix a.py, then run the tests.", Intent::Other),
            ("Fix a.py and test it.", Intent::Other),
            ("Would you look at slug.js?", Intent::Other),
            ("Always indent main.py with tabs.", Intent::Other),
            ("Thanks.", Intent::Other),
            ("The staging server listens on port 7443.", Intent::Other),
        ] {
            assert_eq!(wanted(text), wants, "{text}");
        }
    }

    #[test]
    fn what_has_to_be_run_or_looked_for_is_told() {
        for (text, runs, looks) in [
            ("Do the tests pass?", true, true),
            ("Run main.py and give its exit code.", true, true),
            ("Which modules does this project have?", false, true),
            ("Read TASKS.md and give the open tasks.", false, true),
            ("Give the first five even numbers.", false, false),
            ("Ada Lovelace was born in London in 1815.", false, false),
            ("Extract name and place: Bo works on a project in Rome.", false, false),
            ("Which language is this code: `fn main() {}`", false, false),
        ] {
            assert_eq!((wants_run(text), asks_about_files(text)), (runs, looks), "{text}");
        }
    }

    #[test]
    fn the_file_is_told_that_an_order_is_about() {
        for (text, files) in [
            ("`node test.js` fails. Find the bug in slug.js and fix it.", &["slug.js"][..]),
            ("sh check.sh fails because backup.sh is wrong. Fix backup.sh.", &["backup.sh"]),
            (
                "main.py uses util.py. Rename f to g in main.py and util.py.",
                &["main.py", "util.py"],
            ),
            ("add() in calc.py gives wrong results. Fix it.", &[]),
        ] {
            assert_eq!(order_files(text), files, "{text}");
        }
    }

    #[test]
    fn files_are_told_from_other_words() {
        let text =
            "Does `src/a.py` (4.2), i.e. the one beside README.md. say e.g. \"x\"? See b.rs!";
        assert_eq!(named_files(text), ["src/a.py", "README.md", "b.rs"]);
        assert_eq!(alluded_files("See the README, not LICENSE.txt."), ["README.md", "README"]);
        assert_eq!(named_folders("Which files are in the folder `src`?"), ["the", "src"]);
        assert_eq!(
            named_folders("What is in lib/util/, or the styles folder?"),
            ["lib/util", "styles"]
        );
        assert_eq!(named_files("Version 4.2 of it... Why? 1.5x"), Vec::<&str>::new());
    }
}
