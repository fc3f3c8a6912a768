bash -c 'rm x; ls' sh -c "$X"; eval rm y; env A=1 sudo -u me nice -n 5 rm z; xargs -0 rm < list; find . -name x -exec rm {} + -o -delete
