echo "a $(b 'c
