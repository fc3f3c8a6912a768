python3 -c 'import os; os.remove("x")'; awk 'BEGIN{system("rm x")}'; sed -n 's/a/b/w out' f; perl -e 'unlink x'
