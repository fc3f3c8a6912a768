ls​ -la ; r‍m x; ‮ls
