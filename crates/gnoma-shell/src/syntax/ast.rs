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
    /// The range of the statement, without the ending.
    pub span: Span,
    /// The one that always runs.
    pub first: Pipeline,
    /// Those that depend on how the ones before ended.
    pub rest: Vec<(Condition, Pipeline)>,
    /// True if the statement is ended by `&`.
    pub background: bool,
}

impl Statement {
    /// All pipelines in order.
    pub fn pipelines(&self) -> impl Iterator<Item = &Pipeline> {
        std::iter::once(&self.first).chain(self.rest.iter().map(|(_, pipeline)| pipeline))
    }
}

/// The condition under which the next pipeline of a list runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// After `&&`: the pipeline before succeeded.
    AfterSuccess,
    /// After `||`: the pipeline before failed.
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
    /// The commands of the pipeline; at least one.
    pub stages: Vec<PipelineStage>,
}

/// One command of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineStage {
    /// The command that runs in this stage.
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
    /// The kind of the command.
    pub kind: CommandKind,
    /// In the order they are written.
    pub redirections: Vec<Redirection>,
}

/// The kind of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// A simple command: assignments and words.
    Simple(SimpleCommand),
    /// A group in the same shell: `{ …; }`.
    Group(Script),
    /// A group in a subshell: `( … )`.
    Subshell(Script),
    /// `if`, with `elif` as further branches.
    If {
        /// Condition and body, at least one pair.
        branches: Vec<(Script, Script)>,
        /// The branch after `else`, if there is one.
        otherwise: Option<Script>,
    },
    /// A loop with a condition: `while` and `until`.
    While {
        /// True for `until`, false for `while`.
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
        /// The three expressions in the header.
        header: [Arithmetic; 3],
        /// Runs in each round.
        body: Script,
    },
    /// `case subject in … esac`
    Case {
        /// The word that is compared.
        subject: Word,
        /// The arms of the `case`, in order.
        arms: Vec<CaseArm>,
    },
    /// `name() …` and `function name …`: runs nothing until called.
    Function {
        /// The name of the function.
        name: String,
        /// A command that is not simple.
        body: Box<Command>,
    },
    /// A calculation as a command: `(( … ))`.
    Arithmetic(Arithmetic),
    /// A test as a command: `[[ … ]]`.
    Test(Test),
    /// A command that runs beside the shell: `coproc`.
    Coprocess {
        /// `COPROC` when not named.
        name: Option<String>,
        /// The command that runs as the coprocess.
        body: Box<Command>,
    },
}

/// Words of `for` and `select`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The name of the loop's variable.
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
    /// The patterns of the arm; at least one.
    pub patterns: Vec<Word>,
    /// The commands of the arm; may be empty.
    pub body: Script,
    /// The sign that follows the body.
    pub ending: CaseEnding,
}

/// The sign with which a `case` arm ends.
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
    /// The range of name and value.
    pub span: Span,
    /// The name of the variable.
    pub name: String,
    /// The subscript, which stands in `[ ]`.
    pub subscript: Option<Word>,
    /// True if the operator is `+=`.
    pub append: bool,
    /// The value that is assigned.
    pub value: AssignedValue,
}

/// The value of an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssignedValue {
    /// One value; braces and globs in it stay as they are.
    Word(Word),
    /// The elements of an array: `( … )`.
    Array(Vec<ArrayElement>),
}

/// One element of `( … )`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayElement {
    /// The range of subscript and value.
    pub span: Span,
    /// The subscript, which stands in `[ ]`.
    pub subscript: Option<Word>,
    /// True if the operator is `+=`.
    pub append: bool,
    /// The value of the element.
    pub value: Word,
}

/// A change of where a descriptor points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// Descriptor, operator and target, without a here-document's body.
    pub span: Span,
    /// The descriptor before the operator.
    pub descriptor: Option<Descriptor>,
    /// The operator of the redirection, with its operand.
    pub target: Target,
}

/// A descriptor that is named before an operator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Descriptor {
    /// A number, as in `2>`.
    Number(u32),
    /// A variable that gets the number, as in `{name}>`.
    Variable(String),
}

/// Operator and operand of a redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Input from a file: `<`.
    Read(Word),
    /// Output to a file: `>`.
    Write(Word),
    /// Output to a file, even if `noclobber` is set: `>|`.
    Clobber(Word),
    /// Output to the end of a file: `>>`.
    Append(Word),
    /// Input from and output to a file: `<>`.
    ReadWrite(Word),
    /// `<&` and a descriptor number, one with `-` after it, or `-`.
    DuplicateInput(Word),
    /// `>&` and the same, or, without a descriptor, a file that output and errors go to.
    DuplicateOutput(Word),
    /// `&>`: output and errors
    WriteBoth(Word),
    /// `&>>`: output and errors
    AppendBoth(Word),
    /// Input from the word itself: `<<<`.
    HereString(Word),
    /// Input from the following lines: `<<` and `<<-`.
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
    /// The kind of the piece.
    pub kind: WordPartKind,
}

/// The kind of a piece of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordPartKind {
    /// Text; backslashes that quote are taken away.
    Literal(String),
    /// Text in single quotes: `'…'`.
    SingleQuoted(String),
    /// `$'…'` decoded; `None` when the bytes are not text.
    AnsiQuoted(Option<String>),
    /// Parts in double quotes: `"…"`.
    DoubleQuoted(Vec<WordPart>),
    /// `$"…"`: translated by the system's message files.
    LocaleQuoted(Vec<WordPart>),
    /// The value of a variable or special parameter: `$x`, `${x…}`.
    Parameter(Box<Parameter>),
    /// The output of commands: `$(…)` and backquotes.
    CommandSubstitution(Script),
    /// The result of a calculation: `$((…))` and `$[…]`.
    Arithmetic(Arithmetic),
    /// A file that is connected to commands: `<(…)` and `>(…)`.
    ProcessSubstitution {
        /// `<(…)`: what it prints can be read.
        readable: bool,
        /// The commands that run in it.
        script: Script,
    },
    /// `*`, `?`, `[…]`, or a lone `[` whose contents are partly quoted and follow as parts.
    Glob(String),
    /// `@(a|b)` and the like
    ExtendedGlob {
        /// `?`, `*`, `+`, `@` or `!`
        operator: char,
        /// The patterns to choose from; at least one.
        alternatives: Vec<Word>,
    },
    /// The alternatives in braces: `{a,b}`.
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
    /// The range without the parentheses.
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
    /// The operation on the value.
    pub operation: Operation,
}

/// The operation on a parameter's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The value is used unchanged.
    Value,
    /// The length of the value: `${#x}`.
    Length,
    /// `${!prefix*}`, `${!prefix@}`: names of variables.
    Names,
    /// `${!x[@]}`: keys of an array.
    Keys,
    /// A word in place of a missing value: `${x-w}`, `${x:-w}`.
    Default(Word),
    /// A word that is assigned if the value is missing: `${x=w}`, `${x:=w}`.
    AssignDefault(Word),
    /// An error if the value is missing: `${x?w}`, `${x:?w}`.
    Require(Word),
    /// A word in place of an existing value: `${x+w}`, `${x:+w}`.
    Alternative(Word),
    /// The value without a prefix that fits a pattern: `${x#w}`, `${x##w}`.
    RemovePrefix(Word),
    /// The value without a suffix that fits a pattern: `${x%w}`, `${x%%w}`.
    RemoveSuffix(Word),
    /// `${x/p/w}`, `${x//p/w}`, `${x/#p/w}`, `${x/%p/w}`
    Replace {
        /// The pattern that is searched for.
        pattern: Word,
        /// The text that replaces the match.
        replacement: Option<Word>,
    },
    /// `${x^p}`, `${x^^p}`, `${x,p}`, `${x,,p}`, `${x~p}`, `${x~~p}`
    ChangeCase(Word),
    /// A part of the value: `${x:offset}`, `${x:offset:length}`.
    Substring {
        /// The offset at which the part starts.
        offset: Arithmetic,
        /// The length of the part.
        length: Option<Arithmetic>,
    },
    /// `${x@Q}`; `P` expands the value again and so may run commands.
    Transform(char),
}

/// The condition in `[[ ]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// A lone word: not empty.
    Word(Word),
    /// A test of one word, such as `-f file`.
    Unary(String, Word),
    /// A comparison of two words, such as `a == b`.
    Binary(Box<Binary>),
    /// The negation of a test: `! …`.
    Not(Box<Self>),
    /// Tests that must all hold: `… && …`.
    And(Vec<Self>),
    /// Tests of which one must hold: `… || …`.
    Or(Vec<Self>),
    /// A test in parentheses: `( … )`.
    Group(Box<Self>),
}

/// A comparison of two words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// Left of the operator.
    pub left: Word,
    /// Such as `==`, `=~`, `-lt`.
    pub operator: String,
    /// Right of it; a pattern or a regular expression for some operators.
    pub right: Word,
}
