# Checks slug.sh; ends with 1 if anything is wrong.
. ./slug.sh
failed=0
check() {
    got=$(slug "$1")
    if [ "$got" = "$2" ]; then
        echo "ok   '$1' -> $got"
    else
        echo "FAIL '$1': expected $2, got $got"
        failed=1
    fi
}
check "Hello World" hello-world
check "One" one
check "Two  blanks" two-blanks
exit $failed
