//! Errors in Markdown files that define skills, commands, sub-agents or output styles.

use crate::{claude::ForbiddenToolsError, front_matter::NotAListError, places::TextFileError};

/// The reason why a file defines nothing that can be used.
#[derive(thiserror::Error)]
pub(crate) enum DefinitionFileError {
    /// The file has no text that can be read.
    #[error(transparent)]
    Text(#[from] TextFileError),
    /// Links lead to a place that is not the project's to use.
    #[error("it leads outside the project or to secrets")]
    Outside,
    /// The text does not begin with fields.
    #[error("it has no fields (`---`)")]
    NoFields,
    /// The text does not begin with fields, which would say when a skill is used.
    #[error("it has no fields (`---`) with a description")]
    NoFieldsOfSkill,
    /// The field `description` is missing or empty.
    #[error("it has no description")]
    NoDescription,
    /// Nothing follows the fields.
    #[error("it has no instructions")]
    NoInstructions,
    /// Neither a field nor the file's name is a name.
    #[error("its name is not UTF-8")]
    NameNotUtf8,
    /// A field that is a list has another form.
    #[error(transparent)]
    NotAList(#[from] NotAListError),
    /// The tools that a sub-agent may not use cannot be read.
    #[error("`disallowedTools`: {0}")]
    ForbiddenTools(#[from] ForbiddenToolsError),
}

gnoma_core::debug_as_display!(DefinitionFileError);
