//! Which module file refers to which other, where and by what path.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{
    ImplItemFn, ItemFn, ItemMod, ItemUse, Macro, PatIdent, Path, TraitItemFn, ext::IdentExt as _,
    visit, visit::Visit,
};

use super::tree::{ModuleTree, ResolvedPath};

/// A place in one file that names an item of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reference {
    /// Index of the file it stands in.
    pub(super) from: usize,
    /// Index of the file that defines the item.
    pub(super) to: usize,
    /// Line in its file, from one.
    pub(super) line: usize,
    /// The path as it is written.
    pub(super) path: String,
}

/// All references between the files of a tree, sorted.
pub(super) fn find_references(tree: &ModuleTree) -> Vec<Reference> {
    let mut found = BTreeSet::new();
    for (index, module) in tree.modules.iter().enumerate() {
        for import in &module.imports {
            if let Some(ResolvedPath::Item(to)) = tree.resolve_import(index, import) {
                // Passing on what lies below is what a parent is for.
                let below = tree.modules.iter().position(|module| module.file == to);
                let passes_on =
                    import.is_reexport && below.is_some_and(|below| tree.is_below(below, index));
                if !passes_on && to != module.file {
                    let path = import.path.join("::");
                    found.insert(Reference { from: module.file, to, line: import.line, path });
                }
            }
        }
    }
    for (index, module) in tree.modules.iter().enumerate() {
        let is_file = module
            .parent
            .and_then(|parent| tree.modules.get(parent))
            .is_none_or(|parent| parent.file != module.file);
        if let (true, Some(file)) = (is_file, tree.files.get(module.file)) {
            let mut walk =
                ReferenceWalk { tree, at: index, locals: Vec::new(), found: BTreeSet::new() };
            file.items.iter().for_each(|item| walk.visit_item(item));
            found.append(&mut walk.found);
        }
    }
    found.into_iter().collect()
}

struct ReferenceWalk<'a> {
    tree: &'a ModuleTree,
    /// The module whose code is walked.
    at: usize,
    /// Names bound in the functions around, which hide items.
    locals: Vec<BTreeSet<String>>,
    found: BTreeSet<Reference>,
}

impl ReferenceWalk<'_> {
    fn add_reference(&mut self, path: &[String], line: usize) {
        let hidden = |name: &String| self.locals.iter().any(|names| names.contains(name));
        if path.len() == 1 && path.first().is_some_and(hidden) {
            return;
        }
        let Some(from) = self.tree.modules.get(self.at).map(|module| module.file) else { return };
        if let Some(ResolvedPath::Item(to)) = self.tree.resolve_path(self.at, path)
            && to != from
        {
            self.found.insert(Reference { from, to, line, path: path.join("::") });
        }
    }

    fn walk_function(&mut self, bound: BTreeSet<String>, walk: impl FnOnce(&mut Self)) {
        self.locals.push(bound);
        walk(self);
        self.locals.pop();
    }

    /// Paths among the words of a macro. A lone word in lower case is a name of anything, unless it is
    /// called.
    fn walk_tokens(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        let mut path: Vec<String> = Vec::new();
        let (mut line, mut follows_dot, mut colons) = (0, false, 0);
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(word) => {
                    if colons != 2 {
                        path.clear();
                        line = word.span().start().line;
                    }
                    path.push(word.unraw().to_string());
                    colons = 0;
                    let leads_on = matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == ':');
                    let is_called = match tokens.peek() {
                        Some(TokenTree::Group(next)) => next.delimiter() == Delimiter::Parenthesis,
                        Some(TokenTree::Punct(next)) => next.as_char() == '!',
                        _ => false,
                    };
                    let is_upper = word.to_string().starts_with(char::is_uppercase);
                    if !follows_dot && (path.len() > 1 || (is_upper && !leads_on) || is_called) {
                        self.add_reference(&path, line);
                    }
                    follows_dot = false;
                }
                TokenTree::Punct(mark) => {
                    colons = if mark.as_char() == ':' { colons + 1 } else { 0 };
                    follows_dot = mark.as_char() == '.';
                }
                TokenTree::Group(group) => {
                    self.walk_tokens(group.stream());
                    (colons, follows_dot) = (0, false);
                }
                TokenTree::Literal(_) => (colons, follows_dot) = (0, false),
            }
        }
    }
}

impl Visit<'_> for ReferenceWalk<'_> {
    fn visit_item_mod(&mut self, item: &ItemMod) {
        let name = item.ident.unraw().to_string();
        let child = self.tree.modules.get(self.at).and_then(|module| module.children.get(&name));
        if let (Some(&child), Some(_)) = (child, &item.content) {
            let outer = std::mem::replace(&mut self.at, child);
            visit::visit_item_mod(self, item);
            self.at = outer;
        }
    }

    /// Imports are resolved with their tree.
    fn visit_item_use(&mut self, _: &ItemUse) {}

    fn visit_item_fn(&mut self, item: &ItemFn) {
        self.walk_function(bound_names(|names| names.visit_item_fn(item)), |walk| {
            visit::visit_item_fn(walk, item);
        });
    }

    fn visit_impl_item_fn(&mut self, item: &ImplItemFn) {
        self.walk_function(bound_names(|names| names.visit_impl_item_fn(item)), |walk| {
            visit::visit_impl_item_fn(walk, item);
        });
    }

    fn visit_trait_item_fn(&mut self, item: &TraitItemFn) {
        self.walk_function(bound_names(|names| names.visit_trait_item_fn(item)), |walk| {
            visit::visit_trait_item_fn(walk, item);
        });
    }

    fn visit_path(&mut self, path: &Path) {
        if let (None, Some(first)) = (path.leading_colon, path.segments.first()) {
            let line = first.ident.span().start().line;
            let words: Vec<String> =
                path.segments.iter().map(|part| part.ident.unraw().to_string()).collect();
            self.add_reference(&words, line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &Macro) {
        self.visit_path(&call.path);
        self.walk_tokens(call.tokens.clone());
    }
}

/// The names that a function's patterns bind.
struct BoundNames(BTreeSet<String>);

fn bound_names(visit: impl FnOnce(&mut BoundNames)) -> BTreeSet<String> {
    let mut names = BoundNames(BTreeSet::new());
    visit(&mut names);
    names.0
}

impl Visit<'_> for BoundNames {
    fn visit_pat_ident(&mut self, pattern: &PatIdent) {
        let name = pattern.ident.unraw().to_string();
        // A name in upper case is a constant or a variant that is compared with.
        if name.starts_with(|first: char| !first.is_uppercase()) {
            self.0.insert(name);
        }
        visit::visit_pat_ident(self, pattern);
    }
}
