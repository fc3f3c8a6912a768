case $1 in a|b) ls ;; (c) rm x ;& *) cat y ;; esac; if [[ -f a && $b =~ ^x(y|z)$ ]]; then ls; elif ((x>1)); then :; else rm z; fi
