# Function length (60 lines) and file length (800). Usage: awk -f size.awk exceptions.txt FILE...
# A function of ours starts with "{" in the first column and ends with "}" there.
FNR == NR {
	if ($0 !~ /^#/ && NF)
		excepted[$1] = 1
	next
}
FNR == 1 {
	if (file != "" && lines > 800 && !(file in excepted)) {
		printf "%s: %d lines, more than 800\n", file, lines
		bad = 1
	}
	file = FILENAME
	start = 0
}
{ lines = FNR }
/^[a-zA-Z].*\(/ && !/;[ \t]*$/ {
	name = $0
	sub(/\(.*/, "", name)
	sub(/.*[ *]/, "", name)
}
/^\{/ { start = FNR }
/^\}/ {
	if (start && FNR - start - 1 > 60 && !((file ":" name) in excepted)) {
		printf "%s:%d: %s has %d lines, more than 60\n", file, start, name, FNR - start - 1
		bad = 1
	}
	start = 0
}
END {
	if (lines > 800 && !(file in excepted)) {
		printf "%s: %d lines, more than 800\n", file, lines
		bad = 1
	}
	exit bad
}
