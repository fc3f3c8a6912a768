//! Errors in task files: what is wrong, and in which line.

use std::fmt;

use super::arguments::ArgumentError;

/// The fields of a task.
pub(super) const FIELDS: [&str; 8] =
    ["name", "description", "arguments", "permission", "model", "timeout", "checks", "sessions"];

/// The roles of models that a step can want.
pub(super) const ROLES: [&str; 4] = ["small", "planner", "editor", "reviewer"];

/// An error in a task file, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFault {
    /// The line, counted from 1.
    pub line: usize,
    /// The error in that line.
    pub error: TaskError,
}

impl fmt::Display for TaskFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.error)
    }
}

/// An error in a task file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskError {
    /// The fields cannot be read as a whole.
    Fields(String),
    /// A field that tasks do not have.
    UnknownField {
        /// The name of the field.
        name: String,
        /// A known field that is spelt nearly so.
        nearest: Option<&'static str>,
    },
    /// The name in the fields is not the one of the file.
    NameDiffers {
        /// The name in the fields.
        field: String,
        /// The name of the file.
        file: String,
    },
    /// A field has a value of the wrong form.
    Value {
        /// The name of the field.
        field: &'static str,
        /// The form that the field needs.
        wanted: &'static str,
    },
    /// The definition of an argument is wrong.
    Argument(ArgumentError),
    /// There is more of something than fits.
    TooMany {
        /// The things, in plural.
        what: &'static str,
        /// The number that is allowed.
        limit: usize,
    },
    /// The file has no step.
    NoSteps,
    /// A step has a heading and nothing below it.
    EmptyStep {
        /// The heading of the step.
        title: String,
    },
    /// A step has no heading text.
    UntitledStep,
    /// A line looks like a heading and is none.
    NearHeading,
    /// A line contains a byte 0.
    NulByte,
    /// A step has an option that steps do not have.
    UnknownOption {
        /// As it is written.
        option: String,
    },
    /// A time limit cannot be read, or is out of range.
    TimeLimit {
        /// As it is written.
        written: String,
    },
    /// A step that is not a command has a time limit.
    TimeLimitOfOther,
    /// A step names a role that models do not have.
    UnknownRole {
        /// As it is written.
        written: String,
    },
    /// The braces of a heading are not one pair with options at its end.
    Braces,
    /// An option of a step is given twice.
    DoubleOption {
        /// The name of the option.
        key: String,
    },
    /// A step wants a model by name and one by role.
    ModelAndRole,
    /// A step that is not a prompt wants a model.
    ModelOfOther,
    /// A step that is neither a prompt nor a command is to run side by side with others.
    ParallelOther,
    /// A question has text behind its choices.
    QuestionForm,
    /// A step is only code blocks, and they are not one command.
    BlockForm {
        /// The line with which it begins.
        written: String,
    },
    /// A command has a variable that is an argument with a slip in it.
    MisspeltVariable {
        /// The name as it is written.
        written: String,
        /// The argument that is nearly called so.
        meant: String,
    },
    /// A code block does not end.
    OpenBlock,
    /// The line of a step that runs another task names none.
    TaskLine,
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fields(why) => f.write_str(why),
            Self::UnknownField { name, nearest: Some(nearest) } => {
                write!(f, "unknown field `{}`; did you mean `{nearest}`?", name.escape_debug())
            }
            Self::UnknownField { name, nearest: None } => write!(
                f,
                "unknown field `{}`; tasks have {}",
                name.escape_debug(),
                FIELDS.join(", ")
            ),
            Self::NameDiffers { field, file } => write!(
                f,
                "the name is `{}`, but the file is called `{file}.md`; make them equal or remove the name",
                field.escape_debug()
            ),
            Self::Value { field, wanted } => write!(f, "`{field}` must be {wanted}"),
            Self::Argument(error) => error.fmt(f),
            Self::TooMany { what, limit } => write!(f, "more than {limit} {what}"),
            Self::NoSteps => f.write_str("the task has no step; add one below `## Title`"),
            Self::UnknownOption { .. }
            | Self::TimeLimit { .. }
            | Self::TimeLimitOfOther
            | Self::UnknownRole { .. }
            | Self::Braces
            | Self::DoubleOption { .. }
            | Self::ModelAndRole
            | Self::ModelOfOther
            | Self::ParallelOther => self.fmt_option(f),
            Self::EmptyStep { .. }
            | Self::UntitledStep
            | Self::NearHeading
            | Self::NulByte
            | Self::QuestionForm
            | Self::BlockForm { .. }
            | Self::MisspeltVariable { .. }
            | Self::OpenBlock
            | Self::TaskLine => self.fmt_text(f),
        }
    }
}

impl TaskError {
    /// Writes what is wrong with the text of a step.
    fn fmt_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyStep { title } => write!(f, "the step `{title}` has no text"),
            Self::UntitledStep => f.write_str("the step needs a title behind `##`"),
            Self::NearHeading => f.write_str(
                "a step begins with `## Title`, without blanks before `##` and with one after it; write `###` if this line is text",
            ),
            Self::NulByte => f.write_str("the line contains a byte 0; a task file is text"),
            Self::QuestionForm => {
                f.write_str("a question is `? text` and then only choices, each a line `- choice`")
            }
            Self::BlockForm { written } => write!(
                f,
                "a step that begins with `{}` and is only code is no command; write one block ```sh, and each command \
                 as a step of its own",
                written.escape_debug()
            ),
            Self::MisspeltVariable { written, meant } => write!(
                f,
                "`${written}` is no argument and has no value in this command; did you mean `${meant}`?"
            ),
            Self::OpenBlock => f.write_str("the code block that begins here does not end"),
            Self::TaskLine => f.write_str("write `/task NAME ARGUMENTS` to run another task"),
            _ => Ok(()),
        }
    }

    /// Writes what is wrong with an option of a step.
    fn fmt_option(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOption { option } => write!(
                f,
                "unknown option `{}` of a step; write `{{model=NAME}}`, `{{role=small}}`, `{{timeout=20m}}` or `{{parallel}}`",
                option.escape_debug()
            ),
            Self::TimeLimit { written } => write!(
                f,
                "`{}` is not a time limit; write one like 90s, 20m or 1h, at most 1h",
                written.escape_debug()
            ),
            Self::TimeLimitOfOther => f.write_str("only a command has a time limit"),
            Self::UnknownRole { written } => write!(
                f,
                "`{}` is no role of a model; the roles are {}",
                written.escape_debug(),
                ROLES.join(", ")
            ),
            Self::Braces => f.write_str(
                "the options of a step stand in one pair of braces at the end: `## Title {role=small parallel}`",
            ),
            Self::DoubleOption { key } => {
                write!(f, "the option `{}` occurs twice", key.escape_debug())
            }
            Self::ModelAndRole => f.write_str("a step has a model or a role, not both"),
            Self::ModelOfOther => f.write_str("only a prompt has a model or a role"),
            Self::ParallelOther => {
                f.write_str("only prompts and commands run side by side (`{parallel}`)")
            }
            _ => Ok(()),
        }
    }
}
