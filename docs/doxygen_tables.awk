# Reads a preprocessed header, of which only lines of its own and of tables (*.def) are kept, and puts
# the text of HT_DOC(...) into a comment above the declaration behind it. The text: the strings that
# follow `.doc =` or `.formula =`, else those at the front.

# The number of characters of a call's arguments up to its closing bracket, that included.
function length_of_call(text,    i, c, depth, in_string) {
  depth = 1
  for (i = 1; i <= length(text); ++i) {
    c = substr(text, i, 1)
    if (in_string) {
      if (c == "\\") ++i
      else if (c == "\"") in_string = 0
    } else if (c == "\"") in_string = 1
    else if (c == "(") ++depth
    else if (c == ")" && --depth == 0) return i
  }
  return length(text)
}

function strings(text,    joined, part) {
  if (match(text, /\.(doc|formula) = /)) text = substr(text, RSTART + RLENGTH)
  while (match(text, /^ *"([^"\\]|\\.)*"/)) {
    part = substr(text, RSTART, RLENGTH)
    text = substr(text, RSTART + RLENGTH)
    sub(/^ *"/, "", part)
    sub(/"$/, "", part)
    gsub(/\\"/, "\"", part)
    joined = joined part
  }
  return joined
}

/^# [0-9]+ "/ {
  in_header = $3 == "\"<stdin>\""
  in_table = $3 ~ /\.def"$/
  next
}

in_header { print }

in_table && !/^ *(\/\/|$)/ {
  while (match($0, /HT_DOC\(/)) {
    head = substr($0, 1, RSTART - 1)
    $0 = substr($0, RSTART + RLENGTH)
    end = length_of_call($0)
    doc = strings(substr($0, 1, end - 1))
    $0 = substr($0, end + 1)
    # Paragraphs that doxygen_filter.awk knows begin a line.
    gsub(/ (Dtypes|Errors|Example|Requires|Shapes|Source|Units):/, "\n//&", doc)
    gsub(/\n\/\/  /, "\n// ", doc)
    if (head !~ /^ *$/) print head
    if (doc != "") print "// " doc
  }
  print
}
