cat a | grep -v '^#' | sort | uniq -c | tee out.txt
