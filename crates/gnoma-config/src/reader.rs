//! Checks one layer against the schema: a tree of values in, entries and findings out.
//!
//! Unknown keys are warned of and ignored, so that a configuration can be shared by several
//! versions; a value that cannot be read is an error, as ignoring it would do something else than
//! was asked for.

use std::ops::Range;

use gnoma_core::suggest::nearest_name;

use crate::{
    expand::{Environment, ExpandError, first_variable},
    finding::{Finding, Origin, Place, Report, Severity},
    guard::{self, FileTrust},
    key::KeyPath,
    layer::{Entry, Layer},
    mistakes,
    schema::{self, Kind, KnownKey, Refusal, Row},
    text::{Snippet, SourceText},
    tree::{Field, Node, Tree},
};

/// Most known keys that are listed when none is near to the one that was written.
const MAX_LISTED_KEYS: usize = 16;
/// The sections of what guards a session. A key that was written elsewhere is not taken for one of theirs: whoever
/// follows such a hint could allow more than was meant.
const GUARDS: [&str; 3] = ["permission.", "sandbox.", "security."];
/// The list that may also be a table of programs by name.
const NAMED_PROGRAMS: &str = "cli_agents";

/// The source that a layer is read from.
#[derive(Clone, Copy)]
pub(crate) enum ReadFrom<'a> {
    /// A file; only there `${VAR}` is expanded.
    File { source: &'a SourceText, env: &'a Environment, standing: FileTrust },
    /// An environment variable of this name.
    Variable(&'a str),
    /// The command line, under this key.
    Flag(&'a str),
}

/// A reader of one configuration layer.
pub(crate) struct Reader<'a> {
    origin: Origin,
    read_from: ReadFrom<'a>,
    report: &'a mut Report,
    layer: Layer,
}

/// Reads the file `source` as the layer `origin`.
pub(crate) fn read_file(
    origin: Origin,
    source: &SourceText,
    env: &Environment,
    standing: FileTrust,
    report: &mut Report,
) -> Layer {
    let (document, mut errors) = toml::de::DeTable::parse_recoverable(&source.text);
    gnoma_core::sort::by_key(&mut errors, |error| error.span().map(|span| span.start));
    let language = mistakes::other_language_hint(&source.text);
    // In another language, every line is wrong for the same reason.
    let told = if language.is_some() { 1 } else { errors.len() };
    for error in errors.iter().take(told) {
        report.add_with(Severity::Error, || {
            let finding = syntax_error(source, error);
            let start = error.span().unwrap_or_default().start;
            let is_repeated = error.message().contains("duplicate");
            let of_line = || mistakes::of_line(&source.text, start).filter(|_| !is_repeated);
            match language.or_else(of_line) {
                Some(hint) => finding.with_hint(hint),
                None => finding,
            }
        });
    }
    if !errors.is_empty() {
        return Layer::new();
    }
    let mut reader = Reader::new(origin, ReadFrom::File { source, env, standing }, report);
    reader.visit_path(&KeyPath::default(), &crate::tree::of_file(document));
    reader.into_layer()
}

fn syntax_error(source: &SourceText, error: &toml::de::Error) -> Finding {
    let span = error.span().unwrap_or_default();
    let place =
        Place::File { path: source.path.clone(), position: Some(source.position_at(span.start)) };
    Finding::new(Severity::Error, place, format!("not valid TOML: {}", error.message()))
        .with_snippet(source.snippet_at(&span))
}

impl<'a> Reader<'a> {
    pub(crate) fn new(origin: Origin, read_from: ReadFrom<'a>, report: &'a mut Report) -> Self {
        Self { origin, read_from, report, layer: Layer::new() }
    }

    /// Returns the layer that was read.
    pub(crate) fn into_layer(self) -> Layer {
        self.layer
    }

    /// Reads what `path` is set to.
    pub(crate) fn visit_path(&mut self, path: &KeyPath, node: &Node) {
        self.visit_named(path, node, &node.span);
    }

    fn visit_named(&mut self, path: &KeyPath, node: &Node, name_span: &Range<usize>) {
        match schema::lookup_key(path) {
            KnownKey::Key(row) => self.visit_key(row, path, node),
            KnownKey::List(identity) => self.visit_list(identity, path, node),
            KnownKey::Section => self.visit_table(path, node),
            KnownKey::Nothing => self.refuse_unknown(path, name_span),
        }
    }

    fn visit_table(&mut self, path: &KeyPath, node: &Node) {
        let Tree::Table(fields) = &node.tree else {
            let message = format!("must be a table of settings, not {}", node.tree.type_name());
            return self.report_refusal(path, &node.span, message.into());
        };
        for field in fields {
            self.visit_named(&path.with_name(&field.name), &field.node, &field.name_span);
        }
    }

    fn visit_list(&mut self, identity: Option<&'static str>, path: &KeyPath, node: &Node) {
        if let Tree::Table(fields) = &node.tree
            && path.to_string() == NAMED_PROGRAMS
        {
            return fields.iter().for_each(|field| self.visit_program(path, field));
        }
        let Tree::List(items) = &node.tree else {
            let message = format!("must be a list of tables, not {}", node.tree.type_name());
            let hint = format!("write each entry under a header `[[{path}]]`");
            return self.report_refusal(path, &node.span, Refusal { message, hint: Some(hint) });
        };
        for (index, item) in items.iter().enumerate() {
            match identity {
                None => self.visit_item(&path.with_index(index), item),
                Some(field) => self.visit_named_item(field, path, item),
            }
        }
    }

    /// An entry as earlier versions had it: a name, and the program or nothing.
    fn visit_program(&mut self, list: &KeyPath, Field { name, name_span, node }: &Field) {
        let field = |name: &str, node: Node| Field {
            name: name.to_owned(),
            name_span: name_span.clone(),
            node,
        };
        let text = Node { tree: Tree::Text(name.clone()), span: name_span.clone() };
        let mut fields = vec![field("name", text)];
        if !matches!(&node.tree, Tree::Text(program) if program.is_empty()) {
            fields.push(field("command", node.clone()));
        }
        self.visit_item(
            &list.with_name(name),
            &Node { tree: Tree::Table(fields), span: node.span.clone() },
        );
    }

    fn visit_named_item(&mut self, field: &str, list: &KeyPath, item: &Node) {
        let Some(name) = item.tree.text_of(field) else {
            let message = format!("has an entry without `{field}`");
            return self.report_refusal(list, &item.span, message.into());
        };
        let path = list.with_name(name);
        let next = self.layer.range(path.clone()..).next();
        if next.is_some_and(|(known, _)| known.is_within(&path)) {
            let message = "is set twice in this file".to_owned();
            let hint = Some("keep one of them".to_owned());
            return self.report_refusal(&path, &item.span, Refusal { message, hint });
        }
        self.visit_item(&path, item);
    }

    /// Reads an entry of a list and sees that nothing it needs is missing.
    fn visit_item(&mut self, path: &KeyPath, item: &Node) {
        let errors_before = self.report.error_count();
        self.visit_table(path, item);
        // What was ignored for want of trust is missing for a reason that has been told.
        if self.report.error_count() > errors_before || !self.is_trusted() {
            return;
        }
        let missing = schema::rows_below(path)
            .find(|(name, row)| row.required && !self.layer.contains_key(&path.with_name(name)));
        if let Some((name, _)) = missing {
            self.report_refusal(path, &item.span, format!("has no `{name}`").into());
        }
    }

    fn visit_key(&mut self, row: &'static Row, path: &KeyPath, node: &Node) {
        let Some(tree) = self.expand_value(row, path, node) else {
            return;
        };
        // An empty text sets nothing: that is how old configurations say "the default".
        if matches!(&tree, Tree::Text(text) if text.is_empty()) {
            // There is no default address that it could mean.
            let is_written = matches!(&node.tree, Tree::Text(text) if text.is_empty());
            if is_written && matches!(row.kind, Kind::Url) && !row.is_single() {
                let message = "is ignored: it is empty".to_owned();
                self.add_finding(Severity::Warning, path, &node.span, message, || None);
            }
            return;
        }
        match row.kind.read_value(&tree) {
            Ok(value) => {
                let place = self.read_from.place_at(&node.span);
                let variable = match (&self.read_from, &node.tree) {
                    (ReadFrom::File { env, .. }, Tree::Text(text)) if row.kind.can_expand() => {
                        first_variable(text, env).map(str::to_owned)
                    }
                    _ => None,
                };
                let entry = Entry { value, origin: self.origin, place, variable };
                self.layer.insert(path.clone(), entry);
            }
            Err(refusal) => self.report_refusal(path, &node.span, refusal),
        }
    }

    /// The value with its variables put in; `None` when it stays unset, which has been told.
    fn expand_value(&mut self, row: &Row, path: &KeyPath, node: &Node) -> Option<Tree> {
        let ReadFrom::File { env, standing, .. } = self.read_from else {
            return Some(node.tree.clone());
        };
        if !row.kind.can_expand() || !node.tree.has_variable() {
            return Some(node.tree.clone());
        }
        if standing != FileTrust::Trusted {
            let read_from = self.read_from;
            self.report.add_with(Severity::Warning, || {
                let place = read_from.place_at(&node.span);
                guard::ignored_key_finding(path, "because it reads a variable", standing, place)
                    .with_snippet(read_from.snippet_at(&node.span))
            });
            return None;
        }
        match node.tree.expand_variables(env) {
            Ok(tree) => Some(tree),
            Err(ExpandError::Missing(variable)) => {
                self.warn_missing(row, path, &node.span, &variable);
                None
            }
            Err(ExpandError::Malformed(message)) => {
                let hint = Some("write `$${` for a plain `${`".to_owned());
                let message = message.to_owned();
                self.report_refusal(path, &node.span, Refusal { message, hint });
                None
            }
        }
    }

    fn warn_missing(&mut self, row: &Row, path: &KeyPath, span: &Range<usize>, variable: &str) {
        self.report.add_unset(path, variable);
        let message = format!("is ignored: the variable {variable} is not set");
        self.add_finding(Severity::Warning, path, span, message, || {
            // A default of a secret would stand in the file for all to read.
            Some(if row.kind.is_secret() {
                format!("export {variable}=…")
            } else {
                format!("set {variable}, or write `${{{variable}:-default}}`")
            })
        });
    }

    fn refuse_unknown(&mut self, path: &KeyPath, span: &Range<usize>) {
        let (severity, message, hint) = match self.read_from {
            ReadFrom::File { .. } | ReadFrom::Variable(_) => {
                (Severity::Warning, "is ignored: there is no such key", None)
            }
            // What is typed for one run is meant for this run.
            ReadFrom::Flag(_) => (
                Severity::Error,
                "cannot be set: there is no such key",
                Some(mistakes::LISTS_KEYS.to_owned()),
            ),
        };
        self.add_finding(severity, path, span, message.to_owned(), || {
            hint_for_unknown(path).or(hint)
        });
    }

    fn report_refusal(&mut self, path: &KeyPath, span: &Range<usize>, refusal: Refusal) {
        let Refusal { message, hint } = refusal;
        self.add_finding(Severity::Error, path, span, message, || hint);
    }

    fn add_finding(
        &mut self,
        severity: Severity,
        path: &KeyPath,
        span: &Range<usize>,
        message: String,
        hint: impl FnOnce() -> Option<String>,
    ) {
        let read_from = self.read_from;
        self.report.add_with(severity, || Finding {
            severity,
            key: Some(path.to_string()),
            message,
            hint: hint(),
            place: read_from.place_at(span),
            snippet: read_from.snippet_at(span),
        });
    }

    fn is_trusted(&self) -> bool {
        match self.read_from {
            ReadFrom::File { standing, .. } => standing == FileTrust::Trusted,
            ReadFrom::Variable(_) | ReadFrom::Flag(_) => true,
        }
    }
}

impl ReadFrom<'_> {
    fn place_at(self, span: &Range<usize>) -> Place {
        match self {
            Self::File { source, .. } => Place::File {
                path: source.path.clone(),
                position: Some(source.position_at(span.start)),
            },
            Self::Variable(name) => Place::Variable(name.to_owned()),
            Self::Flag(key) => Place::Flag(key.to_owned()),
        }
    }

    fn snippet_at(self, span: &Range<usize>) -> Option<Snippet> {
        match self {
            Self::File { source, .. } => source.snippet_at(span),
            Self::Variable(_) | Self::Flag(_) => None,
        }
    }
}

/// The key that was probably meant, or the few that there are.
fn hint_for_unknown(path: &KeyPath) -> Option<String> {
    if let Some(hint) = mistakes::of_key(&path.to_string()) {
        return Some(hint.to_owned());
    }
    let parent = path.parent();
    let name = path.last_name()?;
    let mut siblings: Vec<_> = schema::rows_below(&parent).map(|(step, _)| step).collect();
    siblings.dedup();
    if siblings.is_empty() {
        // The section is the one that is unknown.
        return hint_for_unknown(&parent);
    }
    if let Some(near) = nearest_name(name, siblings.iter().copied()) {
        return Some(format!("did you mean `{}`?", parent.with_name(near)));
    }
    if !parent.segments().is_empty() {
        let is_short = siblings.len() <= MAX_LISTED_KEYS;
        return is_short.then(|| format!("known here are {}", siblings.join(", ")));
    }
    // People leave the section out.
    let last_step = |row: &Row| row.path.rsplit('.').next();
    let is_offered =
        |row: &&Row| row.is_single() && !GUARDS.iter().any(|guard| row.path.starts_with(guard));
    let offered = || schema::ROWS.iter().filter(is_offered);
    let near = nearest_name(name, offered().filter_map(last_step))?;
    let row = offered().find(|row| last_step(row) == Some(near))?;
    Some(format!("did you mean `{}`?", row.path))
}
