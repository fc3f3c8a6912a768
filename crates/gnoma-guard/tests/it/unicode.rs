//! Laws of text hygiene, and the world's writing that it must not touch.

use gnoma_guard::unicode::{Cleaner, FlagKind, RetainedControls, clean_bytes, clean_text};
use proptest::prelude::*;

fn cleaned(text: &str) -> String {
    clean_text(text, RetainedControls::Text).text.into_owned()
}

fn has(text: &str, kind: FlagKind) -> bool {
    clean_text(text, RetainedControls::Text).flags.iter().any(|flag| flag.kind == kind)
}

#[test]
fn clean_text_preserves_all_scripts_byte_for_byte() {
    let texts = [
        // Persian and Urdu with non-joiners, a word with a joiner at its edge
        "می‌خواهم کتاب‌ها را بخوانم",
        "خانه‌ای",
        "سال ۱۴۰۰ ه\u{200D}.ش",
        "نستعلیق",
        "\"نمی‌شود\"",
        // Kurdish, Pashto, Uyghur, Sindhi
        "ئەم پەڕەیە‌",
        "د افغانستان",
        "ئۇيغۇرچە",
        "سنڌي",
        // Hindi, Marathi eyelash, half forms at a word's end, Nepali
        "क्‍ष और क्‌ष",
        "दऱ्‍या",
        "र्‍य",
        "क्‍ ",
        "नेपाली",
        "हिन्दी",
        // Bengali, Assamese, Odia, Gujarati, Gurmukhi
        "র‍্যাব",
        "ব্‌",
        "গ‌ু",
        "অসমীয়া",
        "ଓଡ଼ିଆ",
        "ગુજરાતી",
        "ਪੰਜਾਬੀ",
        // Tamil, Telugu, Kannada, Malayalam with old chillu, Sinhala
        "க்‌ஷ",
        "సాఫ్ట్‌వేర్",
        "ಸಾಫ್ಟ್‌ವೇರ್",
        "ರ‍್ಯ",
        "അവന്‍",
        "ශ්‍රී ලංකා",
        // Thai, Lao, Khmer, Myanmar with break hints, Tibetan
        "ภาษา\u{200B}ไทย",
        "ລາວ\u{200B}ພາສາ",
        "ភាសា\u{200B}ខ្មែរ",
        "မြန်မာ\u{200B}စာ",
        "བོད་ཡིག",
        // Korean, old Korean, Japanese with variants and full-width forms, Chinese
        "한국어",
        "\u{1100}\u{1160}",
        "\u{115F}\u{1161}",
        "葛\u{E0100}城市",
        "辻\u{E0101}",
        "ＡＢＣ１２３　全角",
        "か\u{3099}",
        "中文，标点。",
        "使用 API（接口）",
        "㈱",
        "神\u{FE00}",
        "。\u{FE00}",
        // Mongolian with form selectors and the vowel separator, N'Ko, Adlam, Syriac
        "ᠮᠣᠩᠭᠣᠯ",
        "ᠠ\u{180B}ᠨ",
        "ᠨ\u{180E}ᠠ",
        "ᠭ\u{180B}\u{180E}ᠠ",
        "Donau\u{AD}dampf\u{AD}schiff\u{AD}fahrt, Stra\u{AD}ße, repré\u{AD}senter",
        "inter\u{AD}national\u{AD}ization is long",
        "ߒߞߏ",
        "𞤀𞤣𞤤𞤢𞤥",
        "ܣܘܪܝܝܐ",
        // Hebrew with points, a grapheme joiner between them, and marks
        "שָׁלוֹם",
        "יְרוּשָׁלַ\u{34F}ִם",
        "שלום \u{200F}world\u{200E} (test)",
        "\u{202B}שלום\u{202C}",
        "\u{2067}עברית\u{2069} in English",
        "קובץ \u{2066}main.rs\u{2069} נשמר",
        "مرحبا \u{61C}ABC",
        "\u{2066}GitHub\u{2069} הוא אתר",
        // Latin, Cyrillic, Greek, Armenian, Georgian, Vietnamese
        "Ćevapčići, Łódź, ğışüöç, naïve",
        "Съешь ещё этих мягких булок",
        "Ελληνικά και English",
        "Հայերեն",
        "ქართული",
        "Tiếng Việt",
        "cafe\u{301} résumé",
        "Ёлка и API",
        "µs kΩ Δx πr²",
        // Ethiopic, Cherokee, Canadian, Braille art, Ogham
        "አማርኛ",
        "ᏣᎳᎩ",
        "ᐃᓄᒃᑎᑐᑦ",
        "\u{2800}\u{2800}⣀⣤⡀\u{2800}\u{2800}⠁",
        "᚛ᚐᚄ\u{1680}ᚋᚐ᚜",
        // typography
        "1\u{202F}000 €",
        "10\u{2009}kg",
        "J.\u{2009}R. R.",
        "a\u{A0}b",
        "word\u{2011}break",
        "ein —\u{200A}Strich",
        "“quotes” … ‘x’",
        "① Ⅷ ½ x² ﬁ",
        "ℕ ⊂ ℝ, 𝒇(𝑥)",
        "𝑎\u{2062}𝑏",
        "x ≨\u{FE00} y",
        "𝒜\u{FE00}",
        // icons, line ends, a byte order mark at the start
        "\u{E0B0} \u{F09B} main",
        "\u{F0A0A} icon",
        "col1\tcol2\r\n",
        "one\r\r\ntwo\r\r\n",
        "REM the end of a file of DOS\r\n\u{1A}",
        "1\tREM\n2\t\u{1A}\n[a note]",
        "a\u{C}b",
        "\u{FEFF}{\"a\":1}",
        "\u{2068}{name}\u{2069} joined",
        r"\x1b[31m in docs, [\u200b-\u200f]",
    ];
    for text in texts {
        assert_eq!(cleaned(text), text);
        let flags = clean_text(text, RetainedControls::Text).flags;
        assert!(flags.iter().all(|flag| !flag.kind.is_suspicious()), "{text}: {flags:?}");
    }
}

#[test]
fn emoji_stay_byte_for_byte() {
    let texts = [
        "👨‍👩‍👧‍👦 👩🏽‍💻 🧑🏿‍🤝‍🧑🏻 👩‍❤️‍💋‍👨 🏳️‍🌈 🏴‍☠️ ❤️‍🔥 👁️‍🗨️",
        "🧔‍♂️ 🧔‍♂ 🕵🏿‍♂️ 🏃🏽‍♀️‍➡️ 🙂‍↔️ 🐦‍⬛ 🍋‍🟩 ⛓️‍💥",
        "1️⃣ #️⃣ *️⃣ 9⃣",
        "🇩🇪🇮🇷 🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
        "☺︎ ☎️ ©️ ™️ ↔️ ㊗️ 〰️ 🫩 🪾",
        "👍🏽",
        "status: 🧑🏽‍❤‍💋‍🧑🏾 done",
    ];
    for text in texts {
        assert_eq!(cleaned(text), text);
    }
}

#[test]
fn clean_text_removes_invisible_characters() {
    let cases = [
        ("ls -la\u{E0072}\u{E006D}", "ls -la"),
        ("🏴\u{E0072}\u{E006D}\u{E007F}x", "x"),
        ("😀\u{E0159}\u{E0157}", ""),
        ("x\u{FE01}\u{FE01}y", "xy"),
        ("A\u{FE0F} 1\u{FE0F}", "A 1"),
        ("葛\u{E0100}\u{E0101}", "葛"),
        ("葛\u{E0151}", "葛"),
        (
            "su\u{AD}do gh\u{AD}p_abcdefghijklm donau\u{AD}9dampfschiff \u{AD}x",
            "sudo ghp_abcdefghijklm donau9dampfschiff x",
        ),
        ("c\u{200D}url s\u{2060}udo e\u{200B}val pass\u{AD}word", "curl sudo eval password"),
        ("is\u{200C}Admin \u{200B}\u{200C}\u{200B}", "isAdmin "),
        ("می\u{200B}\u{200C}\u{200D}\u{200C}شود", "می\u{200C}شود"),
        ("user\u{3164}name\u{115F}\u{1160}\u{FFA0}\u{2800}", "username"),
        (
            "echo\u{2009}hello rm\u{2003}-rf cat\u{205F}/etc\u{2000}\u{2000}",
            "echohello rm-rf cat/etc",
        ),
        ("a\u{FFF9}b\u{FFFA}c\u{FFFB}\u{2029}\u{2028}\u{85}\u{206A}", "abc"),
        ("a\u{FEFF}b\u{FFFE}\u{FDD0}\u{1FFFF}\u{E0001}", "ab"),
        ("file\u{202E}gpj.exe", "filegpj.exe"),
        ("\"user\u{202E} \u{2066}// Check\u{2069} \u{2066}\"", "\"user // Check \""),
        ("/* \u{2068} } if */", "/*  } if */"),
        ("\u{2067}hidden\u{2069} user\u{200E}name", "hidden username"),
        ("a\u{0}b\u{7}c\u{8}\u{7F}\u{B}d\u{E}\u{F}", "abcd"),
        ("safe\rmalicious\r\n", "safemalicious\r\n"),
        ("safe\r\rmalicious\u{1A}x\r\n", "safemaliciousx\r\n"),
        ("x\u{1D173}\u{1BCA0}\u{13430}\u{16FE4}\u{17B4}\u{180E}\u{180B}\u{34F}y\u{2063}z", "xyz"),
        (
            "a\u{F0041}\u{F0042}\u{F0043}\u{F0044}\u{F0045}\u{F0046}",
            "a\u{F0041}\u{F0042}\u{F0043}\u{F0044}",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(cleaned(text), expected, "{text:?}");
        let flags = clean_text(text, RetainedControls::Text).flags;
        assert!(flags.iter().any(
            |flag| flag.removed && flag.kind.is_suspicious() || flag.kind == FlagKind::Private
        ));
    }
}

#[test]
fn clean_text_removes_terminal_escape_sequences_except_colours() {
    let cases = [
        ("a\x1b]52;c;Y3Vy\x07b", "ab"),
        ("\x1b]8;;file:///etc\x1b\\click\x1b]8;;\x1b\\", "click"),
        ("a\x1b[2J\x1b[Hb\x1b[?1049h\x1b[201~\x1bc\x1b(0\x1b#8\x1bM", "ab"),
        ("a\x1bPq#0\x1b\\b\x1b_x\x1b\\c\x1b^x\x1b\\d\x1bXx\x1b\\e", "abcde"),
        ("a\u{9B}31mred \u{9D}0;t\u{9C}b \u{90}q\u{9C}", "ared b "),
        ("a\x1b]0;no end\nb\x1b[", "a0;no end\nb"),
        ("\x1b[>4;2mx\x1b[99999bz", "xz"),
    ];
    for (text, expected) in cases {
        assert_eq!(cleaned(text), expected, "{text:?}");
        assert_eq!(clean_text(text, RetainedControls::Colour).text, expected, "{text:?}");
    }
    let red = "\x1b[1;31merror\x1b[0m";
    assert_eq!(clean_text(red, RetainedControls::Colour).text, red);
    assert_eq!(cleaned(red), "error");
    assert!(!has(red, FlagKind::Terminal) && has(red, FlagKind::Colour));
    let hidden = "a\x1b[37;47mb\x1b[0m\x1b[8mc";
    assert_eq!(clean_text(hidden, RetainedControls::Colour).text, "ab\x1b[0mc");
    assert!(has(hidden, FlagKind::HiddenColour));
}

#[test]
fn clean_text_merges_backspace_overstrikes() {
    assert_eq!(cleaned("N\u{8}NA\u{8}AM\u{8}ME\u{8}E of ls"), "NAME of ls");
    assert_eq!(cleaned("rm\u{8}\u{8}ls"), "rmls");
    assert_eq!(cleaned("\u{8}a é\u{8}é"), "a é");
}

#[test]
fn mixed_script_and_lookalike_words_are_flagged_but_not_removed() {
    let mixed =
        ["gіthub.com", "рaypal", "sayНello()", "say_һello", "Пpивет", "αdmin", "օpen", "ехес(1)"];
    for text in mixed {
        assert!(has(text, FlagKind::MixedScript), "{text}");
        assert_eq!(cleaned(text), text);
    }
    let alike = [
        "google.com∕evil",
        "example.com／x",
        "a｜sh",
        "＇; drop",
        "%００",
        "\u{212A}ey",
        "℡",
        "𝐜𝐮𝐫𝐥",
        "ⓒⓤⓡⓛ",
        "environmentǃ=x",
        "‥/etc",
        "conﬁg",
        "ſcript",
        "x\u{37E} y",
        "ｃｕｒｌ",
        "ｃurl # 中文",
    ];
    for text in alike {
        assert!(has(text, FlagKind::LookAlike), "{text}");
        assert_eq!(cleaned(text), text);
    }
    let honest = [
        "name: Привет",
        "/tmp/backup_сервер.log",
        "Rustを使う。",
        "RustのＡＰＩを呼ぶ",
        "CSSный php-шник",
        "100％ 完成",
        "о чём речь",
        "5μF, λx.x, kΩ",
        "URL：https://x 中",
        "…",
        "№ 5 ™",
        "с а",
        "x²",
    ];
    for text in honest {
        let flags = clean_text(text, RetainedControls::Text).flags;
        assert!(flags.is_empty(), "{text}: {flags:?}");
    }
}

#[test]
fn clean_bytes_replaces_invalid_utf8_and_flags_it() {
    let dirty = clean_bytes(b"x \xc0\xaf y\x1b[2J", RetainedControls::Text);
    assert_eq!(dirty.text, "x \u{FFFD}\u{FFFD} y");
    assert!(dirty.flags.iter().any(|flag| flag.kind == FlagKind::Invalid && flag.at == 2));
    assert!(matches!(
        clean_bytes(b"plain", RetainedControls::Text).text,
        std::borrow::Cow::Borrowed(_)
    ));
}

#[test]
fn unicode_flag_reports_kind_position_and_count() {
    let flags = clean_text("ab\u{200B}c\u{200B}", RetainedControls::Text).flags;
    let [flag] = flags.as_slice() else { panic!("{flags:?}") };
    assert_eq!((flag.at, flag.count, flag.removed), (2, 2, true));
    assert_eq!(flag.to_sentence(), "zero-width spaces: 2 removed, first at byte 2");
}

/// Text made of what is judged, and of what it is judged by.
fn tricky() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Z0-9 ./~$;:m\\[\\]()?\\\\-]{0,4}",
        1 => Just("\n".to_owned()),
        1 => Just("\r".to_owned()),
        1 => Just("\u{1A}".to_owned()),
        2 => prop::sample::select(vec![
            "\x1b[", "\x1b]", "\x1b", "\x07", "\x1b\\", "\u{9B}", "\u{9D}", "\u{9C}", "\x1bP", "31m",
            "\x1b[8m", "\x1b[37;47m", "\x1b(",
        ]).prop_map(str::to_owned),
        2 => prop::sample::select(vec![
            "😀", "❤", "👩", "🏴", "\u{1F3FD}", "葛", "中", "。", "ب", "ه", "ש", "क", "\u{94D}", "ষ", "\u{9CD}",
            "ไ", "ᠠ", "\u{1100}", "\u{1161}", "⣀", "а", "Ж", "α", "𝐜", "ｃ", "\u{301}", "1", "#",
        ]).prop_map(str::to_owned),
        4 => prop::sample::select(vec![
            '\u{200B}', '\u{200C}', '\u{200D}', '\u{2060}', '\u{AD}', '\u{FEFF}', '\u{FE0F}', '\u{FE00}',
            '\u{E0100}', '\u{E0151}', '\u{20E3}', '\u{34F}', '\u{115F}', '\u{1160}', '\u{3164}', '\u{2800}',
            '\u{2009}', '\u{2062}', '\u{180B}', '\u{180E}', '\u{2029}', '\u{200E}', '\u{200F}', '\u{61C}',
            '\u{202A}', '\u{202B}', '\u{202C}', '\u{202D}', '\u{202E}', '\u{2066}', '\u{2067}', '\u{2068}',
            '\u{2069}', '\u{F0041}', '\u{E000}', '\u{FFFE}', '\u{17B4}', '\u{1680}',
        ]).prop_map(String::from),
        1 => Just("\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}".to_owned()),
        1 => Just("\u{E0067}".to_owned()),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn is_subsequence(part: &str, whole: &str) -> bool {
    let mut rest = whole.chars();
    part.chars().all(|c| rest.any(|other| other == c))
}

fn streamed(
    text: &str,
    keep: RetainedControls,
    cuts: &[prop::sample::Index],
) -> gnoma_guard::unicode::CleanedText<'static> {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| ends[cut.index(ends.len())]).collect();
    cuts.push(text.len());
    cuts.sort_unstable();
    let mut cleaner = Cleaner::new(keep);
    let (mut shown, mut from) = (String::new(), 0);
    for to in cuts {
        shown.push_str(&cleaner.push(&text[from..to]));
        from = to;
    }
    let last = cleaner.finish();
    shown.push_str(&last.text);
    gnoma_guard::unicode::CleanedText { text: shown.into(), flags: last.flags }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn clean_text_is_idempotent(text in tricky(), colour: bool) {
        let keep = if colour { RetainedControls::Colour } else { RetainedControls::Text };
        let once = clean_text(&text, keep).text.into_owned();
        prop_assert!(is_subsequence(&once, &text));
        prop_assert_eq!(clean_text(&once, keep).text, once.as_str());
        let never = ['\u{202E}', '\u{202D}', '\u{9B}', '\0', '\u{7}'];
        prop_assert!(!once.contains(never));
        prop_assert!(colour || !once.contains('\x1b'));
    }

    #[test]
    fn clean_stream_equals_clean_text_for_any_chunk_boundaries(
        text in tricky(),
        colour: bool,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let keep = if colour { RetainedControls::Colour } else { RetainedControls::Text };
        let whole = clean_text(&text, keep);
        prop_assert_eq!(streamed(&text, keep, &cuts), whole);
    }

    #[test]
    fn clean_bytes_accepts_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let once = clean_bytes(&bytes, RetainedControls::Text).text.into_owned();
        prop_assert_eq!(clean_text(&once, RetainedControls::Text).text, once.as_str());
    }
}

#[test]
fn stream_cleaner_buffers_a_bounded_amount() {
    let mut cleaner = Cleaner::new(RetainedControls::Text);
    let mut shown = cleaner.push("\u{2067}\x1b]0;").len();
    for _ in 0..20_000 {
        shown += cleaner.push("x").len();
    }
    assert!(shown > 11_000);
}

#[test]
fn bom_at_the_start_of_a_listed_line_is_removed_without_a_flag() {
    for text in [
        "a\n\u{feff}b",
        "-\u{feff}old\n+\u{feff}new",
        "f.txt:1:\u{feff}x",
        "1\t\u{feff}x",
        "a\r\n\u{feff}b",
    ] {
        let cleaned = clean_text(text, RetainedControls::Text);
        assert!(!cleaned.text.contains('\u{feff}'), "{text:?}");
        assert_eq!(cleaned.flags, [], "{text:?}");
    }
    for text in ["ig\u{feff}nore", "+\u{feff}\u{feff}x", "a \u{feff}b \u{feff}c"] {
        assert_ne!(clean_text(text, RetainedControls::Text).flags, [], "{text:?}");
    }
}
