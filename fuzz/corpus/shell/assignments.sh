A=1 B=$(rm x) PATH=/tmp:$PATH ls; declare -x C=2; a=(1 2 $(id)); a[0]=x; export D
