//! The output style that the settings choose: instructions to models on how they answer.

use gnoma_extend::output_styles::load_output_styles;

use crate::{Project, extensions};

/// Returns what the chosen style adds to the system prompt; empty without one. A style that cannot be used is said.
/// Elfs answer to a model, so they have none.
pub(crate) fn style_instructions(project: &Project) -> String {
    let Some(wanted) = project.personal.output_style.as_ref().filter(|_| project.elf.is_none())
    else {
        return String::new();
    };
    let places = extensions::extension_places(project);
    let (styles, faults) = load_output_styles(&places);
    let found = styles.iter().find(|style| style.name.eq_ignore_ascii_case(wanted));
    let why = match found {
        Some(style) if places.waits_for_trust(style.by) => {
            "it is the project's, which you have not trusted yet: `gnoma trust` shows what that would allow"
                .to_owned()
        }
        Some(style) => {
            return format!("\n\nThe user wants answers in this style:\n{}", style.body);
        }
        None => {
            let names: Vec<&str> = styles.iter().map(|style| style.name.as_str()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let faults: String = faults.iter().map(|fault| format!("; {fault}")).collect();
            format!("there is none of that name; the known ones are: {known}{faults}")
        }
    };
    let shown = wanted.escape_debug();
    project.notices.warning(format_args!("the output style `{shown}` is not used: {why}"));
    String::new()
}
