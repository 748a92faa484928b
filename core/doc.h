// HT_DOC("..."): documents the declaration behind it, which a macro makes, where no comment can. For
// the reference alone (docs/doxygen_tables.awk); the compiler sees nothing.
#pragma once

#define HT_DOC(...)
