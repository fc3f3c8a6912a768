//! What each construct of the language is read as, and what is refused.

use gnoma_shell::syntax::{ParseErrorKind, SyntaxNode, parse};

use crate::sketch::sketch;

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(&sketch(text), expected, "{text:?}");
    }
}

fn refused(cases: &[&str]) {
    for text in cases {
        assert!(parse(text).is_err(), "{text:?} is {}", sketch(text));
    }
}

#[test]
fn lists_and_pipelines() {
    check(&[
        ("", ""),
        ("  # only a comment", ""),
        ("a b", "(a b)"),
        ("a; b & c\nd", "(a); (b) &; (c); (d)"),
        ("a && b || c; d", "(a) && (b) || (c); (d)"),
        ("a &&\n# why\n b |\n c", "(a) && (b) | (c)"),
        ("a |& b | c", "(a) 2>&1 | (b) | (c)"),
        ("! a | b", "! (a) | (b)"),
        ("! ! a", "(a)"),
        ("time -p a", "time (a)"),
        ("time ! a", "time ! (a)"),
        ("a | time b", "(a) | (time b)"),
        ("x $(time a) $(! time b)", "(x $<(time a)> $<time ! (b)>)"),
        ("a \\\n b\\\nc", "(a bc)"),
        ("a # b; c\nd", "(a); (d)"),
        ("a#b '#c'", "(a#b '#c')"),
        ("wh\\\nile a; do b; done", "while[(a): (b)]"),
    ]);
}

#[test]
fn reserved_words_are_keywords_only_at_the_start_of_a_command() {
    check(&[
        ("echo if then fi { } [[ ! time in", "(echo if then fi { } [[ ! time in)"),
        ("{ a; }", "group[(a)]"),
        ("{ a; } > x", "group[(a)] >x"),
        ("{a,b}", "({a,b})"),
        ("}a", "(}a)"),
        ("'if' a", "('if' a)"),
        ("if a; then if b; then c; fi fi", "if[(a): if[(b): (c)]]"),
        ("{ { a; } }", "group[group[(a)]]"),
        ("{ (a) }", "group[subshell[(a)]]"),
        ("if [[ a ]] then b; fi", "if[test[a]: (b)]"),
        ("if<(a)", "(iffrom<(a)>)"),
        ("a | in\\x", "(a) | (inx)"),
    ]);
    refused(&[
        "> x if a; then b; fi",
        "{ { a; } > x }",
        "in",
        "a; ]]",
        "a && do",
        "} a",
        "fi",
        "a | ! b",
    ]);
}

#[test]
fn compound_commands() {
    check(&[
        ("(a; b)", "subshell[(a); (b)]"),
        ("if a; then b; elif c; then d; else e; fi", "if[(a): (b) (c): (d) else: (e)]"),
        ("until a; do b; done", "until[(a): (b)]"),
        ("for x in a 'b' $c; do d; done", "for[x in a 'b' ${c}: (d)]"),
        ("for x; do a; done", "for[x in -: (a)]"),
        ("for x do a; done", "for[x in -: (a)]"),
        ("for x\nin a\ndo b\ndone", "for[x in a: (b)]"),
        ("for x in; { a; }", "for[x in : (a)]"),
        ("for ((i=0; i<$n; i++)) { a; }", "for[i=0;  i<${n};  i++: (a)]"),
        ("for ((;;)); do a; done", "for[; ; : (a)]"),
        ("select x in a b; do c; done", "select[x in a b: (c)]"),
        (
            "case $x in a|'b') c;; (d*) e ;& *) f ;;& g) h; esac",
            "case[${x} a|'b') (c);; d«*») (e);& «*») (f);;& g) (h);;]",
        ),
        ("case x in esac", "case[x]"),
        ("case x in (esac) a;; esac", "case[x esac) (a);;]"),
        ("case in in in) a;; esac", "case[in in) (a);;]"),
        ("case x in a) ;; esac", "case[x a) ;;]"),
        ("f() { a; }", "function[f group[(a)]]"),
        ("f ( )\n(a) >x", "function[f subshell[(a)] >x]"),
        ("function f { a; }", "function[f group[(a)]]"),
        ("function f() (a)", "function[f subshell[(a)]]"),
        ("function f (a)", "function[f subshell[(a)]]"),
        ("f() if a; then b; fi", "function[f if[(a): (b)]]"),
        ("coproc a b", "coproc[- (a b)]"),
        ("coproc N { a; }", "coproc[N group[(a)]]"),
        ("coproc while a; do b; done", "coproc[- while[(a): (b)]]"),
        ("((x = (1 + 2) * $y))", "arithmetic[x = (1 + 2) * ${y}]"),
        ("( (a); b )", "subshell[subshell[(a)]; (b)]"),
        ("((a); b)", "subshell[subshell[(a)]; (b)]"),
        ("((a) | (b))", "subshell[subshell[(a)] | subshell[(b)]]"),
    ]);
    refused(&[
        "( )",
        "{ }",
        "{ a }",
        "(a",
        "a)",
        "{ a; } b",
        "(a) b",
        "if a; then b",
        "if ; then b; fi",
        "if a then b; fi",
        "while a; done",
        "for; do a; done",
        "for $x in a; do b; done",
        "for x in a do b; done",
        "for x { a; }",
        "for ((a;b)); do c; done",
        "for ((a;b;c;d)); do e; done",
        "case x in a) b esac",
        "case x a) b;; esac",
        "case x in esac) a;; esac",
        "case x in ) a;; esac",
        "case x in a b) c;; esac",
        "f() a",
        "f() > x { a; }",
        "f(a) { b; }",
        "$f() { a; }",
        "'f'() { a; }",
        "function f a",
        "function $f { a; }",
        "coproc f() { a; }",
        "coproc a if",
        "((a)",
    ]);
}

#[test]
fn conditional_expressions() {
    check(&[
        ("[[ -f $x && ! a == b* ]]", "test[-f ${x} && ! a == b«*»]"),
        ("[[ a || b && ( c < d ) ]]", "test[a || b && (c < d)]"),
        ("[[ a =~ ^(x|y z)+$ ]]", "test[a =~ ^(x|y z)+$]"),
        ("[[ a =~ $(b)'c' ]]", "test[a =~ $<(b)>'c']"),
        ("[[ a = @(b|c) ]]", "test[a = «@(b|c)»]"),
        ("[[ a\t== b\n&& c -lt 2 ]]", "test[a == b && c -lt 2]"),
        ("[[ -z \"$x\" ]] > y", "test[-z \"${x}\"] >y"),
        ("[[ -f == ]]", "test[-f ==]"),
    ]);
    refused(&[
        "[[ ]]",
        "[[ a",
        "[[ a b ]]",
        "[[ -f ]]",
        "[[ a == ]]",
        "[[ a ]",
        "[[ a && ]]",
        "[[ a\n]]",
        "[[ a == b; ]]",
        "[[ (a ]]",
        "[[ a ]]b",
        "[[ a <(b) ]]",
        "[[ \"-f\" a ]]",
    ]);
}

#[test]
fn assignments_and_arrays() {
    check(&[
        ("x=1 y+=2 a[1]=b c", "(x=1 y+=2 a[1]=b c)"),
        ("x= y", "(x= y)"),
        ("x={a,b}*", "(x={a,b}*)"),
        ("x=~:~u/b", "(x=home<>:home<u>/b)"),
        ("a=(1 'b c' [k]=v [$(d)]+=w {e,f}) g", "(a=(1 'b c' [k]=v [$<(d)>]+=w {e,f}) g)"),
        ("a=(\n 1 # one\n 2\n)", "(a=(1 2))"),
        ("a[x y]=1", "(a[x y]=1)"),
        ("a['$(b)']=1", "(a['$<(b)>']=1)"),
        ("declare -A a=([k]=v) b+=(c)", "(declare -A a=([k]=v) b+=(c))"),
        ("make CC=x a=~/b", "(make CC=x a=home<>/b)"),
        ("1x=2 a-b=c \"x\"=d", "(1x=2 a-b=c \"x\"=d)"),
        ("a[1] b", "(a«[1]» b)"),
    ]);
    refused(&[
        "echo a=(1)",
        "command declare a=(1)",
        "a=(1",
        "a=(1;2)",
        "a=(1)b",
        "a=(1 | 2)",
        "a=(x (y))",
        "a[",
        "a[1",
        "a[x y]",
        "a['b']",
        "declare >x a=(1)",
        "a[]=1",
    ]);
}

#[test]
fn redirections() {
    check(&[
        ("a >b 2>&1 <c >>d", "(a) >b 2>&1 <c >>d"),
        (">b a", "(a) >b"),
        ("> b", "() >b"),
        ("a >|b <>c &>d &>>e 3<&- >&- >&2 <<<$x", "(a) >|b <>c &>d &>>e 3<&- >&- >&2 <<<${x}"),
        ("exec {fd}>x 13<y", "(exec) {fd}>x 13<y"),
        ("a 2 >b", "(a 2) >b"),
        ("a b2>c", "(a b2) >c"),
        ("a >$(b) 2> >(c)", "(a) >$<(b)> 2>to<(c)>"),
        ("while a; do b; done <c >d", "while[(a): (b)] <c >d"),
        ("a >&b >& ~/c", "(a) >&b >&home<>/c"),
        ("a 2<(b)", "(a 2from<(b)>)"),
        ("a &>b&", "(a) &>b &"),
    ]);
    refused(&[
        "a >",
        "a > ;",
        "a >\nb",
        "a > 2> b",
        "a <&{x}>b",
        "a >&-b",
        "a 99999999999>b",
        "a >> > b",
        "a < (b)",
        "a >&'$(b)'",
        "a >&$b",
        "a >#b",
    ]);
}

#[test]
fn here_documents() {
    check(&[
        ("a <<E\nb $c `d`\nE\ne", "(a) <<E[b ${c} $<(d)>\n]; (e)"),
        ("a <<'E' | f\nb $c `d\nE", "(a) <<E['b $c `d\n'] | (f)"),
        ("a <<-E\n\tb\n\t\tc\n\tE", "(a) <<E[b\nc\n]"),
        ("a <<A <<B\n1\nA\n2\nB", "(a) <<A[1\n] <<B[2\n]"),
        ("a <<E\nE", "(a) <<E[]"),
        ("a <<E && b\n\\$c \"d\" 'e'\nE\nf", "(a) <<E[$c \"d\" 'e'\n] && (b); (f)"),
        ("a <<\\E\n$b\nE", "(a) <<E['$b\n']"),
        ("a <<E\nx\\\nE\nE", "(a) <<E[xE\n]"),
        ("a <<E\n${b:-'$(c)'}\nE", "(a) <<E[${b default '$<(c)>'}\n]"),
        ("if a <<E; then b; fi\nx\nE\n", "if[(a) <<E[x\n]: (b)]"),
        (
            "gh pr create --body \"$(cat <<'EOF'\nan unbalanced \" and ( here\nEOF\n)\"",
            "(gh pr create --body \"$<(cat) <<EOF['an unbalanced \" and ( here\n']>\")",
        ),
        ("x `cat <<E\n\\`a\\`\nE\n`", "(x $<(cat) <<E[$<(a)>\n]>)"),
        ("a <<''\nb\n\nc", "(a) <<['b\n']; (c)"),
    ]);
    refused(&[
        "a <<E",
        "a <<E\nb",
        "a <<E\n E",
        "a <<E\n$(b\nE",
        "a <<E\n${b\nE",
        "a <<$x\n$x",
        "a <<\nE",
        "$(a <<E)\nb\nE",
        "$(a <<E\nb\nE)",
        "$(a <<E\nE b) c\nE\n)",
        "a <<E $(b\n)\nE\n)\nE",
        "a <<E<(b)\nE<(b)",
        "a <<'E\nF'\nE\nF",
    ]);
}

#[test]
fn quotes() {
    check(&[
        (r#"a 'b c' "d $e" \f\ g $'h\n' $"i""#, "(a 'b c' \"d ${e}\" f g $'h\n' $\"i\")"),
        (r#"a "\$b \"c\" \d `e \"f\"`""#, "(a \"$b \"c\" \\d $<(e \"f\")>\")"),
        (r#"a "b"'c'd"#, "(a \"b\"'c'd)"),
        ("a '' \"\"", "(a '' \"\")"),
        ("a 'b\nc' \"d\ne\"", "(a 'b\nc' \"d\ne\")"),
        ("a \"$'b'\" \"$\"", "(a \"$'b'\" \"$\")"),
        (r"a $'\x41\u00e9\'b'", "(a $'Aé'b')"),
        (r"a $'\xff'", "(a $'?')"),
        ("a \\", "(a \\)"),
        ("a \u{a0}b\u{3000}c", "(a \u{a0}b\u{3000}c)"),
        ("a 'b\\\nc' \"d\\\ne\"", "(a 'b\\\nc' \"de\")"),
    ]);
    refused(&["a 'b", "a \"b", "a `b", "a $'b", "a \"$(b\"", "a \"`b\"", "a \"${b\""]);
}

#[test]
fn parameters() {
    check(&[
        (
            "a $b$1$@$# ${b} ${10} ${b[1]} ${b[@]} $",
            "(a ${b}${1}${@}${#} ${b} ${10} ${b[1]} ${b[@]} $)",
        ),
        ("a $b1 $12", "(a ${b1} ${1}2)"),
        (
            "a ${#b} ${#} ${#b[@]} ${!b} ${!b*} ${!b[@]}",
            "(a ${b length} ${#} ${b[@] length} ${!b} ${b names} ${b[@] keys})",
        ),
        (
            "a ${b:-c d} ${b=e} ${b:?'f'} ${b+$g}",
            "(a ${b default c d} ${b assign e} ${b require 'f'} ${b alternative ${g}})",
        ),
        (
            "a ${b#*/} ${b##c} ${b%\"$d\"} ${b%%e*}",
            concat!(
                "(a ${b without-prefix «*»/} ${b without-prefix c} ",
                "${b without-suffix \"${d}\"} ${b without-suffix e«*»})"
            ),
        ),
        (
            "a ${b/c/d} ${b//\\//_} ${b/#x} ${b/%y/z}",
            "(a ${b replace c by d} ${b replace / by _} ${b replace x by } ${b replace y by z})",
        ),
        (
            "a ${b^} ${b,,} ${b:1} ${b: -1:$c} ${b@P} ${!b@Q}",
            concat!(
                "(a ${b case } ${b case } ${b from 1 take } ${b from  -1 take ${c}} ",
                "${b transform P} ${!b transform Q})"
            ),
        ),
        (
            "a ${b:-$(c)} \"${b:-'$(c)'}\" \"${b#'c'}\"",
            "(a ${b default $<(c)>} \"${b default '$<(c)>'}\" \"${b without-prefix 'c'}\")",
        ),
        ("a ${b:-${c:-`d`}}", "(a ${b default ${c default $<(d)>}})"),
        (
            "a \"${b:-\"c\"}\" \"${b//\"c\"/}\"",
            "(a \"${b default \"c\"}\" \"${b replace \"c\" by }\")",
        ),
        ("a \"${b//$'\\n'/}\"", "(a \"${b replace $'\n' by }\")"),
        ("a ${b['$(c)']}", "(a ${b['$<(c)>']})"),
    ]);
    refused(&[
        "a ${",
        "a ${}",
        "a ${b",
        "a ${ b; }",
        "a ${| b; }",
        "a ${b c}",
        "a ${b@}",
        "a ${b@Z}",
        "a ${'b'}",
        "a ${#b-c}",
        "a ${!}b}c}${",
        "a \"${b:-'c}\"",
        "a ${b[1}",
        "a ${$(b)}",
        "a ${b:-<(c)}",
        "a ${b!}",
        "a \"${b#'$(c)'}\"",
        "a <<E\n${b#'`c`'}\nE",
    ]);
}

#[test]
fn command_and_process_substitutions() {
    check(&[
        ("a $(b; c) `d | e`", "(a $<(b); (c)> $<(d) | (e)>)"),
        ("a $() ``", "(a $<> $<>)"),
        ("a $(b # )\n)", "(a $<(b)>)"),
        ("a $(case x in x) b;; esac)", "(a $<case[x x) (b);;]>)"),
        ("a \"$(b \"c $(d)\")\"", "(a \"$<(b \"c $<(d)>\")>\")"),
        ("a `b \\`c \\\\\\`d\\\\\\`\\``", "(a $<(b $<(c $<(d)>)>)>)"),
        ("a `b '\\$c' \\$d`", "(a $<(b '$c' ${d})>)"),
        ("a `b 'c\\\nd'`", "(a $<(b 'cd')>)"),
        ("a <(b) >(c) d<(e)", "(a from<(b)> to<(c)> dfrom<(e)>)"),
        ("a $((1 + $(b))) $[c]", "(a $calc[1 + $<(b)>] $calc[c])"),
        ("a $((b) | c) $( (d) )", "(a $<subshell[(b)] | (c)> $<subshell[(d)]>)"),
        ("a $(( (1) + '$(b)' ))", "(a $calc[ (1) + '$<(b)>' ])"),
        ("a $(<b)", "(a $<() <b>)"),
        ("$(a) b", "($<(a)> b)"),
        ("cu``rl x", "(cu$<>rl x)"),
    ]);
    refused(&[
        "a $(b",
        "a $(b))",
        "a $(b;;)",
        "a `b",
        "a `b; fi`",
        "a $((1)",
        "a $((1) ",
        "a <(b",
        "a $(})",
        "a $(( ${b+(} ))",
        "`;`",
        "a $[1",
    ]);
}

#[test]
fn globs_brace_expansions_and_tildes() {
    check(&[
        (
            "a * b?c [a-z] [!x]d []] [[:alpha:]_]",
            "(a «*» b«?»c «[a-z]» «[!x]»d «[]]» «[[:alpha:]_]»)",
        ),
        ("[ -f x ]", "([ -f x ])"),
        ("a [[:]b [[:a]", "(a «[»«[:]»b «[»«[:a]»)"),
        ("a [ [b [\"c\"]", "(a [ [b «[»\"c\"])"),
        ("a \\* '*' \"?\"", "(a * '*' \"?\")"),
        ("a @(b|'c'*) !(d) x?(e )", "(a «@(b|'c'«*»)» «!(d)» x«?(e )»)"),
        ("a {b,c}d {1..3} {a..e..2} {b,{c,d}}", "(a {b,c}d {1..3} {a..e..2} {b,{c,d}})"),
        ("a {} {b} {b,c {b,c}} ${x}{,y}", "(a {} {b} {b,c {b,c}} ${x}{,y})"),
        ("a {b,'c,d',\"e\"$f}", "(a {b,'c,d',\"e\"${f}})"),
        ("a \\{b,c} {b\\,c} '{b,c}'", "(a {b,c} {b,c} '{b,c}')"),
        (
            "a ~ ~/b ~c/d '~' \\~ b~ ~+ --x=~",
            "(a home<> home<>/b home<c>/d '~' ~ b~ home<+> --x=~)",
        ),
        ("a ~\"b\" ~$c", "(a ~\"b\" ~${c})"),
    ]);
    refused(&["!(a)", "a (b)", "a b(c)", "a @(b", "a ~{b,c}", "a {~,b}", "f@() { a; }"]);
}

#[test]
fn control_characters_are_parse_errors() {
    for text in ["a\0b", "a\rb", "a\r\nb", "a '\u{1b}[31m'", "a \u{85}", "a \u{7f}", "\u{8}a"] {
        let error = parse(text).unwrap_err();
        assert!(matches!(error.kind, ParseErrorKind::ControlCharacter(_)), "{text:?}");
    }
}

#[test]
fn parse_errors_name_position_and_cause() {
    let cases = [
        ("a && ", "the text ends where a command is expected"),
        ("a | | b", "`|` at byte 4 where a command is expected"),
        ("a 'b", "a single quote at byte 2 is not closed"),
        ("if a; then b", "the text ends where `fi` is expected"),
        ("a\u{1}", "control character `\\u{1}` at byte 1"),
        ("a `b \\`c \\`d'\\``", "a single quote at byte 12 is not closed"),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text:?}");
    }
}

#[test]
fn simple_commands_are_listed_as_written() {
    let cases: [(&str, &[&str]); 12] = [
        ("a b >c 2>&1 | d", &["a b", "d"]),
        ("x=1 a >b c <d", &["x=1 a >b c"]),
        ("x=$(a b); y=(`c`)", &["a b", "c"]),
        ("f() { a; }; [[ $(b) ]] && (( 1 ))", &["a", "[[ $(b) ]]", "b", "(( 1 ))"]),
        ("for x in $(a); do b \"$(c)\"; done > $(d)", &["a", "b \"$(c)\"", "c", "d"]),
        ("a <<E | b\n$(c)\nE", &["a", "c", "b"]),
        ("case $(a) in $(b)) c;; esac", &["a", "b", "c"]),
        ("a ${b:-$(c)} <(d)", &["a ${b:-$(c)} <(d)", "c", "d"]),
        ("a `b \\`c\\``", &["a `b \\`c\\``", "b \\`c\\`", "c"]),
        ("if a; then b; else c; fi & coproc d", &["a", "b", "c", "d"]),
        ("[[ a ]] > x", &["[[ a ]]"]),
        ("> $(a)", &["a"]),
    ];
    for (text, expected) in cases {
        let tree = parse(text).unwrap();
        let commands: Vec<_> =
            tree.simple_commands().iter().map(|command| command.written.text_in(text)).collect();
        assert_eq!(commands, expected, "{text:?}");
    }
}

#[test]
fn constant_words_are_evaluated() {
    let cases = [
        (r#"a'b c'"d"\e$'\n'"#, Some("ab cde\n")),
        ("''", Some("")),
        ("$x", None),
        ("a*", None),
        ("~", None),
        ("{a,b}", None),
        ("\"$(a)\"", None),
        ("$\"a\"", None),
        ("{}", Some("{}")),
    ];
    for (word, expected) in cases {
        let text = format!("x {word}");
        let mut known = None;
        parse(&text).unwrap().visit(&mut |node| {
            if let SyntaxNode::Word(found) = node
                && found.span.start == 2
                && found.span.end == text.len()
            {
                known = Some(found.constant_text());
            }
        });
        assert_eq!(known.flatten().as_deref(), expected, "{word}");
    }
}
