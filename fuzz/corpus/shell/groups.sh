( cd /tmp && rm -rf x ) & { ls; } 2>&1; ! true
