// Text from outside, made fit for a terminal and for tables.
#pragma once

#include <string>
#include <string_view>

namespace halftone {

// `text` with control bytes as \xHH, so that a name from a file can neither move the cursor nor
// begin a line of its own. Tabs and newlines stay where `lines` is set: for messages of several
// lines. Bytes from 0x80 on stay as they are, but for the control characters that UTF-8 puts there
// (C1).
std::string Printable(std::string_view text, bool lines = false);

}  // namespace halftone
