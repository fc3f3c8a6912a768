//! Puts values in the places of `$name` and `${name}`.

use gnoma_core::suggest::is_slip_of;

/// A value by its name.
pub(super) type NamedValue = (String, String);

/// Replaces the names of values in a text for a model. Other names stay as they are.
pub(super) fn fill_text(text: &str, values: &[NamedValue]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, here) = rest.split_at(at);
        filled.push_str(before);
        let (name, length) = name_at(here);
        let value = values.iter().find(|(known, _)| known == name && length > 1);
        filled
            .push_str(value.map_or_else(|| here.get(..length).unwrap_or("$"), |(_, value)| value));
        rest = here.get(length..).unwrap_or_default();
    }
    filled + rest
}

/// Puts the values that a command names before it, as variables of the shell. A value is never part of the command's
/// text, so nothing in it can become a command.
pub(super) fn fill_command(command: &str, values: &[NamedValue]) -> String {
    let mut filled = String::new();
    for (name, value) in values.iter().filter(|(name, _)| mentions_variable(command, name)) {
        filled.push_str(&format!("{name}='{}'\n", value.replace('\'', r"'\''")));
    }
    filled + command
}

/// Returns a variable of a command that is one of these names with a slip in it and gets no value in the command; and the
/// name that was meant.
pub(super) fn misspelt_variable<'t>(command: &str, names: &[&'t str]) -> Option<(String, &'t str)> {
    command.match_indices('$').find_map(|(at, _)| {
        let (name, length) = name_at(command.get(at..)?);
        let is_used_otherwise = || {
            let mut places = command.match_indices(name);
            places.any(|(at, _)| !command.get(..at).is_some_and(|it| it.ends_with(['$', '{'])))
        };
        // Those of the environment are in capitals.
        let is_guessed =
            length > 1 && name.len() >= MIN_GUESSED_BYTES && *name == *name.to_lowercase();
        if !is_guessed || names.contains(&name) {
            return None;
        }
        let meant = names.iter().find(|known| is_slip_of(name, known))?;
        (!is_used_otherwise()).then(|| (name.to_owned(), *meant))
    })
}

/// Shorter names are near to too much.
const MIN_GUESSED_BYTES: usize = 4;

/// Returns whether a text contains `$name` or `${name`.
pub(super) fn mentions_variable(text: &str, name: &str) -> bool {
    text.match_indices('$').any(|(at, _)| name_at(text.get(at..).unwrap_or_default()).0 == name)
}

/// The name behind a `$` at the beginning of a text, and the length of both; 1 if the name is only the beginning of an
/// expression of the shell.
fn name_at(text: &str) -> (&str, usize) {
    let after = text.get(1..).unwrap_or_default();
    let (inside, brace) = match after.strip_prefix('{') {
        Some(inside) => (inside, true),
        None => (after, false),
    };
    let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inside.len());
    let name = inside.get(..end).unwrap_or_default();
    match brace {
        false => (name, 1 + end),
        true if inside.get(end..).is_some_and(|rest| rest.starts_with('}')) => (name, end + 3),
        // `${name:-x}` is the shell's.
        true => (name, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Vec<NamedValue> {
        vec![
            ("version".into(), "v1".into()),
            ("notes".into(), "it's $(rm -rf /)\n`x` $version".into()),
        ]
    }

    #[test]
    fn task_argument_names_in_text_are_replaced_and_others_stay() {
        let fill = |text: &str| fill_text(text, &values()[..1]);
        assert_eq!(fill("Tag $version, ${version}!"), "Tag v1, v1!");
        assert_eq!(fill("${version:-x}"), "${version:-x}");
        assert_eq!(fill("$versions $HOME $ $1 ${other} $"), "$versions $HOME $ $1 ${other} $");
        // Values are not looked through again.
        assert_eq!(fill_text("$notes", &values()), "it's $(rm -rf /)\n`x` $version");
    }

    #[test]
    fn misspelled_task_variable_is_found_unless_the_command_sets_it() {
        let found = |command: &str| misspelt_variable(command, &["version", "v"]);
        assert_eq!(found("rm -rf \"$verson/\""), Some(("verson".to_owned(), "version")));
        assert_eq!(found("rm -rf \"${versions}/x\""), Some(("versions".to_owned(), "version")));
        for fine in [
            "git tag \"$version\" $w $HOME $VERSION ${verson:-x}",
            "versions=3; echo $versions",
            "for verson in a; do echo $verson; done",
        ] {
            assert_eq!(found(fine), None, "{fine}");
        }
    }

    #[test]
    fn values_reach_a_command_only_as_variables() {
        let filled = fill_command("git tag \"$version\"", &values());
        assert_eq!(filled, "version='v1'\ngit tag \"$version\"");
        let filled = fill_command("echo ${notes:-none}", &values());
        assert_eq!(filled, "notes='it'\\''s $(rm -rf /)\n`x` $version'\necho ${notes:-none}");
        assert_eq!(fill_command("echo $HOME", &values()), "echo $HOME");
    }
}
