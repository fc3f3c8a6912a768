//! The words behind `gnoma task run`.

use gnoma_host::HostError;

/// Splits the name of a task from its arguments.
///
/// # Errors
/// There is no word.
pub(super) fn name_and_arguments(words: &[String]) -> Result<(&str, &[String]), HostError> {
    let missing = || HostError {
        remedy: Some("`gnoma task list` lists them".to_owned()),
        ..HostError::usage("no task is named")
    };
    let (name, arguments) = words.split_first().ok_or_else(missing)?;
    Ok((name, arguments))
}
