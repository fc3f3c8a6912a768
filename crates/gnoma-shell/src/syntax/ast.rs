//! The tree a command line is read into.
//!
//! Plain data. Every node says where in the text it stands; nothing is expanded, resolved or judged here.

use std::sync::{Arc, OnceLock};

use super::span::Span;

/// A list of statements: a whole text, or the body of a construct. May be empty only at the top and
/// in a substitution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// From the first statement to the last.
    pub span: Span,
    /// In the order they are written.
    pub statements: Vec<Statement>,
}

/// Pipelines joined by `&&` and `||`, ended by `;`, a line end or `&`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Without the ending.
    pub span: Span,
    /// The one that always runs.
    pub first: Pipeline,
    /// Those that depend on how the ones before ended.
    pub rest: Vec<(Condition, Pipeline)>,
    /// Ended by `&`.
    pub background: bool,
}

impl Statement {
    /// All pipelines in order.
    pub fn pipelines(&self) -> impl Iterator<Item = &Pipeline> {
        std::iter::once(&self.first).chain(self.rest.iter().map(|(_, pipeline)| pipeline))
    }
}

/// When the next pipeline of a list runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// `&&`
    AfterSuccess,
    /// `||`
    AfterFailure,
}

/// Commands joined by `|`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// With `time` and `!`.
    pub span: Span,
    /// `time` stands before it.
    pub timed: bool,
    /// An odd number of `!` stands before it.
    pub negated: bool,
    /// At least one.
    pub stages: Vec<PipelineStage>,
}

/// One command of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineStage {
    /// What runs.
    pub command: Command,
    /// Followed by `|&`: its errors go into the pipe too.
    pub pipes_errors: bool,
}

/// A command of any kind with its redirections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// With redirections, without here-document bodies.
    pub span: Span,
    /// The command itself: of a simple one from the first assignment or word to the last.
    pub written: Span,
    /// What it is.
    pub kind: CommandKind,
    /// In the order they are written.
    pub redirections: Vec<Redirection>,
}

/// What a command is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// Assignments and words.
    Simple(SimpleCommand),
    /// `{ …; }`
    Group(Script),
    /// `( … )`
    Subshell(Script),
    /// `if`, with `elif` as further branches.
    If {
        /// Condition and body, at least one pair.
        branches: Vec<(Script, Script)>,
        /// `else`
        otherwise: Option<Script>,
    },
    /// `while` and `until`
    While {
        /// `until`
        until: bool,
        /// Runs before each round.
        condition: Script,
        /// Runs in each round.
        body: Script,
    },
    /// `for name in words`
    For(Loop),
    /// `select name in words`
    Select(Loop),
    /// `for ((initial; condition; step))`
    ArithmeticFor {
        /// The three expressions.
        header: [Arithmetic; 3],
        /// Runs in each round.
        body: Script,
    },
    /// `case subject in … esac`
    Case {
        /// What is compared.
        subject: Word,
        /// In order.
        arms: Vec<CaseArm>,
    },
    /// `name() …` and `function name …`: runs nothing until called.
    Function {
        /// Its name.
        name: String,
        /// A command that is not simple.
        body: Box<Command>,
    },
    /// `(( … ))`
    Arithmetic(Arithmetic),
    /// `[[ … ]]`
    Test(Test),
    /// `coproc`
    Coprocess {
        /// `COPROC` when not named.
        name: Option<String>,
        /// What runs.
        body: Box<Command>,
    },
}

/// Words of `for` and `select`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The variable.
    pub name: String,
    /// `None` without `in`: the positional parameters.
    pub words: Option<Vec<Word>>,
    /// Runs in each round.
    pub body: Script,
}

/// One arm of a `case`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseArm {
    /// From the pattern to the ending.
    pub span: Span,
    /// At least one.
    pub patterns: Vec<Word>,
    /// May be empty.
    pub body: Script,
    /// What follows the body.
    pub ending: CaseEnding,
}

/// How a `case` arm ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaseEnding {
    /// `;;`, or nothing in the last arm
    Done,
    /// `;&`: the next body runs too.
    FallThrough,
    /// `;;&`: the next patterns are tried too.
    TryNext,
}

/// Assignments, then a program and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Those before the first word.
    pub assignments: Vec<Assignment>,
    /// Program and arguments; empty when there are only assignments or redirections.
    pub words: Vec<Word>,
}

/// `name=value`, `name[subscript]+=value`, `name=( … )`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Name and value.
    pub span: Span,
    /// The variable.
    pub name: String,
    /// What stands in `[ ]`.
    pub subscript: Option<Word>,
    /// `+=`
    pub append: bool,
    /// What is assigned.
    pub value: AssignedValue,
}

/// What is assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssignedValue {
    /// One value; braces and globs in it stay as they are.
    Word(Word),
    /// `( … )`
    Array(Vec<ArrayElement>),
}

/// One element of `( … )`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayElement {
    /// Subscript and value.
    pub span: Span,
    /// What stands in `[ ]`.
    pub subscript: Option<Word>,
    /// `+=`
    pub append: bool,
    /// Its value.
    pub value: Word,
}

/// A change of where a descriptor points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// Descriptor, operator and target, without a here-document's body.
    pub span: Span,
    /// What stands before the operator.
    pub descriptor: Option<Descriptor>,
    /// What is done and with what.
    pub target: Target,
}

/// A descriptor that is named before an operator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Descriptor {
    /// `2>`
    Number(u32),
    /// `{name}>`
    Variable(String),
}

/// Operator and operand of a redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `<`
    Read(Word),
    /// `>`
    Write(Word),
    /// `>|`
    Clobber(Word),
    /// `>>`
    Append(Word),
    /// `<>`
    ReadWrite(Word),
    /// `<&` and a descriptor number, one with `-` after it, or `-`.
    DuplicateInput(Word),
    /// `>&` and the same, or, without a descriptor, a file that output and errors go to.
    DuplicateOutput(Word),
    /// `&>`: output and errors
    WriteBoth(Word),
    /// `&>>`: output and errors
    AppendBoth(Word),
    /// `<<<`
    HereString(Word),
    /// `<<` and `<<-`
    HereDocument(HereDocument),
}

impl Target {
    /// The operand, except of a here-document.
    #[must_use]
    pub fn word(&self) -> Option<&Word> {
        match self {
            Self::Read(word)
            | Self::Write(word)
            | Self::Clobber(word)
            | Self::Append(word)
            | Self::ReadWrite(word)
            | Self::DuplicateInput(word)
            | Self::DuplicateOutput(word)
            | Self::WriteBoth(word)
            | Self::AppendBoth(word)
            | Self::HereString(word) => Some(word),
            Self::HereDocument(_) => None,
        }
    }
}

/// Text that follows the line it is asked for in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HereDocument {
    /// The line that ends it, after quotes are taken away.
    pub delimiter: String,
    /// The delimiter was quoted: the body is taken as it is.
    pub quoted: bool,
    /// `<<-`: tabs at line starts are taken away.
    pub strips_tabs: bool,
    /// Filled once the line is at its end.
    pub(crate) body: Arc<OnceLock<Word>>,
}

impl HereDocument {
    /// The text, with what is expanded in it. Its span is outside of the redirection's.
    #[must_use]
    pub fn body(&self) -> Option<&Word> {
        self.body.get()
    }
}

/// Text between blanks, as parts that are joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// As written, with quotes.
    pub span: Span,
    /// In order; none for an empty value.
    pub parts: Vec<WordPart>,
}

/// A piece of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordPart {
    /// As written, with quotes.
    pub span: Span,
    /// What it is.
    pub kind: WordPartKind,
}

/// What a piece of a word is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordPartKind {
    /// Text; backslashes that quote are taken away.
    Literal(String),
    /// `'…'`
    SingleQuoted(String),
    /// `$'…'` decoded; `None` when the bytes are not text.
    AnsiQuoted(Option<String>),
    /// `"…"`
    DoubleQuoted(Vec<WordPart>),
    /// `$"…"`: translated by the system's message files.
    LocaleQuoted(Vec<WordPart>),
    /// `$x`, `${x…}`
    Parameter(Box<Parameter>),
    /// `$(…)` and backquotes
    CommandSubstitution(Script),
    /// `$((…))` and `$[…]`
    Arithmetic(Arithmetic),
    /// `<(…)` and `>(…)`
    ProcessSubstitution {
        /// `<(…)`: what it prints can be read.
        readable: bool,
        /// What runs.
        script: Script,
    },
    /// `*`, `?`, `[…]`, or a lone `[` whose contents are partly quoted and follow as parts.
    Glob(String),
    /// `@(a|b)` and the like
    ExtendedGlob {
        /// `?`, `*`, `+`, `@` or `!`
        operator: char,
        /// At least one.
        alternatives: Vec<Word>,
    },
    /// `{a,b}`
    BraceList(Vec<Word>),
    /// `{1..9}`, `{a..z..2}`: what stands between the braces.
    BraceRange(String),
    /// `~` and what follows it up to a `/`: empty for the user's own home.
    Tilde(String),
    /// `( … )` of an argument such as `declare a=( … )`; follows a literal `a=`.
    Array(Vec<ArrayElement>),
}

/// Text that is calculated. What is expanded in it is known, its own grammar is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arithmetic {
    /// Without the parentheses.
    pub span: Span,
    /// Text and expansions. A variable's *value* is evaluated too when it runs, and may run commands.
    pub parts: Vec<WordPart>,
}

/// A variable or special parameter and what is done with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Variable name, digits, or one of `@*#?-$!`.
    pub name: String,
    /// `${!x}`: the value names the variable.
    pub indirect: bool,
    /// `${x[…]}`; a literal `@` or `*` means all elements.
    pub subscript: Option<Word>,
    /// What is done.
    pub operation: Operation,
}

/// What is done with a parameter's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Nothing.
    Value,
    /// `${#x}`
    Length,
    /// `${!prefix*}`, `${!prefix@}`: names of variables.
    Names,
    /// `${!x[@]}`: keys of an array.
    Keys,
    /// `${x-w}`, `${x:-w}`
    Default(Word),
    /// `${x=w}`, `${x:=w}`
    AssignDefault(Word),
    /// `${x?w}`, `${x:?w}`
    Require(Word),
    /// `${x+w}`, `${x:+w}`
    Alternative(Word),
    /// `${x#w}`, `${x##w}`
    RemovePrefix(Word),
    /// `${x%w}`, `${x%%w}`
    RemoveSuffix(Word),
    /// `${x/p/w}`, `${x//p/w}`, `${x/#p/w}`, `${x/%p/w}`
    Replace {
        /// What is looked for.
        pattern: Word,
        /// What is put there.
        replacement: Option<Word>,
    },
    /// `${x^p}`, `${x^^p}`, `${x,p}`, `${x,,p}`, `${x~p}`, `${x~~p}`
    ChangeCase(Word),
    /// `${x:offset}`, `${x:offset:length}`
    Substring {
        /// Where it starts.
        offset: Arithmetic,
        /// How long it is.
        length: Option<Arithmetic>,
    },
    /// `${x@Q}`; `P` expands the value again and so may run commands.
    Transform(char),
}

/// What stands in `[[ ]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// A lone word: not empty.
    Word(Word),
    /// `-f file`
    Unary(String, Word),
    /// `a == b`
    Binary(Box<Binary>),
    /// `! …`
    Not(Box<Self>),
    /// `… && …`
    And(Vec<Self>),
    /// `… || …`
    Or(Vec<Self>),
    /// `( … )`
    Group(Box<Self>),
}

/// Two words compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// Left of the operator.
    pub left: Word,
    /// Such as `==`, `=~`, `-lt`.
    pub operator: String,
    /// Right of it; a pattern or a regular expression for some operators.
    pub right: Word,
}
