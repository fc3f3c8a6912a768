//! Where words point to: paths resolved in the text alone, links not looked at.

use std::path::{Component, Path, PathBuf};

use super::Field;
use crate::facts::Place;

/// Where `field` points to, seen from `cwd`.
pub(crate) fn place(field: &Field, cwd: Option<&Path>) -> Place {
    let unknown = || Place::Unknown(field.to_string());
    match field {
        Field::Known(text) => resolve(text, cwd).map_or_else(unknown, Place::Path),
        Field::Pattern(text) => pattern(text, cwd).unwrap_or_else(unknown),
        Field::Unknown { .. } => unknown(),
    }
}

/// The folder itself, when it is known.
pub(crate) fn folder(cwd: Option<&Path>) -> Place {
    cwd.map_or_else(|| Place::Unknown(".".to_owned()), |cwd| Place::Path(cwd.to_owned()))
}

/// An absolute path without `.` and `..`; `None` when it is relative to an unknown folder.
pub(crate) fn resolve(text: &str, cwd: Option<&Path>) -> Option<PathBuf> {
    let path = Path::new(text);
    if path.is_absolute() { Some(tidy(path)) } else { Some(tidy(&cwd?.join(path))) }
}

fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => tidy.push(name),
            Component::ParentDir => {
                tidy.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    tidy
}

/// A pattern with the folder it certainly stays in; none when a part after a wildcard may lead out.
fn pattern(text: &str, cwd: Option<&Path>) -> Option<Place> {
    let certain = Field::Pattern(text.to_owned()).start().len();
    let folder_end = text.get(..certain)?.rfind('/').map_or(0, |slash| slash + 1);
    let (folder, rest) = text.split_at_checked(folder_end)?;
    if rest.split('/').any(|name| name == ".." || name.starts_with(".*") || name.starts_with(".?"))
    {
        return None;
    }
    let base = resolve(if folder.is_empty() { "." } else { folder }, cwd)?;
    let pattern = format!("{}/{rest}", base.display()).replacen("//", "/", 1);
    Some(Place::Pattern { base, pattern })
}
