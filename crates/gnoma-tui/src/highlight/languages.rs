//! The languages of syntax highlighting, as data: marks of comments and texts, and the words that mean something. A
//! list of words is one text, read when a word is looked up: it costs nothing before.

use crate::text::TextRole;

/// The way in which a text of the language is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// By words, texts and comments.
    Code,
    /// By tags around text.
    Markup,
    /// By the first character of a line.
    Diff,
}

/// The marks between which a text stands.
#[derive(Debug)]
pub(super) struct Quote {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// A backslash takes the meaning of what follows it.
    pub(super) escapes: bool,
    pub(super) spans_lines: bool,
    /// `true` if the quote holds one character; else the mark means something else.
    pub(super) single_character: bool,
}

impl Quote {
    const fn single_line(mark: &'static str) -> Self {
        Self { open: mark, close: mark, escapes: true, spans_lines: false, single_character: false }
    }

    const fn multi_line(mark: &'static str) -> Self {
        Self { spans_lines: true, ..Self::single_line(mark) }
    }

    const fn raw(open: &'static str, close: &'static str) -> Self {
        Self { open, close, escapes: false, spans_lines: true, single_character: false }
    }

    const fn character() -> Self {
        Self { single_character: true, ..Self::single_line("'") }
    }
}

/// A language that can be highlighted.
#[derive(Debug)]
pub(super) struct Language {
    /// Names and endings of files, in small letters.
    names: &'static str,
    pub(super) shape: Shape,
    pub(super) line_comments: &'static [&'static str],
    pub(super) block_comment: Option<(&'static str, &'static str)>,
    pub(super) comments_nest: bool,
    /// The longer ones first.
    quotes: &'static [Quote],
    keywords: &'static str,
    types: &'static str,
    constants: &'static str,
    /// Functions that are called without brackets.
    commands: &'static str,
    /// Case does not matter.
    any_case: bool,
    /// Words that begin with a capital letter are types.
    capitals_are_types: bool,
    /// Other characters that a word may begin with.
    word_starts: &'static str,
    /// Other characters within a word.
    word_parts: &'static str,
    /// The character that stands after a key.
    pub(super) key_end: Option<char>,
}

impl Language {
    pub(super) fn quote_at(&self, text: &str) -> Option<&'static Quote> {
        self.quotes.iter().find(|quote| text.starts_with(quote.open))
    }

    pub(super) fn begins_word(&self, c: char) -> bool {
        c.is_alphabetic() || c == '_' || self.word_starts.contains(c)
    }

    pub(super) fn continues_word(&self, c: char) -> bool {
        c.is_alphanumeric() || c == '_' || self.word_parts.contains(c)
    }

    /// Returns the meaning of a word, by itself and by what follows it.
    pub(super) fn ink(&self, word: &str, after: &str) -> TextRole {
        if self.has_word(self.keywords, word) {
            return TextRole::Keyword;
        }
        if self.has_word(self.constants, word) {
            return TextRole::Number;
        }
        if self.key_end.is_some_and(|end| after.trim_start().starts_with(end)) {
            return TextRole::Type;
        }
        let capital = self.capitals_are_types && word.starts_with(char::is_uppercase);
        if capital || self.has_word(self.types, word) {
            return TextRole::Type;
        }
        let is_call = after.starts_with('(') || after.starts_with("!(") || after.starts_with("![");
        let is_function = is_call || word.starts_with('@') || self.has_word(self.commands, word);
        if is_function { TextRole::Function } else { TextRole::Text }
    }

    fn has_word(&self, words: &str, word: &str) -> bool {
        let equal = |known: &str| {
            if self.any_case { known.eq_ignore_ascii_case(word) } else { known == word }
        };
        words.split_ascii_whitespace().any(equal)
    }
}

/// The language of a name.
pub(super) fn find_language(name: &str) -> Option<&'static Language> {
    let bears = |language: &&Language| language.names.split_ascii_whitespace().any(|n| n == name);
    LANGUAGES.iter().find(bears)
}

/// The first name of every language.
#[cfg(test)]
pub(super) fn language_names() -> impl Iterator<Item = &'static str> {
    LANGUAGES.iter().filter_map(|language| language.names.split_ascii_whitespace().next())
}

const DOUBLE: Quote = Quote::single_line("\"");
const SINGLE: Quote = Quote::single_line("'");

const PLAIN: Language = Language {
    names: "",
    shape: Shape::Code,
    line_comments: &[],
    block_comment: None,
    comments_nest: false,
    quotes: &[DOUBLE, SINGLE],
    keywords: "",
    types: "",
    constants: "true false null",
    commands: "",
    any_case: false,
    capitals_are_types: false,
    word_starts: "",
    word_parts: "",
    key_end: None,
};

/// The features that most languages with braces share.
const BRACES: Language = Language {
    line_comments: &["//"],
    block_comment: Some(("/*", "*/")),
    capitals_are_types: true,
    word_starts: "@",
    ..PLAIN
};

const HASHES: Language = Language { line_comments: &["#"], ..PLAIN };

static LANGUAGES: [Language; 26] = [
    Language {
        names: "rust rs",
        comments_nest: true,
        quotes: &[
            Quote::raw("r##\"", "\"##"),
            Quote::raw("r#\"", "\"#"),
            Quote::raw("r\"", "\""),
            Quote::multi_line("\""),
            Quote::character(),
        ],
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait type union unsafe use where while yield",
        types: "bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize",
        constants: "true false None",
        word_starts: "",
        ..BRACES
    },
    Language {
        names: "python py pyi python3 starlark bzl",
        quotes: &[Quote::multi_line("\"\"\""), Quote::multi_line("'''"), DOUBLE, SINGLE],
        keywords: "and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield self",
        types: "bool bytes dict float frozenset int list object set str tuple",
        constants: "True False None",
        capitals_are_types: true,
        word_starts: "@",
        ..HASHES
    },
    Language {
        names: "javascript js jsx mjs cjs typescript ts tsx mts cts svelte vue",
        quotes: &[DOUBLE, SINGLE, Quote::multi_line("`")],
        keywords: "abstract as async await break case catch class const continue debugger declare default delete do else enum export extends finally for from function get if implements import in infer instanceof interface is keyof let namespace new of private protected public readonly return satisfies set static super switch this throw try type typeof var void while with yield",
        types: "any bigint boolean never number object string symbol unknown",
        constants: "true false null undefined NaN Infinity",
        word_starts: "@$",
        word_parts: "$",
        ..BRACES
    },
    Language {
        names: "json jsonc json5 jsonl ndjson",
        line_comments: &["//"],
        key_end: Some(':'),
        ..PLAIN
    },
    Language {
        names: "html xml svg htm xhtml xsl plist",
        shape: Shape::Markup,
        block_comment: Some(("<!--", "-->")),
        quotes: &[DOUBLE],
        constants: "",
        word_parts: "-:",
        key_end: Some('='),
        ..PLAIN
    },
    Language {
        names: "css scss less sass",
        line_comments: &["//"],
        block_comment: Some(("/*", "*/")),
        keywords: "@media @import @font-face @keyframes @supports @layer @container @use @include @mixin important",
        constants: "",
        word_starts: "@$-",
        word_parts: "-",
        key_end: Some(':'),
        ..PLAIN
    },
    Language {
        names: "bash sh shell zsh fish ksh console shell-session bashrc zshrc",
        quotes: &[Quote::multi_line("\""), Quote::raw("'", "'")],
        keywords: "if then else elif fi for in do done while until case esac function select time return break continue exit local export readonly declare set unset shift trap source end",
        commands: "alias awk cargo cat cd chmod cp curl cut docker echo find git grep head jq kill ln ls make mkdir mv npm pip printf pwd python read rm sed sleep sort sudo tail tar test tee touch tr uniq wc wget xargs",
        constants: "true false",
        word_starts: "$",
        word_parts: "-",
        ..HASHES
    },
    Language {
        names: "c h cpp cc cxx hpp hh hxx c++ cuda cu ino",
        keywords: "alignas alignof asm auto break case catch class concept const consteval constexpr constinit continue co_await co_return co_yield decltype default delete do else enum explicit export extern final for friend goto if inline mutable namespace new noexcept operator override private protected public register requires return sizeof static static_assert static_cast struct switch template this throw try typedef typename union using virtual volatile while #include #define #ifdef #ifndef #if #else #elif #endif #pragma #undef",
        types: "bool char char8_t char16_t char32_t double float int long short signed size_t ssize_t unsigned void wchar_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t",
        constants: "true false NULL nullptr",
        word_starts: "#",
        ..BRACES
    },
    Language {
        names: "java groovy gradle",
        quotes: &[Quote::multi_line("\"\"\""), DOUBLE, SINGLE],
        keywords: "abstract assert break case catch class const continue default do else enum extends final finally for goto if implements import instanceof interface native new package permits private protected public record return sealed static strictfp super switch synchronized this throw throws transient try var volatile while yield def",
        types: "boolean byte char double float int long short void",
        ..BRACES
    },
    Language {
        names: "kotlin kt kts",
        comments_nest: true,
        quotes: &[Quote::raw("\"\"\"", "\"\"\""), DOUBLE, SINGLE],
        keywords: "abstract actual as break by catch class companion const constructor continue crossinline data do else enum expect external final finally for fun if import in infix init inline inner interface internal is lateinit noinline object open operator out override package private protected public reified return sealed super suspend tailrec this throw try typealias val value var vararg when where while",
        ..BRACES
    },
    Language {
        names: "swift",
        comments_nest: true,
        quotes: &[Quote::multi_line("\"\"\""), DOUBLE],
        keywords: "actor as associatedtype async await break case catch class continue convenience default defer deinit do else enum extension fallthrough fileprivate final for func guard if import in indirect init inout internal is lazy let mutating nonisolated open operator override private protocol public repeat required rethrows return self Self some static struct subscript super switch throw throws try typealias unowned var weak where while",
        constants: "true false nil",
        ..BRACES
    },
    Language {
        names: "csharp cs c#",
        quotes: &[Quote::raw("\"\"\"", "\"\"\""), Quote::raw("@\"", "\""), DOUBLE, SINGLE],
        keywords: "abstract as async await base break case catch checked class const continue default delegate do else enum event explicit extern finally fixed for foreach get goto if implicit in init interface internal is lock namespace new operator out override params partial private protected public readonly record ref required return sealed set sizeof stackalloc static struct switch this throw try typeof unchecked unsafe using var virtual volatile when where while with yield",
        types: "bool byte char decimal double dynamic float int long object sbyte short string uint ulong ushort void",
        ..BRACES
    },
    Language {
        names: "go golang",
        quotes: &[DOUBLE, SINGLE, Quote::raw("`", "`")],
        keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var",
        types: "any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr",
        constants: "true false nil iota",
        ..BRACES
    },
    Language {
        names: "ruby rb rake gemfile rakefile",
        keywords: "alias and begin break case class def defined? do else elsif end ensure extend for if in include module next not or private protected public raise redo require require_relative rescue retry return self super then undef unless until when while yield attr_accessor attr_reader attr_writer",
        constants: "true false nil",
        capitals_are_types: true,
        word_starts: "@$",
        word_parts: "?!",
        ..HASHES
    },
    Language {
        names: "php",
        line_comments: &["//", "#"],
        keywords: "abstract and as break case catch class clone const continue declare default do echo else elseif enum extends final finally fn for foreach function global goto if implements include include_once instanceof insteadof interface isset list match namespace new or print private protected public readonly require require_once return static switch this throw trait try unset use var while xor yield",
        types: "array bool callable float int iterable mixed object string void",
        word_starts: "$",
        ..BRACES
    },
    Language {
        names: "sql mysql postgresql postgres sqlite plsql",
        line_comments: &["--"],
        block_comment: Some(("/*", "*/")),
        quotes: &[Quote::raw("'", "'"), Quote::raw("\"", "\"")],
        keywords: "add all alter and as asc begin between by case check column commit constraint create cross database default delete desc distinct drop else end exists explain foreign from full function group having if in index inner insert intersect into is join key left like limit not offset on or order outer over partition pragma primary references replace returning right rollback select set table then trigger truncate union unique update using values view when where with",
        types: "bigint blob boolean bool bytea char date datetime decimal double float int integer interval json jsonb numeric real serial smallint text time timestamp timestamptz uuid varchar",
        any_case: true,
        ..PLAIN
    },
    Language {
        names: "yaml yml",
        constants: "true false null yes no on off ~",
        word_parts: "-./",
        key_end: Some(':'),
        ..HASHES
    },
    Language {
        names: "toml ini conf cfg properties env dotenv editorconfig gitconfig",
        line_comments: &["#", ";"],
        quotes: &[
            Quote::multi_line("\"\"\""),
            Quote::raw("'''", "'''"),
            DOUBLE,
            Quote::single_line("'"),
        ],
        word_parts: "-.",
        key_end: Some('='),
        ..PLAIN
    },
    Language {
        names: "lua luau",
        line_comments: &["--"],
        block_comment: Some(("--[[", "]]")),
        quotes: &[Quote::raw("[[", "]]"), DOUBLE, SINGLE],
        keywords: "and break do else elseif end for function goto if in local not or repeat return then until while self",
        constants: "true false nil",
        ..PLAIN
    },
    Language {
        names: "dockerfile docker containerfile",
        keywords: "add arg as cmd copy entrypoint env expose from healthcheck label onbuild run shell stopsignal user volume workdir",
        constants: "",
        any_case: true,
        word_starts: "$",
        word_parts: "-",
        ..HASHES
    },
    Language {
        names: "makefile make mk just justfile cmake cmakelists.txt",
        quotes: &[DOUBLE, SINGLE],
        keywords: "include ifeq ifneq ifdef ifndef else endif define endef export override vpath foreach function if elseif while set add_executable add_library target_link_libraries project",
        constants: "",
        word_starts: ".$",
        word_parts: "-.",
        key_end: Some(':'),
        ..HASHES
    },
    Language {
        names: "nix",
        block_comment: Some(("/*", "*/")),
        quotes: &[Quote::raw("''", "''"), Quote::multi_line("\"")],
        keywords: "assert else if in inherit let or rec then with import",
        word_parts: "-'",
        key_end: Some('='),
        ..HASHES
    },
    Language {
        names: "zig",
        block_comment: None,
        keywords: "align allowzero and anyframe anytype asm async await break callconv catch comptime const continue defer else enum errdefer error export extern fn for if inline linksection noalias noinline nosuspend opaque or orelse packed pub resume return struct suspend switch test threadlocal try union unreachable usingnamespace var volatile while",
        types: "bool comptime_float comptime_int f16 f32 f64 i8 i16 i32 i64 isize noreturn type u8 u16 u32 u64 usize void anyerror",
        constants: "true false null undefined",
        ..BRACES
    },
    Language {
        names: "haskell hs elm purescript purs",
        line_comments: &["--"],
        block_comment: Some(("{-", "-}")),
        comments_nest: true,
        quotes: &[DOUBLE, Quote::character()],
        keywords: "case class data default deriving do else family forall foreign if import in infix infixl infixr instance let module newtype of qualified then type where",
        constants: "True False Nothing",
        capitals_are_types: true,
        word_parts: "'",
        ..PLAIN
    },
    Language {
        names: "elixir ex exs",
        quotes: &[Quote::multi_line("\"\"\""), DOUBLE, SINGLE],
        keywords: "after alias and case catch cond def defmacro defmodule defp defprotocol defstruct defimpl do else end fn for if import in not or quote raise receive require rescue try unless unquote use when with",
        constants: "true false nil",
        capitals_are_types: true,
        word_starts: "@",
        word_parts: "?!",
        ..HASHES
    },
    Language { names: "diff patch", shape: Shape::Diff, ..PLAIN },
];
