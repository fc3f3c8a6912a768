git -C x -c core.pager=rm log -p; git commit -m "$(date)"; git config core.hooksPath h; git diff --no-index a b
