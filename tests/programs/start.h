// Starts the programs of the build as a user does.
#pragma once

#include <string>

namespace halftone::testing {

struct Result {
  int status = -1;     // exit status; -1: did not start, or ended by a signal
  std::string out;     // standard output
  std::string err;     // standard error
  std::string output;  // both, one after the other
};

// Runs <build>/<program> with `arguments`, a piece of shell.
Result Start(const std::string& program, const std::string& arguments);

// Whether either stream has `text`.
bool Has(const Result& run, const std::string& text);

// A new, empty folder below the folder for temporary files; removed with the object.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  // The path of `name` in the folder.
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file and gives its path.
  std::string Write(const std::string& name, const std::string& contents) const;

 private:
  std::string path_;
};

// The bytes of a file; "" if it cannot be read.
std::string Contents(const std::string& path);

}  // namespace halftone::testing
