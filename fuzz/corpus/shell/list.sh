ls -la; rm -rf build && echo done || exit 1
