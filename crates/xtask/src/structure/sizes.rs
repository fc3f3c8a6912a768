//! How long functions are, how wide structs, and which types are defined.

use syn::{
    ImplItemFn, ItemEnum, ItemFn, ItemStruct, ItemTrait, ItemType, ItemUnion, TraitItemFn, visit,
    visit::Visit,
};

use super::source::line_count;

/// The sizes that are counted in one file.
#[derive(Default)]
pub(super) struct Sizes {
    /// Name and lines of each function, without its documentation.
    pub(super) functions: Vec<(String, usize)>,
    /// Name and number of fields of each struct.
    pub(super) structs: Vec<(String, usize)>,
    /// Names of structs, enums, unions, traits and aliases.
    pub(super) types: Vec<String>,
}

impl Sizes {
    fn add_function(&mut self, signature: &syn::Signature, body: &syn::Block) {
        use syn::spanned::Spanned as _;
        let before = body.span().start().line.saturating_sub(signature.span().start().line);
        self.functions.push((signature.ident.to_string(), before + line_count(body)));
    }
}

impl Visit<'_> for Sizes {
    fn visit_item_fn(&mut self, item: &ItemFn) {
        self.add_function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &ImplItemFn) {
        self.add_function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &TraitItemFn) {
        if let Some(body) = &item.default {
            self.add_function(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &ItemStruct) {
        self.structs.push((item.ident.to_string(), item.fields.len()));
        self.types.push(item.ident.to_string());
    }

    fn visit_item_enum(&mut self, item: &ItemEnum) {
        self.types.push(item.ident.to_string());
    }

    fn visit_item_union(&mut self, item: &ItemUnion) {
        self.types.push(item.ident.to_string());
    }

    fn visit_item_type(&mut self, item: &ItemType) {
        self.types.push(item.ident.to_string());
    }

    fn visit_item_trait(&mut self, item: &ItemTrait) {
        self.types.push(item.ident.to_string());
        visit::visit_item_trait(self, item);
    }
}
