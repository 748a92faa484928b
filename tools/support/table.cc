#include "halftone/tools/support/table.h"

#include <algorithm>
#include <cstdio>

#include "halftone/core/printable.h"

namespace halftone::tools {
namespace {

std::string Format(const char* format, double number, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof(text), format, number);
  return std::string(text) + unit;
}

}  // namespace

std::string FormatTable(std::vector<std::vector<std::string>> rows) {
  std::vector<size_t> widths(rows[0].size());
  std::vector<bool> right(rows[0].size());
  for (size_t c = 0; c < rows[0].size(); ++c) {
    right[c] = rows[0][c].starts_with('>');
    if (right[c]) rows[0][c].erase(0, 1);
  }
  for (auto& row : rows) {
    for (std::string& cell : row) cell = Printable(cell);
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string table;
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string pad(widths[c] - row[c].size(), ' ');
      line += (c == 0 ? "" : "  ") + (right[c] ? pad + row[c] : row[c] + pad);
    }
    table += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return table;
}

std::string FormatNumber(double number) { return Format("%.3g", number, ""); }

std::string FormatBytes(double bytes) {
  if (bytes < 1024) return Format("%.0f", bytes, " B");
  for (const char* unit : {" KiB", " MiB", " GiB"}) {
    bytes /= 1024;
    if (bytes < 1024) return Format("%.1f", bytes, unit);
  }
  return Format("%.1f", bytes / 1024, " TiB");
}

std::string FormatCount(double count) {
  if (count < 10000) return Format("%.0f", count, "");
  const char* unit = "";
  for (const char* next : {" k", " M", " G", " T", " P"}) {
    if (count < 1000) break;
    count /= 1000;
    unit = next;
  }
  return Format(count < 10 ? "%.2f" : count < 100 ? "%.1f" : "%.0f", count, unit);
}

std::string FormatShare(double part, double whole) {
  return whole == 0 ? "-" : Format("%.1f", 100 * part / whole, " %");
}

}  // namespace halftone::tools
