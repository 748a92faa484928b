#!/bin/sh
# What Doxygen reads of a header: declarations that come from a table (*.def) are written out, then
# comments become documentation. From the source root; `make docs` makes the include path.
set -e
if ! grep -q '^#include "halftone/.*\.def"' "$1"; then
  exec awk -f docs/doxygen_filter.awk "$1"
fi
# Other headers are left out, among them the one that takes HT_DOC away.
sed -E '/^#include.*\.def"/b; s/^#(include|pragma once).*//' "$1" |
  g++ -E -C -nostdinc -I build/docs/include -x c++ - |
  awk -f docs/doxygen_tables.awk | awk -f docs/doxygen_filter.awk
