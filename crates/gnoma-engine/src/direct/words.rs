//! The words of such a request.

use super::plan::{Direct, DirectStep, LookedAt, UNCHANGED};

const ANSWER: &str = "Answer in plain words, from what is shown above. Quote names, values and code exactly as \
     they stand there.";

const SHAPED: &str = "Answer with one JSON value that fits this JSON Schema, and nothing else:";

/// The message: what was read, what is said (`said`, perhaps with earlier turns before it), and what is
/// asked for.
pub(crate) fn request(direct: &Direct, said: &str) -> String {
    let mut text = String::new();
    match &direct.step {
        DirectStep::Answer => {
            direct.seen.iter().for_each(|seen| show(&mut text, seen));
            text.push_str(said);
            text.push_str("\n\n");
            match &direct.schema {
                Some(schema) => text.push_str(&format!("{SHAPED}\n{schema}")),
                None => text.push_str(ANSWER),
            }
            notes(&mut text, direct);
        }
        DirectStep::Write(paths) => {
            direct.seen.iter().for_each(|seen| show(&mut text, seen));
            text.push_str(said);
            text.push_str("\n\n");
            text.push_str(&order(direct, paths));
        }
        DirectStep::Report => {
            text.push_str(said);
            for (path, old, new) in &direct.changed {
                text.push_str(&format!("\n\nYou changed {path}:\n{}", lines(old, new)));
            }
            text.push_str("\nSay in one short sentence what you changed.");
            notes(&mut text, direct);
        }
    }
    text
}

fn order(direct: &Direct, paths: &[String]) -> String {
    let is_new = |path: &String| !direct.seen.iter().any(|seen| seen.path == *path);
    let file = match paths {
        [path] if is_new(path) => {
            return format!(
                "Write the file {path}. Answer with all of it in one fenced code block."
            );
        }
        [path] => path.clone(),
        several => format!("that has to change ({}), after its name,", several.join(" or ")),
    };
    let Some(why) = &direct.failed else {
        return format!(
            "Write the whole file {file} with this change, and every other line as it is. Answer with the file \
             in one fenced code block."
        );
    };
    if direct.tries > 1 {
        return format!(
            "The file {file} is not right yet. Find the line that has to change, and write the whole file with \
             that line corrected, in one fenced code block. It must not be the same as above."
        );
    }
    // Who copies a file without changing it sees the fault once it has to be named.
    let why = if why.contains(UNCHANGED) {
        String::new()
    } else {
        format!("Your last try failed: {why}\n")
    };
    format!(
        "{why}First say in one sentence which line is wrong and what it has to be. Then write the whole file \
         {file} with this change, and every other line as it is, in one fenced code block."
    )
}

fn show(text: &mut String, seen: &LookedAt) {
    let fence = if seen.text.contains("```") { "````" } else { "```" };
    let kind = seen.path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let kind = if kind.contains('/') { "" } else { kind };
    text.push_str(&format!("{}:\n{fence}{kind}\n{}\n{fence}\n\n", seen.path, seen.text));
}

fn lines(old: &str, new: &str) -> String {
    let line = |mark: char| move |line: &str| format!("{mark} {line}\n");
    let old = old.lines().map(line('-'));
    old.chain(new.lines().map(line('+'))).collect()
}

fn notes(text: &mut String, direct: &Direct) {
    for note in &direct.notes {
        text.push('\n');
        text.push_str(note);
    }
}
