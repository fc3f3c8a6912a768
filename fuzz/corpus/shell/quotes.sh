r""m -r'f' \x $'\x72\u006d' "a\"b" 'c'\''d'
