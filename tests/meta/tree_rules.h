// Rules of the source tree that a compiler does not check. Each function returns one line per
// violation, "path:line: what", and nothing for a clean file, so that a test can print them all.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace halftone::meta {

// A text file below the source root; `path` is relative to the root and uses '/'.
struct SourceFile {
  std::string path;
  std::string text;
};

// All source, header, table, proto, Python, CMake and Markdown files below `root`. Skips hidden
// directories and build trees (directories with a CMakeCache.txt, and `build`).
std::vector<SourceFile> ReadTree(const std::filesystem::path& root);

// The layer that owns `path` ("kernels/cpu/ops" for kernels/cpu/ops/copy.cc), or "" for none.
std::string_view LayerOf(std::string_view path);

// Includes point down the layers, nothing outside tests/ includes tests, headers stay light (no
// library headers of oneDNN, Highway, protobuf; no <iostream>), own files are named "halftone/...".
std::vector<std::string> CheckIncludes(const SourceFile& file);

// Register functions are defined directly in a folder named `ops`: CMake lists those of such a
// folder only (cmake/HalftoneRegistration.cmake), and one elsewhere would be forgotten without a
// word.
std::vector<std::string> CheckRegistrations(const SourceFile& file);

// Headers carry `#pragma once`, except Highway headers that are included once per target.
std::vector<std::string> CheckPragmaOnce(const SourceFile& file);

// No file over kMaxLines lines, no README over kMaxReadmeLines; what a program has written, such as
// docs/operators.md, is as long as it is.
std::vector<std::string> CheckLength(const SourceFile& file);

// Every folder with sources has a README.md, or the README above it names it (`support/`); tests/
// has one for all its folders.
std::vector<std::string> CheckReadmes(const std::vector<SourceFile>& files);

// Links of Markdown files point to files and folders that exist: [text](path), path relative to the
// file, anchors cut off. Links with a scheme and those inside code are left alone. `exists` is
// asked with paths relative to the root.
std::vector<std::string> CheckLinks(const SourceFile& file,
                                    const std::function<bool(const std::string&)>& exists);

// Names that rows of a table have said once and for all.
struct NamesRule {
  std::function<bool(const std::string& path)> applies;
  // "path:line: name" for each of them in the file.
  std::function<std::vector<std::string>(const SourceFile& file)> named_in;
  std::map<std::string, std::string> allowed;  // files that name some all the same, and why
};

// The names in files that are not allowed to have any, and the allowed files that have none.
std::vector<std::string> CheckNames(const std::vector<SourceFile>& files, const NamesRule& rule);

inline constexpr int kMaxLines = 600;
inline constexpr int kMaxReadmeLines = 100;

}  // namespace halftone::meta
