//! The modules of a crate: which file each is in, what it defines and what it imports. Names are
//! resolved through imports and re-exports to the file that defines the item.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use syn::{
    Item, ItemMod, ItemUse, UseTree, Visibility, ext::IdentExt as _, spanned::Spanned as _, visit,
    visit::Visit,
};

use super::source::{MeasureError, Source};

/// Imports followed from one name before it counts as unknown.
const MAX_STEPS: usize = 64;

/// A module, with a file of its own or written inside another's.
#[derive(Default)]
pub(super) struct Module {
    pub(super) parent: Option<usize>,
    /// Index of its file.
    pub(super) file: usize,
    pub(super) children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
}

/// One name, or all names, of a `use`.
pub(super) struct Import {
    /// The name it has here; none for `*`.
    name: Option<String>,
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    pub(super) is_reexport: bool,
}

/// The target that a path leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ResolvedPath {
    Module(usize),
    /// An item in the file with this index.
    Item(usize),
}

/// All modules that are reached from one root, such as `lib.rs`. The first is the root.
#[derive(Default)]
pub(super) struct ModuleTree {
    pub(super) modules: Vec<Module>,
    pub(super) files: Vec<Source>,
    /// The name that the crate has in paths.
    crate_name: String,
}

impl ModuleTree {
    /// Reads `root`, a file in `src`, and every module below it that is not only for tests.
    pub(super) fn read(src: &Path, root: &str, crate_name: &str) -> Result<Self, MeasureError> {
        let mut tree = Self { crate_name: crate_name.replace('-', "_"), ..Self::default() };
        tree.add_file(src, Path::new(root), None)?;
        Ok(tree)
    }

    fn add_file(
        &mut self,
        src: &Path,
        path: &Path,
        parent: Option<usize>,
    ) -> Result<usize, MeasureError> {
        let source = Source::read(src, path)?;
        let stem = path.file_stem().unwrap_or_default();
        let folder = path.parent().unwrap_or(Path::new(""));
        let folder = if ["mod", "lib", "main"].iter().any(|own| stem == *own) {
            folder.to_owned()
        } else {
            folder.join(stem)
        };
        let items = source.items.clone();
        self.files.push(source);
        self.add_module(src, &folder, &items, self.files.len() - 1, parent)
    }

    fn add_module(
        &mut self,
        src: &Path,
        folder: &Path,
        items: &[Item],
        file: usize,
        parent: Option<usize>,
    ) -> Result<usize, MeasureError> {
        let mut imports = Imports::default();
        items.iter().for_each(|item| imports.visit_item(item));
        let index = self.modules.len();
        let names = items.iter().filter_map(defined_name).collect();
        let module = Module { parent, file, imports: imports.0, items: names, ..Module::default() };
        self.modules.push(module);
        for item in items {
            let Item::Mod(declared) = item else { continue };
            let name = declared.ident.unraw().to_string();
            if name == "tests" {
                continue;
            }
            let child = match &declared.content {
                Some((_, inner)) => {
                    self.add_module(src, &folder.join(&name), inner, file, Some(index))?
                }
                None => {
                    let own = folder.join(format!("{name}.rs"));
                    let nested = folder.join(&name).join("mod.rs");
                    let path = if src.join(&own).exists() { own } else { nested };
                    self.add_file(src, &path, Some(index))?
                }
            };
            if let Some(module) = self.modules.get_mut(index) {
                module.children.insert(name, child);
            }
        }
        Ok(index)
    }

    /// Returns the target of a path that stands in module `from`. If a module and another item share its last name,
    /// the target is the item.
    pub(super) fn resolve_path(&self, from: usize, path: &[String]) -> Option<ResolvedPath> {
        self.follow_path(from, path, false, MAX_STEPS)
    }

    /// Returns the target of an import of module `from`. If a module and another item share its last name, the
    /// target is the module: which of the two is used shows where it is used.
    pub(super) fn resolve_import(&self, from: usize, import: &Import) -> Option<ResolvedPath> {
        self.follow_import(from, import, true, MAX_STEPS)
    }

    /// Reports whether `inner` lies below `outer`.
    pub(super) fn is_below(&self, inner: usize, outer: usize) -> bool {
        let mut at = self.modules.get(inner).and_then(|module| module.parent);
        while let Some(index) = at {
            if index == outer {
                return true;
            }
            at = self.modules.get(index).and_then(|module| module.parent);
        }
        false
    }

    fn follow_path(
        &self,
        from: usize,
        path: &[String],
        leads_on: bool,
        steps: usize,
    ) -> Option<ResolvedPath> {
        let steps = steps.checked_sub(1)?;
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => ResolvedPath::Module(0),
            "self" => ResolvedPath::Module(from),
            "super" => ResolvedPath::Module(self.modules.get(from)?.parent?),
            name if name == self.crate_name && !rest.is_empty() => ResolvedPath::Module(0),
            name => self.look_up(from, name, leads_on || !rest.is_empty(), steps)?,
        };
        while let (ResolvedPath::Module(module), Some((name, after))) = (at, rest.split_first()) {
            at = match name.as_str() {
                "super" => ResolvedPath::Module(self.modules.get(module)?.parent?),
                "self" => at,
                name => self.look_up(module, name, leads_on || !after.is_empty(), steps)?,
            };
            rest = after;
        }
        Some(at)
    }

    /// A name in a module. A module and another item may share one; if the path
    /// `leads_on`, it is the module.
    fn look_up(
        &self,
        from: usize,
        name: &str,
        leads_on: bool,
        steps: usize,
    ) -> Option<ResolvedPath> {
        let steps = steps.checked_sub(1)?;
        let module = self.modules.get(from)?;
        let child = module.children.get(name).map(|child| ResolvedPath::Module(*child));
        if leads_on && child.is_some() {
            return child;
        }
        if module.items.contains(name) {
            return Some(ResolvedPath::Item(module.file));
        }
        let named = module.imports.iter().filter(|import| import.name.as_deref() == Some(name));
        let named =
            named.filter_map(|import| self.follow_import(from, import, leads_on, steps)).next();
        named.or(child).or_else(|| {
            let all = module.imports.iter().filter(|import| import.name.is_none());
            all.filter_map(|import| match self.follow_import(from, import, true, steps)? {
                ResolvedPath::Module(module) if module != from => {
                    self.look_up(module, name, leads_on, steps)
                }
                ResolvedPath::Module(_) | ResolvedPath::Item(_) => None,
            })
            .next()
        })
    }

    fn follow_import(
        &self,
        from: usize,
        import: &Import,
        leads_on: bool,
        steps: usize,
    ) -> Option<ResolvedPath> {
        // `use name::…` means a module of the crate or a crate of that name, never itself.
        let is_itself = import.path.len() == 1 && import.path.first() == import.name.as_ref();
        if is_itself { None } else { self.follow_path(from, &import.path, leads_on, steps) }
    }
}

fn defined_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.unraw().to_string())
}

/// The imports of one module, also those inside its functions.
#[derive(Default)]
struct Imports(Vec<Import>);

impl Imports {
    fn add_use_tree(&mut self, tree: &UseTree, path: &[String], is_reexport: bool) {
        let line = tree.span().start().line;
        let with = |name: &syn::Ident| {
            let mut longer = path.to_vec();
            longer.push(name.unraw().to_string());
            longer
        };
        let (name, path) = match tree {
            UseTree::Path(part) => {
                return self.add_use_tree(&part.tree, &with(&part.ident), is_reexport);
            }
            UseTree::Group(group) => {
                return group
                    .items
                    .iter()
                    .for_each(|tree| self.add_use_tree(tree, path, is_reexport));
            }
            UseTree::Name(last) if last.ident == "self" => (path.last().cloned(), path.to_vec()),
            UseTree::Name(last) => (Some(last.ident.unraw().to_string()), with(&last.ident)),
            UseTree::Rename(last) => {
                let path = if last.ident == "self" { path.to_vec() } else { with(&last.ident) };
                (Some(last.rename.unraw().to_string()), path)
            }
            UseTree::Glob(_) => (None, path.to_vec()),
        };
        self.0.push(Import { name, path, line, is_reexport });
    }
}

impl Visit<'_> for Imports {
    fn visit_item_mod(&mut self, _: &ItemMod) {}

    fn visit_item_use(&mut self, item: &ItemUse) {
        let is_reexport = !matches!(item.vis, Visibility::Inherited);
        if item.leading_colon.is_none() {
            self.add_use_tree(&item.tree, &[], is_reexport);
        }
        visit::visit_item_use(self, item);
    }
}
