//! One source file, parsed, with its test code taken out.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use syn::{Attribute, ImplItem, Item, Meta, punctuated::Punctuated};

/// The reason why the sources of a crate could not be measured.
#[derive(Debug)]
pub enum MeasureError {
    /// A file or folder could not be read.
    Unreadable {
        /// The path that was to be read.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// A file is not Rust that the parser understands.
    Unparsed {
        /// The path of the file.
        path: PathBuf,
        /// The place and the text that the parser did not expect.
        error: syn::Error,
    },
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } => write!(f, "`{}`: {error}", path.display()),
            Self::Unparsed { path, error } => {
                let line = error.span().start().line;
                write!(f, "`{}`, line {line}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for MeasureError {}

/// A module file without its test code.
pub(super) struct Source {
    /// The path of the file, below `src`.
    pub(super) path: PathBuf,
    pub(super) items: Vec<Item>,
    /// Lines without those of test code.
    pub(super) lines: usize,
}

impl Source {
    /// Reads the file at `path` below `src`.
    pub(super) fn read(src: &Path, path: &Path) -> Result<Self, MeasureError> {
        let full = src.join(path);
        let text = fs::read_to_string(&full)
            .map_err(|error| MeasureError::Unreadable { path: full.clone(), error })?;
        let mut items = syn::parse_file(&text)
            .map_err(|error| MeasureError::Unparsed { path: full, error })?
            .items;
        let lines = text.lines().count().saturating_sub(take_tests(&mut items));
        Ok(Self { path: path.to_owned(), items, lines })
    }
}

/// Removes what is only compiled for tests and returns how many lines it took.
fn take_tests(items: &mut Vec<Item>) -> usize {
    let mut taken = 0;
    items.retain(|item| {
        let keep = !item_attributes(item).iter().any(is_test);
        taken += if keep { 0 } else { line_count(item) };
        keep
    });
    for item in items {
        match item {
            Item::Mod(module) => {
                if let Some((_, inner)) = &mut module.content {
                    taken += take_tests(inner);
                }
            }
            Item::Impl(block) => block.items.retain(|item| {
                let keep = !member_attributes(item).iter().any(is_test);
                taken += if keep { 0 } else { line_count(item) };
                keep
            }),
            _ => {}
        }
    }
    taken
}

/// The lines from the first to the last of a piece of code.
pub(super) fn line_count(code: &impl syn::spanned::Spanned) -> usize {
    let span = code.span();
    span.end().line.saturating_sub(span.start().line) + 1
}

fn item_attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn member_attributes(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(item) => &item.attrs,
        ImplItem::Fn(item) => &item.attrs,
        ImplItem::Type(item) => &item.attrs,
        ImplItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

/// Reports whether an attribute leaves its item out of everything but tests.
fn is_test(attribute: &Attribute) -> bool {
    attribute.path().is_ident("test")
        || (attribute.path().is_ident("cfg")
            && attribute.parse_args::<Meta>().is_ok_and(|condition| needs_test(&condition)))
}

fn needs_test(condition: &Meta) -> bool {
    let Meta::List(list) = condition else { return condition.path().is_ident("test") };
    let parts = list.parse_args_with(Punctuated::<Meta, syn::Token![,]>::parse_terminated);
    let Ok(parts) = parts else { return false };
    if list.path.is_ident("all") {
        parts.iter().any(needs_test)
    } else {
        list.path.is_ident("any") && !parts.is_empty() && parts.iter().all(needs_test)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_under_cfg_test_are_removed_from_the_source() {
        let text = "mod kept {}\n\
                    #[cfg(test)]\nmod gone {\n}\n\
                    #[cfg(all(unix, test))]\nfn gone() {}\n\
                    #[cfg(any(test, feature = \"x\"))]\nfn kept() {}\n\
                    #[cfg(not(test))]\nfn kept_too() {}\n";
        let mut items = syn::parse_file(text).unwrap().items;
        assert_eq!(take_tests(&mut items), 5);
        assert_eq!(items.len(), 3);
    }
}
