cat <<A <<'B' > out
$(rm x)
A
$(not run)
B
sh <<-E
	rm y
	E
