//! A value that is known is found in whatever clothes a tool puts it.

use std::sync::Arc;

use base64::prelude::*;
use gnoma_core::secret::Secret;
use gnoma_secrets::{Scanner, ScannerOptions};
use gnoma_testkit::value_encodings::{encoded_variants, longest_readable_part, reverse_text};
use proptest::prelude::*;

fn token() -> String {
    ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat()
}

/// Only the value itself is known: no rule helps.
fn knowing(value: &str) -> Scanner {
    let known = vec![("own-key".to_owned(), Secret::new(value.to_owned()))];
    let disabled_families = vec!["context".to_owned(), "generic".to_owned()];
    Scanner::new(ScannerOptions { known, disabled_families, ..ScannerOptions::default() }).unwrap()
}

/// What stays of `text` when all findings are taken out.
fn rest(scanner: &Scanner, text: &str) -> String {
    let mut rest = String::new();
    let mut from = 0;
    for found in scanner.scan(text.as_bytes()) {
        rest.push_str(&String::from_utf8_lossy(&text.as_bytes()[from..found.start]));
        rest.push('\u{25a0}');
        from = found.end;
    }
    rest + &String::from_utf8_lossy(&text.as_bytes()[from..])
}

#[test]
fn known_secret_is_found_in_every_encoding() {
    let token = token();
    let scanner = knowing(&token);
    let mut missed = Vec::new();
    for (way, written) in encoded_variants(&token) {
        let text = format!("some words before\n{written}\nand some after it\n");
        let rest = rest(&scanner, &text);
        if !rest.contains('\u{25a0}') || longest_readable_part(&token, &rest) > 4 {
            missed.push(format!("{way}: {rest}"));
        }
        // No more than traces of an encoded form are left.
        let left = rest.replace("some words before", "").replace("and some after it", "");
        let found = left.chars().filter(char::is_ascii_alphanumeric).count();
        if !way.contains("blame")
            && !way.contains("cmp")
            && !way.contains("cat -n")
            && !way.contains(" at ")
            && found > 6
        {
            missed.push(format!("{way}, left: {left}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n---\n"));
}

#[test]
fn secret_learned_from_a_rule_is_found_encoded_afterwards() {
    let token = token();
    let scanner = knowing("another value, 1f9K3");
    let back = reverse_text(&token);
    assert_eq!(scanner.scan(back.as_bytes()), []);
    scanner.learn_secret(&Arc::from("github-pat"), &token);
    assert_eq!(&*scanner.scan(back.as_bytes())[0].rule, "github-pat");
    // What was found encoded is known as what it stands for, once.
    let known = scanner.known_count();
    scanner.learn_secret(&Arc::from("x"), &BASE64_STANDARD.encode(format!("key = {token}")));
    assert_eq!(scanner.known_count(), known);
}

#[test]
fn pieces_of_a_known_secret_are_found() {
    let token = token();
    let scanner = knowing(&token);
    for (from, to) in [(0, 39), (1, 40), (4, 20), (10, 26), (24, 40)] {
        let text = format!("refused: `curl {}…", &token[from..to]);
        assert!(longest_readable_part(&token[4..], &rest(&scanner, &text)) < 3, "{text}");
    }
}

#[test]
fn a_private_key_is_known_by_its_body_alone() {
    let lines: Vec<String> = (0..20)
        .map(|line| {
            BASE64_STANDARD.encode(
                (0..48).map(|at| (at * 37 + line * 101 + at * at % 251) as u8).collect::<Vec<_>>(),
            )
        })
        .collect();
    let frame = |what: &str| format!("-----{what} RSA PRIVATE KEY-----");
    let key =
        format!("{}\nMIIEpAIBAAKCAQEA{}\n{}\n", frame("BEGIN"), lines.join("\n"), frame("END"));
    let scanner = Scanner::new(ScannerOptions::default()).unwrap();
    scanner.learn_secret(&Arc::from("private-key"), &key);
    for text in
        [lines[5].clone(), reverse_text(&lines[7]), BASE64_STANDARD.encode(lines[9..12].join("\n"))]
    {
        assert!(!scanner.scan(text.as_bytes()).is_empty(), "{text}");
    }
    let said = "A key begins with BEGIN RSA PRIVATE KEY and ends with END RSA PRIVATE KEY.";
    assert_eq!(scanner.scan(said.as_bytes()), []);
}

#[test]
fn known_secret_made_of_words_is_matched_only_as_a_whole() {
    let scanner = Scanner::new(ScannerOptions::default()).unwrap();
    let rule: Arc<str> = Arc::from("password");
    scanner.learn_secret(&rule, "https://hooks.chat.example/services/T0a8K2mQ4/zR7pW1xC9vB3n");
    scanner.learn_secret(&rule, "correct-horse-battery-staple");
    scanner.learn_secret(&rule, "winter2019");
    for harmless in [
        "see https://hooks.chat.example/services/ for how to make one",
        "the correct battery of the horse",
        "a horse with a battery: staple it correctly",
        "in winter2019x and xwinter2019",
        "aHR0cHM6Ly9ob29rcy5jaGF0LmV4YW1wbGUvc2VydmljZXMv is its address",
    ] {
        assert_eq!(rest(&scanner, harmless), harmless);
    }
    for secret in [
        "zR7pW1xC9vB3n is its end",
        "c o r r e c t - h o r s e - b a t t e r y - s t a p l e",
        "it is winter2019, they say",
    ] {
        assert_ne!(rest(&scanner, secret), secret);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_known_secret_is_found_in_any_encoding(
        value in "[a-zA-Z0-9]{3}[a-z0-9_/+-]{2}[A-Z0-9]{5}[a-zA-Z0-9]{8,40}",
        way: prop::sample::Index,
    ) {
        let scanner = knowing(&value);
        let clothes = encoded_variants(&value);
        let (way, written) = way.get(&clothes);
        let rest = rest(&scanner, &format!("before {written} after"));
        prop_assert!(rest.contains('\u{25a0}') && longest_readable_part(&value, &rest) < 8, "{way}: {rest}");
    }

    #[test]
    fn repetitive_known_secret_is_scanned_in_bounded_time(piece in "[ab]{1,3}", times in 3000_usize..9000) {
        let scanner = knowing(&piece.repeat(4000));
        let began = std::time::Instant::now();
        scanner.scan(piece.repeat(times * 10).as_bytes());
        prop_assert!(began.elapsed().as_secs() < 5);
    }
}
