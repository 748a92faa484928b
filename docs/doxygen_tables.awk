# From the preprocessed docs/tables.inc to what Doxygen reads: a row begins HT_DOC(...), of whose arguments the
# first string is the description, and HT_DECLARES stands before what it declares.
/^ *HT_DOC\(/ {
  match($0, /"([^"\\]|\\.)*"( "([^"\\]|\\.)*")*/)
  doc = substr($0, RSTART + 1, RLENGTH - 2)
  gsub(/" "/, "", doc)
  gsub(/\\"/, "\"", doc)
  gsub(/[\\@&$#<>%"]/, "\\\\&", doc)
  print "/// " doc
  sub(/^.* HT_DECLARES /, "")
}
{ print }
