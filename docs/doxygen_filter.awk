# Turns the comments of a header into what Doxygen reads: the comment at the top of the file describes
# the file, a comment above or behind a declaration describes it, `x` is code, indented lines are an
# example, and a line that starts with a keyword of ours (Errors:, Shapes:) a paragraph of that name.
# Everything else is plain text: no character of a comment is a command.

function escape(text) {
  gsub(/[\\@<>#%&"]/, "\\\\&", text)
  gsub(/::/, "\\::", text)
  while (match(text, /`[^`]+`/)) {
    text = substr(text, 1, RSTART - 1) "<tt>" substr(text, RSTART + 1, RLENGTH - 2) "</tt>" \
           substr(text, RSTART + RLENGTH)
  }
  return text
}

function close_code() {
  if (in_code) print "/// \\endcode"
  in_code = 0
}

FNR == 1 && /^\/\/ / { print "/// \\file" }

/^ *\/\// && !/^ *\/\/ (NOLINT|clang-format)/ {
  text = $0
  sub(/^ *\/\/ ?/, "", text)
  is_item = text ~ /^ *([0-9]+\.|\*) /
  if (text ~ /^   / && !is_item && !in_item) {
    if (!in_code) print "/// \\code{.cpp}"
    in_code = 1
    print "/// " text
    next
  }
  close_code()
  if (in_item && !is_item && text !~ /^  /) print "/// ."
  in_item = is_item || (in_item && text ~ /^  /)
  if (is_item) {
    sub(/^ *([0-9]+\.|\*) /, "", text)
    print "/// - " escape(text)
  } else if (match(text, /^(Dtypes|Errors|Example|Invariants|Order|Requires|Shapes|Source|Stats|Thread-safety|Units):/)) {
    print "/// \\par " substr(text, 1, RLENGTH - 1)
    print "/// " escape(substr(text, RLENGTH + 1))
  } else {
    print "/// " escape(text)
  }
  next
}

{
  close_code()
  in_item = 0
  # A comment behind code; not the // of an address or inside a string.
  if (match($0, /[;,{)}] +\/\/ /) && $0 !~ /NOLINT|\/\/ namespace|^#/) {
    print substr($0, 1, RSTART) " ///< " escape(substr($0, RSTART + RLENGTH))
    next
  }
  print
}
