//! Laws that hold for every text.

use gnoma_shell::syntax::{
    CommandKind, MAX_BRACES, MAX_DEPTH, MAX_NODES, MAX_TEXT_BYTES, ParseErrorKind, Script, Span,
    SyntaxNode, WordPartKind, parse,
};
use proptest::prelude::*;

use crate::sketch::{script, sketch, word};
use crate::snippets::{damaged, list, soup};

/// Less than any thread is given, and enough for the deepest text.
const SMALL_STACK_BYTES: usize = 1 << 20;

fn in_small_stack(text: &str) -> Result<Script, ParseErrorKind> {
    let text = text.to_owned();
    let builder = std::thread::Builder::new().stack_size(SMALL_STACK_BYTES);
    let read = builder.spawn(move || {
        let tree = parse(&text).map_err(|error| error.kind)?;
        tree.visit(&mut |_| {});
        Ok(tree)
    });
    read.unwrap().join().unwrap()
}

/// Whether what is in this node stands in the text as it is read.
fn is_as_written(node: SyntaxNode<'_>, text: &str) -> bool {
    match node {
        SyntaxNode::HereBody(_) => false,
        SyntaxNode::Part(part) => {
            !matches!(part.kind, WordPartKind::CommandSubstitution(_))
                || part.span.text_in(text).starts_with("$(")
        }
        _ => true,
    }
}

fn check_spans(node: SyntaxNode<'_>, text: &str) {
    let span = node.span();
    assert!(text.get(span.start..span.end).is_some(), "{span:?} of {text:?}");
    let mut last = 0;
    node.visit_children(&mut |child| {
        if !matches!(child, SyntaxNode::HereBody(_)) {
            assert!(span.contains(child.span()), "{child:?} in {span:?} of {text:?}");
            assert!(last <= child.span().start, "{child:?} of {text:?}");
            last = child.span().start;
        }
        check_spans(child, text);
    });
}

/// What a command, statement or pipeline is when it is all there is.
fn alone(span: Span, text: &str) -> Option<String> {
    let tree = parse(span.text_in(text)).ok()?;
    Some(script(&tree))
}

fn check_slices(node: SyntaxNode<'_>, text: &str) {
    if !is_as_written(node, text) {
        return;
    }
    let span = node.span();
    match node {
        SyntaxNode::Script(inner) if !inner.statements.is_empty() => {
            let ends_in_background = inner.statements.last().is_some_and(|last| last.background);
            let expected = script(inner);
            let expected = expected.strip_suffix(" &").filter(|_| ends_in_background);
            let expected = expected.map_or_else(|| script(inner), str::to_owned);
            assert_eq!(alone(span, text), Some(expected), "{text:?}");
        }
        SyntaxNode::Command(command) => {
            if let CommandKind::Simple(simple) = &command.kind {
                for found in simple.words.iter().skip(1) {
                    check_word(&word(found), found.span, text);
                }
            }
        }
        _ => {}
    }
    node.visit_children(&mut |child| check_slices(child, text));
}

fn check_word(expected: &str, span: Span, text: &str) {
    if !expected.contains("=(") {
        let argument = format!("x {}", span.text_in(text));
        assert_eq!(script(&parse(&argument).unwrap()), format!("(x {expected})"), "{text:?}");
    }
}

#[test]
fn span_of_an_empty_value_before_a_line_continuation_is_in_its_assignment() {
    for text in ["x=\\\n git b", "echo \"${x:-$x$(x=\\\n git b)}\"", "x=\\\n\\\ny= a"] {
        check_spans(SyntaxNode::Script(&parse(text).unwrap()), text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn parser_accepts_or_rejects_any_text_without_panic(text in any::<String>()) {
        let _read = parse(&text).is_ok();
    }

    #[test]
    fn syntax_spans_nest_for_any_shell_fragments(text in prop_oneof![soup(), damaged()]) {
        match parse(&text) {
            Ok(tree) => check_spans(SyntaxNode::Script(&tree), &text),
            Err(error) => {
                prop_assert!(error.at <= text.len());
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    #[test]
    fn parser_accepts_every_generated_script(text in list()) {
        let tree = parse(&text);
        prop_assert!(tree.is_ok(), "{:?}: {text}", tree.map(|tree| script(&tree)));
    }

    #[test]
    fn source_slices_of_nodes_parse_to_the_same_tree(text in list()) {
        // A here-document's slice lacks the body.
        if !text.contains("<<E") && let Ok(tree) = parse(&text) {
            check_slices(SyntaxNode::Script(&tree), &text);
        }
    }

    #[test]
    fn blanks_comments_and_line_continuations_do_not_change_the_tree(text in list()) {
        let padded = format!("\n # why\n\t{text} \n#end");
        let joined = format!("\\\n{text}\\\n");
        prop_assert_eq!(sketch(&padded), sketch(&text));
        prop_assert_eq!(sketch(&joined), sketch(&text));
    }

    #[test]
    fn quoted_text_is_one_constant_word(text in "[^\\p{Cc}']*") {
        let tree = parse(&format!("a '{text}'")).unwrap();
        prop_assert_eq!(script(&tree), format!("(a '{text}')"));
    }
}

#[test]
fn deep_nesting_is_a_parse_error_without_stack_overflow() {
    let nests: [(&str, &str, &str); 16] = [
        ("(", "a", ")"),
        ("{ ", "a", "; }"),
        ("$(", "a", ")"),
        ("<(", "a", ")"),
        ("\"$(", "a", ")\""),
        ("${x:-", "a", "}"),
        ("\"${x:-", "a", "}\""),
        ("$((", "1", "))"),
        ("$[", "1", "]"),
        ("{a,", "b", "}"),
        ("@(", "a", ")"),
        ("if a; then ", "b", "; fi"),
        ("! ", "a", ""),
        ("x=(", "a", ")"),
        ("f() { ", "a", "; }"),
        ("$( (", "a", ") )"),
    ];
    for (open, inner, close) in nests {
        for depth in [1, 8, MAX_DEPTH, 5_000] {
            let nested = format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
            for text in [nested.clone(), format!("x {nested}"), open.repeat(depth)] {
                let _read = in_small_stack(&text).is_ok();
            }
        }
    }
    for (open, close) in [("[[ ( ", " ) ]]"), ("[[ ! ", " ]]"), ("[[ a =~ (", ") ]]")] {
        let text = format!(
            "{}a{}",
            open.replace("[[ ", "").repeat(5_000),
            close.replace(" ]]", "").repeat(5_000)
        );
        assert!(in_small_stack(&format!("[[ {text} ]]")).is_err());
    }
    assert_eq!(
        in_small_stack(&"( ".repeat(MAX_DEPTH + 1)).unwrap_err(),
        ParseErrorKind::Limit { what: "levels of nesting", limit: MAX_DEPTH }
    );
    let deep = format!("{}a{}", "$(".repeat(20), ")".repeat(20));
    assert!(in_small_stack(&format!("x {deep}")).is_ok(), "what people write must not hit it");
}

#[test]
fn nested_backquotes_with_escapes_are_parsed() {
    let mut text = "a".to_owned();
    for _ in 0..8 {
        text = format!("b `{}`", text.replace('\\', "\\\\").replace('`', "\\`"));
    }
    assert_eq!(parse(&text).unwrap().simple_commands().len(), 9);
}

#[test]
fn scripts_above_the_size_limits_are_parse_errors() {
    let limit = |text: &str| match parse(text).unwrap_err().kind {
        ParseErrorKind::Limit { what, limit } => Some((what, limit)),
        _ => None,
    };
    let words = "a ".repeat(MAX_NODES + 1);
    assert_eq!(limit(&words), Some(("words and parts", MAX_NODES)));
    let long = "a".repeat(MAX_TEXT_BYTES + 1);
    assert_eq!(limit(&long), Some(("bytes", MAX_TEXT_BYTES)));
    let braces = format!("a {}", "{,}".repeat(MAX_BRACES));
    assert_eq!(limit(&braces), Some(("braces in a word", MAX_BRACES)));
    assert!(parse(&long[1..]).is_ok());
}

/// Work that grows with the square of the length would not come to an end here.
#[test]
fn unclosed_openings_are_parsed_in_linear_time() {
    let bytes = MAX_TEXT_BYTES / 16;
    let units = [
        "[",
        "{",
        "{a,",
        "a[",
        "((",
        "$((",
        "$[",
        "${x",
        "\"",
        "`",
        "<<E ",
        "<<E\n",
        "x=(",
        "!(",
        "*",
        "~",
        "\\\n",
        "# ",
        "a|",
        "a;",
        "1>",
        "{x}",
        "[[ ",
        "@(a",
        "((a) ",
        "$((a) ",
        "case x in ",
        ",",
        "..",
    ];
    for unit in units {
        for start in ["", "a ", "a {", "[[ "] {
            let text = format!("{start}{}", unit.repeat(bytes / unit.len()));
            let _read = in_small_stack(&text).is_ok();
        }
    }
}
