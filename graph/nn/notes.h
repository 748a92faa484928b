// Notes: what a user should know that is no error. A graph keeps them (Graph::notes); the first of
// each kind in a process also goes to standard error, since nobody calls notes() who does not
// suspect something.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace halftone::nn {

enum class NoteKind : uint8_t {
  kPass,              // of a node or module: a constant that does not fit, a wish out of reach
  kNoLowType,         // mixed precision is on, and the device has no fast 16-bit type
  kNothingLow,        // mixed precision is on, and no node runs in 16 bit
  kUnreadBackward,    // backward() that nothing follows
  kFloat64,           // an input of 64 bit that makes the step slow
  kCompilesAnew,      // shapes that change at every call
  kMoreMemory,        // 16 bit on a CPU that takes more memory than f32
  kUnusedParameters,  // parameters of an optimizer that build() does not use
  kStuckScaler,       // a scaler that keeps skipping at a scale that cannot fall
};

// "halftone: note: <text>" on standard error, which is silent with HALFTONE_NOTES=0 in the
// environment.
void PrintNote(const std::string& text);

class Notes {
 public:
  // One of a kind, but of kPass, kUnusedParameters and kStuckScaler one of a text. Printed where
  // `print`, and the first of its kind in the process anyway, except those of kPass, which are
  // about single nodes. `graph`: whose note it is.
  void Add(NoteKind kind, std::string text, const std::string& graph, bool print);
  // Takes a note of kPass back.
  void Remove(const std::string& text);
  bool Has(NoteKind kind) const { return kinds_.count(kind) != 0; }
  const std::vector<std::string>& texts() const { return texts_; }

  // As if the process had printed none: for tests.
  static void ForgetPrinted();

 private:
  std::set<NoteKind> kinds_;
  std::vector<std::string> texts_;
};

}  // namespace halftone::nn
