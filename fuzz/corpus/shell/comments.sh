ls # rm x
#!/bin/sh
echo a#b "#c"
