echo "$(rm x)" `touch y` ${z:-$(id)} $((1+2)) <(ls) >(cat)
