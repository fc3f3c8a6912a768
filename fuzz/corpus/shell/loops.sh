for f in *.txt; do rm "$f"; done; while read l; do echo $l; done < a; until false; do break; done
