# slug TEXT: prints TEXT in lower case, its words joined by single dashes.
slug() {
    printf '%s' "$1" | tr 'A-Z' 'a-z' | tr ' ' '-'
}
