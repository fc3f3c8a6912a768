//! Commands made at random from the grammar, with here-documents after the line that asks for them.

use proptest::prelude::*;

const PLAIN: [&str; 16] = [
    "a", "b.c", "/x/y", "-n", "--k=v", "if", "}", "a#b", "'s q'", "\"d q\"", "\\ ", "$x", "*",
    "[ab]", "{a,b}", "$'\\n'",
];

/// Text that only has a meaning together with other text.
pub(crate) const FRAGMENTS: [&str; 72] = [
    "a", "x=1", "a[1]=2", "a+=(1 2)", "if", "then", "fi", "elif", "while", "do", "done", "for",
    "in", "case", "esac", "select", "function", "time", "!", "{", "}", "[[", "]]", "((", "))", "(",
    ")", ";", ";;", ";&", "&", "&&", "||", "|", "|&", ">", "<", ">>", "<<", "<<-", "<<<", ">&",
    "&>", "2>", "\n", " ", "\t", "'", "\"", "`", "\\", "\\\n", "$", "${", "$(", "$((", "$[", "]",
    "[", "#", "/", "~", "*", "@(", "<(", "$'", "f()", "coproc", "declare", "\nE\n", "é", "\u{a0}",
];

fn quoted(inner: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let text = prop_oneof![
        Just("x y".to_owned()),
        Just("$x".to_owned()),
        Just("\\\"".to_owned()),
        Just("'".to_owned()),
        inner.prop_map(|list| format!("$({list})")),
    ];
    prop::collection::vec(text, 0..3).prop_map(|texts| texts.concat())
}

fn word(inner: impl Strategy<Value = String> + Clone + 'static) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(&PLAIN[..]).prop_map(str::to_owned),
        1 => inner.clone().prop_map(|list| format!("$({list})")),
        1 => inner.clone().prop_map(|list| format!("<({list})")),
        1 => inner.clone().prop_map(|list| {
            format!("`{}`", list.replace('\\', "\\\\").replace('`', "\\`"))
        }),
        1 => quoted(inner.clone()).prop_map(|text| format!("\"{text}\"")),
        1 => quoted(inner.clone()).prop_map(|text| format!("\"${{x:-{}}}\"", text.replace('\'', ""))),
        1 => inner.clone().prop_map(|list| format!("$((1+$({list})))")),
        1 => inner.prop_map(|list| format!("${{x#$({list})}}")),
    ];
    prop::collection::vec(piece, 1..3).prop_map(|pieces| pieces.concat())
}

fn simple(inner: impl Strategy<Value = String> + Clone + 'static) -> impl Strategy<Value = String> {
    let prefix = prop::sample::select(vec!["", "", "", "x=1 ", "x+=$y ", "a=(1 'b') ", "2>&1 "]);
    let program = prop::sample::select(vec!["ls", "git", "echo", "declare z=(1 2)"]);
    let words = prop::collection::vec(word(inner.clone()), 0..3);
    let redirection = prop_oneof![
        6 => Just(String::new()),
        1 => word(inner.clone()).prop_map(|word| format!(" > {word}")),
        1 => word(inner).prop_map(|word| format!(" <<< {word}")),
        1 => Just(" 2>&1 <&-".to_owned()),
    ];
    (prefix, program, words, redirection).prop_map(|(prefix, program, words, redirection)| {
        format!("{prefix}{program} {}{redirection}", words.join(" "))
    })
}

fn compound(
    inner: impl Strategy<Value = String> + Clone + 'static,
) -> impl Strategy<Value = String> {
    let two = (inner.clone(), inner.clone());
    prop_oneof![
        inner.clone().prop_map(|list| format!("{{ {list}; }}")),
        inner.clone().prop_map(|list| format!("( {list} )")),
        two.clone().prop_map(|(one, two)| format!("if {one}; then {two}\nfi")),
        two.clone().prop_map(|(one, two)| format!("while {one}; do {two}; done")),
        two.prop_map(|(one, two)| format!("case x in (a|b) {one};; (*) {two}; esac")),
        inner.clone().prop_map(|list| format!("for i in a $b; do {list}; done")),
        inner.clone().prop_map(|list| format!("f() {{ {list}; }}")),
        inner.clone().prop_map(|list| format!("[[ -f $({list}) && a =~ (b|c) ]]")),
        inner.clone().prop_map(|list| format!("(( 1 + $({list}) ))")),
        inner.prop_map(|list| {
            // Another delimiter than those of the documents within.
            let end = "E".repeat(1 + list.matches("<<E").count());
            format!("cat <<{end}\n$({list})\n{end}\n:")
        }),
    ]
}

/// A list of commands that is valid.
pub(crate) fn list() -> impl Strategy<Value = String> {
    let leaf =
        prop::sample::select(vec!["a", "b c", "! d", "e 'f'", "x=1"]).prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let command = prop_oneof![2 => simple(inner.clone()), 1 => compound(inner)];
        let operator = prop::sample::select(vec![" && ", " || ", "; ", "\n", " & ", " | "]);
        (command.clone(), prop::option::of((operator, command))).prop_map(
            |(first, more)| match more {
                Some((operator, second)) => format!("{first}{operator}{second}"),
                None => first,
            },
        )
    })
}

/// A list with something cut out, put in or moved.
pub(crate) fn damaged() -> impl Strategy<Value = String> {
    let place = any::<prop::sample::Index>();
    (list(), place, 0_usize..4, prop::sample::select(&FRAGMENTS[..])).prop_map(
        |(list, place, cut, put)| {
            let mut characters: Vec<char> = list.chars().collect();
            let from = place.index(characters.len() + 1);
            let to = (from + cut).min(characters.len());
            characters.splice(from..to, put.chars());
            characters.into_iter().collect()
        },
    )
}

/// Fragments in any order.
pub(crate) fn soup() -> impl Strategy<Value = String> {
    let blank = prop::sample::select(vec!["", " ", " "]);
    let fragment = (prop::sample::select(&FRAGMENTS[..]), blank)
        .prop_map(|(fragment, blank)| format!("{fragment}{blank}"));
    prop::collection::vec(fragment, 0..12).prop_map(|fragments| fragments.concat())
}
