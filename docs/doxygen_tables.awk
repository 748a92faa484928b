# From the preprocessed docs/tables.h to what Doxygen reads: a row begins HT_DOC(...), of whose arguments
# `.doc` is the description.
/^ *HT_DOC\(/ {
  doc = $0
  sub(/^.*\.doc = "/, "", doc)
  sub(/"[,)] *(\.[a-z_]+ = .*)?$/, "", doc)
  sub(/", \..*$/, "", doc)
  gsub(/" "/, "", doc)
  gsub(/[\\@&$#<>%"]/, "\\\\&", doc)
  declaration = $0
  sub(/^.*\) Value /, "Value ", declaration)
  print "/// " doc
  print declaration
  next
}
{ print }
