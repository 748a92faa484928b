// Tables and quantities as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace halftone::tools {

// Columns two spaces apart, as wide as they need to be. The first row is the header; a column
// whose header begins with '>' (not printed) is aligned right. No blanks at the end of a line.
std::string FormatTable(std::vector<std::vector<std::string>> rows);

// Three digits: "0.5", "1.23e-07", "8e+04".
std::string FormatNumber(double number);
// "812 B", "1.5 KiB", "23.4 MiB".
std::string FormatBytes(double bytes);
// "812", "12.3 k", "4.56 G": three digits from 10,000 on.
std::string FormatCount(double count);
// "12.3 %" of `whole`; "-" if that is 0.
std::string FormatShare(double part, double whole);

}  // namespace halftone::tools
