//! Small text programs of which some options decide.

use super::super::Walker;
use super::super::call::ProgramCall;
use super::super::command_facts::CommandFacts;
use crate::expand::Field;
use crate::facts::Effect;
use crate::programs::Role;

/// Returns the effects that the table gives if one of `options` is given; without such an option the program has
/// further effects.
pub(super) fn only_with(
    walker: &mut Walker<'_>,
    call: &ProgramCall<'_>,
    options: &[&str],
) -> CommandFacts {
    let mut facts = walker.generic_facts(call);
    if !call.sorted.has_option(options) {
        for operand in &call.sorted.operands {
            walker.apply_role(call, Role::Write, operand, &mut facts);
        }
        let wanted = options.first().copied().unwrap_or_default();
        facts.add(Effect::Unknown(format!(
            "`{}` only reads when it is given `{wanted}`",
            call.title
        )));
    }
    facts
}

/// `jq` reads only, but its filters can show the environment.
pub(super) fn analyse_jq(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.generic_facts(call);
    let filter = if call.sorted.has_option(&["f", "from-file"]) {
        None
    } else {
        call.sorted.operands.first()
    };
    match filter {
        Some(Field::Known(text)) if has_word(text, &["env", "ENV"]) => {
            facts.add(Effect::Settings("the environment".to_owned()));
        }
        Some(Field::Known(text)) if has_word(text, &["import", "include"]) => {
            facts.add(Effect::Unknown("jq: gnoma does not know what it imports".to_owned()));
        }
        Some(Field::Known(_)) | None => {}
        Some(filter) => {
            facts.add(Effect::Unknown(format!("jq: filter `{filter}` may show the environment")));
        }
    }
    if filter.is_none() && call.sorted.has_option(&["f", "from-file"]) {
        facts.add(Effect::Unknown(
            "jq: gnoma does not know what the filter in the file shows".to_owned(),
        ));
    }
    facts
}

/// True if one of `words` stands in a filter and is not the name of a field.
fn has_word(filter: &str, words: &[&str]) -> bool {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let stands = |(at, word): (usize, &str)| {
        let before = filter.get(..at).and_then(|text| text.chars().next_back());
        let after = filter.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(|letter| is_name(letter) || letter == '.')
            && !after.is_some_and(is_name)
    };
    words.iter().any(|word| filter.match_indices(word).any(stands))
}

/// `xxd`: of an option it looks at the first letters only, so a bundle is not what it seems, and the value of
/// an option with `=` is the next word.
pub(super) fn analyse_xxd(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let is_plain = |text: &str| {
        let value = text.get(2..).unwrap_or_default();
        value.is_empty()
            || text.starts_with("--") && !text.contains('=')
            || value.bytes().all(|byte| byte.is_ascii_digit())
            || call.entry.options.iter().any(|spec| text.strip_prefix('-') == Some(spec.name))
    };
    let mut facts = walker.generic_facts(call);
    let bundle = call
        .words
        .iter()
        .filter_map(Field::known_text)
        .find(|word| word.starts_with('-') && !is_plain(word));
    if let Some(bundle) = bundle {
        facts.add(Effect::Unknown(format!("xxd: unknown option `{bundle}`")));
    }
    facts
}

/// `pandoc` converts to its output. A format that ends in `.lua` is a program, and texts of formats other than
/// Markdown may name files that are taken in.
pub(super) fn analyse_pandoc(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.option_facts(call);
    let is_markdown = |format: &str| {
        ["markdown", "gfm", "commonmark"].iter().any(|start| format.starts_with(start))
    };
    let is_format = |letter: u8| letter.is_ascii_alphanumeric() || b"+-_".contains(&letter);
    let mut named_markdown = None;
    for given in &call.sorted.options {
        let reads = matches!(given.name.as_str(), "f" | "r" | "from" | "read");
        if !reads && !matches!(given.name.as_str(), "t" | "w" | "to" | "write") {
            continue;
        }
        let format = given.values.last().and_then(Field::known_text).unwrap_or("?");
        if !format.bytes().all(is_format) {
            facts.add(Effect::Runs(format!("pandoc: format `{format}`")));
        }
        if reads {
            named_markdown = Some(is_markdown(format));
        }
    }
    if named_markdown == Some(false) {
        walker.apply_role(call, Role::Names, &Field::Known("-".to_owned()), &mut facts);
    }
    for operand in &call.sorted.operands {
        let name = operand.known_start().rsplit('/').next().unwrap_or_default();
        let by_name = name.split_once('.').is_none_or(|(_, end)| matches!(end, "md" | "markdown"));
        let alone = named_markdown.unwrap_or(by_name && operand.known_text().is_some());
        walker.apply_role(call, if alone { Role::Read } else { Role::Names }, operand, &mut facts);
    }
    facts
}

/// `pdftotext` writes beside what it reads, unless it is told where.
pub(super) fn pdf_to_text(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.generic_facts(call);
    if let [file] = call.sorted.operands.as_slice() {
        walker.apply_role(
            call,
            Role::Write,
            &Field::from_known_start(&format!("{file} as text"), file.known_start()),
            &mut facts,
        );
    }
    facts
}

/// Programs that open whatever address a name with `:` is.
pub(super) fn analyse_probe(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let values = call.sorted.options.iter().filter(|given| given.role == Role::Read);
    let named = values.filter_map(|given| given.values.last()).chain(&call.sorted.operands);
    let may_lead_out = |word: &&Field| {
        word.known_start().contains(':')
            || word.known_text().is_none() && word.known_start().is_empty()
    };
    let addresses = named.filter(may_lead_out).count();
    let mut facts = walker.generic_facts(call);
    if addresses > 0 {
        facts.add(Effect::Network(None));
    }
    facts
}

/// `yq` of either kind: an expression, then files; operators that read or run are left to a question.
pub(super) fn analyse_yq(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    const STRANGE: [&str; 10] =
        ["load", "env", "ENV", "input", "system", "exec", "split_doc", "import", "include", "file"];
    let mut facts = walker.option_facts(call);
    let verbs = ["e", "eval", "ea", "eval-all"];
    let skipped = usize::from(call.sorted.operand(0).is_some_and(|word| verbs.contains(&word)));
    let mut operands = call.sorted.operands.iter().skip(skipped);
    match operands.next() {
        Some(Field::Known(text)) if STRANGE.iter().any(|word| text.contains(word)) => {
            facts.add(Effect::Unknown(format!("yq: gnoma does not know what `{text}` reads")));
        }
        Some(Field::Known(text))
            if text.contains(['(', '|', '[', '{', '=']) || text.starts_with('.') => {}
        Some(file @ Field::Known(_)) => walker.apply_role(call, Role::Read, file, &mut facts),
        Some(word) => facts.add(Effect::Unknown(format!("yq: gnoma does not know `{word}`"))),
        None => {}
    }
    for operand in operands {
        walker.apply_role(call, Role::Read, operand, &mut facts);
    }
    facts
}

/// `espeak` speaks, unless it is told to be quiet.
pub(super) fn analyse_espeak(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.generic_facts(call);
    if !call.sorted.has_option(&["q", "quiet"]) {
        facts.add(Effect::System("speaks".to_owned()));
    }
    facts
}

/// `openssl` commands that read and print; keys and passwords are secrets.
pub(super) fn analyse_openssl(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.option_facts(call);
    for operand in &call.sorted.operands {
        walker.apply_role(call, Role::Read, operand, &mut facts);
    }
    facts
}

/// `cloc` counts; what looks like an archive, it unpacks with other programs first.
pub(super) fn analyse_cloc(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    const SOURCES: [&str; 28] = [
        "c", "h", "cc", "cpp", "hpp", "rs", "go", "py", "js", "jsx", "ts", "tsx", "java", "kt",
        "rb", "php", "sh", "md", "toml", "yml", "yaml", "json", "css", "html", "sql", "swift",
        "lua", "cs",
    ];
    let mut facts = walker.generic_facts(call);
    let is_plain = |word: &Field| {
        let name = word.known_text().and_then(|text| text.trim_end_matches('/').rsplit('/').next());
        name.is_some_and(|name| {
            let ending = name.trim_start_matches('.').rsplit_once('.').map(|(_, ending)| ending);
            ending.is_none_or(|ending| SOURCES.contains(&ending))
        })
    };
    if let Some(word) = call.sorted.operands.iter().find(|word| !is_plain(word)) {
        facts.add(Effect::Unknown(format!("cloc: `{word}` may be an archive, which it unpacks")));
    }
    facts
}
