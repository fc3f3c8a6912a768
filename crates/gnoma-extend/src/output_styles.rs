//! Output styles of Claude's convention: Markdown files that say how a model answers.

use std::path::PathBuf;

use crate::{
    definition_error::DefinitionFileError,
    front_matter::FrontMatter,
    places::{ExtendPlaces, ExtensionSource, read_text},
};

/// Most styles of one folder.
const MAX_STYLES: usize = 200;
/// The folder of styles in `.claude`, `.gnoma` and the configuration folder.
const KIND: &str = "output-styles";

/// An output style that a file defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputStyle {
    /// The name of the style: the field `name`, or that of the file.
    pub name: String,
    /// The party that provides the style.
    pub by: ExtensionSource,
    /// The path of the file that defines it.
    pub path: PathBuf,
    /// The instructions to the model.
    pub body: String,
}

/// All styles, the weightiest of each name, sorted by name; and what could not be read.
#[must_use]
pub fn load_output_styles(places: &ExtendPlaces) -> (Vec<OutputStyle>, Vec<String>) {
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for folder in places.extension_folders(KIND, false) {
        let entries = std::fs::read_dir(&folder.path).into_iter().flatten();
        let mut files: Vec<PathBuf> =
            entries.take(MAX_STYLES).flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
        gnoma_core::sort::sort_items(&mut files);
        for path in files {
            let read = if places.may_read(&folder, &path) {
                read_text(&path)
                    .map_err(DefinitionFileError::from)
                    .and_then(|text| parse_style(folder.by, &path, &text))
            } else {
                Err(DefinitionFileError::Outside)
            };
            match read {
                Ok(style) => found.push(style),
                Err(why) => faults.push(format!("{}: {why}", places.display_path(&path))),
            }
        }
    }
    places.retain_weightiest(&mut found, |it: &OutputStyle| &it.name, |it| it.by);
    (found, faults)
}

fn parse_style(
    by: ExtensionSource,
    path: &std::path::Path,
    text: &str,
) -> Result<OutputStyle, DefinitionFileError> {
    let (fields, body) = FrontMatter::split(text).unwrap_or((FrontMatter::default(), text));
    let body = body.trim().to_owned();
    if body.is_empty() {
        return Err(DefinitionFileError::NoInstructions);
    }
    let name = fields.text_field("name").map(|name| name.trim().to_owned());
    let name = name.filter(|name| !name.is_empty());
    let name = name.or_else(|| Some(path.file_stem()?.to_str()?.to_owned()));
    let name = name.ok_or(DefinitionFileError::NameNotUtf8)?;
    Ok(OutputStyle { name, by, path: path.to_owned(), body })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn project_output_style_replaces_the_user_style_once_trusted() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let put = |name: &str, text: &str| {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), text).unwrap();
        };
        put("home/.claude/output-styles/short.md", "---\nname: Short\ndescription: d\n---\nmine\n");
        put("project/.claude/output-styles/a.md", "---\nname: Short\n---\ntheirs\n");
        put("config/output-styles/plain.md", "plain words\n");
        put("config/output-styles/empty.md", "---\nname: Empty\n---\n\n");
        let places = |is_trusted| ExtendPlaces {
            home: Some(at("home")),
            config_dir: at("config"),
            project: at("project"),
            cwd: at("project"),
            roots: vec![at("project")],
            is_trusted,
            plugins: Vec::new(),
        };
        let bodies = |is_trusted| {
            let (styles, faults) = load_output_styles(&places(is_trusted));
            assert!(
                faults.len() == 1 && faults[0].ends_with("it has no instructions"),
                "{faults:?}"
            );
            styles.into_iter().map(|it| (it.name, it.body)).collect::<Vec<_>>()
        };
        let pair = |name: &str, body: &str| (name.to_owned(), body.to_owned());
        assert_eq!(bodies(false), [pair("Short", "mine"), pair("plain", "plain words")]);
        assert_eq!(bodies(true), [pair("Short", "theirs"), pair("plain", "plain words")]);
    }
}
