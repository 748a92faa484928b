#include "halftone/python_stub/stubs/stub_text.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "halftone/core/status.h"

namespace halftone::python {
namespace {

constexpr size_t kWidth = 92;

// A docstring, its lines as long as the tree's may be.
std::string Docstring(const std::string& doc, const std::string& indent) {
  std::string text = indent + "\"\"\"";
  size_t column = text.size();
  std::istringstream lines(doc);
  std::string line;
  for (bool first = true; std::getline(lines, line); first = false) {
    if (!first) {
      text += "\n" + (line.empty() ? "" : indent);
      column = indent.size();
    }
    std::istringstream words(line);
    std::string word;
    for (bool begins = true; words >> word; begins = false) {
      if (!begins && column + 1 + word.size() > kWidth) {
        text += "\n" + indent;
        column = indent.size();
        begins = true;
      }
      text += (begins ? "" : " ") + word;
      column += (begins ? 0 : 1) + word.size();
    }
  }
  if (text.back() == '"') text += "\n" + indent;
  return text + "\"\"\"\n";
}

// The head of a function, in one line if it fits, up to the colon.
std::string Head(const std::string& name, const std::vector<std::string>& parameters,
                 const std::string& result, const std::string& indent) {
  std::string line, lines;
  for (const std::string& parameter : parameters) {
    line += (line.empty() ? "" : ", ") + parameter;
    lines += indent + "    " + parameter + ",\n";
  }
  const std::string begin = indent + "def " + name + "(", end = ") -> " + result + ":";
  if (begin.size() + line.size() + end.size() <= kWidth) return begin + line + end;
  return begin + "\n" + lines + indent + end;
}

}  // namespace

std::string Literal(double value) {
  char text[32];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  const std::string literal = text;
  return literal.find_first_of(".e") == std::string::npos ? literal + ".0" : literal;
}
std::string Literal(int64_t value) { return std::to_string(value); }
std::string Literal(bool value) { return value ? "True" : "False"; }
std::string Literal(const std::string& value) { return "\"" + value + "\""; }

std::string FunctionStub(const std::string& name, const std::vector<std::string>& parameters,
                         const std::string& result, const std::string& doc) {
  return Head(name, parameters, result, "") + "\n" + Docstring(doc, "    ");
}

std::string ClassStub(const std::string& name, const std::string& base, const std::string& doc,
                      const std::vector<std::string>& attributes,
                      const std::vector<std::string>& parameters) {
  std::string text = "@final\nclass " + name + "(" + base + "):\n" + Docstring(doc, "    ") + "\n";
  for (const std::string& attribute : attributes) text += "    " + attribute + "\n";
  return text + Head("__init__", parameters, "None", "    ") + " ...\n";
}

int WriteStub(int argc, char** argv, void (*print)()) {
  if (argc != 2) return 2;
  std::ifstream by_hand(argv[1]);
  std::cout << by_hand.rdbuf();
  print();
  std::cout.flush();
  return by_hand.good() && std::cout.good() ? 0 : 1;
}

}  // namespace halftone::python
