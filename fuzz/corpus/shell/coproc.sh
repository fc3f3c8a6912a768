coproc rm x; select y in a; do rm $y; done; trap "rm z" EXIT; time ls; exec 2>log
