f() { rm "$1"; }; function g { f a; }; g; f b
