# Checks the direction of includes. Usage: awk -f layers.awk layers.txt FILE...
# Prints each violation; exit status 1 if there was one.
FNR == NR {
	if ($0 !~ /^#/ && NF) {
		allowed[$1] = $0
		sub(/^[^ \t]+[ \t]*/, "", allowed[$1])
	}
	next
}
FNR == 1 {
	dir = FILENAME
	sub(/\/[^\/]*$/, "", dir)
	# The longest prefix of the file's folder that has a row.
	rule = dir
	while (!(rule in allowed) && rule ~ /\//)
		sub(/\/[^\/]*$/, "", rule)
}
/^[ \t]*#[ \t]*include[ \t]+"/ {
	split($0, part, "\"")
	target = part[2]
	good = index(target, rule "/") == 1
	n = split(allowed[rule], prefix, /[ \t]+/)
	for (i = 1; i <= n; i++)
		if (target == prefix[i] || index(target, prefix[i] "/") == 1)
			good = 1
	if (!good) {
		printf "%s:%d: %s may not include %s\n", FILENAME, FNR, rule, target
		bad = 1
	}
}
END { exit bad }
