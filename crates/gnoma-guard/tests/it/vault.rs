//! Laws of placeholders.

use gnoma_core::RawJson;
use gnoma_guard::vault::Vault;
use proptest::prelude::*;

const FIRST: u64 = 731_904_421;

#[test]
fn the_same_value_has_one_placeholder() {
    let vault = Vault::new(FIRST);
    let one = vault.conceal("aws-key", "value-number-one");
    assert_eq!(&*one, "{{secret:aws-key:731904421}}");
    assert_eq!(vault.conceal("aws-key", "value-number-one"), one);
    assert_eq!(vault.conceal("other", "value-number-one"), one);
    assert_eq!(&*vault.conceal("aws-key", "two"), "{{secret:aws-key:731904422}}");
    assert_eq!(&*vault.conceal("my {rule}:x", "three"), "{{secret:my--rule--x:731904421}}");
}

#[test]
fn vault_restores_placeholders_in_text_and_json() {
    let vault = Vault::new(FIRST);
    let placeholder = vault.conceal("pem", "line \"1\"\nline 2\\");
    let text = format!("a {placeholder} b {placeholder}");
    let restored = vault.restore(&text);
    assert_eq!(restored.text, "a line \"1\"\nline 2\\ b line \"1\"\nline 2\\");
    assert_eq!((restored.used.len(), restored.unknown.len()), (1, 0));
    let json = format!(r#"{{ "x" : ["\u0041 {placeholder}"],  "n": 1.0, "{placeholder}": null }}"#);
    let restored = vault.restore_json(&RawJson::parse(json).unwrap());
    let expected =
        r#"{ "x" : ["A line \"1\"\nline 2\\"],  "n": 1.0, "line \"1\"\nline 2\\": null }"#;
    assert_eq!(restored.text.get(), expected);
}

#[test]
fn vault_reports_unknown_placeholders_and_leaves_them_alone() {
    let vault = Vault::new(FIRST);
    vault.conceal("aws", "value-number-one");
    let foreign = [
        "{{secret:aws:1}}",
        "{{secret:aws:731904422}}",
        "{{ secret:aws:731904421 }}",
        "{{Secret:AWS:731904421}}",
        "{{secret:aws:0731904421}}",
        "%7B%7Bsecret:aws:731904421%7D%7D",
    ];
    for text in foreign {
        let restored = vault.restore(text);
        assert_eq!(restored.text, text);
        assert_eq!(restored.unknown, [text]);
    }
    let json = r#"{"cmd":"echo \u007b{secret:aws:731904421}}"}"#;
    assert_eq!(vault.restore_json(&RawJson::parse(json).unwrap()).used.len(), 1);
    assert!(vault.restore("{{secrets.TOKEN}} ${{ x }}").unknown.is_empty());
}

#[test]
fn vault_restore_is_not_recursive() {
    let vault = Vault::new(FIRST);
    let inner = vault.conceal("a", "innermost");
    let outer = vault.conceal("b", &format!("x {inner}"));
    assert_eq!(vault.restore(&outer).text, format!("x {inner}"));
}

#[test]
fn vault_debug_output_never_prints_a_secret() {
    let vault = Vault::new(FIRST);
    let placeholder = vault.conceal("a", "hunter2-hunter2");
    let printed = format!("{vault:?} {:?}", vault.restore(&placeholder));
    assert!(!printed.contains("hunter2"), "{printed}");
    assert!(printed.contains("secrets: 1"));
}

proptest! {
    #[test]
    fn vault_restore_reverses_conceal(values in prop::collection::vec("\\PC{1,40}", 1..8), between in "[a-z ]{0,9}") {
        let vault = Vault::new(FIRST);
        let hidden: String =
            values.iter().map(|value| format!("{}{between}", vault.conceal("r", value))).collect();
        let plain: String = values.iter().map(|value| format!("{value}{between}")).collect();
        prop_assert_eq!(vault.restore(&hidden).text, plain);
    }
}
