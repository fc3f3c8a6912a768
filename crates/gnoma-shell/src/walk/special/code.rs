//! Short pieces of code given to an interpreter, read far enough to see that they only print.
//!
//! An allow-list of names: code with any other name, or a sign that is not plain, is not read. Names the code
//! itself sets can only hold what the allowed names give.

/// What a language's code may name.
pub(super) struct Language {
    /// Names that print, convert or look.
    harmless: &'static [&'static str],
    /// Names that read a file.
    reading: &'static [&'static str],
    /// Quotes of texts in which nothing is expanded.
    quotes: &'static [char],
}

const PYTHON: Language = Language {
    harmless: &[
        "print",
        "read",
        "readlines",
        "readline",
        "strip",
        "splitlines",
        "split",
        "len",
        "repr",
        "str",
        "int",
        "float",
        "sum",
        "min",
        "max",
        "sorted",
        "range",
        "list",
        "for",
        "in",
        "if",
        "else",
        "not",
        "and",
        "or",
        "hex",
        "bin",
        "ord",
        "chr",
        "round",
        "abs",
        "upper",
        "lower",
        "end",
        "sep",
        "True",
        "False",
        "None",
        "stdin",
        "stdout",
        "write",
        "sys",
        "import",
        "version",
        "version_info",
        "close",
        "b",
        "r",
        "buffer",
        "platform",
        "maxsize",
        "byteorder",
    ],
    reading: &["open"],
    quotes: &['"', '\''],
};
const RUBY: Language = Language {
    harmless: &[
        "puts",
        "print",
        "p",
        "File",
        "upcase",
        "downcase",
        "length",
        "size",
        "strip",
        "lines",
        "first",
        "last",
        "to_s",
        "to_i",
        "RUBY_VERSION",
    ],
    reading: &["read", "readlines"],
    quotes: &['"', '\''],
};
const NODE: Language = Language {
    harmless: &[
        "console",
        "log",
        "process",
        "stdout",
        "write",
        "require",
        "toString",
        "JSON",
        "stringify",
        "parse",
        "Math",
        "max",
        "min",
        "length",
        "version",
        "versions",
        "platform",
        "arch",
        "const",
        "let",
        "var",
        "true",
        "false",
        "null",
    ],
    reading: &["readFileSync"],
    quotes: &['"', '\''],
};
const PHP: Language = Language {
    harmless: &["echo", "print", "strlen", "PHP_VERSION", "PHP_EOL", "phpversion"],
    reading: &["readfile", "file_get_contents"],
    quotes: &['"', '\''],
};
const LUA: Language = Language {
    harmless: &["print", "local", "read", "write", "close", "io", "_VERSION", "lines"],
    reading: &["open"],
    quotes: &['"', '\''],
};

pub(super) fn language(program: &str) -> Option<&'static Language> {
    match program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "python" | "pypy" => Some(&PYTHON),
        "ruby" => Some(&RUBY),
        "node" | "nodejs" => Some(&NODE),
        "php" => Some(&PHP),
        "lua" | "luajit" => Some(&LUA),
        _ => None,
    }
}

/// The files that `code` reads when it surely does nothing else.
pub(super) fn files_read(language: &Language, code: &str) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    let mut names = Vec::new();
    let mut set = Vec::new();
    let mut joins = false;
    let mut rest = code;
    while let Some(letter) = rest.chars().next() {
        let after = rest.get(letter.len_utf8()..)?;
        if language.quotes.contains(&letter) {
            let (text, after) = after.split_once(letter)?;
            if text.contains(['\\', '\n', '#', '$', '{', '|', '`']) || text.contains("://") {
                return None;
            }
            texts.push(text);
            rest = after;
        } else if letter.is_ascii_alphabetic() || letter == '_' {
            let end =
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (name, after) = rest.split_at_checked(end)?;
            let next = after.trim_start();
            if next.starts_with('=') && !next.starts_with("==") {
                set.push(name);
            }
            names.push(name);
            rest = after;
        } else if letter.is_ascii_digit() || " \n\t.,;:()=<>!".contains(letter) {
            rest = after;
        } else if "+-*/%[]".contains(letter) {
            joins = true;
            rest = after;
        } else {
            return None;
        }
    }
    let allowed = |name: &&str| {
        language.harmless.contains(name) || language.reading.contains(name) || set.contains(name)
    };
    let imports_others =
        names.windows(2).any(|pair| matches!(pair, ["import", module] if *module != "sys"))
            || names.iter().filter(|name| **name == "import").count() > 1
            || code.contains("sys,");
    if !names.iter().all(allowed) || imports_others || code.contains("__") {
        return None;
    }
    read_texts(language, &names, &texts, joins)
}

/// Which texts are files: all of them when anything is read; a mode that writes, or a name that is put
/// together, is not allowed.
fn read_texts(
    language: &Language,
    names: &[&str],
    texts: &[&str],
    joins: bool,
) -> Option<Vec<String>> {
    let is_mode = |text: &str| {
        !text.is_empty() && text.len() < 4 && text.bytes().all(|byte| b"rwaxbt+".contains(&byte))
    };
    let requires = names.contains(&"require");
    if requires && !texts.iter().any(|text| matches!(*text, "fs" | "node:fs")) {
        return None;
    }
    if !names.iter().any(|name| language.reading.contains(name)) {
        return (!requires && !names.contains(&"File")).then(Vec::new);
    }
    let writes = texts.iter().any(|text| is_mode(text) && text.contains(['w', 'a', 'x', '+']));
    if joins || writes {
        return None;
    }
    let known = ["fs", "node:fs", "utf8", "utf-8", "*a", "*all", "a"];
    let files = texts.iter().filter(|text| !is_mode(text) && !known.contains(text));
    Some(files.map(|text| (*text).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(program: &str, code: &str) -> Option<Vec<String>> {
        files_read(language(program)?, code)
    }

    #[test]
    fn code_that_only_prints_is_read() {
        assert_eq!(files("python3", "print(1 + 1)"), Some(vec![]));
        assert_eq!(files("python3", "import sys; print(sys.version)"), Some(vec![]));
        assert_eq!(files("python3", "print(open('a.txt').read())"), Some(vec!["a.txt".to_owned()]));
        assert_eq!(files("ruby", "puts File.read(\"a.txt\")"), Some(vec!["a.txt".to_owned()]));
        assert_eq!(
            files("node", "process.stdout.write(require(\"fs\").readFileSync(\"/a/b\"))"),
            Some(vec!["/a/b".to_owned()])
        );
        assert_eq!(files("php", "readfile(\"/a\");"), Some(vec!["/a".to_owned()]));
    }

    #[test]
    fn code_that_may_do_more_is_not() {
        for (program, code) in [
            ("python3", "import os; os.system('id')"),
            ("python3", "open('x','w').write('y')"),
            ("python3", "open('x','r+')"),
            ("python3", "import json; print(json.load(open('x')))"),
            ("python3", "import sys, os"),
            ("python3", "print(open('/etc/sha' + 'dow').read())"),
            ("python3", "__import__('os')"),
            ("python3", "exec('x')"),
            ("python3", "print(eval('1'))"),
            ("ruby", "puts `id`"),
            ("ruby", "puts File.read(\"|id\")"),
            ("ruby", "puts \"#{`id`}\""),
            ("ruby", "File.write('a', 'b')"),
            ("ruby", "open('a').read"),
            ("node", "require('child_process').execSync('id')"),
            ("node", "require('./x')"),
            ("node", "process.env"),
            ("php", "system('id');"),
            ("lua", "os.execute('id')"),
            ("perl", "print 1"),
        ] {
            assert_eq!(files(program, code), None, "{program}: {code}");
        }
    }
}
