# Finds circles among headers. Usage: awk -f cycles.awk HEADER...
/^[ \t]*#[ \t]*include[ \t]+"/ {
	split($0, part, "\"")
	out[FILENAME] = out[FILENAME] " " part[2]
}
# Removes headers without open includes until nothing changes; what is left lies on a circle.
END {
	for (f in out)
		open[f] = 1
	do {
		changed = 0
		for (f in open) {
			n = split(out[f], to, " ")
			blocked = 0
			for (i = 1; i <= n; i++)
				if (to[i] in open)
					blocked = 1
			if (!blocked) {
				delete open[f]
				changed = 1
			}
		}
	} while (changed)
	for (f in open) {
		print f ": on a circle of includes, or behind one"
		bad = 1
	}
	exit bad
}
