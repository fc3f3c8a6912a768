//! What holds for every text: cuts do not matter, spans are in order, nothing fails.

use std::sync::{Arc, LazyLock};

use gnoma_core::secret::Secret;
use gnoma_secrets::{Finding, Scanner, ScannerOptions, SecretRule, StreamScanner};
use proptest::prelude::*;

/// One for all: what it builds on demand is built once.
fn scanner() -> Arc<Scanner> {
    static SCANNER: LazyLock<Arc<Scanner>> =
        LazyLock::new(|| Arc::new(Scanner::new(ScannerOptions::default()).unwrap()));
    Arc::clone(&SCANNER)
}

/// The text with a token of a known shape every `step` bytes, some of them across window borders.
fn text_with_tokens(length: usize, step: usize) -> (Vec<u8>, usize) {
    let token = [b"gh".as_slice(), b"p_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat();
    let mut text = Vec::new();
    let mut count = 0;
    while text.len() < length {
        text.resize(text.len() + step, b' ');
        text.extend_from_slice(&token);
        count += 1;
    }
    (text, count)
}

fn streamed(scanner: &Arc<Scanner>, text: &[u8], cuts: &[usize]) -> Vec<Finding> {
    let mut stream = StreamScanner::new(Arc::clone(scanner));
    let mut found = Vec::new();
    let mut from = 0;
    for &cut in cuts {
        let to = cut.clamp(from, text.len());
        found.extend(stream.push(&text[from..to]));
        from = to;
    }
    found.extend(stream.push(&text[from..]));
    found.extend(stream.finish());
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn stream_scan_finds_the_same_secrets_for_any_chunk_boundaries(
        step in 900_usize..30_000,
        mut cuts in prop::collection::vec(0_usize..900_000, 0..12),
    ) {
        let scanner = scanner();
        let (text, count) = text_with_tokens(800_000, step);
        cuts.sort_unstable();
        let whole = scanner.scan(&text);
        prop_assert_eq!(whole.len(), count);
        prop_assert_eq!(streamed(&scanner, &text, &cuts), whole);
    }
}

proptest! {
    #[test]
    fn scan_of_any_bytes_gives_ordered_spans_inside_the_text(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..40),
                "(password|token|://|:|@|\\\\|\"|%3D|&quot;|\x1b\\[3|-----BEGIN PRIVATE KEY-----|eyJ|machine |kind: Secret|data:|curl -u |cookie:|\n| |=){1,4}"
                    .prop_map(String::into_bytes),
                "[A-Za-z0-9+/]{1,60}={0,2}".prop_map(String::into_bytes),
            ],
            0..30,
        ),
        cut in 0_usize..2000,
    ) {
        let scanner = scanner();
        let text = pieces.concat();
        let found = scanner.scan(&text);
        prop_assert!(found.iter().all(|f| f.start < f.end && f.end <= text.len()), "{:?}", found);
        prop_assert!(found.windows(2).all(|pair| pair[0].end <= pair[1].start), "{:?}", found);
        prop_assert_eq!(streamed(&scanner, &text, &[cut]), found);
    }
}

#[test]
fn known_secret_is_found_plain_and_encoded() {
    let value = "my own, rather plain key!";
    let known = vec![("own-key".to_owned(), Secret::new(value.to_owned()))];
    let scanner = Scanner::new(ScannerOptions { known, ..ScannerOptions::default() }).unwrap();
    let percent = "q=my%20own%2C%20rather%20plain%20key%21&x";
    let base64 = "see dXNlcjpteSBvd24sIHJhdGhlciBwbGFpbiBrZXkh here";
    for text in [value, percent, base64, "{\\\"k\\\": \\\"my own, rather plain key\\u0021\\\"}"] {
        let found = scanner.scan(text.as_bytes());
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(&*found[0].rule, "own-key");
    }
}

#[test]
fn invalid_custom_secret_rule_is_an_error_with_its_name() {
    for pattern in ["(unclosed", "(a{500}){500}{500}", "(?=look)ahead"] {
        let extra = vec![SecretRule::from_pattern("mine", pattern)];
        let error =
            Scanner::new(ScannerOptions { extra, ..ScannerOptions::default() }).unwrap_err();
        assert!(error.to_string().contains("`mine`"), "{error}");
    }
}

#[test]
fn rules_of_the_user_need_no_keyword_and_can_be_switched_off() {
    let rule = || SecretRule::from_pattern("ticket", r"\bTICKET-(\d{6})\b");
    let text = b"see TICKET-123456 there";
    let scanner =
        Scanner::new(ScannerOptions { extra: vec![rule()], ..ScannerOptions::default() }).unwrap();
    let found = scanner.scan(text);
    assert_eq!((found[0].start, found[0].end, &*found[0].rule), (11, 17, "ticket"));
    let disabled = vec!["ticket".to_owned()];
    let scanner =
        Scanner::new(ScannerOptions { extra: vec![rule()], disabled, ..ScannerOptions::default() })
            .unwrap();
    assert_eq!(scanner.scan(text), []);
}

#[test]
fn one_line_of_many_megabytes_is_scanned() {
    let scanner = scanner();
    let mut text = vec![b'a'; 8 << 20];
    assert_eq!(scanner.scan(&text), []);
    let token = [b" gh".as_slice(), b"p_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8 "].concat();
    let at = 5 << 20;
    text[at..at + token.len()].copy_from_slice(&token);
    let found = scanner.scan(&text);
    assert_eq!((found.len(), found[0].start), (1, at + 1));
}
