cp a{,.bak} {1..3} {a,b}/{c,d} ${x} ${y#*/} ${z//a/b} ${!n}
